"""Captures, packets, the paper's formats, the gates."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pandas as pd
import pytest

from onym_lab import derive
from onym_lab.collect import capture, formats, meter, ndn, samples
from onym_lab.spec import App, Node, Spec

LISTING_1 = "#Time, INames, IPend, IProp, INoted, CPU, Mem"
LISTING_2 = (
    "#timestamp, data direction goodput(byte/s), interest direction goodput(byte/s), data "
    "direction throughput(byte/s), interest direction throughput(byte/s), duplicates"
)
LISTING_3 = "#no, ccnxName, transferStart, transferStop, readTotal"


def interest(name: str, nonce: int = 1) -> bytes:
    return ndn.interest(name, nonce, 4000)


def data(name: str, size: int) -> bytes:
    return ndn.tlv(ndn.DATA, ndn.name_of(name) + ndn.tlv(0x15, bytes(size)))


def lp(fragment: bytes, *headers: bytes) -> bytes:
    return ndn.tlv(ndn.LP_PACKET, b"".join(headers) + ndn.tlv(ndn.LP_FRAGMENT, fragment))


def udp(source: int, payload: bytes) -> bytes:
    ip = bytes([0x45, 0]) + struct.pack(">HHHBBH", 28 + len(payload), 0, 0, 64, 17, 0)
    ip += bytes([10, 0, 0, source, 10, 0, 0, 3 - source])
    return (
        bytes(12)
        + b"\x08\x00"
        + ip
        + struct.pack(">HHHH", 6363, 6363, 8 + len(payload), 0)
        + payload
    )


def tcp(source: int, sequence: int, payload: bytes, length: int) -> bytes:
    ip = bytes([0x45, 0]) + struct.pack(">HHHBBH", 40 + length, 0, 0, 64, 6, 0)
    ip += bytes([10, 0, 0, source, 10, 0, 0, 3 - source])
    head = struct.pack(">HHIIBBHHH", 6363, 5000, sequence, 0, 0x50, 0x18, 100, 0, 0)
    return bytes(12) + b"\x08\x00" + ip + head + payload


def pcap(path: Path, frames: list[tuple[float, bytes, int]], snap: int = 500) -> Path:
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, 1)
    for time, octets, length in frames:
        kept = octets[:snap]
        out += struct.pack("<IIII", int(time), round(time % 1 * 1e6), len(kept), length) + kept
    path.write_bytes(out)
    return path


def test_a_capture_gives_seconds_with_true_lengths_though_frames_were_cut(tmp_path: Path) -> None:
    asked = interest("/a/b")
    answer = data("/a/b", 4000)
    frames = [
        (10.1, udp(1, asked), 42 + len(asked)),
        (10.2, udp(2, lp(answer)), 42 + len(lp(answer))),
    ]
    again = interest("/a/b", 2)
    frames.append((11.0, udp(1, again), 42 + len(again)))
    traffic = capture.read(pcap(tmp_path / "c.pcap", frames), tmp_path / "p.psml.zst")
    ten, eleven = traffic.seconds[10], traffic.seconds[11]
    assert ten.goodput_data == len(answer) - 4
    assert ten.throughput_data == 42 + len(lp(answer))
    assert (ten.goodput_interest, ten.throughput_interest) == (len(asked) - 2, 42 + len(asked))
    assert (ten.duplicates, eleven.duplicates) == (0, 1)
    with capture._open(tmp_path / "p.psml.zst") as file:
        text = file.read().decode()
    assert text.count("<packet>") == 3
    assert "<section>Interest, ndn:/a/b</section>" in text
    assert "<section>10.0.0.1</section>" in text


def test_packets_of_a_stream_are_found_though_segments_were_cut(tmp_path: Path) -> None:
    first, second = data("/s/0", 1000), data("/s/1", 50)
    stream = first + second
    # The first segment is cut at 500 octets; the second packet begins in the second segment.
    frames = [
        (1.0, tcp(2, 100, stream[:800], 800), 854),
        (1.1, tcp(2, 900, stream[800:], len(stream) - 800), 54 + len(stream) - 800),
    ]
    dissector = capture.Dissector()
    looked = [dissector.look(f) for f in capture.frames(pcap(tmp_path / "t.pcap", frames))]
    assert [ndn.uri(p.name) for f in looked for p in f.packets] == ["/s/0", "/s/1"]
    traffic = capture.summarise(looked)
    assert traffic.seconds[1].goodput_data == len(stream)


def test_octets_of_a_stream_are_counted_though_the_heads_of_packets_were_not_kept(
    tmp_path: Path,
) -> None:
    # Two packets in a segment: the head of the second is behind the snap length.
    stream = data("/s/0", 1000) + data("/s/1", 1000)
    frames = [
        (1.0, tcp(2, 100, stream, len(stream)), 54 + len(stream)),
        (1.2, tcp(2, 100, stream, len(stream)), 54 + len(stream)),
        (1.3, tcp(1, 7, b"GET / HTTP/1.0", 14), 68),
    ]
    traffic = capture.read(pcap(tmp_path / "t.pcap", frames))
    assert traffic.data == 1
    assert traffic.seconds[1].goodput_data == len(stream)
    assert traffic.seconds[1].goodput_interest == 0


def test_link_packets_nacks_and_fragments_are_told_apart() -> None:
    nack = lp(interest("/n"), ndn.tlv(ndn.LP_NACK, b""))
    assert [packet.kind for packet in ndn.packets(nack)] == ["Nack"]
    later = lp(b"rest", ndn.tlv(ndn.LP_FRAG_INDEX, b"\x01"))
    assert ndn.packets(later) == []
    assert ndn.uri(ndn.name_of("/a/%")[2:]) == "/a/%25"


def test_a_truncated_capture_ends_where_it_was_cut(tmp_path: Path) -> None:
    path = pcap(tmp_path / "c.pcap", [(1.0, udp(1, interest("/x")), 80)] * 3)
    path.write_bytes(path.read_bytes()[:-5])
    assert sum(1 for _ in capture.frames(path)) == 2
    (tmp_path / "no.pcap").write_bytes(b"this is no capture")
    with pytest.raises(capture.CaptureError):
        list(capture.frames(tmp_path / "no.pcap"))


def sample(time: float, pending: int | None) -> samples.Sample:
    return samples.Sample(
        time=time, mono=time, node="n1", cpu=33.2, load=33.2, memory=2820 * 1024, names=152,
        pending=pending, propagating=68, noted=43,
    )  # fmt: skip


def test_the_listings_have_the_papers_columns_and_the_smallest_stamp_becomes_one(
    tmp_path: Path,
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    samples.write(raw, [sample(1335953369.0, 68), sample(1335953369.5, None)])
    fetched = samples.Object(
        "dl", "n1", "/ccnxlong/f1", 1335953373.2, 1335953449.9, 1281250, 0, True
    )
    samples.write_objects(raw, [fetched])
    process = (raw / "process-n1.csv").read_text().splitlines()
    assert process[0] == LISTING_1 == formats.PROCESS_HEAD
    assert process[1] == "1335953369, 152, 68, 68, 43, 33.2, 2820"
    assert formats.TRAFFIC_HEAD == LISTING_2
    second = capture.Second(123609, 8724, 131397, 12948, 4)
    assert formats.traffic_line(5, vars(second).values()) == "5, 123609, 8724, 131397, 12948, 4"
    transfers = (raw / "transfers.csv").read_text().splitlines()
    assert transfers[0] == LISTING_3 == formats.TRANSFER_HEAD
    assert transfers[1] == "1, ccnx:/ccnxlong/f1, 1335953373, 1335953449, 1281250"
    left_out = formats.normalise([raw], tmp_path / "paper")
    assert left_out == 1
    assert (tmp_path / "paper" / "process-n1.csv").read_text().splitlines()[1:] == [
        "1, 152, 68, 68, 43, 33.2, 2820"
    ]
    assert "5, 81, 1281250" in (tmp_path / "paper" / "transfers.csv").read_text()


def test_the_capture_summary_is_the_papers(tmp_path: Path) -> None:
    text = formats.capture_summary("/tmp/capture", 410916, 410917, 0, "eth0")
    assert text == (
        "File: /tmp/capture\nPackets captured: 410916\n"
        "Packets received/dropped on interface eth0: 410917/0\n"
    )
    (tmp_path / "c.txt").write_text(text)
    assert formats.read_summary(tmp_path / "c.txt") == (410917, 0)


def spec_for_checks() -> Spec:
    return Spec(
        name="x", subject="onym", transport="udp", seed=1, nodes=(Node("n1"),), links=(), routes=(),
        strategies={}, apps=(App("dl", "n1", "files", "/p", {}),), warmup=0, at_most=1,
        until_done=True, cooldown=0, sample=0.5, capture=(), snaplen=500, faults=(),
        checks={
            "invalid_samples": 0.02, "capture_drops": 0.001, "completed": 1.0, "counters": True,
        },
    )  # fmt: skip


def test_every_gate_fires(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    samples.write(raw, [sample(1.0, 1), sample(2.0, None)])
    samples.write_objects(raw, [samples.Object("dl", "n1", "/p/f", 1.0, None, 5, 0, False)])
    (raw / "capture-n1.txt").write_text(formats.capture_summary("c", 90, 90, 10, "e"))
    (raw / "apps.json").write_text(
        json.dumps([{"id": "dl", "node": "n1", "kind": "files", "data": 10}])
    )
    (raw / "measure.json").write_text(json.dumps({"nodes": {"n1": {"data_out": 3}}}))
    found = {row["check"]: row for row in derive.checks(spec_for_checks(), tmp_path)}
    assert found["invalid_samples"]["value"] == 0.5
    assert found["capture_drops n1"]["value"] == pytest.approx(0.1)
    assert not any(row["passed"] for row in found.values())
    assert set(found) == {"invalid_samples", "capture_drops n1", "completed", "counters n1"}


def test_a_page_of_metrics_gives_the_words_of_the_samples() -> None:
    page = """
# TYPE onym_pit_entries gauge
onym_pit_entries 7
onym_cs_entries 3
onym_cs_lookups_total{result="hit"} 5
onym_packets_total{verdict="forwarded",kind="interest"} 10
onym_packets_total{verdict="no_route",kind="interest"} 2
onym_packets_total{verdict="satisfied",kind="data"} 9
"""
    found = meter.read_metrics(page)
    assert (found["pending"], found["cs_hits"], found["interests_in"]) == (7, 5, 12)
    assert (found["data_in"], found["dropped"], found["verdicts"]) == (9, 2, {"no_route": 2})


def test_how_pending_interests_end_does_not_depend_on_how_long_the_phase_is() -> None:
    def row(metric: str, value: float, unit: str) -> dict[str, object]:
        return {"metric": metric, "value": value, "unit": unit}

    def told(seconds: float, pending: list[float]) -> dict[str, float]:
        times = [seconds * i / len(pending) for i in range(len(pending))]
        frame = pd.DataFrame({"t": times, "pending": pending, "load": 99.0})
        rows = derive.Deriver.end_rows(None, frame, row)  # type: ignore[arg-type]
        return {str(one["metric"]): float(str(one["value"])) for one in rows}

    ramp = [float(i) for i in range(40)]
    knee = [min(i, 20.0) for i in ramp]
    for seconds in (10, 1000):
        # A line that still rises at the end has risen by a quarter of its length there.
        assert told(seconds, ramp)["pending_change_end"] == pytest.approx(0.26, abs=0.01)
        assert told(seconds, knee)["pending_change_end"] == pytest.approx(0)
        assert told(seconds, knee)["pending_rise"] == pytest.approx(20 / 4.5)
        assert told(seconds, [5.0] * 40)["pending_middle"] == 1
        assert told(seconds, ramp)["cpu_load_end"] == 99
