"""Keeps reports in the source tree: ``python -m onym_lab.report.keep docs/results RUN...``.

Copies what a reader needs (page, verdicts, aggregate, file, provenance), judges every kept run by
the rules that its experiment has now, and writes the index again: first the papers' figures as
``lab/figures.yaml`` lists them, then the runs.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from onym_lab import provenance
from onym_lab.report.data import Measured, load
from onym_lab.report.page import machine
from onym_lab.stats import rules

KEPT = (
    "report.html",
    "verdicts.csv",
    "aggregate.csv",
    "experiment.yaml",
    "experiment.json",
    "plan.json",
    "provenance.json",
    "checks.csv",
)
"""Files of a run that are kept; the pictures are in the page."""

CSV_MOST = 300_000
"""A larger aggregate is kept as Parquet, a thirtieth of its size."""

LIBRARY = Path(__file__).resolve().parents[2] / "experiments"
"""The experiments, with the rules of today."""

FIGURES = Path(__file__).resolve().parents[2] / "figures.yaml"
"""What the papers show, and which experiment measures it."""

_HEAD = """# Results

Reports of real runs, put here by `python -m onym_lab.report.keep`; pictures are in the page.
A verdict is the worst of the rules that an experiment's file states today, judged on the kept
numbers: a rule holds where its whole 95 % interval does, fails where the whole interval breaks it,
and is not settled between, or where a single value has no interval. "Differs, and better" is a
finding that is the opposite of the paper's. A page shows the verdicts of the day of its run.
What it all says: [findings](findings.md).

## The papers' figures

| paper | figure | what | experiment, report | verdict |
|---|---|---|---|---|
"""

MISSED = FIGURES.with_name("missed.yaml")
"""Why a rule does not hold, by experiment and rule."""

_MISSED = """
## Rules that are missed or not settled

Every rule of a kept run that does not hold, what was measured with its 95 % interval, and why.

| experiment | rule | verdict | asked | ours | why |
|---|---|---|---|---|---|
"""

_RUNS = """
## The runs

A run is scaled when its counts or times are a part of what the file asks for; replications are
what it had, of what the file asks for. A commit with a `*`
is not in this history: the branch was rebased after the run; the same change has another number.

| experiment | verdict | holds | runs | replications | backend | scale | commit | begun | machine |
|---|---|---|---|---|---|---|---|---|---|
"""


def keep(run: Path, target: Path) -> Path:
    """Copies a run into ``target/<experiment>/`` in place of an earlier one."""
    place = target / run.parent.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in KEPT:
        source = run / name
        if name == "aggregate.csv" and source.exists() and source.stat().st_size > CSV_MOST:
            source = run / "aggregate.parquet"
        if source.exists():
            shutil.copyfile(source, place / source.name)
    return place


def figures() -> list[dict[str, Any]]:
    """The papers with their figures, as the file lists them."""
    found: list[dict[str, Any]] = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return found


def index(target: Path) -> Path:
    """Writes ``README.md``: the papers' figures, the rules that are missed, the kept runs."""
    kept = {page.parent.name: load(page.parent) for page in sorted(target.glob("*/report.html"))}
    for measured in kept.values():
        judged(measured).to_csv(measured.folder / "verdicts.csv", index=False, lineterminator="\n")
    shown = {name: _verdict(measured) for name, measured in kept.items()}
    rows = [
        _figure(str(paper["paper"]), one, shown) for paper in figures() for one in paper["figures"]
    ]
    runs = [_row(measured, shown[name]) for name, measured in kept.items()]
    path = target / "README.md"
    missed = [row for measured in kept.values() for row in _missed(measured)]
    parts = [(_HEAD, rows), (_MISSED, missed), (_RUNS, runs)]
    text = "".join(head + "\n".join(table) + "\n" for head, table in parts if table)
    path.write_text(text, encoding="utf-8")
    return path


def _figure(paper: str, one: Mapping[str, Any], shown: Mapping[str, tuple[str, str]]) -> str:
    names = one.get("experiments", [])
    links = [f"[{name}]({name}/report.html)" if name in shown else f"`{name}`" for name in names]
    verdicts = [
        " ".join(shown[name]) if name in shown else one.get("why", "not run") for name in names
    ]
    cells = [paper, one["figure"], one["what"]]
    return f"| {' | '.join([*cells, '<br>'.join(links), '<br>'.join(verdicts) or one['why']])} |"


def _verdict(measured: Measured) -> tuple[str, str]:
    """The verdict of a run, and how many of its rules hold."""
    gates = _gates(measured)
    if not len(gates):
        return "measured", "(no rules)"
    held = int(gates["verdict"].isin(["holds", "differs"]).sum())
    return rules.verdict(gates), f"({held} of {len(gates)})"


def judged(measured: Measured) -> pd.DataFrame:
    """The verdicts of a kept run by the rules that its experiment has today.

    An experiment that the library has no more is judged by the file that the run had.
    """
    known = library().get(measured.folder.name, measured.experiment)
    return rules.judge(known.get("paper") or {}, measured.aggregate)


@cache
def library() -> dict[str, dict[str, Any]]:
    """The experiments of the library by name."""
    found = [yaml.safe_load(file.read_text("utf-8")) for file in sorted(LIBRARY.rglob("*.yaml"))]
    return {str(one["name"]): one for one in found}


def _gates(measured: Measured) -> pd.DataFrame:
    """The rules of a run that give its verdict."""
    file = measured.folder / "verdicts.csv"
    found = pd.read_csv(file, keep_default_na=False, dtype=str) if file.exists() else None
    return pd.DataFrame() if found is None else found[found["verdict"] != ""]


def _missed(measured: Measured) -> list[str]:
    """A row for each rule of a run that does not hold."""
    name = measured.folder.name
    reasons = yaml.safe_load(MISSED.read_text(encoding="utf-8")).get(name, {})
    gates = _gates(measured)
    if not len(gates):
        return []
    return [
        f"| [{name}]({name}/report.html) | {rule.says} | {rule.verdict} | {rule.paper} "
        f"| {_ours(rule)} | {reasons.get(rule.id) or _reason(measured, rule)} |"
        for rule in gates[~gates["verdict"].isin(["holds", "differs"])].itertuples()
    ]


def _reason(measured: Measured, rule: Any) -> str:
    """What the numbers themselves say of a rule that ``missed.yaml`` does not explain."""
    had, asked = measured.replications
    if rule.verdict == "not measured":
        return f"The kept run is older than the rule ({rule.why})."
    if rule.verdict == "not settled" and had < asked:
        return f"{had} of {asked} replications."
    if rule.verdict == "not settled" and had == 1:
        return "A single replication has no interval."
    if rule.verdict == "not settled":
        return f"The interval of {had} replications contains the limit."
    return "not looked into"


def _ours(rule: Any) -> str:
    """The number that a rule was judged on, with its interval where there is one."""
    if not rule.ours:
        return str(rule.why) if rule.verdict == "fails" else str(rule.verdict)
    ours, low, high = (f"{float(value):.3g}" if value else "" for value in rule[4:7])
    return f"{ours} ({low} to {high})" if low and low != high else ours


def _row(measured: Measured, shown: tuple[str, str]) -> str:
    failed = int((~measured.checks["passed"].astype(bool)).sum())
    mark = f" (✗ {failed} checks failed)" if failed else ""
    seen = measured.provenance
    commit = str(seen.get("commit") or "")[:10] + (" with changes" if seen.get("dirty") else "")
    commit += "" if provenance.is_in_history(str(seen.get("commit"))) else "*"
    name = measured.folder.name
    cells = [
        f"[{name}]({name}/report.html)",
        shown[0] + mark,
        shown[1].strip("()"),
        str(len(measured.plan.get("order", []))),
        _replications(measured),
        str(measured.plan.get("backend", "")),
        f"{measured.scale:g}",
        commit,
        str(seen.get("began", ""))[:16],
        machine(seen.get("machine")),
    ]
    return f"| {' | '.join(cells)} |"


def _replications(measured: Measured) -> str:
    had, asked = measured.replications
    return f"{had}" if had >= asked else f"**{had} of {asked}**"


def main(argv: Sequence[str]) -> None:
    """Keeps the named runs and writes the index."""
    target = Path(argv[0])
    for run in argv[1:]:
        keep(Path(run), target)
    index(target)


if __name__ == "__main__":
    main(sys.argv[1:])
