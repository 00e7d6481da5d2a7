# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Named data over the sockets of the kernel stack (``AF_NNET``, nnet.ko).

Names are text such as ``/a/b/seg=3``. Needs nothing beside the standard library.

>>> encode_name("/a/seg=1").hex()
'080161320101'
>>> decode_name(bytes.fromhex("080161320101"))
'/a/seg=1'
"""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from onym import _nnet_socket as _n

SOL_NNET = _n.SOL_NNET
INTEREST, DATA, NACK = _n.INTEREST, _n.DATA, _n.NACK
CAN_BE_PREFIX, MUST_BE_FRESH = _n.CAN_BE_PREFIX, _n.MUST_BE_FRESH
_PACKET_MAX = 8800
_TYPED = {"seg": 50, "off": 52, "v": 54, "t": 56, "seq": 58}
_WORDS = {v: k for k, v in _TYPED.items()}
_CM = {
    _n.CM_NAME: "name", _n.CM_TYPE: "type", _n.CM_LIFETIME: "lifetime", _n.CM_FRESHNESS: "freshness",
    _n.CM_FLAGS: "flags", _n.CM_CONTENT_TYPE: "content_type", _n.CM_FINAL_BLOCK: "final", _n.CM_FACE: "face",
    _n.CM_NONCE: "nonce", _n.CM_REASON: "reason", _n.CM_MARK: "mark", _n.CM_SEGMENT: "segment",
    _n.CM_SATISFIED: "satisfied",
}  # fmt: skip


def tlv(kind: int, value: bytes) -> bytes:
    """One element: type, length, value."""

    def number(n: int) -> bytes:
        if n < 253:
            return bytes([n])
        return b"\xfd" + n.to_bytes(2, "big") if n < 65536 else b"\xfe" + n.to_bytes(4, "big")

    return number(kind) + number(len(value)) + value


def nni(n: int) -> bytes:
    """A non-negative integer in 1, 2, 4 or 8 octets."""
    for size in (1, 2, 4, 8):
        if n < 1 << 8 * size:
            return n.to_bytes(size, "big")
    raise ValueError(f"{n} is too large")


def elements(value: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements of some octets, as (type, value)."""
    at = 0

    def number() -> int:
        nonlocal at
        first = value[at]
        at += 1
        if first < 253:
            return first
        size = {253: 2, 254: 4, 255: 8}[first]
        at += size
        return int.from_bytes(value[at - size : at], "big")

    while at < len(value):
        kind, size = number(), number()
        if at + size > len(value):
            raise ValueError("an element is cut off")
        yield kind, value[at : at + size]
        at += size


def _component(text: str) -> bytes:
    word, _, rest = text.partition("=")
    if rest and word in _TYPED:
        return tlv(_TYPED[word], nni(int(rest)))
    kind = 8
    if rest and word.isdigit():
        kind, text = int(word), rest
    elif set(text) == {"."}:
        if len(text) < 3:
            raise ValueError(f"{text!r} is no component")
        text = text[3:]
    out, at = bytearray(), 0
    raw = text.encode()
    while at < len(raw):
        if raw[at : at + 1] == b"%":
            out.append(int(raw[at + 1 : at + 3], 16))
            at += 3
        else:
            out.append(raw[at])
            at += 1
    return tlv(kind, bytes(out))


def encode_name(name: str) -> bytes:
    """The value of the Name TLV of a URI."""
    return b"".join(_component(c) for c in name.removeprefix("ndn:").split("/") if c)


def decode_name(value: bytes) -> str:
    """The URI of the value of a Name TLV."""
    out = []
    for kind, octets in elements(value):
        if kind in _WORDS:
            out.append(f"{_WORDS[kind]}={int.from_bytes(octets, 'big')}")
            continue
        safe = "".join(chr(c) if chr(c).isalnum() and c < 128 or c in b"-._~" else f"%{c:02X}" for c in octets)
        if not octets.strip(b"."):
            safe += "..."
        out.append(safe if kind == 8 else f"{kind}={safe}")
    return "/" + "/".join(out)


def family() -> int:
    """Number of the address family. OSError without the module."""
    with open("/sys/module/nnet/parameters/family") as f:
        return int(f.read())


def make_data(
    name: str | bytes,
    content: bytes,
    *,
    freshness: int = 0,
    final: bytes = b"",
    key: bytes | None = None,
    locator: str | None = None,
) -> bytes:
    """A signed Data: DigestSha256, or HMAC with ``key``."""
    value = encode_name(name) if isinstance(name, str) else name
    meta = (tlv(25, nni(freshness)) if freshness else b"") + (tlv(26, final) if final else b"")
    info = tlv(27, nni(4 if key else 0))
    if locator:
        info += tlv(28, tlv(7, encode_name(locator)))
    signed = tlv(7, value) + (tlv(20, meta) if meta else b"") + tlv(21, content) + tlv(22, info)
    digest = hmac.digest(key, signed, "sha256") if key else hashlib.sha256(signed).digest()
    return tlv(6, signed + tlv(23, digest))


def verify_data(packet: bytes, key: bytes | None = None) -> bool:
    """Whether the digest, or the HMAC by ``key``, of a Data fits."""
    [(kind, inner)] = list(elements(packet))
    if kind != DATA:
        return False
    signature, info, at = b"", b"", 0
    for kind, value in elements(inner):
        if kind == 23:
            signature = value
            break
        if kind == 22:
            info = value
        at += len(tlv(kind, value))
    kinds = dict(elements(info))
    signed = inner[:at]
    if kinds.get(27) == b"\x00":
        return hmac.compare_digest(hashlib.sha256(signed).digest(), signature)
    if kinds.get(27) == b"\x04" and key:
        return hmac.compare_digest(hmac.digest(key, signed, "sha256"), signature)
    return False


@dataclass
class Packet:
    """What came: an Interest, a Data or a Nack."""

    content: bytes = b""
    name: str = ""
    type: int = 0
    last: bool = False
    fields: dict[str, int | bytes] = field(default_factory=dict)


class Socket(socket.socket):
    """A socket of the kernel stack: ``SOCK_DGRAM``, ``SOCK_RAW`` or ``SOCK_SEQPACKET``."""

    def __init__(self, kind: int = socket.SOCK_DGRAM) -> None:
        self._family = family()
        fd = socket.socket(self._family, kind, 0).detach()
        # Python's recvmsg() refuses families that it does not know; it looks no further at this one.
        super().__init__(socket.AF_UNIX, kind, 0, fileno=fd)

    def _address(self, call: str, name: str, flags: int) -> None:
        value = encode_name(name)
        if len(value) > 116:
            self.setsockopt(SOL_NNET, _n.NAME, value)
            flags, value = flags | _n.ADDR_EXTERNAL, b""
        octets = struct.pack("=HBBIH2x116s", self._family, 0, flags, 0, len(value), value)
        libc = ctypes.CDLL(None, use_errno=True)
        if getattr(libc, call)(self.fileno(), octets, len(octets)):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), name)

    def bind_name(self, name: str, *, strict: bool = False) -> None:
        """Serve a prefix."""
        self._address("bind", name, 1 if strict else 0)

    def connect_name(self, name: str) -> None:
        """Fetch the segments of an object (SEQPACKET)."""
        self._address("connect", name, 0)

    @property
    def face(self) -> int:
        """Number of the face, 0 before it has one."""
        return self.getsockopt(SOL_NNET, _n.FACE)

    def send_interest(self, name: str, *, flags: int = 0, lifetime: int = 4000) -> None:
        """Ask for a name (DGRAM)."""
        self.sendmsg([b""], [
            (SOL_NNET, _n.CM_TYPE, struct.pack("=I", INTEREST)), (SOL_NNET, _n.CM_NAME, encode_name(name)),
            (SOL_NNET, _n.CM_FLAGS, struct.pack("=I", flags)), (SOL_NNET, _n.CM_LIFETIME, struct.pack("=I", lifetime)),
        ])  # fmt: skip

    def send_data(self, name: str, content: bytes, *, freshness: int = 0) -> None:
        """Answer with a Data without signature (DGRAM)."""
        self.sendmsg([content], [
            (SOL_NNET, _n.CM_TYPE, struct.pack("=I", DATA)), (SOL_NNET, _n.CM_NAME, encode_name(name)),
            (SOL_NNET, _n.CM_FRESHNESS, struct.pack("=I", freshness)),
        ])  # fmt: skip

    def receive(self) -> Packet:
        """The next packet, with what the control messages say."""
        content, control, flags, _ = self.recvmsg(_PACKET_MAX, 4096)
        packet = Packet(content, last=bool(flags & socket.MSG_EOR))
        for level, kind, value in control:
            word = _CM.get(kind)
            if level != SOL_NNET or word is None:
                continue
            if word == "name":
                packet.name = decode_name(value)
            elif word == "final":
                packet.fields[word] = value
            else:
                packet.fields[word] = int.from_bytes(value, "little")
        packet.type = int(packet.fields.get("type", 0))
        return packet

    def publish(self, packet: bytes, milliseconds: int = 0) -> None:
        """Let the kernel answer with a Data (RAW), for a time or until close."""
        self.sendmsg([packet], [(SOL_NNET, _n.CM_PUBLISH, struct.pack("=I", milliseconds))])

    def unpublish(self, prefix: str) -> None:
        """Forget what was published below a prefix."""
        self.setsockopt(SOL_NNET, _n.UNPUBLISH, encode_name(prefix))


def publish(sock: Socket, name: str, content: bytes, **signing: object) -> None:
    """Publish a Data until the socket closes."""
    sock.publish(make_data(name, content, **signing))


def cast(sock: Socket, name: str, content: bytes, lifetime: int = 4000, **signing: object) -> None:
    """Publish a Data for a time."""
    sock.publish(make_data(name, content, **signing), lifetime)


def pump(sock: Socket, name: str, content: bytes, segment: int = 1200, key: bytes | None = None) -> int:
    """Publish an object as segments, with its metadata at ``<name>/_TOUCH``; how many."""
    base = encode_name(name)
    last = max(len(content) - 1, 0) // segment
    final = tlv(50, nni(last))
    for n in range(last + 1):
        part = content[n * segment : (n + 1) * segment]
        sock.publish(make_data(base + tlv(50, nni(n)), part, freshness=10000, final=final, key=key))
    meta = struct.pack(
        ">I4sQQIIQ", len(base), hashlib.sha256(content).digest()[:4], 0, last, segment,
        segment + len(base) + 100, len(content),
    )  # fmt: skip
    sock.publish(make_data(base + tlv(8, b"_TOUCH"), meta, freshness=1000, key=key))
    return last + 1


@dataclass(frozen=True)
class Meta:
    """An object, as :func:`touch` finds it."""

    pin: bytes
    first: int
    last: int
    segment: int
    size: int


def touch(name: str, timeout: float = 4.0) -> Meta:
    """The metadata of an object. TimeoutError, ConnectionError."""
    with Socket() as sock:
        sock.settimeout(timeout)
        sock.send_interest(name.rstrip("/") + "/_TOUCH", flags=MUST_BE_FRESH, lifetime=int(timeout * 1000))
        packet = sock.receive()
        if packet.type != DATA or len(packet.content) != 40:
            raise ConnectionError(f"{name} has no metadata")
        _, pin, first, last, segment, _, size = struct.unpack(">I4sQQIIQ", packet.content)
        return Meta(pin, first, last, segment, size)


def request(name: str, timeout: float = 10.0) -> Iterator[bytes]:
    """The segments of an object in order."""
    with Socket(socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(timeout)
        sock.connect_name(name)
        while True:
            packet = sock.receive()
            yield packet.content
            if packet.last:
                return


def watch(name: str) -> Socket:
    """A socket that becomes readable for each Interest below a name; close it to end."""
    sock = Socket()
    sock.bind_name(name)
    return sock


def status(sock: Socket, timeout: float | None = None) -> Packet | None:
    """The next Interest; ``fields["satisfied"]`` where what is published answered it."""
    deadline = None if timeout is None else time.monotonic() + timeout
    left = None if deadline is None else max(deadline - time.monotonic(), 0)
    ready, _, _ = select.select([sock], [], [], left)
    return sock.receive() if ready else None


def tell_answered(sock: Socket) -> None:
    """Let :func:`status` tell of Interests that the kernel answered too."""
    sock.setsockopt(SOL_NNET, _n.STATUS, struct.pack("=I", 1))
