"""The simulator: `onym sim`, virtual time, the daemon's forwarder."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

from onym_lab import tools
from onym_lab.backend import scenario
from onym_lab.backend.base import Backend, BackendError, Progress
from onym_lab.collect import formats, samples
from onym_lab.results import compress, write_json


class Sim(Backend):
    """A replicate in virtual time. Time 0 of the run is second 0 of its files."""

    name = "sim"

    def refusals(self) -> list[str]:
        """Name what the simulator cannot do."""
        reasons = []
        if self.spec.subject != "onym":
            reasons.append(f"sim has no forwarder {self.spec.subject!r}: it is onym's own code")
        for app in self.spec.apps:
            if app.kind not in scenario.SIMULATED:
                reasons.append(f"sim cannot run {app.id}: {app.kind} is a real program")
        for node in self.spec.nodes:
            if node.memory is not None:
                reasons.append(f"sim has no memory limit ({node.name})")
            if node.cost is None and (node.cpu is not None or node.hog):
                reasons.append(f"sim needs a cost where cpu or hog is given ({node.name})")
            if node.set:
                reasons.append(f"sim has no configuration keys ({node.name}: set)")
        for fault in self.spec.faults:
            if fault.action == "kill":
                reasons.append("sim cannot kill a node")
        return reasons

    @property
    def out(self) -> Path:
        """Where the simulator writes."""
        return self.raw / "sim"

    def provision(self) -> None:
        """Write the scenario."""
        self.out.mkdir(parents=True, exist_ok=True)
        (self.raw / "scenario.toml").write_text(scenario.write(self.spec))

    def warm_up(self) -> None:
        """Do nothing: applications of a simulation begin when they say."""

    def measure(self, progress: Progress) -> None:
        """Run the simulation."""
        spec = self.spec
        argv = [
            str(tools.onym()), "sim", str(self.raw / "scenario.toml"), "--json",
            "--record", str(self.out), "--every", f"{round(spec.sample * 1e6)}us",
            "--snaplen", str(spec.snaplen), "--events", "20000000000",
        ]  # fmt: skip
        if spec.until_done:
            argv.append("--until-done")
        for a, b in sorted(self.captures()):
            argv += ["--capture", f"{a}:{b}"]
        self.facts["command"] = argv
        begun = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        took = time.monotonic() - begun
        if done.returncode:
            raise BackendError(f"onym sim: {done.stderr.strip()}")
        progress(1.0)
        report = json.loads(done.stdout)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        report["wall_s"] = took
        # The largest child so far; only a growth is this one's for sure.
        report["rss_octets"] = peak * 1024 if peak > before else None
        write_json(self.raw / "sim.json", report)

    def captures(self) -> set[tuple[str, str]]:
        """List the links to capture; two nodes may look at the same."""
        links = set()
        for node in self.spec.capture:
            peer = self.spec.capture_peer(node)
            if peer is not None:
                link = self.spec.link(node, peer)
                links.add((link.a, link.b))
        return links

    def collect(self) -> None:
        """Bring the simulator's files into the common formats."""
        report = json.loads((self.raw / "sim.json").read_text())
        self._samples()
        self._captures()
        self._objects()
        numbered = scenario.apps(self.spec)
        write_json(
            self.raw / "apps.json",
            [
                {"id": app.id, "node": app.node, "kind": app.kind, **stats}
                for app, stats in zip(numbered, report["apps"], strict=True)
            ],
        )
        write_json(
            self.raw / "measure.json",
            {
                "began": 0.0,
                "ended": report["elapsed_s"],
                "nodes": _nodes(report),
                "clock": "virtual",
            },
        )
        write_json(
            self.raw / "simulator.json",
            {key: report[key] for key in ("events", "wall_s", "rss_octets", "elapsed_s", "ended")},
        )

    def _samples(self) -> None:
        last: dict[str, tuple[float, float, float]] = {}
        rows = []
        with (self.out / "samples.csv").open() as file:
            for row in csv.DictReader(file):
                at, used, busy = float(row["t_s"]), float(row["used_s"]), float(row["busy_s"])
                before, used_before, busy_before = last.get(row["node"], (0.0, 0.0, 0.0))
                span = at - before
                if row["node"] in last and span <= 0:
                    continue
                last[row["node"]] = (at, used, busy)
                pending = int(row["pending"])
                cached = int(row["cs_entries"])
                rows.append(
                    samples.Sample(
                        time=at,
                        mono=at,
                        node=row["node"],
                        names=pending + cached,
                        pending=int(row["waiting"]),
                        propagating=pending,
                        noted=pending,
                        cpu=100 * (used - used_before) / span if span > 0 else 0.0,
                        load=100 * (busy - busy_before) / span if span > 0 else 0.0,
                        memory=int(row["pit_octets"]) + int(row["cs_octets"]),
                        cs_entries=cached,
                        **{key: int(row[key]) for key in samples.COUNTERS},
                    )
                )
        samples.write(self.raw, rows)
        compress(self.out / "samples.csv")

    def _captures(self) -> None:
        for a, b in sorted(self.captures()):
            source = self.out / f"{a}-{b}.pcap"
            count = _count(source)
            for node in self.spec.capture:
                peer = self.spec.capture_peer(node)
                if peer is None or {node, peer} != {a, b}:
                    continue
                target = self.raw / f"capture-{node}.pcap"
                target.unlink(missing_ok=True)
                target.hardlink_to(source)
                compress(target)
                summary = formats.capture_summary(target.name, count, count, 0, peer)
                target.with_suffix(".txt").write_text(summary)
            source.unlink()

    def _objects(self) -> None:
        numbered = scenario.apps(self.spec)
        with (self.out / "transfers.csv").open() as file:
            rows = [
                samples.Object(
                    app=numbered[int(row["app"])].id,
                    node=row["node"],
                    name=row["object"],
                    start=float(row["began_s"]) if row["began_s"] else None,
                    stop=float(row["ended_s"]) if row["ended_s"] else None,
                    octets=int(row["octets"]),
                    retransmissions=int(row["retransmissions"]),
                    completed=row["complete"] == "true",
                )
                for row in csv.DictReader(file)
            ]
        samples.write_objects(self.raw, rows)


def _nodes(report: dict[str, Any]) -> dict[str, Any]:
    """Give what each node counted in the whole run."""
    kept = {}
    for node in report["nodes"]:
        dropped = node["verdicts"].get("interest", {})
        kept[node["name"]] = {
            "interests_in": node["in_interests"],
            "interests_out": node["out_interests"],
            "data_in": node["in_data"],
            "data_out": node["out_data"],
            "nacks_in": node["in_nacks"],
            "cs_hits": node["cs_hits"],
            "cs_misses": node["cs_misses"],
            "verdicts": dropped,
            "dropped": node["drops"],
        }
    return kept


def _count(path: Path) -> int:
    from onym_lab.collect import capture

    return sum(1 for _ in capture.frames(path))
