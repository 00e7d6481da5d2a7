"""A node that says as little as it may, and a program at it: PATH-OF-LIBRARY FOLDER.

The program sends more datagrams than the connection holds while the node reads nothing, then nothing is
said to it but that it may send; afterwards it gets many at once and asks select before each one.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import termios
import time

from onym import _tlv
from onym.push.message import Kind, Message

COUNT = 1000
LAST = 2
"""Tag of the request by which the library learns that all before it was done."""
PATIENCE = 30.0
PROGRAM = f"""
import select, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.0.0.9", 7009))
s.send(b"first")
s.settimeout({PATIENCE})
assert s.recv(9000) == b"go"
for number in range({COUNT}):
    s.send(number.to_bytes(4, "big") + bytes(4000))
print("sent", flush=True)
for number in range({COUNT}):
    assert select.select([s], [], [], {PATIENCE})[0], f"{{number}} is not seen"
    assert s.recv(9000, socket.MSG_DONTWAIT) == number.to_bytes(4, "big") * (1 + number % 300), number
assert not select.select([s], [], [], 0)[0], "nothing more is there"
print("received", flush=True)
"""
ASKER = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.0.0.9", 7009))
s.send(b"question")
s.shutdown(socket.SHUT_WR)
s.settimeout({PATIENCE})
assert s.recv(9000) == b"answer"
"""


class Played:
    """The node's end of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.buffer = bytearray()

    def say(self, *messages: Message) -> None:
        self.socket.sendall(b"".join(piece for m in messages for piece in m.pieces()))

    def hear(self) -> Message:
        while (found := _tlv.head(self.buffer, 0)) is None or found[2] > len(self.buffer):
            octets = self.socket.recv(1 << 16)
            assert octets, "the program is gone"
            self.buffer += octets
        message = Message.parse(bytes(self.buffer[found[1] : found[2]]))
        del self.buffer[: found[2]]
        return message

    def hear_kind(self, kind: Kind) -> Message:
        while (message := self.hear()).kind != kind:
            pass
        return message

    def waiting(self) -> int:
        return struct.unpack("i", fcntl.ioctl(self.socket, termios.FIONREAD, bytes(4)))[0]

    def wait_until_it_stands(self) -> None:
        """Until the program has filled the connection."""
        end, before = time.monotonic() + PATIENCE, -1
        while (now := self.waiting()) != before or now < 20_000:
            assert time.monotonic() < end, "the program does not fill the connection"
            before = now
            select.select([], [], [], 0.2)


def begin(library: str, path: str, text: str) -> tuple[Played, subprocess.Popen[bytes]]:
    """A program at a node that has registered it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        settings = {"LD_PRELOAD": library, "ONYM_UDP_NODE": path}
        program = subprocess.Popen(
            [sys.executable, "-c", text], env=os.environ | settings, stdout=subprocess.PIPE
        )
        node = Played(listener.accept()[0])
    node.socket.settimeout(PATIENCE)
    node.hear_kind(Kind.REGISTER)
    node.say(Message(Kind.REGISTERED, node=bytes(8), number=1, length=1 << 20))
    return node, program


def asker(library: str, folder: str) -> None:
    """An answer that comes while the end of the questions is told is not lost."""
    node, program = begin(library, f"{folder}/asker.sock", ASKER)
    way_back = node.hear_kind(Kind.SUBSCRIBE_ITEM)
    way = node.hear_kind(Kind.PUBLISH_ITEM)
    # The program waits until what it sent has a way.
    while node.hear_kind(Kind.PUBLISH_SCOPE).tag != LAST:
        pass
    node.say(
        Message(Kind.START_PUBLISH, id=way.prefix + way.id),
        Message(Kind.DATA, id=way_back.prefix + way_back.id, payload=b"answer"),
        Message(Kind.STATUS, tag=LAST, status=0),
    )
    assert node.hear_kind(Kind.PUBLISH).payload == b"question"
    node.hear_kind(Kind.PUBLISH_SCOPE)
    node.socket.close()
    assert program.wait(PATIENCE) == 0
    print("an answer is not lost by a shutdown: ok")


def main() -> None:
    library, folder = sys.argv[1:]
    asker(library, folder)
    node, program = begin(library, f"{folder}/played.sock", PROGRAM)
    way_back = node.hear_kind(Kind.SUBSCRIBE_ITEM)
    way = node.hear_kind(Kind.PUBLISH_ITEM)
    back = way_back.prefix + way_back.id
    node.say(
        Message(Kind.START_PUBLISH, id=way.prefix + way.id),
        Message(Kind.DATA, id=back, payload=b"go"),
    )
    node.wait_until_it_stands()
    assert node.hear_kind(Kind.PUBLISH).payload == b"first"
    for number in range(COUNT):
        assert (node.hear_kind(Kind.PUBLISH).payload or b"")[:4] == number.to_bytes(4, "big")
    assert program.stdout is not None
    assert program.stdout.readline() == b"sent\n", "it waits though everything was taken"
    print("a program that filled the connection goes on when the node has read it: ok")
    node.say(
        *(
            Message(Kind.DATA, id=back, payload=n.to_bytes(4, "big") * (1 + n % 300))
            for n in range(COUNT)
        )
    )
    assert program.stdout.readline() == b"received\n"
    # It ends when it hears that everything before was done.
    node.socket.close()
    assert program.wait(PATIENCE) == 0
    print("select sees every datagram of many that come at once: ok")


if __name__ == "__main__":
    main()
