"""A live stream to many viewers: by nginx, or by ``onym video`` through a caching router.

The network is that of :mod:`onym_lab.library.web`: server, router, clients; the link to the server
has a rate. A stream without pictures is written into a folder by its clock, segment and playlist
(HLS) under another name until they are whole. Viewers are those of :mod:`onym_lab.library.viewer`:
by HTTP from the server itself, or from gateways (``onym gateway http``) beside the clients' node,
one for sixteen viewers.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onym_lab.library import Row, call, pick, program, row, web

WINDOW = 6
"""Segments that the playlist lists."""
KEPT = 2 * WINDOW
"""Segments that are still there when the playlist lists them no more."""
PER_GATEWAY = 16
FILE = "live.m3u8"


def needs(given: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: As for :func:`onym_lab.library.web.needs`.
    """
    web.needs({"subject": "http1" if given.get("subject") == "nginx" else "onym"})


class Stream:
    """A stream on its way into a folder, from the beginning of the block to its end."""

    def __init__(self, folder: Path, segment: float, bitrate: float, seed: int) -> None:
        self.folder, self.segment = folder, segment
        self.octets = random.Random(seed).randbytes(int(bitrate * segment / 8))
        self.written = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Stream:
        self.folder.mkdir()
        for _ in range(WINDOW):
            self._write()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _run(self) -> None:
        while not self.over.wait(self.segment):
            self._write()

    def _write(self) -> None:
        number = self.written
        # No two segments are the same.
        self._put(f"{number}.ts", number.to_bytes(8, "big") + self.octets[8:])
        self.written += 1
        listed = range(max(0, self.written - WINDOW), self.written)
        lines = ["#EXTM3U", "#EXT-X-VERSION:3", f"#EXT-X-TARGETDURATION:{round(self.segment)}"]
        lines.append(f"#EXT-X-MEDIA-SEQUENCE:{listed[0]}")
        for n in listed:
            lines += [f"#EXTINF:{self.segment:.3f},", f"{n}.ts"]
        self._put(FILE, "".join(f"{line}\n" for line in lines).encode())
        (self.folder / f"{number - KEPT}.ts").unlink(missing_ok=True)

    def _put(self, name: str, octets: bytes) -> None:
        begun = self.folder / f"{name}.tmp"
        begun.write_bytes(octets)
        begun.rename(self.folder / name)


@dataclass(frozen=True)
class Served:
    """Where viewers find the playlist, and the processes that serve it."""

    urls: list[str]
    pids: list[int]


@contextmanager
def _nginx(net: web.Net, folder: Path, _viewers: int) -> Iterator[Served]:
    with web.nginx(net, folder, f"live/{FILE}") as child:
        yield Served([f"http://{web.SERVER}:8081/live/{FILE}"], [child.pid])


@contextmanager
def _onym(net: web.Net, folder: Path, viewers: int) -> Iterator[Served]:
    onym = program("onym")
    with ExitStack() as stack:
        nodes = stack.enter_context(web.nodes(net, folder))
        log = folder / "video.log"
        video: list[str | Path] = [onym, "video", folder / "live", "/web/live"]
        video += ["--node", f"unix://{folder}/s.sock"]
        serving = stack.enter_context(web.running(video, log))
        web.until("the stream is served", lambda: "ready" in log.read_text(), log)
        urls = []
        for n in range(-(-viewers // PER_GATEWAY)):
            log = folder / f"gateway{n}.log"
            gateway: list[str | Path] = ["ip", "netns", "exec", net.clients, onym, "gateway"]
            gateway += ["http", "--listen", "127.0.0.1:0", "--node", f"unix://{folder}/c.sock"]
            stack.enter_context(web.running(gateway, log))
            web.until("a gateway listens", lambda log=log: "ready: " in log.read_text(), log)
            base = log.read_text().split("ready: ")[1].split()[0]
            urls.append(f"{base}web/live/{FILE}")
        yield Served(urls, [nodes["s"].pid, serving.pid])


def processor_s(pids: list[int]) -> float:
    """Processor time that these processes took so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def watch(given: Mapping[str, Any], seed: int, folder: Path) -> list[Row]:
    """Show the stream to all viewers; how it was for them, and what it was for the server."""
    options = pick(
        given, subject="onym", viewers=1, seconds=30.0, segment=1.0, bitrate=2e6, rate="50mbit"
    )
    viewers, seconds = int(options["viewers"]), float(options["seconds"])
    segment = float(options["segment"])
    serve = _nginx if options["subject"] == "nginx" else _onym
    stream = Stream(folder / "live", segment, float(options["bitrate"]), seed)
    network = web.network(str(options["rate"]), 0.0)
    with network as net, stream, serve(net, folder, viewers) as served:
        sent, spent, first = web.sent_by(net), processor_s(served.pids), stream.written
        argv: list[str | Path] = ["ip", "netns", "exec", net.clients, sys.executable]
        argv += ["-m", "onym_lab.library.viewer", *served.urls, "--count", str(viewers)]
        argv += ["--seconds", str(seconds), "--segment", str(segment), "--seed", str(seed)]
        seen = json.loads(call(argv, timeout=seconds + 60))
        sent, spent = web.sent_by(net) - sent, processor_s(served.pids) - spent
        # A viewer begins with some that were there before.
        octets = (stream.written - first + 3) * len(stream.octets)
    for path in (folder / "live").iterdir():
        path.unlink()
    started = [one["start_delay"] for one in seen if one["start_delay"] is not None]
    total = seconds + segment
    return [
        row("viewers", "start_delay", "s", sum(started) / len(started) if started else None),
        row("viewers", "start_delay_max", "s", max(started, default=None)),
        row("viewers", "not_started", "viewers", viewers - len(started)),
        row("viewers", "stalls", "stalls", sum(one["stalls"] for one in seen) / viewers),
        row("viewers", "stalled", "s", sum(one["stalled"] for one in seen) / viewers),
        row("viewers", "skipped", "segments", sum(one["skipped"] for one in seen) / viewers),
        row("server", "server_sent", "octets", sent),
        row("server", "copies_sent", "ratio", sent / octets),
        row("server", "server_cpu", "percent of a core", 100 * spent / total),
    ]
