"""What applications and counters of real processes tell, in the common formats."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from onym_lab.backend import scenario
from onym_lab.backend.base import BackendError
from onym_lab.backend.program import Program
from onym_lab.collect import samples
from onym_lab.spec import App


def app_report(
    app: App, program: Program, measuring: float, is_same: bool = True
) -> tuple[dict[str, Any], list[samples.Object]]:
    """Read what an application achieved, and the objects that it fetched.

    What `get` wrote is no object that arrived unless it is the same as what was put.
    """
    base: dict[str, Any] = {"id": app.id, "node": app.node, "kind": app.kind}
    code = program.process.returncode
    if app.kind in scenario.SIMULATED:
        try:
            report = json.loads(program.out.read_text())
        except ValueError as error:
            said = program.log.read_text(errors="replace").strip()[-500:]
            raise BackendError(f"application {app.id} told nothing ({code}): {said}") from error
        began = report["began_unix_s"]
        objects = read_transfers(app, program.out.with_suffix(".csv"), began)
        return {**base, **report["apps"][0], "began_unix_s": began}, objects
    if app.kind == "get":
        return _get_report(app, program, base, measuring, is_same)
    return {**base, "exit": code}, []


def _get_report(
    app: App, program: Program, base: dict[str, Any], measuring: float, is_same: bool
) -> tuple[dict[str, Any], list[samples.Object]]:
    """Read what the program says of itself."""
    code = program.process.returncode
    try:
        said = json.loads(program.out.read_text())
    except ValueError:
        said = {}
    octets = int(said.get("bytes", said.get("octets", 0)))
    took = float(said.get("seconds", 0) or 0)
    stats = {
        **base,
        "exit": code,
        "octets": octets,
        "data": said.get("segments"),
        "interests": None,
        "retransmissions": said.get("retransmissions"),
        "timeouts": said.get("timeouts"),
        "goodput_bps": octets * 8 / took if took else 0.0,
        "latency_p50_s": None,
        "latency_p99_s": None,
    }
    done = code == 0 and is_same
    one = samples.Object(
        app=app.id,
        node=app.node,
        name=app.prefix,
        start=measuring,
        stop=measuring + took if done else None,
        octets=octets,
        retransmissions=int(said.get("retransmissions", 0) or 0),
        completed=done,
    )
    return stats, [one]


def read_transfers(app: App, path: Path, began: float) -> list[samples.Object]:
    """Read the transfers that `onym load` noted."""
    with path.open() as file:
        return [
            samples.Object(
                app=app.id,
                node=row["node"],
                name=row["object"],
                start=began + float(row["began_s"]) if row["began_s"] else None,
                stop=began + float(row["ended_s"]) if row["ended_s"] else None,
                octets=int(row["octets"]),
                retransmissions=int(row["retransmissions"]),
                completed=row["complete"] == "true",
            )
            for row in csv.DictReader(file)
        ]


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Give what was counted between two moments; the laboratory's own questions are in it."""
    kept = (
        "interests_in", "interests_out", "data_in", "data_out", "nacks_in", "cs_hits", "cs_misses",
        "publications_sent", "publications_delivered",
    )  # fmt: skip
    found: dict[str, Any] = {
        name: after[name] - before.get(name, 0) for name in kept if name in after
    }
    if "verdicts" in after:
        earlier = before.get("verdicts", {})
        counts = {key: value - earlier.get(key, 0) for key, value in after["verdicts"].items()}
        found["verdicts"] = {key: count for key, count in counts.items() if count}
        found["dropped"] = sum(counts.values())
    return found
