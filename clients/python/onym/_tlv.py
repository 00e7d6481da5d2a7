"""TLV elements: numbers of 1, 3, 5 or 9 octets in their shortest form."""

from __future__ import annotations

from collections.abc import Iterator


class MalformedError(Exception):
    """Octets that are not what they should be."""


def number(n: int) -> bytes:
    """A TYPE or LENGTH."""
    if n < 253:
        return bytes([n])
    if n < 1 << 16:
        return b"\xfd" + n.to_bytes(2, "big")
    if n < 1 << 32:
        return b"\xfe" + n.to_bytes(4, "big")
    return b"\xff" + n.to_bytes(8, "big")


def element(typ: int, value: bytes) -> bytes:
    """An element."""
    return number(typ) + number(len(value)) + value


def nni(n: int) -> bytes:
    """A NonNegativeInteger."""
    for size in (1, 2, 4):
        if n < 1 << (8 * size):
            return n.to_bytes(size, "big")
    return n.to_bytes(8, "big")


def read_nni(value: bytes) -> int:
    """The number that a NonNegativeInteger is."""
    if len(value) not in (1, 2, 4, 8):
        raise MalformedError("a number is not 1, 2, 4 or 8 octets long")
    return int.from_bytes(value, "big")


def _read_number(octets: bytes | bytearray, at: int) -> tuple[int, int] | None:
    """A number and where it ends, or None where octets are missing."""
    if at >= len(octets):
        return None
    first = octets[at]
    if first < 253:
        return first, at + 1
    size = 1 << (first - 252)
    if at + 1 + size > len(octets):
        return None
    n = int.from_bytes(octets[at + 1 : at + 1 + size], "big")
    if len(number(n)) != size + 1:
        raise MalformedError("a TYPE or LENGTH is not in its shortest form")
    return n, at + 1 + size


def head(octets: bytes | bytearray, at: int = 0) -> tuple[int, int, int] | None:
    """TYPE, first octet and end of the VALUE of the element at `at`; None where its head is cut."""
    typ = _read_number(octets, at)
    if typ is None:
        return None
    length = _read_number(octets, typ[1])
    if length is None:
        return None
    if not 0 < typ[0] < 1 << 32:
        raise MalformedError("TYPE is 0 or above 4294967295")
    return typ[0], length[1], length[1] + length[0]


def elements(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """TYPE and VALUE of elements that lie back to back."""
    at = 0
    while at < len(octets):
        found = head(octets, at)
        if found is None or found[2] > len(octets):
            raise MalformedError("an element is longer than what holds it")
        typ, start, at = found
        yield typ, octets[start:at]
