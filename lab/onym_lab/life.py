"""The life of a run: plan, replicates, aggregate, report; resumable after a kill at any point."""

from __future__ import annotations

import contextlib
import importlib
import json
import shutil
import stat
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onym_lab import aggregate, backend, derive, design, known, provenance, topology
from onym_lab import experiment as files
from onym_lab.backend.base import Backend, BackendError, Refused
from onym_lab.experiment import Experiment
from onym_lab.results import Replicate, Run, digest, write_atomically, write_json

PHASES = ("provision", "warm up", "measure", "collect", "validate", "derive")
"""Of a replicate; the first four are one piece, what was measured in half is measured again."""
MEASURED = PHASES[:4]
ATTEMPTS_MAX = 3


class Listener:
    """Is told how a run goes on; does nothing."""

    def planned(self, run: Run, todo: int, total: int) -> None:
        """There are `todo` replicates of `total` to do."""

    def began(self, replicate: Replicate, label: str, attempt: int) -> None:
        """A replicate begins."""

    def phase(self, replicate: Replicate, phase: str) -> None:
        """A phase of a replicate begins."""

    def progress(self, share: float) -> None:
        """How far the measuring phase is."""

    def ended(self, replicate: Replicate, why: str | None) -> None:
        """A replicate ended; `why` it failed."""

    def said(self, text: str) -> None:
        """Something a person may want to know."""


@dataclass
class Options:
    """How an experiment is run."""

    root: Path
    backend: str
    scale: float = 1.0
    name: str | None = None
    replications: int | None = None
    interactive: bool = False
    dask: str | None = None
    report: bool = True
    any_binary: bool = False

    @property
    def run_name(self) -> str:
        """What the run's folder is called."""
        if self.name:
            return self.name
        return self.backend + (f"-x{self.scale:g}" if self.scale != 1 else "")


class RunExistsError(Exception):
    """There is a finished run of that name."""


def plan(experiment: Experiment, options: Options) -> Run:
    """Write the plan of a run, or find the one that is there.

    Raises:
        RunExistsError: The folder has a run of another experiment file or scale.
        Refused: The backend cannot do what the experiment asks for.
    """
    run = Run(options.root / experiment.name / options.run_name)
    scaled = files.scaled(experiment, options.scale)
    cells = design.cells(scaled)
    seed = design.base_seed(scaled)
    count = options.replications or design.replications(scaled)
    skipped = refusals(scaled, cells, options, seed)
    kept = [cell for cell in cells if cell.id not in skipped]
    wanted = {
        "experiment": experiment.name,
        "backend": options.backend,
        "scale": options.scale,
        "seed": seed,
        "replications": count,
        "cells": [
            {
                "cell": cell.id,
                "label": cell.label,
                "levels": dict(cell.levels),
                "settings": dict(cell.settings),
                "skipped": skipped.get(cell.id),
            }
            for cell in cells
        ],
        "order": [list(one) for one in design.order(scaled, kept, count)],
    }
    if run.plan:
        if {**run.plan, "order": 0} != json.loads(json.dumps({**wanted, "order": 0})):
            raise RunExistsError(
                f"{run.folder} is a run of another file, scale or number of replications: "
                "give this one a --name, or take that folder away"
            )
        return run
    run.folder.mkdir(parents=True, exist_ok=True)
    write_atomically(run.folder / "experiment.yaml", experiment.text)
    network = experiment.data["topology"]
    if "file" in network:
        # The run is read again from its own folder, and elsewhere.
        place = topology.copy_of(network, run.folder)
        place.parent.mkdir(exist_ok=True)
        source = topology.file_of(network, experiment.path.parent)
        write_atomically(place, source.read_text(encoding="utf-8"))
    write_json(
        run.folder / "experiment.json",
        {**scaled.data, "resolved": scaled.spec(kept[0].settings, seed).plain()},
    )
    found = provenance.gather(experiment, options.backend, any_binary=options.any_binary)
    write_json(run.folder / "provenance.json", found)
    # The plan is written last: a folder with a plan is a run.
    write_json(run.folder / "plan.json", wanted)
    return run


def refusals(
    experiment: Experiment, cells: Sequence[design.Cell], options: Options, seed: int
) -> dict[str, str]:
    """Find the cells that the backend cannot do, and why. When it can do none, that is an error."""
    skipped = {}
    reasons: list[str] = []
    for cell in cells:
        spec = experiment.spec(cell.settings, seed)
        try:
            backend.make(options.backend, spec, Path())
        except Refused as refused:
            skipped[cell.id] = "; ".join(refused.reasons)
            reasons += [reason for reason in refused.reasons if reason not in reasons]
    if len(skipped) == len(cells):
        raise Refused(options.backend, reasons)
    return skipped


class Life:
    """Brings a run from its plan to its report."""

    def __init__(self, experiment: Experiment, options: Options, listener: Listener) -> None:
        self.options, self.listener = options, listener
        self.run = plan(experiment, options)
        self.experiment = files.scaled(experiment, options.scale)
        self.cells = {cell.id: cell for cell in design.cells(self.experiment)}

    def go(self) -> Run:
        """Do what is left to do.

        Raises:
            BackendError: A replicate failed more often than it is tried.
        """
        write_json(self.run.folder / "state.json", {"phase": "replicates", "ended": None})
        for entry in self.run.plan["cells"]:
            if entry.get("skipped"):
                self.listener.said(f"skipped {entry['label']}: {entry['skipped']}")
        order = [(cell, replication) for cell, replication in self.run.plan["order"]]
        todo = [one for one in order if not self.run.replicate(*one).is_done]
        self.listener.planned(self.run, len(todo), len(order))
        if todo and not self.options.any_binary:
            provenance.same_programs(self.run, self.experiment, self.options.backend)
        if todo and self.options.backend != "bench":
            kept = [one for one in self.run.plan["cells"] if not one.get("skipped")]
            subjects = {self.experiment.spec(one["settings"], 1).subject for one in kept}
            known.campaign(self.options.backend, subjects, self.run.folder / "known")
        if self.options.dask and todo:
            self.on_cluster(todo)
        for cell, replication in todo:
            self.replicate(cell, replication)
        for cell, replication in self.asked_for_more():
            self.replicate(cell, replication)
        self.finish()
        return self.run

    def on_cluster(self, todo: Sequence[tuple[str, int]]) -> None:
        """Hand the replicates to a Dask cluster whose workers see the same folders."""
        distributed = importlib.import_module("distributed")
        with distributed.Client(self.options.dask) as client:
            futures = {
                client.submit(
                    remote, str(self.experiment.path), self.options, cell, replication, pure=False
                ): (cell, replication)
                for cell, replication in todo
            }
            for future in distributed.as_completed(futures):
                future.result()
                replicate = self.run.replicate(*futures[future])
                self.listener.began(replicate, self.cells[replicate.cell].label, 1)
                self.listener.ended(replicate, None)

    def asked_for_more(self) -> Iterator[tuple[str, int]]:
        """Give more replications, one of every cell at a time, while the stop rule wants them."""
        from onym_lab import stats, units

        stop = self.experiment.data.get("stop")
        if not stop:
            return
        relative = units.share(stop["relative"])
        most = int(stop.get("max", 30))
        count = int(self.run.plan["replications"])
        while count < most:
            rows = aggregate.of(self.run)
            mine = rows[(rows["metric"] == stop["metric"]) & rows["valid"]]
            if "where" in stop:
                mine = mine[mine["where"] == stop["where"]]
            open_cells = [
                str(cell)
                for cell, group in mine.groupby("cell")
                if stats.half_width(group["value"].tolist()) > relative * abs(group["value"].mean())
            ]
            if not open_cells:
                return
            count += 1
            for cell in open_cells:
                if not self.run.replicate(cell, count).is_done:
                    yield cell, count

    def replicate(self, cell: str, replication: int) -> None:
        """Bring one replicate to its end, trying again when the testbed fails."""
        replicate = self.run.replicate(cell, replication)
        if replicate.is_done:
            return
        label = self.cells[cell].label
        for attempt in range(1, ATTEMPTS_MAX + 1):
            self.listener.began(replicate, label, attempt)
            try:
                Attempt(self, replicate).go()
            except BackendError as error:
                self.listener.ended(replicate, str(error))
                note(replicate, phase="failed", why=str(error))
                if attempt == ATTEMPTS_MAX:
                    raise
                continue
            self.listener.ended(replicate, None)
            return

    def finish(self) -> None:
        """Aggregate, write the manifest, and report."""
        write_json(self.run.folder / "state.json", {"phase": "aggregate", "ended": None})
        aggregate.write(self.run)
        write_json(self.run.folder / "state.json", {"phase": "report", "ended": None})
        why = report(self.run) if self.options.report else None
        if why:
            self.listener.said(why)
        took = sum(float(one.state.get("took", 0)) for one in self.run.replicates())
        write_json(
            self.run.folder / "state.json",
            {"phase": "done", "ended": time.time(), "took": round(took, 3), "why": why},
        )


def remote(path: str, options: Options, cell: str, replication: int) -> None:
    """Run one replicate on a worker of a cluster."""
    local = Options(**{**vars(options), "dask": None})
    Life(files.load(path), local, Listener()).replicate(cell, replication)


def note(replicate: Replicate, **changes: Any) -> None:
    """Change a replicate's state file."""
    write_json(replicate.folder / "state.json", {**replicate.state, **changes})


class Attempt:
    """One attempt at one replicate: from where the last one left it."""

    def __init__(self, life: Life, replicate: Replicate) -> None:
        self.life, self.replicate = life, replicate
        cell = life.cells[replicate.cell]
        seed = design.seed_of(design.base_seed(life.experiment), replicate.replication)
        self.spec = life.experiment.spec(cell.settings, seed)
        self.done: list[str] = list(replicate.state.get("done", []))
        self.took = float(replicate.state.get("took", 0))
        self.since = time.monotonic()

    def go(self) -> None:
        """Do the phases that are left."""
        if "collect" not in self.done:
            self.measure()
        steps: dict[str, Callable[[], None]] = {"validate": self.validate, "derive": self.derive}
        for phase, step in steps.items():
            if phase not in self.done:
                self.enter(phase)
                step()
                self.leave(phase)
        note(self.replicate, phase="done", done=list(PHASES), why=None)

    def enter(self, phase: str) -> None:
        """Note the beginning of a phase."""
        self.life.listener.phase(self.replicate, phase)
        note(self.replicate, phase=phase, done=self.done)

    def leave(self, phase: str) -> None:
        """Note the end of a phase, and the seconds that all so far took."""
        self.done.append(phase)
        now = time.monotonic()
        self.took, self.since = self.took + now - self.since, now
        note(self.replicate, phase=phase, done=self.done, took=self.took)

    def measure(self) -> None:
        """Do everything that needs the testbed, from the beginning."""
        folder = self.replicate.folder
        if folder.exists():
            backend.clean_up(folder)
            writable(folder)
            attempts = int(self.replicate.state.get("attempts", 0))
            shutil.rmtree(folder)
        else:
            attempts = 0
        self.done = []
        folder.mkdir(parents=True)
        write_json(folder / "spec.json", self.spec.plain())
        write_json(
            folder / "state.json",
            {
                "phase": None,
                "done": [],
                "attempts": attempts + 1,
                "began": time.time(),
                "why": None,
            },
        )
        bed = backend.make(self.life.options.backend, self.spec, folder)
        bed.raw.mkdir()
        steps: dict[str, Callable[[], None]] = {
            "provision": bed.provision,
            "warm up": bed.warm_up,
            "measure": lambda: bed.measure(self.life.listener.progress),
            "collect": bed.collect,
        }
        with contextlib.closing(_Closing(bed)):
            for phase, step in steps.items():
                self.enter(phase)
                step()
                if phase != "collect":
                    self.leave(phase)
        write_json(bed.raw / "facts.json", bed.facts)
        freeze(bed.raw)
        self.leave("collect")

    def validate(self) -> None:
        """Check what was collected; with gates when a person is asked."""
        rows = derive.checks(self.spec, self.replicate.folder)
        write_json(self.replicate.folder / "checks.json", rows)
        if self.life.options.interactive:
            gate(rows)

    def derive(self) -> None:
        """Compute tables and measures."""
        shutil.rmtree(self.replicate.derived, ignore_errors=True)
        if not derive.given(self.replicate.folder):
            derive.Deriver(self.spec, self.replicate.folder).run()


class _Closing:
    """Closes a backend whatever happened."""

    def __init__(self, bed: Backend) -> None:
        self.bed = bed

    def close(self) -> None:
        self.bed.close()


class AbortedError(Exception):
    """A person said no at a gate."""


def gate(rows: Sequence[dict[str, Any]]) -> None:
    """Show the checks and ask whether to go on (steps 10 to 12 of the paper's workflow)."""
    for row in rows:
        print(f"  {row['check']}: {row['value']:g} (limit {row['limit']:g})")
    if input("go on? [y/n] ").strip().lower() not in ("y", "yes"):
        raise AbortedError("stopped at the gate; `onym-lab resume` goes on")


def freeze(folder: Path) -> None:
    """Make what was measured read-only and note its digests."""
    found = {
        str(path.relative_to(folder)): {"sha256": digest(path), "octets": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "digests.json"
    }
    write_json(folder / "digests.json", found)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o444)


def writable(folder: Path) -> None:
    """Let a folder of a replicate be taken away."""
    for path in folder.rglob("*"):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def report(run: Run) -> str | None:
    """Write the report; gives why there is none."""
    from onym_lab import report as pages

    try:
        pages.write(run)
    except Exception as error:
        # What was measured stands whatever the pictures do.
        write_atomically(run.folder / "report.error", traceback.format_exc())
        return f"no report: {error} (see {run.folder / 'report.error'})"
    (run.folder / "report.error").unlink(missing_ok=True)
    return None
