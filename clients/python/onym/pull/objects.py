"""Objects in segments with metadata, signed with digests: damage is seen, authors are not known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from onym._tlv import MalformedError, elements
from onym.sync._face import Face, UnansweredError
from onym.sync._packet import (
    NAME,
    SEGMENT,
    VERSION,
    Interest,
    keyword,
    name,
    numbered,
    read_data,
    uri,
    write_data,
    write_metadata,
)

SEGMENT_OCTETS = 8000
"""Content of a segment."""
SIZE_MAX = 1 << 30
"""Octets of an object, at most, unless the caller says otherwise."""
FRESH_MS = 1000
WINDOW_MIN, WINDOW_MAX = 4, 256
TRIES = 8


@dataclass(frozen=True)
class Served:
    """An object that a face serves."""

    name: bytes
    """With its version."""
    segments: int

    def __str__(self) -> str:
        return uri(self.name)


async def fetch(face: Face, wanted: str, size_max: int = SIZE_MAX) -> bytes:
    """The newest version of an object, or the one that `wanted` names.

    Raises `UnansweredError` where nobody answers and `MalformedError` where what comes is no object
    or a longer one. To believe who signed it there is `onym.trust.fetch`.
    """
    content = bytearray()
    await fetch_to(face, wanted, content.extend, size_max)
    return bytes(content)


async def fetch_to(
    face: Face, wanted: str, write: Callable[[bytes], object], size_max: int = SIZE_MAX
) -> int:
    """As `fetch`, but each piece goes to `write`, in order; octets that came.

    As many segments are asked for at the same time as come without loss; what is lost halves that.
    """
    version = await _newest(face, name(wanted))
    window, size, following = float(WINDOW_MIN), 0, 0
    first = await _segment(face, version, 0)
    last = first.last_segment
    waiting: dict[int, asyncio.Task[_Piece]] = {}
    asked = 1
    piece = first
    try:
        while True:
            write(piece.content)
            size += len(piece.content)
            if size > size_max:
                raise MalformedError(f"{wanted} has more than {size_max} octets")
            if last is None and not piece.content:
                raise MalformedError(f"{wanted} does not say where it ends")
            if following == last:
                return size
            following += 1
            # Until it is known where it ends, no segment is asked for that may not be there.
            end = following if last is None else last
            while asked <= end and len(waiting) < window:
                waiting[asked] = asyncio.ensure_future(_segment(face, version, asked))
                asked += 1
            piece = await waiting.pop(following)
            last = piece.last_segment if piece.last_segment is not None else last
            window = (
                max(window / 2, WINDOW_MIN)
                if piece.tries > 1
                else min(window + 1 / window * WINDOW_MIN, WINDOW_MAX)
            )
    finally:
        for task in waiting.values():
            task.cancel()


@dataclass(frozen=True)
class _Piece:
    content: bytes
    last_segment: int | None
    tries: int


async def _segment(face: Face, version: bytes, number: int) -> _Piece:
    wanted = version + numbered(SEGMENT, number)
    for tries in range(1, TRIES + 1):
        try:
            data = await face.request(wanted, tries=1)
        except UnansweredError:
            if face.closed:
                raise
            continue
        return _Piece(data.content, data.last_segment, tries)
    raise UnansweredError(f"no answer to {uri(wanted)}")


async def _newest(face: Face, base: bytes) -> bytes:
    """The name with its version: as given, or as the metadata say."""
    parts = list(elements(base))
    if parts and parts[-1][0] == VERSION:
        return base
    told = read_data(await face.request_packet(base + keyword("metadata"), newest=True))
    version = next((value for typ, value in elements(told.content) if typ == NAME), None)
    if version is None or not version.startswith(base):
        raise MalformedError(f"the metadata of {uri(base)} lead elsewhere")
    return version


async def publish(face: Face, named: str, content: bytes) -> Served:
    """Serves an object, its newest version by metadata, until the face closes.

    Raises `NotRegisteredError` where the node refuses the prefix.
    """
    base = name(named)
    version = base + numbered(VERSION, time.time_ns() // 1000)
    last = max(len(content) - 1, 0) // SEGMENT_OCTETS
    under = base + keyword("metadata")

    def answer(interest: Interest) -> bytes | None:
        if interest.name == under:
            told = under + numbered(VERSION, time.time_ns() // 1000) + numbered(SEGMENT, 0)
            return write_data(told, write_metadata(version, last), 1, 0)
        if not interest.name.startswith(version):
            return None
        number = _number(interest.name[len(version) :])
        if number is None or number > last:
            return None
        at = number * SEGMENT_OCTETS
        return write_data(interest.name, content[at : at + SEGMENT_OCTETS], FRESH_MS, last)

    face.serve(base, answer)
    await face.register(base)
    return Served(version, last + 1)


def _number(rest: bytes) -> int | None:
    """The segment of a name that ends with one and nothing else."""
    parts = list(elements(rest))
    if len(parts) != 1 or parts[0][0] != SEGMENT or len(parts[0][1]) not in (1, 2, 4, 8):
        return None
    return int.from_bytes(parts[0][1], "big")
