"""Just enough of NDN packets to attack with: Interests, Data, commands, and the octets of a stream."""

import hashlib
import os
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

RNG = random.Random(28)


def tlv(kind: int, value: bytes) -> bytes:
    return number(kind) + number(len(value)) + value


def number(n: int) -> bytes:
    if n < 253:
        return bytes([n])
    return b"\xfd" + struct.pack(">H", n) if n < 65536 else b"\xfe" + struct.pack(">I", n)


def unsigned(n: int) -> bytes:
    """A NonNegativeInteger."""
    return next(n.to_bytes(size, "big") for size in (1, 2, 4, 8) if n < 256**size)


def name(*parts: bytes) -> bytes:
    return tlv(7, b"".join(tlv(8, part) for part in parts))


def interest(of: bytes, more: bytes = b"", lifetime_ms: int | None = None,
             nonce: bytes | None = None) -> bytes:
    """`of` is a whole name, `more` stands between name and nonce."""
    ends = b"" if lifetime_ms is None else tlv(12, unsigned(lifetime_ms))
    return tlv(5, of + more + tlv(10, nonce or RNG.randbytes(4)) + ends)


CAN_BE_PREFIX, MUST_BE_FRESH = tlv(0x21, b""), tlv(0x12, b"")
SEGMENT, VERSION = 0x32, 0x36
CONGESTION = 50
DIGEST = tlv(0x16, tlv(0x1B, b"\0"))


def data(of: bytes, content: bytes = b"", freshness_ms: int = 0, last: int | None = None) -> bytes:
    """Signed with a digest; `last` is the segment that it calls the last one."""
    meta = tlv(0x19, unsigned(freshness_ms)) if freshness_ms else b""
    meta += b"" if last is None else tlv(0x1A, tlv(SEGMENT, unsigned(last)))
    meta = tlv(0x14, meta) if meta else b""
    signed = of + meta + tlv(0x15, content) + DIGEST
    return tlv(6, signed + tlv(0x17, hashlib.sha256(signed).digest()))


def nack(of: bytes, reason: int) -> bytes:
    """A Nack of an Interest, which is `of`."""
    return tlv(0x64, tlv(0x320, tlv(0x321, unsigned(reason))) + tlv(0x50, of))


def elements(wire: bytes) -> Iterator[tuple[int, bytes, int]]:
    """The whole TLV elements at the front of `wire`: type, value, and where each ends."""
    at = 0
    while True:
        numbers, start = [], at
        for _ in range(2):
            if at >= len(wire):
                return
            size = {253: 2, 254: 4, 255: 8}.get(wire[at], 0)
            if at + 1 + size > len(wire):
                return
            numbers.append(int.from_bytes(wire[at + 1:at + 1 + size], "big") if size else wire[at])
            at += 1 + size
        if at + numbers[1] > len(wire):
            return
        at += numbers[1]
        yield numbers[0], wire[at - numbers[1]:at], at
        assert at > start


def command(module: bytes, verb: bytes, parameters: bytes) -> bytes:
    """A command signed with a digest, in its name."""
    parts = [b"localhost", b"nfd", module, verb, tlv(0x68, parameters),
             struct.pack(">Q", time.time_ns() // 1_000_000), RNG.randbytes(8), DIGEST]
    value = b"".join(tlv(8, part) for part in parts)
    signature = tlv(0x17, hashlib.sha256(value).digest())
    return interest(tlv(7, value + tlv(8, signature)))


class App:
    """An application on the Unix socket, of another user where that can be played."""

    def __init__(self, path: str, uid: int = 0):
        self.socket = socket.socket(socket.AF_UNIX)
        is_other = uid and os.geteuid() == 0
        if is_other:
            os.seteuid(uid)
        try:
            # The kernel keeps who connected.
            self.socket.connect(path)
        finally:
            if is_other:
                os.seteuid(0)
        self.got = bytearray()
        self.marks = 0

    def take(self, wait: float) -> bool:
        """Takes what there is within `wait` seconds; whether there was something."""
        if not select.select([self.socket], [], [], wait)[0]:
            return False
        some = self.socket.recv(1 << 20)
        if not some:
            raise ConnectionError("the node closed the connection")
        self.got += some
        # The end is enough to find an answer in.
        del self.got[:-65536]
        return True

    def send(self, wire: bytes) -> None:
        """Sends all, taking what comes meanwhile."""
        failed = []

        def out() -> None:
            try:
                self.socket.sendall(wire)
            except OSError as error:
                failed.append(error)

        sender = threading.Thread(target=out)
        sender.start()
        while sender.is_alive():
            self.take(0.01)
        sender.join()
        if failed:
            raise failed[0]

    def until_done(self, patience: float = 60.0) -> None:
        """Waits until the node has worked through all that was sent: packets of a face are taken in
        their order, so the refusal of a last one says so."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self.marks += 1
            mark = b"mark-%d-" % self.marks
            self.send(interest(name(b"nobody-has-this", mark)))
            again = time.monotonic() + 0.5
            while time.monotonic() < again:
                # Sending takes what comes meanwhile: the answer may be there already.
                if mark in self.got or self.take(0.05) and mark in self.got:
                    return
        raise AssertionError("the node did not answer in time")

    def register(self, prefix: bytes) -> None:
        self.send(command(b"rib", b"register", prefix))
        end = time.monotonic() + 20
        while b"\x66\x01\xc8" not in self.got and b"\x66\x02\x00\xc8" not in self.got:
            assert time.monotonic() < end, "the registration is answered"
            self.take(0.1)

    def close(self) -> None:
        self.socket.close()


class Producer(threading.Thread):
    """An application that answers each Interest under `prefix` as `answer` says."""

    def __init__(self, path: str, prefix: bytes, answer: Callable[[bytes, int | None], bytes]):
        super().__init__(daemon=True)
        self.app, self.answer = App(path), answer
        self.app.register(prefix)
        self.answers = self.octets = 0
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        got, app = b"", self.app.socket
        while not self.over.is_set():
            if not select.select([app], [], [], 0.05)[0]:
                continue
            some = app.recv(1 << 16)
            if not some:
                return
            got, out, end = got + some, [], 0
            for kind, value, end in elements(got):
                # With link fields the Interest is their last one.
                inner = value if kind == 0x64 else tlv(kind, value)
                out += [self.reply(value) for kind, value, _ in elements(inner) if kind == 0x50]
                out += [self.reply(inner)] if kind == 5 else []
            got = got[end:]
            app.sendall(b"".join(out))

    def reply(self, wire: bytes) -> bytes:
        _, interest_value, _ = next(elements(wire))
        kind, value, _ = next(elements(interest_value))
        last = list(elements(value))[-1]
        segment = int.from_bytes(last[1], "big") if last[0] == SEGMENT else None
        answer = self.answer(tlv(kind, value), segment) or nack(wire, CONGESTION)
        self.answers += 1
        self.octets += len(answer)
        return answer

    def end(self) -> None:
        self.over.set()
        self.join()
        self.app.close()
