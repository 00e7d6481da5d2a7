"""Captures: reading pcap and pcapng, packets per second, the paper's packet summary."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape

import zstandard

from onym_lab.collect import ndn

ETHERTYPE = 0x8624
PORT = 6363
BURST = 1 << 20


@dataclass(frozen=True)
class Frame:
    """A captured frame: seconds, original length, what was kept of it; who sent it, if known."""

    time: float
    length: int
    octets: bytes
    link: int


class CaptureError(ValueError):
    """A file that is no capture."""


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".zst":
        stream: BinaryIO = zstandard.ZstdDecompressor().stream_reader(path.open("rb"), closefd=True)
        return stream
    return path.open("rb")


class _Reader:
    """Reads exact numbers of octets, in bursts."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.buffer, self.at = file, b"", 0

    def take(self, count: int) -> bytes:
        while len(self.buffer) - self.at < count:
            more = self.file.read(max(BURST, count))
            if not more:
                return b""
            self.buffer, self.at = self.buffer[self.at :] + more, 0
        self.at += count
        return self.buffer[self.at - count : self.at]


def frames(path: Path) -> Iterator[Frame]:
    """Go through the frames of a pcap or pcapng file, compressed or not; a cut end is the end."""
    with _open(path) as file:
        reader = _Reader(file)
        magic = reader.take(4)
        if magic == b"\x0a\x0d\x0d\x0a":
            yield from _pcapng(reader)
        elif magic in (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1"):
            yield from _pcap(reader, magic)
        elif magic:
            raise CaptureError(f"{path}: this is no capture")


def _pcap(reader: _Reader, magic: bytes) -> Iterator[Frame]:
    order = ">" if magic == b"\xa1\xb2\xc3\xd4" else "<"
    scale = 1e-9 if magic == b"\x4d\x3c\xb2\xa1" else 1e-6
    rest = reader.take(20)
    if len(rest) < 20:
        return
    link = struct.unpack(f"{order}I", rest[16:20])[0] & 0xFFFF
    unpack = struct.Struct(f"{order}IIII").unpack
    while record := reader.take(16):
        seconds, fraction, kept, length = unpack(record)
        octets = reader.take(kept)
        if len(octets) < kept:
            return
        yield Frame(seconds + fraction * scale, length, octets, link)


def _pcapng(reader: _Reader) -> Iterator[Frame]:
    """Read one section; the order of octets is that of its head."""
    size = reader.take(4)
    mark = reader.take(4)
    order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
    reader.take(struct.unpack(f"{order}I", size)[0] - 12)
    links: list[tuple[int, float]] = []
    while block := reader.take(8):
        kind, length = struct.unpack(f"{order}II", block)
        body = reader.take(length - 8)
        if len(body) < length - 8:
            return
        if kind == 1:
            links.append((struct.unpack(f"{order}H", body[:2])[0], _resolution(body[8:-4], order)))
        elif kind == 6:
            interface, high, low, kept, original = struct.unpack(f"{order}IIIII", body[:20])
            link, unit = links[interface] if interface < len(links) else (1, 1e-6)
            yield Frame(((high << 32) | low) * unit, original, body[20 : 20 + kept], link)


def _resolution(options: bytes, order: str) -> float:
    at = 0
    while at + 4 <= len(options):
        code, size = struct.unpack(f"{order}HH", options[at : at + 4])
        if code == 9 and size == 1:
            value = options[at + 4]
            return float(2.0 ** -(value & 0x7F)) if value & 0x80 else 10.0**-value
        at += 4 + (size + 3) // 4 * 4
    return 1e-6


@dataclass(frozen=True)
class Seen:
    """A frame that was looked into: its ends, and the packets in it."""

    time: float
    length: int
    source: str
    target: str
    protocol: str
    packets: tuple[ndn.Packet, ...]
    #: Of a stream of packets: new octets, whether the heads of packets were kept or not.
    stream: int | None = None


class Dissector:
    """Looks into frames. One for each capture: streams are put together from their segments."""

    def __init__(self) -> None:
        self.streams: dict[tuple[bytes, int, bytes, int], _Stream] = {}

    def look(self, frame: Frame) -> Seen:
        """Tell what a frame is."""
        octets = frame.octets
        if frame.link == 1:
            kind = int.from_bytes(octets[12:14], "big")
            if kind == ETHERTYPE:
                source = f"{octets[9]}.{int.from_bytes(octets[7:10], 'big')}"
                source = "node" + str(int.from_bytes(octets[7:10], "big"))
                found = tuple(ndn.packets(octets[14:]))
                return Seen(frame.time, frame.length, source, "", "NDN", found)
            if kind == 0x0800:
                return self._ip(frame, octets[14:])
            return Seen(frame.time, frame.length, "", "", f"0x{kind:04x}", ())
        if frame.link in (101, 228, 12):
            return self._ip(frame, octets)
        if frame.link == 113:
            kind = int.from_bytes(octets[14:16], "big")
            inner = octets[16:]
            if kind == 0x0800:
                return self._ip(frame, inner)
            return Seen(frame.time, frame.length, "", "", "NDN", tuple(ndn.packets(inner)))
        # Link types for users: the frames of a face, one TLV each.
        return Seen(frame.time, frame.length, "", "", "NDN", tuple(ndn.packets(octets)))

    def _ip(self, frame: Frame, octets: bytes) -> Seen:
        if len(octets) < 20:
            return Seen(frame.time, frame.length, "", "", "IP", ())
        size = (octets[0] & 15) * 4
        protocol = octets[9]
        source, target = (".".join(map(str, octets[at : at + 4])) for at in (12, 16))
        fragment = int.from_bytes(octets[6:8], "big") & 0x1FFF
        if protocol == 17 and not fragment:
            found = tuple(ndn.packets(octets[size + 8 :]))
            return Seen(frame.time, frame.length, source, target, "NDN" if found else "UDP", found)
        if protocol == 6:
            found, new = self._tcp(octets, size)
            name = "NDN" if found else "TCP"
            return Seen(frame.time, frame.length, source, target, name, found, new)
        return Seen(frame.time, frame.length, source, target, "IP", ())

    def _tcp(self, octets: bytes, size: int) -> tuple[tuple[ndn.Packet, ...], int]:
        tcp = octets[size:]
        if len(tcp) < 20:
            return (), 0
        ports = struct.unpack(">HH", tcp[:4])
        sequence = int.from_bytes(tcp[4:8], "big")
        offset = (tcp[12] >> 4) * 4
        length = int.from_bytes(octets[2:4], "big") - size - offset
        key = (octets[12:16], ports[0], octets[16:20], ports[1])
        stream = self.streams.setdefault(key, _Stream())
        is_new = length > 0 and sequence not in stream.seen
        found = tuple(stream.take(sequence, tcp[offset:], length))
        stream.is_ours |= bool(found)
        return found, length if is_new and stream.is_ours else 0


@dataclass
class _Stream:
    """Finds packets in a TCP stream whose segments were cut by the snap length.

    A packet is known by its head; where the next one begins follows from its length, so that
    octets that were not kept are stepped over.
    """

    next_packet: int | None = None
    is_ours: bool = False
    seen: set[int] = field(default_factory=set)

    def take(self, sequence: int, kept: bytes, length: int) -> list[ndn.Packet]:
        if length <= 0 or sequence in self.seen:
            return []
        self.seen.add(sequence)
        if len(self.seen) > 100_000:
            self.seen.clear()
        at = 0
        if self.next_packet is None:
            self.next_packet = sequence
        at = (self.next_packet - sequence) & 0xFFFFFFFF
        if at >= 0x80000000:
            # Lost its place: look for a head at the start of the segment.
            at = 0
        found: list[ndn.Packet] = []
        while at < length:
            if at >= len(kept):
                # The head of the next packet was not kept: begin anew with the next segment.
                self.next_packet = None
                return found
            try:
                kind, _, stop = ndn.head(kept, at, len(kept))
            except ndn.Malformed:
                self.next_packet = None
                return found
            if kind not in (ndn.INTEREST, ndn.DATA, ndn.LP_PACKET) or stop - at > 9000:
                self.next_packet = None
                return found
            found += ndn.packets(kept[at : min(stop, len(kept))])
            at = stop
        self.next_packet = (sequence + at) & 0xFFFFFFFF
        return found


@dataclass
class Second:
    """What one second of a link carried (octets, packets)."""

    goodput_data: int = 0
    goodput_interest: int = 0
    throughput_data: int = 0
    throughput_interest: int = 0
    duplicates: int = 0


@dataclass
class Traffic:
    """What a capture says: seconds, counts, and the packets' summary where it is wanted."""

    seconds: dict[int, Second] = field(default_factory=dict)
    frames: int = 0
    interests: int = 0
    data: int = 0
    nacks: int = 0
    first: float | None = None
    last: float | None = None

    @property
    def duplicates(self) -> int:
        """Interests whose name was seen before."""
        return sum(second.duplicates for second in self.seconds.values())


def summarise(seen: Iterable[Seen], toward: str | None = None) -> Traffic:
    """Add up frames by second.

    A frame that carries Data goes in the data direction, one with Interests in the other;
    one with neither (an acknowledgement, a later IP fragment) goes with its source's last.
    `toward` is the address of the side of the consumer, where it is known.
    """
    traffic = Traffic()
    names: set[bytes] = set()
    direction: dict[str, str] = {}
    for frame in seen:
        second = traffic.seconds.setdefault(int(frame.time), Second())
        traffic.frames += 1
        traffic.first = frame.time if traffic.first is None else min(traffic.first, frame.time)
        traffic.last = frame.time if traffic.last is None else max(traffic.last, frame.time)
        carried = {"Data": 0, "Interest": 0}
        for packet in frame.packets:
            if packet.name.startswith(b"\x08\x09localhost") or packet.name.startswith(
                b"\x08\x08localhop"
            ):
                continue
            if packet.kind == "Interest":
                traffic.interests += 1
                second.duplicates += packet.name in names
                names.add(packet.name)
                carried["Interest"] += packet.length
            else:
                traffic.data += packet.kind == "Data"
                traffic.nacks += packet.kind == "Nack"
                carried["Data"] += packet.length
        way = direction.get(frame.source, "Interest" if toward == frame.source else "Data")
        if carried["Data"] != carried["Interest"]:
            way = max(carried, key=lambda one: carried[one])
            direction[frame.source] = way
        if way == "Data":
            second.throughput_data += frame.length
        else:
            second.throughput_interest += frame.length
        if frame.stream is not None:
            # Packets of a stream fill it; heads behind the snap length are not seen.
            carried = {"Data": 0, "Interest": 0, way: frame.stream}
        second.goodput_data += carried["Data"]
        second.goodput_interest += carried["Interest"]
    return traffic


PSML_HEAD = """<?xml version="1.0"?>
<psml version="0" creator="onym-lab">
<structure>
<section>No.</section>
<section>Time</section>
<section>Source</section>
<section>Destination</section>
<section>Protocol</section>
<section>Length</section>
<section>Info</section>
</structure>

"""
"""Listing 5, up to its first packet."""


def psml_packet(number: int, frame: Seen) -> str:
    """Write one packet of listing 5."""
    info = "; ".join(f"{one.kind}, ndn:{ndn.uri(one.name)}" for one in frame.packets)
    sections = (
        number,
        f"{frame.time:.6f}",
        frame.source,
        frame.target,
        frame.protocol,
        frame.length,
        info or "-",
    )
    inner = "\n".join(f"<section>{escape(str(one))}</section>" for one in sections)
    return f"<packet>\n{inner}\n</packet>\n\n"


PSML_TAIL = "</psml>\n"


def read(path: Path, psml: Path | None = None) -> Traffic:
    """Read a capture, add it up by second, and write its summary as compressed PSML."""
    dissector = Dissector()
    looked = (dissector.look(frame) for frame in frames(path))
    if psml is None:
        return summarise(looked)
    with psml.open("wb") as sink, zstandard.ZstdCompressor(level=3).stream_writer(sink) as writer:
        writer.write(PSML_HEAD.encode())

        def noted() -> Iterator[Seen]:
            for number, frame in enumerate(looked, 1):
                writer.write(psml_packet(number, frame).encode())
                yield frame

        traffic = summarise(noted())
        writer.write(PSML_TAIL.encode())
    return traffic
