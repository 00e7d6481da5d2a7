"""Just enough of NDN's TLV to say what a captured frame is, and to ask a forwarder how it is."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

INTEREST, DATA, LP_PACKET, NAME, GENERIC = 0x05, 0x06, 0x64, 0x07, 0x08
LP_FRAGMENT, LP_NACK, LP_FRAG_INDEX = 0x50, 0x0320, 0x52
_CONVENTIONS = {0x32: "seg=", 0x34: "off=", 0x36: "v=", 0x38: "t=", 0x3A: "seq="}


class Malformed(ValueError):  # noqa: N818
    """Octets that are not TLV as they should be."""


def head(octets: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Read type and length at `at`: type, start of the value, its end (may lie behind `end`)."""
    kind, at = _number(octets, at, end)
    length, at = _number(octets, at, end)
    return kind, at, at + length


def _number(octets: bytes, at: int, end: int) -> tuple[int, int]:
    if at >= end:
        raise Malformed("it ends in a type or length")
    first = octets[at]
    if first < 253:
        return first, at + 1
    size = {253: 2, 254: 4, 255: 8}[first]
    if at + 1 + size > end:
        raise Malformed("it ends in a type or length")
    return int.from_bytes(octets[at + 1 : at + 1 + size], "big"), at + 1 + size


def elements(octets: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Go through the TLVs of a region: type, start and end of the value.

    The last one's end may lie behind what was kept: a capture cuts frames, their lengths stay.
    """
    end = len(octets) if end is None else end
    while at < min(end, len(octets)):
        try:
            kind, start, stop = head(octets, at, min(end, len(octets)))
        except Malformed:
            return
        yield kind, start, stop
        at = stop


@dataclass(frozen=True)
class Packet:
    """A network-layer packet in a frame."""

    kind: str
    name: bytes
    length: int


def packets(frame: bytes) -> list[Packet]:
    """List the packets of a stretch of TLVs, cut ones included as far as their name is there."""
    found = []
    for kind, start, stop in elements(frame):
        if kind in (INTEREST, DATA):
            found.append(
                _packet(frame, kind, start, stop, "Interest" if kind == INTEREST else "Data")
            )
        elif kind == LP_PACKET:
            found.extend(_lp(frame, start, stop))
    return [packet for packet in found if packet is not None]


def _lp(frame: bytes, start: int, stop: int) -> list[Packet | None]:
    kind_of: str | None = None
    for kind, at, end in elements(frame, start, stop):
        if kind == LP_NACK:
            kind_of = "Nack"
        elif kind == LP_FRAG_INDEX and int.from_bytes(frame[at:end], "big") > 0:
            return []
        elif kind == LP_FRAGMENT:
            inner = next(elements(frame, at, end), None)
            if inner is None or inner[0] not in (INTEREST, DATA):
                return []
            plain = "Interest" if inner[0] == INTEREST else "Data"
            return [_packet(frame, inner[0], inner[1], inner[2], kind_of or plain)]
    return []


def _packet(frame: bytes, _: int, start: int, stop: int, kind: str) -> Packet | None:
    first = next(elements(frame, start, stop), None)
    if first is None or first[0] != NAME:
        return None
    return Packet(kind, frame[first[1] : first[2]], stop - start)


@lru_cache(maxsize=200_000)
def uri(name: bytes) -> str:
    """Write a name's value as an NDN URI."""
    parts = []
    for kind, start, stop in elements(name):
        value = name[start:stop]
        if kind in _CONVENTIONS:
            parts.append(f"{_CONVENTIONS[kind]}{int.from_bytes(value, 'big')}")
            continue
        text = "".join(
            chr(octet)
            if (chr(octet).isalnum() and octet < 128) or chr(octet) in "-._~"
            else f"%{octet:02X}"
            for octet in value
        )
        if set(text) <= {"."}:
            text += "..."
        parts.append(text if kind == GENERIC else f"{kind}={text}")
    return "/" + "/".join(parts)


def tlv(kind: int, value: bytes) -> bytes:
    """Write one TLV."""
    return _write_number(kind) + _write_number(len(value)) + value


def _write_number(number: int) -> bytes:
    if number < 253:
        return bytes([number])
    if number < 65536:
        return struct.pack(">BH", 253, number)
    return struct.pack(">BI", 254, number)


def name_of(text: str) -> bytes:
    """Write a URI of plain components as a name TLV."""
    parts = [part for part in text.split("/") if part]
    return tlv(NAME, b"".join(tlv(GENERIC, part.encode()) for part in parts))


def interest(
    text: str, nonce: int, lifetime_ms: int, prefix: bool = False, fresh: bool = False
) -> bytes:
    """Write an Interest."""
    body = name_of(text)
    if prefix:
        body += tlv(0x21, b"")
    if fresh:
        body += tlv(0x12, b"")
    body += tlv(0x0A, nonce.to_bytes(4, "big"))
    body += tlv(0x0C, lifetime_ms.to_bytes(2, "big"))
    return tlv(INTEREST, body)


def content(data: bytes) -> tuple[bytes, bytes]:
    """Give name value and content of a Data (bare or in a link packet)."""
    for kind, start, stop in elements(data):
        if kind == LP_PACKET:
            for inner, at, end in elements(data, start, stop):
                if inner == LP_FRAGMENT:
                    return content(data[at:end])
        if kind == DATA:
            name, found = b"", b""
            for inner, at, end in elements(data, start, stop):
                if inner == NAME:
                    name = data[at:end]
                elif inner == 0x15:
                    found = data[at:end]
            return name, found
    raise Malformed("no Data")
