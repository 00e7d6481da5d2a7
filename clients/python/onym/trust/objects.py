"""Objects in segments, with metadata, that are fetched and published by a schema."""

from __future__ import annotations

import time

from onym._tlv import MalformedError, elements
from onym.sync import Face
from onym.sync._packet import (
    NAME,
    SEGMENT,
    VERSION,
    Interest,
    keyword,
    name,
    numbered,
    read_data,
    write_metadata,
)
from onym.trust.chain import UntrustedError, Validator
from onym.trust.signer import Signer, signer_for

SEGMENT_OCTETS = 8000
"""Content of a segment."""
SIZE_MAX = 64 << 20
"""Octets of an object, at most."""
FRESH_MS = 1000


async def fetch(face: Face, wanted: str, trust: Validator, size_max: int = SIZE_MAX) -> bytes:
    """The newest version of an object. Every packet is believed by `trust` before its content counts.

    Raises `UntrustedError`, and what the face raises where nobody answers.
    """
    base = name(wanted)
    told = await face.request_packet(base + keyword("metadata"), newest=True)
    await trust.judge(told, face)
    version = next((v for t, v in elements(read_data(told).content) if t == NAME), None)
    if version is None or not version.startswith(base):
        raise UntrustedError(f"the metadata of {wanted} leads elsewhere")
    content, segment, last = bytearray(), 0, None
    while last is None or segment <= last:
        wire = await face.request_packet(version + numbered(SEGMENT, segment))
        await trust.judge(wire, face)
        data = read_data(wire)
        last = data.last_segment if data.last_segment is not None else last
        content += data.content
        if len(content) > size_max:
            raise MalformedError(f"{wanted} has more than {size_max} octets")
        if last is None and not data.content:
            raise MalformedError(f"{wanted} does not say where it ends")
        segment += 1
    return bytes(content)


async def publish(
    face: Face, named: str, content: bytes, trust: Validator, signers: list[Signer]
) -> bytes:
    """Serves an object until the face closes; each packet is signed by who may sign it. Its name.

    Raises `NoSignerError` before anything is served when the schema lets no key sign there.
    """
    base = name(named)
    version = base + numbered(VERSION, time.time_ns() // 1000)
    pieces = [content[at : at + SEGMENT_OCTETS] for at in range(0, len(content), SEGMENT_OCTETS)]
    pieces = pieces or [b""]
    last = len(pieces) - 1
    packets = {}
    for number, piece in enumerate(pieces):
        segment = version + numbered(SEGMENT, number)
        signer = signer_for(trust.schema, signers, segment)
        packets[segment] = signer.data(segment, piece, FRESH_MS, last)
    under = base + keyword("metadata")

    def answer(interest: Interest) -> bytes | None:
        if interest.name == under:
            told = under + numbered(VERSION, time.time_ns() // 1000) + numbered(SEGMENT, 0)
            signer = signer_for(trust.schema, signers, told)
            return signer.data(told, write_metadata(version, last), 1, 0)
        return packets.get(interest.name)

    signer_for(trust.schema, signers, under + numbered(VERSION, 0) + numbered(SEGMENT, 0))
    face.serve(base, answer)
    await face.register(base)
    return version
