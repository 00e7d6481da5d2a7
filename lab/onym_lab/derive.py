"""From what was measured to tables and measures: pure functions of a replicate's folder."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onym_lab.collect import capture, formats
from onym_lab.results import write_json, write_table
from onym_lab.spec import Spec

Row = dict[str, Any]
SAMPLE_COLUMNS = [
    "t", "node", "hop", "names", "pending", "propagating", "noted", "cpu", "load", "memory",
    "cs_entries", "cs_hits", "cs_misses", "interests_in", "data_in", "nacks_in", "interests_out",
    "data_out", "dropped", "valid", "waited",
]  # fmt: skip
TRAFFIC_COLUMNS = [
    "t", "node", "goodput_data", "goodput_interest", "throughput_data", "throughput_interest",
    "duplicates",
]  # fmt: skip
OBJECT_COLUMNS = [
    "app",
    "node",
    "object",
    "start",
    "stop",
    "octets",
    "retransmissions",
    "completed",
]
UNITS = {
    "pending": "entries", "cpu": "percent of a core", "cpu_load": "percent of its share",
    "memory": "octets", "goodput": "B/s", "throughput": "B/s",
}  # fmt: skip


def given(folder: Path) -> bool:
    """Take over the rows of a backend that measured by itself, with empty series beside them."""
    found = folder / "raw" / "measures.json"
    if not found.exists():
        return False
    derived = folder / "derived"
    derived.mkdir(exist_ok=True)
    for name in ("samples", "traffic", "transfers"):
        write_table(derived / f"{name}.parquet", pd.DataFrame())
    write_json(derived / "measures.json", json.loads(found.read_text()))
    return True


class Deriver:
    """Reads `raw/` and writes `derived/` and `checks.json` of one replicate."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec, self.folder = spec, folder
        self.raw, self.derived = folder / "raw", folder / "derived"
        self.hops = {node: hop for hop, node in enumerate(spec.path())}
        self.measured = json.loads((self.raw / "measure.json").read_text())
        self.apps: list[Row] = json.loads((self.raw / "apps.json").read_text())

    def run(self) -> None:
        """Derive everything."""
        self.derived.mkdir(exist_ok=True)
        traffic = self.traffic()
        samples = pd.read_csv(self.raw / "samples.csv", dtype={"node": str})
        objects = pd.read_csv(
            self.raw / "objects.csv", dtype={"node": str, "app": str, "name": str}
        )
        zero = self.zero(samples, traffic, objects)
        samples = self.samples(samples, zero)
        seconds = self.seconds(traffic, zero)
        objects = self.objects(objects, zero)
        write_table(self.derived / "samples.parquet", samples)
        write_table(self.derived / "traffic.parquet", seconds)
        write_table(self.derived / "transfers.parquet", objects)
        self.listings(traffic)
        rows = [*self.node_rows(samples, traffic, zero), *self.app_rows(objects)]
        rows += self.system_rows(objects)
        write_json(self.derived / "measures.json", rows)

    def traffic(self) -> dict[str, capture.Traffic]:
        """Read the captures and write their summaries."""
        found = {}
        for path in sorted(self.raw.glob("capture-*.pcap*")):
            node = path.name.removeprefix("capture-").removesuffix(".zst").removesuffix(".pcapng")
            node = node.removesuffix(".pcap")
            found[node] = capture.read(path, self.derived / f"packets-{node}.psml.zst")
        return found

    def zero(
        self, samples: pd.DataFrame, traffic: dict[str, capture.Traffic], objects: pd.DataFrame
    ) -> float:
        """Find the earliest moment of all files."""
        moments = [samples["time"].min(), objects["start"].min()]
        moments += [one.first for one in traffic.values() if one.first is not None]
        return float(min((one for one in moments if pd.notna(one)), default=0.0))

    def samples(self, samples: pd.DataFrame, zero: float) -> pd.DataFrame:
        """Make the table of samples."""
        samples = samples.copy()
        samples["t"] = samples["time"] - zero
        samples["hop"] = samples["node"].map(self.hops).astype("Int64")
        samples["valid"] = samples["pending"].notna()
        whole = [
            name
            for name in SAMPLE_COLUMNS
            if name not in ("t", "node", "hop", "cpu", "load", "valid", "waited")
        ]
        samples[whole] = samples[whole].astype("Int64")
        return samples.reindex(columns=SAMPLE_COLUMNS)

    def seconds(self, traffic: dict[str, capture.Traffic], zero: float) -> pd.DataFrame:
        """Make the table of seconds."""
        rows = [
            (at - math.floor(zero), node, *vars(second).values())
            for node, one in traffic.items()
            for at, second in sorted(one.seconds.items())
        ]
        return pd.DataFrame(rows, columns=TRAFFIC_COLUMNS)

    def objects(self, objects: pd.DataFrame, zero: float) -> pd.DataFrame:
        """Make the table of objects."""
        objects = objects.rename(columns={"name": "object"})
        objects["start"] -= zero
        objects["stop"] -= zero
        objects["completed"] = objects["completed"].astype(bool)
        return objects[OBJECT_COLUMNS]

    def listings(self, traffic: dict[str, capture.Traffic]) -> None:
        """Write the paper's listings with normalised time."""
        seconds = self.derived / "listing2"
        seconds.mkdir(exist_ok=True)
        for node, one in traffic.items():
            lines = [formats.TRAFFIC_HEAD]
            lines += [
                formats.traffic_line(at, vars(second).values())
                for at, second in sorted(one.seconds.items())
            ]
            (seconds / f"traffic-{node}.csv").write_text("\n".join(lines) + "\n")
        formats.normalise([self.raw, seconds], self.derived / "paper")

    def node_rows(
        self, samples: pd.DataFrame, traffic: dict[str, capture.Traffic], zero: float
    ) -> Iterator[Row]:
        """Measure each node."""
        began, ended = self.measured["began"] - zero, self.measured["ended"] - zero
        during = samples[(samples["t"] >= began - 1e-9) & (samples["t"] <= ended + 1e-9)]
        for node in self.spec.nodes:
            mine = during[during["node"] == node.name]
            row = self.rower("node", node.name)
            valid = mine[mine["valid"]]
            pending = valid["pending"].astype(float)
            if len(pending):
                yield row("pending_mean", pending.mean(), "entries")
                yield row("pending_p95", pending.quantile(0.95), "entries")
                yield row("pending_max", pending.max(), "entries")
                yield from self.end_rows(valid, row)
            if valid["waited"].notna().any():
                yield row("answer_p95", valid["waited"].quantile(0.95), "s")
            if len(mine) > 1:
                # The first sample's share is that of the time before the phase.
                later = mine.iloc[1:]
                yield row("cpu_mean", later["cpu"].mean(), UNITS["cpu"])
                yield row("cpu_max", later["cpu"].max(), UNITS["cpu"])
                yield row("cpu_load_mean", later["load"].mean(), UNITS["cpu_load"])
                yield row("cpu_load_max", later["load"].max(), UNITS["cpu_load"])
                memory = mine["memory"].astype(float)
                yield row("memory_max", memory.max(), "octets")
                yield row("memory_growth", memory.max() - memory.iloc[0], "octets")
            yield from self.counted(node.name, row)
            if node.name in traffic:
                yield from self.link_rows(node.name, traffic[node.name], row)

    def end_rows(self, valid: pd.DataFrame, row: Any) -> Iterator[Row]:
        """Tell how a node's pending Interests rose, stayed, and whether they still rise at the end.

        The quarters of the phase are counted in samples; four of them are too few. All are shares,
        so that they do not depend on how long the phase is.
        """
        quarter = len(valid) // 4
        if quarter < 2:
            return
        first, last = valid.iloc[:quarter], valid.iloc[-quarter:]
        held = last["pending"].astype(float)
        yield row("pending_rise", held.mean() / max(first["pending"].mean(), 1.0), "ratio")
        if held.mean() > 0:
            t = last["t"].to_numpy(dtype=float)
            slope = float(np.polyfit(t - t[0], held.to_numpy(), 1)[0])
            yield row("pending_change_end", slope * (t[-1] - t[0]) / held.mean(), "ratio")
        before, after = (
            valid.iloc[n * quarter : (n + 1) * quarter]["pending"].mean() for n in (1, 2)
        )
        if before > 0:
            yield row("pending_middle", after / before, "ratio")
        if last["load"].notna().any():
            yield row("cpu_load_end", last["load"].mean(), UNITS["cpu_load"])

    def counted(self, node: str, row: Any) -> Iterator[Row]:
        """Give what a node counted over the phase."""
        counted = self.measured.get("nodes", {}).get(node, {})
        for name in (
            "interests_in", "interests_out", "data_in", "data_out", "nacks_in", "cs_hits",
            "cs_misses", "dropped",
        ):  # fmt: skip
            if counted.get(name) is not None:
                yield row(name, counted[name], "packets")
        for name in ("publications_sent", "publications_delivered"):
            if counted.get(name) is not None:
                yield row(name, counted[name], "publications")
        if counted.get("cpu_s") is not None:
            yield row("cpu_total", counted["cpu_s"], "s")
        for reason, count in sorted(counted.get("verdicts", {}).items()):
            if reason not in _ACCEPTED:
                yield row(f"dropped_{reason}", count, "packets")

    def link_rows(self, node: str, traffic: capture.Traffic, row: Any) -> Iterator[Row]:
        """Give what the link toward the producer carried."""
        yield row("retransmits", traffic.duplicates, "packets")
        if traffic.first is None or traffic.last is None:
            return
        span = max(traffic.last - traffic.first, 1e-6)
        total = {
            name: sum(getattr(second, name) for second in traffic.seconds.values())
            for name in (
                "goodput_data",
                "goodput_interest",
                "throughput_data",
                "throughput_interest",
            )
        }
        for name, octets in total.items():
            yield row(name, octets / span, "B/s")
        peer = self.spec.capture_peer(node)
        rate = self.spec.link(node, peer).rate if peer else None
        if rate:
            yield row("link_load", total["throughput_data"] * 8 / span / rate, "ratio")

    def app_rows(self, objects: pd.DataFrame) -> Iterator[Row]:
        """Measure each application."""
        for app in self.apps:
            row = self.rower("app", app["id"], self.hops.get(app["node"]))
            mine = objects[objects["app"] == app["id"]]
            if app["kind"] in ("producer", "put"):
                yield row("interests", app.get("interests"), "packets")
                yield row("data", app.get("data"), "packets")
                continue
            for name in ("interests", "data", "timeouts", "retransmissions", "nacks"):
                if app.get(name) is not None:
                    yield row(name, app[name], "packets")
            if app.get("data"):
                yield row("latency_p50", app["latency_p50_s"], "s")
                yield row("latency_p99", app["latency_p99_s"], "s")
            asked = self.asked(app) if app.get("interests") else 0
            if asked:
                yield row("satisfaction", app.get("data", 0) / asked, "ratio")
            if app["kind"] != "flood":
                yield row("goodput", app.get("goodput_bps"), "bit/s")
                yield row("completed", int(mine["completed"].sum()), "objects")
                yield row("failed", int((~mine["completed"]).sum()), "objects")
                yield from transfer_rows(mine, row)

    def asked(self, app: Row) -> int:
        """Tell how many names an application began to ask for; 0 when it does not say."""
        return int(app.get("interests") or 0) - int(app.get("retransmissions") or 0)

    def system_rows(self, objects: pd.DataFrame) -> Iterator[Row]:
        """Measure the whole."""
        row = self.rower("system", "all")
        yield row("duration", self.measured["ended"] - self.measured["began"], "s")
        consumers = [app for app in self.apps if app["kind"] in ("consumer", "files", "get")]
        producers = [app for app in self.apps if app["kind"] in ("producer", "put")]
        got = sum(app.get("data") or 0 for app in consumers)
        sent = [int(app["data"]) for app in producers if app.get("data") is not None]
        if got and sent and len(sent) == len(producers):
            yield row("offload", 1 - sum(sent) / got, "ratio")
        telling = [app for app in consumers if app.get("interests")]
        asked = sum(self.asked(app) for app in telling)
        if asked:
            yield row("satisfaction", sum(app.get("data") or 0 for app in telling) / asked, "ratio")
        rates = np.array([app.get("goodput_bps") or 0.0 for app in consumers])
        if len(rates) > 1 and rates.any():
            yield row("fairness", rates.sum() ** 2 / (len(rates) * (rates**2).sum()), "ratio")
        if consumers:
            yield row("goodput", float(rates.sum()), "bit/s")
        whole = objects[objects["completed"]]
        if len(whole) and len(whole) == len(objects):
            yield row("distribution", whole["stop"].max() - whole["start"].min(), "s")
        yield from self.simulator_rows(row)

    def simulator_rows(self, row: Any) -> Iterator[Row]:
        """Measure the simulator itself, where it ran."""
        path = self.raw / "simulator.json"
        if not path.is_file():
            return
        found = json.loads(path.read_text())
        yield row("events", found["events"], "1")
        yield row("events_per_second", found["events"] / found["wall_s"], "1/s")
        if found.get("rss_octets"):
            yield row("octets_per_node", found["rss_octets"] / len(self.spec.nodes), "octets")

    def rower(self, scope: str, where: str, hop: int | None = None) -> Any:
        """Make the function that makes rows of one place."""
        place = self.hops.get(where) if scope == "node" else hop

        def row(metric: str, value: Any, unit: str) -> Row:
            number = None if value is None or pd.isna(value) else float(value)
            return {
                "scope": scope, "where": where, "hop": place, "metric": metric, "unit": unit,
                "value": number,
            }  # fmt: skip

        return row


_ACCEPTED = ("forwarded", "aggregated", "suppressed", "cs_hit", "delivered")
"""Verdicts of Interests that are no drops (spec/registry.md)."""


def transfer_rows(mine: pd.DataFrame, row: Any) -> Iterator[Row]:
    """Give how long objects took: a file's first Interest to its last segment."""
    whole = mine[mine["completed"]]
    if not len(whole):
        return
    took = whole["stop"] - whole["start"]
    yield row("transfer_mean", took.mean(), "s")
    yield row("transfer_sd", took.std() if len(took) > 1 else 0.0, "s")
    if len(took) > 1 and took.mean() > 0:
        yield row("transfer_cv", took.std() / took.mean(), "ratio")
    if len(took) > 1:
        begun = took.loc[whole["start"].sort_values().index]
        half = len(begun) // 2
        yield row("transfer_growth", begun.iloc[-half:].mean() / begun.iloc[:half].mean(), "ratio")
    yield row("transfer_p95", took.quantile(0.95), "s")
    yield row("transfer_max", took.max(), "s")
    yield row("distribution", whole["stop"].max() - whole["start"].min(), "s")


def checks(spec: Spec, folder: Path) -> list[Row]:
    """Check what was collected: samples, captures, counters, completion."""
    raw = folder / "raw"
    if (raw / "measures.json").exists():
        missing = sum(
            row["value"] is None for row in json.loads((raw / "measures.json").read_text())
        )
        return [{"check": "missing_values", "value": missing, "limit": 0, "passed": missing == 0}]
    limits = spec.checks
    rows: list[Row] = []

    def add(check: str, value: float, limit: float, passed: bool) -> None:
        rows.append({"check": check, "value": value, "limit": limit, "passed": bool(passed)})

    samples = pd.read_csv(raw / "samples.csv", dtype={"node": str})
    invalid = float(samples["pending"].isna().mean()) if len(samples) else 1.0
    add("invalid_samples", invalid, limits["invalid_samples"], invalid <= limits["invalid_samples"])
    for path in sorted(raw.glob("capture-*.txt")):
        received, dropped = formats.read_summary(path)
        share = dropped / max(1, received + dropped)
        limit = limits["capture_drops"]
        add(f"capture_drops {path.stem.removeprefix('capture-')}", share, limit, share <= limit)
    apps = json.loads((raw / "apps.json").read_text())
    if "completed" in limits:
        objects = pd.read_csv(raw / "objects.csv")
        share = float(objects["completed"].astype(bool).mean()) if len(objects) else 0.0
        add("completed", share, limits["completed"], share >= limits["completed"])
    if limits.get("counters"):
        rows.extend(counter_checks(spec, raw, apps))
    return rows


def counter_checks(spec: Spec, raw: Path, apps: list[Row]) -> Iterator[Row]:
    """Check a forwarder's counters against what the applications beside it did.

    Every Data that a node's consumers got was sent by their node. A restarted node has lost its
    counters.
    """
    measured = json.loads((raw / "measure.json").read_text())
    killed = {fault.node for fault in spec.faults if fault.action == "kill"}
    for node, counted in measured.get("nodes", {}).items():
        got = sum(
            app.get("data") or 0
            for app in apps
            if app["node"] == node and app["kind"] in ("consumer", "files")
        )
        if not got or counted.get("data_out") is None or node in killed:
            continue
        sent = counted["data_out"]
        yield {
            "check": f"counters {node}", "value": float(sent), "limit": float(got),
            "passed": bool(sent >= got),
        }  # fmt: skip
