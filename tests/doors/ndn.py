"""Just enough of NDN packets to attack with: Interests, Data, commands, and the octets of a stream."""

import hashlib
import random
import select
import socket
import struct
import threading
import time

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
DIGEST = tlv(0x16, tlv(0x1B, b"\0"))


def data(of: bytes, content: bytes = b"", freshness_ms: int = 0) -> bytes:
    """Signed with a digest."""
    meta = tlv(0x14, tlv(0x19, unsigned(freshness_ms))) if freshness_ms else b""
    signed = of + meta + tlv(0x15, content) + DIGEST
    return tlv(6, signed + tlv(0x17, hashlib.sha256(signed).digest()))


def command(module: bytes, verb: bytes, parameters: bytes) -> bytes:
    """A command signed with a digest, in its name."""
    parts = [b"localhost", b"nfd", module, verb, tlv(0x68, parameters),
             struct.pack(">Q", time.time_ns() // 1_000_000), RNG.randbytes(8), DIGEST]
    value = b"".join(tlv(8, part) for part in parts)
    signature = tlv(0x17, hashlib.sha256(value).digest())
    return interest(tlv(7, value + tlv(8, signature)))


class App:
    """An application on the Unix socket."""

    def __init__(self, path: str):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
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
                if self.take(0.05) and mark in self.got:
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
