"""Names, Interests and Data, as far as sync needs them. A name is the VALUE of its element."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

from onym._tlv import MalformedError, element, elements, nni, read_nni

INTEREST, DATA, NAME, GENERIC, KEYWORD = 5, 6, 7, 8, 32
SEGMENT, VERSION, TIMESTAMP, SEQ = 50, 54, 56, 58
PARAMETERS_DIGEST, PARAMETERS = 2, 0x24
PACKET_MAX = 8800

_MARKS = {"seg": SEGMENT, "v": VERSION, "t": TIMESTAMP, "seq": SEQ}


def name(text: str) -> bytes:
    """The name that `text` is: generic components, `32=word`, `v=1`, `t=1`, `seq=1`, `seg=0`."""
    out = b""
    for part in text.strip("/").split("/") if text.strip("/") else []:
        mark, equals, rest = part.partition("=")
        if equals and mark in _MARKS and rest.isdigit():
            out += numbered(_MARKS[mark], int(rest))
        elif equals and mark.isdigit():
            out += element(int(mark), unquote_to_bytes(rest))
        else:
            out += element(GENERIC, unquote_to_bytes(part))
    return out


def uri(value: bytes) -> str:
    """The text of a name."""
    marks = {typ: mark for mark, typ in _MARKS.items()}
    parts = []
    for typ, octets in elements(value):
        if typ in marks and len(octets) in (1, 2, 4, 8):
            parts.append(f"{marks[typ]}={int.from_bytes(octets, 'big')}")
        else:
            text = quote_from_bytes(octets, safe="-._~")
            parts.append(text if typ == GENERIC else f"{typ}={text}")
    return "/" + "/".join(parts)


def numbered(typ: int, n: int) -> bytes:
    """A component that holds a number."""
    return element(typ, nni(n))


def keyword(word: str) -> bytes:
    """A keyword component."""
    return element(KEYWORD, word.encode())


@dataclass(frozen=True)
class Interest:
    """An Interest that arrived."""

    name: bytes
    parameters: bytes | None
    token: bytes = b""


@dataclass(frozen=True)
class Data:
    """A Data that arrived; the signature was not looked at, but for a digest's damage."""

    name: bytes
    content: bytes
    last_segment: int | None
    wire: bytes = b""


def write_interest(
    wanted: bytes,
    nonce: bytes,
    lifetime_ms: int,
    parameters: bytes | None = None,
    *,
    newest: bool = False,
) -> bytes:
    """An Interest for exactly `wanted`, or with `newest` for something fresh under it.

    With parameters their digest is added to the name.
    """
    middle = element(0x21, b"") + element(0x12, b"") if newest else b""
    middle += element(0x0A, nonce) + element(0x0C, nni(lifetime_ms))
    tail = b"" if parameters is None else element(PARAMETERS, parameters)
    if parameters is not None:
        wanted += element(PARAMETERS_DIGEST, hashlib.sha256(tail).digest())
    return element(INTEREST, element(NAME, wanted) + middle + tail)


def write_command(verb: bytes, nonce: bytes, time_ms: int) -> bytes:
    """A command Interest that is signed with a digest."""
    info = element(0x1B, b"\0") + element(0x26, nonce * 2) + element(0x28, nni(time_ms))
    signed = element(PARAMETERS, b"") + element(0x2C, info)
    tail = signed + element(0x2E, hashlib.sha256(verb + signed).digest())
    full = verb + element(PARAMETERS_DIGEST, hashlib.sha256(tail).digest())
    return element(INTEREST, element(NAME, full) + element(0x12, b"") + element(0x0A, nonce) + tail)


def write_data(
    named: bytes, content: bytes, freshness_ms: int = 0, last_segment: int | None = None
) -> bytes:
    """A Data with a digest for a signature: it shows damage and proves nothing."""
    meta = b""
    if freshness_ms:
        meta += element(0x19, nni(freshness_ms))
    if last_segment is not None:
        meta += element(0x1A, numbered(SEGMENT, last_segment))
    signed = element(NAME, named) + (element(0x14, meta) if meta else b"")
    signed += element(0x15, content) + element(0x16, element(0x1B, b"\0"))
    return element(DATA, signed + element(0x17, hashlib.sha256(signed).digest()))


def write_history(publications: list[tuple[int, bytes]]) -> bytes:
    """The content of a bundle of history."""
    entries = [element(0xD6, nni(seq)) + element(0x83, content) for seq, content in publications]
    return b"".join(element(0x82, entry) for entry in entries)


def write_index(bundles: list[int]) -> bytes:
    """The content of an index of bundles: the last publication of each."""
    return b"".join(element(0x84, nni(seq)) for seq in bundles)


def write_metadata(named: bytes, last_segment: int) -> bytes:
    """The content of metadata: the name of an object with its version, and its last segment."""
    return element(NAME, named) + element(0x1A, numbered(SEGMENT, last_segment))


def _only(octets: bytes, typ: int) -> bytes:
    found = list(elements(octets))
    if len(found) != 1 or found[0][0] != typ:
        raise MalformedError(f"expected one element of type {typ}")
    return found[0][1]


def read_interest(wire: bytes, token: bytes = b"") -> Interest:
    """Reads an Interest and checks the digest of its parameters."""
    value = _only(wire, INTEREST)
    fields = list(elements(value))
    if not fields or fields[0][0] != NAME:
        raise MalformedError("an Interest without a name")
    named, parameters = fields[0][1], dict(fields).get(PARAMETERS)
    if parameters is not None:
        at = value.rindex(element(PARAMETERS, parameters))
        digest = element(PARAMETERS_DIGEST, hashlib.sha256(value[at:]).digest())
        if not named.endswith(digest):
            raise MalformedError("the digest of the parameters is wrong")
        named = named[: -len(digest)]
    return Interest(named, parameters, token)


def read_data(wire: bytes) -> Data:
    """Reads a Data; one that is signed with a digest must fit it."""
    value = _only(wire, DATA)
    fields = list(elements(value))
    found = dict(fields)
    if not fields or fields[0][0] != NAME or 0x16 not in found or 0x17 not in found:
        raise MalformedError("a Data without name or signature")
    if dict(elements(found[0x16])).get(0x1B) == b"\0":
        signed = value[: -len(element(0x17, found[0x17]))]
        if hashlib.sha256(signed).digest() != found[0x17]:
            raise MalformedError("the Data is damaged")
    last = dict(elements(found.get(0x14, b""))).get(0x1A)
    segment = dict(elements(last)).get(SEGMENT) if last is not None else None
    last_segment = None if segment is None else read_nni(segment)
    return Data(found[NAME], found.get(0x15, b""), last_segment, wire)
