"""A node and a peer that do what they may, and what they may not, at TCP sockets: PATH-OF-LIBRARY FOLDER.

A server, unmodified, echoes what comes; each case is a connection, or what is none.
"""

import contextlib
import errno
import os
import secrets
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onym.push.message import Kind, Message, Status
from played import PATIENCE, Played

OPEN, OCTETS, END, ACKNOWLEDGE, RESET = range(5)
REFUSED, UNKNOWN = range(2)
WINDOW = 32
ANSWERING_MAX, REFUSALS_MAX = 64, 32
THERE = bytes.fromhex("5443500000000000") + bytes([10, 0, 0, 9, 0, 80, 0, 0])
BACK = bytes.fromhex("5443520000000000") + THERE[8:]
PROGRAM = """
import socket
server = socket.create_server(("10.0.0.9", 80), backlog=100)
print("listening", flush=True)
while True:
    connection, peer = server.accept()
    assert peer[0].startswith("240."), peer
    try:
        while octets := connection.recv(1 << 16):
            connection.sendall(octets)
        print("end", flush=True)
    except ConnectionResetError:
        print("reset", flush=True)
    connection.close()
"""
CALLER = """
import socket, sys
while True:
    try:
        socket.create_connection(("10.0.0.9", 80))
    except OSError as error:
        print(error.errno, flush=True)
    sys.stdin.readline()
"""


@dataclass(frozen=True)
class Segment:
    kind: int
    number: int = 0
    acknowledged: int = 0
    window: int = WINDOW
    came: int = 0
    octets: bytes = b""

    def wire(self) -> bytes:
        head = (1, self.kind, self.window, self.number, self.acknowledged, self.came)
        return struct.pack(">BBHIII", *head) + self.octets

    @classmethod
    def parse(cls, wire: bytes) -> "Segment":
        version, kind, window, number, acknowledged, came = struct.unpack(">BBHIII", wire[:16])
        assert version == 1
        return cls(kind, number, acknowledged, window, came, wire[16:])


class Network(Played):
    """The node, which grants every request, and whoever is behind it."""

    def next(self, wanted: Callable[[Message], bool]) -> Message:
        """The next message that is wanted; others are passed."""
        while True:
            message = self.hear()
            if message.kind < Kind.PUBLISH:
                self.say(Message(Kind.STATUS, tag=message.tag, status=0))
            if wanted(message):
                return message

    def item(self, kind: Kind) -> bytes:
        message = self.next(lambda m: m.kind == kind)
        return message.prefix + message.id

    def withdrawn(self, label: bytes) -> None:
        """Until the server has taken back its way of a stream."""
        self.next(lambda m: m.kind == Kind.UNPUBLISH_ITEM and m.prefix + m.id == BACK + label)

    def data(self, label: bytes, *segments: Segment) -> None:
        self.say(*(Message(Kind.DATA, id=THERE + label, payload=s.wire()) for s in segments))

    def segment(self, label: bytes, wanted: Callable[[Segment], bool]) -> Segment:
        """The next segment of a stream that is wanted."""

        def is_it(m: Message) -> bool:
            is_of_it = m.kind == Kind.PUBLISH and m.id == BACK + label
            return is_of_it and wanted(Segment.parse(m.payload or b""))

        return Segment.parse(self.next(is_it).payload or b"")

    def connect(self, window: int = WINDOW) -> bytes:
        """A stream, up to where the client has to acknowledge."""
        label = secrets.token_bytes(8)
        self.data(label, Segment(OPEN, window=window))
        assert self.item(Kind.PUBLISH_ITEM) == BACK + label
        self.say(Message(Kind.START_PUBLISH, id=BACK + label))
        answer = self.segment(label, lambda s: s.kind == OPEN)
        assert answer == Segment(OPEN, 0, 1, WINDOW - 1), answer
        return label


def strangers(node: Network, program: subprocess.Popen[bytes]) -> None:
    """What is no segment costs nothing; what is of no stream a bounded number of items."""
    nobody = secrets.token_bytes(8)
    good = Segment(OPEN).wire()
    for wire in (
        b"",
        good[:15],
        b"\2" + good[1:],
        b"\1\x09" + good[2:],
        good + b"more",
        Segment(OPEN, number=1).wire(),
        Segment(OPEN, window=WINDOW + 1).wire(),
        Segment(OCTETS, 1).wire(),
        Segment(OCTETS, 1, octets=bytes(8001)).wire(),
        Segment(ACKNOWLEDGE, acknowledged=7).wire(),
        Segment(RESET).wire(),
        Segment(OPEN, acknowledged=1).wire(),
    ):
        node.say(Message(Kind.DATA, id=THERE + nobody, payload=wire))
    node.say(Message(Kind.DATA, id=THERE, payload=good))
    lost = [secrets.token_bytes(8) for _ in range(100)]
    for label in lost:
        node.data(label, Segment(OCTETS, 5, 3, octets=b"of no stream"))
    for label in lost[:REFUSALS_MAX]:
        assert node.item(Kind.PUBLISH_ITEM) == BACK + label
    callers = [secrets.token_bytes(8) for _ in range(100)]
    for label in callers:
        node.data(label, Segment(OPEN))
    # As many as may be half open; the others are not even refused, for as many wait for that.
    for label in callers[:ANSWERING_MAX]:
        assert node.item(Kind.PUBLISH_ITEM) == BACK + label
    for label in lost[:REFUSALS_MAX]:
        node.say(Message(Kind.START_PUBLISH, id=BACK + label))
        told = node.segment(label, lambda s: True)
        assert (told.kind, told.number) == (RESET, UNKNOWN), told
    node.data(callers[-1], Segment(OPEN))
    assert node.item(Kind.PUBLISH_ITEM) == BACK + callers[-1]
    node.say(Message(Kind.START_PUBLISH, id=BACK + callers[-1]))
    told = node.segment(callers[-1], lambda s: True)
    assert (told.kind, told.number) == (RESET, REFUSED), told
    for label in callers[:ANSWERING_MAX]:
        node.data(label, Segment(RESET))
        node.withdrawn(label)
    print("strangers cost a bounded number of items: ok")


def losses(node: Network, program: subprocess.Popen[bytes]) -> None:
    """Segments that are lost, repeated, turned round and beyond the window."""
    label = node.connect()
    # The server's opening is repeated until it is acknowledged.
    node.segment(label, lambda s: s.kind == OPEN)
    parts = [bytes([n]) * 100 for n in range(WINDOW)]
    segments = [Segment(OCTETS, n + 1, 1, octets=part) for n, part in enumerate(parts)]
    # What is beyond the window is dropped; the first one is missing, and is told to be.
    node.data(label, Segment(OCTETS, WINDOW + 10, 1, octets=b"beyond"))
    again = [Segment(OCTETS, n, 1, octets=b"another one") for n in range(2, 6)]
    node.data(label, *reversed(segments[1 : WINDOW - 1]), *again)
    holes = node.segment(label, lambda s: s.came == (1 << (WINDOW - 2)) - 1)
    assert (holes.acknowledged, holes.window) == (1, WINDOW), holes
    node.data(label, segments[0], segments[0])
    echoed: dict[int, bytes] = {}
    whole = b"".join(parts[:-1])
    while len(b"".join(echoed.values())) < len(whole):
        echo = node.segment(label, lambda s: s.kind == OCTETS)
        assert echoed.setdefault(echo.number, echo.octets) == echo.octets
    assert b"".join(octets for _, octets in sorted(echoed.items())) == whole
    # None of it was acknowledged: the first one comes again.
    node.segment(label, lambda s: s.kind == OCTETS and s.number == 1)
    last = max(echoed)
    node.data(label, Segment(ACKNOWLEDGE, acknowledged=last + 1))
    # More acknowledged than was sent is no acknowledgement.
    node.data(label, Segment(ACKNOWLEDGE, acknowledged=last + 100))
    node.data(label, Segment(END, WINDOW, last + 1))
    end = node.segment(label, lambda s: s.kind == END)
    assert end.number == last + 1
    node.segment(label, lambda s: s.kind == END)
    node.data(label, Segment(ACKNOWLEDGE, acknowledged=end.number + 1))
    assert program.stdout is not None and program.stdout.readline() == b"end\n"
    node.say(Message(Kind.STOP_PUBLISH, id=BACK + label))
    node.withdrawn(label)
    print("what is lost, repeated and turned round comes once and in order: ok")


def windows(node: Network, program: subprocess.Popen[bytes]) -> None:
    """A peer that takes nothing is asked for room; what is missing before three others comes at once."""
    label = node.connect(window=1)
    node.data(label, Segment(ACKNOWLEDGE, acknowledged=1, window=0))
    node.data(label, Segment(OCTETS, 1, 1, window=0, octets=b"held back"))
    asked = node.segment(label, lambda s: s.kind == OCTETS)
    assert (asked.number, asked.octets) == (1, b"held back")
    node.data(label, Segment(ACKNOWLEDGE, acknowledged=2))
    for number in range(2, 8):
        node.data(label, Segment(OCTETS, number, 2, octets=bytes([number])))
        node.segment(label, lambda s, n=number: s.kind == OCTETS and s.number >= n)  # type: ignore[misc]
    # 2 and 4 are missing; the timer would repeat 2 until that is acknowledged.
    node.data(label, Segment(ACKNOWLEDGE, 0, 2, came=0b11101))
    node.segment(label, lambda s: s.kind == OCTETS and s.number == 4)
    node.data(label, Segment(RESET))
    node.withdrawn(label)
    assert program.stdout is not None and program.stdout.readline() == b"reset\n"
    print("windows of nothing and holes: ok")


def gone(node: Network, program: subprocess.Popen[bytes]) -> None:
    """A peer that ends without a word, once what came of it has been read."""
    label = node.connect()
    node.data(label, Segment(ACKNOWLEDGE, acknowledged=1))
    node.data(label, Segment(OCTETS, 1, 1, octets=b"last words"))
    node.segment(label, lambda s: s.octets == b"last words")
    node.say(Message(Kind.STOP_PUBLISH, id=BACK + label))
    node.withdrawn(label)
    assert program.stdout is not None and program.stdout.readline() == b"reset\n"
    print("a peer that is gone: ok")


def doors(pid: int) -> set[str]:
    """Names that the system gave to sockets of a process."""
    own = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    with open("/proc/net/unix", encoding="latin-1") as table:
        rows = [line.split() for line in table]
    named = (r for r in rows if len(r) == 8 and f"socket:[{r[6]}]" in own)
    return {r[7] for r in named if len(r[7]) == 6}


def call(node: Network, program: subprocess.Popen[bytes], status: Status | None) -> int:
    """What a connect comes to; with a status its item is refused with that, without it has no subscriber."""
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write(b"again\n")
    program.stdin.flush()
    asked = [node.hear_kind(Kind.SUBSCRIBE_ITEM), node.hear_kind(Kind.PUBLISH_ITEM)]
    assert [m.prefix for m in asked] == [BACK, THERE] and asked[0].id == asked[1].id
    node.say(*(Message(Kind.STATUS, tag=m.tag, status=status or Status.OK) for m in asked))
    result = int(program.stdout.readline())
    node.hear_kind(Kind.UNPUBLISH_ITEM)
    return result


def callers(library: str, folder: str) -> None:
    """Where nobody listens, and others of this machine knock at the library's door."""
    with begin(library, f"{folder}/callers.sock", CALLER) as (node, program):
        first = node.hear_kind(Kind.PUBLISH_ITEM)
        (door,) = doors(program.pid)
        knocking = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(300)]
        for knocker in knocking:
            knocker.setblocking(False)
            knocker.connect_ex("\0" + door[1:])
        # The first one, which nobody has answered, is over when its node says so.
        node.say(Message(Kind.STATUS, tag=first.tag, status=Status.BOUND))
        assert program.stdout is not None
        assert int(program.stdout.readline()) == errno.EADDRNOTAVAIL
        node.hear_kind(Kind.UNPUBLISH_ITEM)
        assert call(node, program, Status.NO_PARENT) == errno.ECONNREFUSED
        assert call(node, program, Status.NO_RENDEZVOUS) == errno.ENETUNREACH
        assert call(node, program, None) == errno.ECONNREFUSED
        for knocker in knocking:
            knocker.close()
    print("where nobody listens, and others knock: ok")


@contextlib.contextmanager
def begin(library: str, path: str, text: str) -> Iterator[tuple[Network, subprocess.Popen[bytes]]]:
    """A program and the node that it has registered at."""
    settings = {"LD_PRELOAD": library, "ONYM_TCP_NODE": path}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        program = subprocess.Popen([sys.executable, "-c", text], env=os.environ | settings, **pipes)
        node = Network(listener.accept()[0])
    try:
        node.socket.settimeout(PATIENCE)
        node.hear_kind(Kind.REGISTER)
        node.say(Message(Kind.REGISTERED, node=bytes(8), number=1, length=1 << 20))
        yield node, program
    finally:
        program.kill()
        program.wait()


def main() -> None:
    library, folder = sys.argv[1:]
    callers(library, folder)
    with begin(library, f"{folder}/streams.sock", PROGRAM) as (node, program):
        assert node.item(Kind.SUBSCRIBE_SCOPE) == THERE
        assert program.stdout is not None and program.stdout.readline() == b"listening\n"
        for case in (strangers, losses, windows, gone):
            case(node, program)


main()
