"""One router between eight clients and eight servers: the content distribution paper's bench.

The router's rate at saturation is what it forwards for a second of its processor: Data over CPU
seconds. That holds whether or not the clients can saturate it, and does not depend on what else
runs on the machine.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onym_lab.library import Row, call, pick, program, row
from onym_lab.stats import jain

READY_S = 15.0
"""A router that is not ready by then is not coming."""

PACKETS = 300_000
"""Data in a measurement: about a second of the router, whose processor time is in hundredths."""

SECONDS_MOST = 120.0
"""A router that has not carried them by then is not measured."""


def needs(_: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: A program that is not built.
    """
    program("onym")
    program("onym-bench")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def daemon(
    folder: Path,
    settings: Mapping[str, str],
    under: Sequence[str] = (),
    patience: float = READY_S,
) -> Iterator[tuple[int, int, Path]]:
    """A node of its own: yields its process, its TCP port and its Unix socket; ended after.

    ``under`` is a program that runs it, with its arguments.
    """
    port = _free_port()
    unix = folder / "r.sock"
    config = {
        "faces.unix.path": json.dumps(str(unix)),
        "faces.tcp.listen": f'["127.0.0.1:{port}"]',
        "faces.udp.listen": "[]",
        "faces.websocket.listen": "[]",
        "shards": "1",
        **settings,
    }
    argv = [*under, str(program("onym")), "daemon"]
    for key, value in config.items():
        argv += ["--set", f"{key}={value}"]
    with (folder / "router.log").open("w") as log:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _await_ready(child, folder / "router.log", patience)
        yield child.pid, port, unix
    finally:
        child.terminate()
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _await_ready(child: subprocess.Popen[bytes], log: Path, patience: float) -> None:
    end = time.monotonic() + patience
    while "ready" not in log.read_text():
        if child.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the router is not ready: {log.read_text()[-400:]}")
        time.sleep(0.02)


def _distribute(options: Mapping[str, Any], folder: Path, more: list[str]) -> dict[str, Any]:
    settings = {"cs.packets_max": str(options["cs"])}
    with daemon(folder, settings) as (pid, port, unix):
        end = ["--tcp", f"127.0.0.1:{port}"] if options["transport"] == "tcp" else ["--unix", unix]
        found = call(
            [
                program("onym-bench"),
                "distribute",
                *end,
                "--watch",
                str(pid),
                "--components",
                str(options["components"]),
                "--payload",
                str(options["payload"]),
                "--diversity",
                str(options["diversity"]),
                "--clients",
                str(options["clients"]),
                "--window",
                str(options["window"]),
                "--seconds",
                str(options["seconds"]),
                *more,
            ]
        )
    result: dict[str, Any] = json.loads(found)
    return result


_DEFAULTS = {
    "cs": 10_000,
    "components": 4,
    "payload": 1024,
    "diversity": 1,
    "clients": 8,
    "window": 31,
    "transport": "tcp",
    "seconds": 2.0,
}


def rate(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """What the router forwards (Table 5's throughput), and what of it came from its cache."""
    options = pick(given, **{**_DEFAULTS, "seconds": SECONDS_MOST}, packets=PACKETS)
    # The content store is full before, or its capacity would not matter; and what is measured is a
    # number of packets, so that a processor that others use as well takes longer for the same.
    more = ["--warm-up", str(SECONDS_MOST), "--fill", str(options["cs"])]
    found = _distribute(options, folder, [*more, "--packets", str(options["packets"])])
    if found["received"] < options["packets"]:
        raise RuntimeError(f"{found['received']} Data in {found['seconds']:.0f} s")
    cpu = found["router_cpu_s"]
    received = max(found["received"], 1)
    return [
        row("router", "forwarding_rate", "bit/s", 8 * found["packet_octets"] / cpu),
        row("router", "content_rate", "bit/s", 8 * found["content_octets"] / cpu),
        row("router", "packet_rate", "1/s", found["received"] / cpu),
        row("router", "goodput", "bit/s", 8 * found["content_octets"] / found["seconds"]),
        row("router", "cpu_mean", "percent", 100 * cpu / found["seconds"]),
        row("router", "memory_max", "octets", found["router_rss"]),
        row("router", "offload", "ratio", 1 - found["served"] / received),
        row("router", "nacks_in", "packets", found["nacks"]),
    ]


def times(given: Mapping[str, Any], _seed: int, folder: Path) -> list[Row]:
    """Content download time of each client and distribution time of all (the paper's future work).

    CDoT: first Interest of a client to its last segment; CDiT: first Interest of any to the last
    segment of all; relative CDiT: from the last client's first Interest.
    """
    options = pick(given, **{**_DEFAULTS, "seconds": 60.0}, segments=10_000, stagger_ms=0)
    more = ["--segments", str(options["segments"]), "--stagger-ms", str(options["stagger_ms"])]
    found = _distribute(options, folder, more)
    done = [t for t in found["download_s"] if t is not None]
    received = max(found["received"], 1)
    speeds = [1 / t for t in done]
    return [
        row("all", "transfer_mean", "s", sum(done) / len(done) if done else None),
        row("all", "transfer_max", "s", max(done) if done else None),
        row("all", "distribution", "s", found["distribution_s"]),
        row("all", "completed", "objects", len(done)),
        row("all", "fairness", "ratio", jain(speeds) if speeds else None),
        row("all", "offload", "ratio", 1 - found["served"] / received),
        row("router", "cpu_total", "s", found["router_cpu_s"]),
    ]
