"""The simulator's own speed and memory."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onym_lab.library import Row, pick, program, row


def needs(_: Mapping[str, Any]) -> None:
    """Say what is missing.

    Raises:
        NeedsError: A program that is not built.
    """
    program("onym")


def simulate(given: Mapping[str, Any], seed: int, folder: Path) -> list[Row]:
    """Run one random network; events over the processor time of the whole run, set-up included."""
    options = pick(given, nodes=1000, consumers=50, count=400)
    argv = [
        str(program("onym")),
        "sim",
        "--json",
        "--topology",
        f"random:{options['nodes']}",
        "--consumers",
        str(options["consumers"]),
        "--count",
        str(options["count"]),
        "--seed",
        str(seed),
        "--duration",
        "600s",
        "--events",
        "2000000000",
    ]
    begun = time.monotonic()
    out = folder / "report.json"
    with out.open("w") as file:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"onym sim ended with {child.returncode}")
    took = time.monotonic() - begun
    report = json.loads(out.read_text())
    out.unlink()
    cpu = used.ru_utime + used.ru_stime
    # Spread over the nodes, there can be one more consumer than was asked for.
    readers = [app for app in report["apps"] if app["kind"] == "consumer"]
    asked = len(readers) * options["count"]
    got = sum(int(app["data"]) for app in readers)
    return [
        row("all", "events", "1", report["events"]),
        row("all", "events_per_second", "1/s", report["events"] / cpu),
        row("all", "octets_per_node", "octets", used.ru_maxrss * 1024 / options["nodes"]),
        row("all", "duration", "s", took),
        row("all", "cpu_total", "s", cpu),
        row("all", "satisfaction", "ratio", got / asked),
    ]
