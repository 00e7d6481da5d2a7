"""The index of the kept reports: the papers' figures, the rules that do not hold, the runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from onym_lab import provenance
from onym_lab.experiment import LIBRARY
from onym_lab.report.data import Measured, load
from onym_lab.report.page import machine
from onym_lab.stats import rules

FIGURES = LIBRARY.with_name("figures.yaml")
"""What the papers show, and which experiment measures it."""

MISSED = LIBRARY.with_name("missed.yaml")
"""Why a rule does not hold, by experiment and rule."""

_HEAD = """# Results

Reports of real runs, put here by `python -m onym_lab.report.keep`: tables, their numbers as CSV,
and one picture each; the other pictures are in the archive that it makes, or come again with a run.
A verdict is the worst of the rules that an experiment's file states today, judged on the kept
numbers: a rule holds where its whole 95 % interval does, fails where the whole interval breaks it,
and is not settled between, or where a single value has no interval. Where what we found is the
opposite of the paper's it "differs, and better" or "differs, and worse", with the number.
A page shows the verdicts of the day of its run. What it all says: [findings](findings.md).

## The papers' figures

| paper | figure | what | experiment, report | verdict (rules that hold) |
|---|---|---|---|---|
"""

_MISSED = """
## Rules that are missed, differ or are not settled

Every rule of a kept run that does not hold, what was measured with its 95 % interval, and why.

| experiment | rule | verdict | asked | ours | why |
|---|---|---|---|---|---|
"""

_COLUMNS = (
    "experiment", "verdict", "holds", "runs", "replications", "scale", "file", "backend", "commit",
    "begun", "took", "machine",
)  # fmt: skip

_RUNS = f"""
## The runs

What is **bold** is less than the experiment's file asks for today, or of another file.
Replications are what the run had, of what is asked. A run is scaled when its counts or times are a
part of what is asked: its size is not the paper's. A file is changed when it measures something
else today than it did (rules, texts and numbers of replications do not count).
A commit with a `*` is not in this history.

| {" | ".join(_COLUMNS)} |
{"|---" * len(_COLUMNS)}|
"""

_TEXTS = ("title", "description", "group", "paper", "report", "backends")
"""Parts of an experiment's file that change nothing of what is measured."""


def figures() -> list[dict[str, Any]]:
    """The papers with their figures, as the file lists them."""
    found: list[dict[str, Any]] = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return found


@cache
def library() -> dict[str, dict[str, Any]]:
    """The experiments of the library by name."""
    found = [yaml.safe_load(file.read_text("utf-8")) for file in sorted(LIBRARY.rglob("*.yaml"))]
    return {str(one["name"]): one for one in found}


@cache
def missed() -> dict[str, dict[str, str]]:
    """Why rules do not hold, by experiment and rule."""
    found: dict[str, dict[str, str]] = yaml.safe_load(MISSED.read_text(encoding="utf-8"))
    return found


def judged(measured: Measured) -> pd.DataFrame:
    """The verdicts of a kept run by the rules that its experiment has today.

    An experiment that the library has no more is judged by the file that the run had.
    """
    known = library().get(measured.folder.name, measured.experiment)
    return rules.judge(known.get("paper") or {}, measured.aggregate)


def kept(target: Path) -> dict[str, tuple[Measured, pd.DataFrame]]:
    """The kept runs with their verdicts of today, by name."""
    pages = sorted(target.glob("*/report.html"))
    runs = [load(page.parent) for page in pages]
    return {one.folder.name: (one, judged(one)) for one in runs}


def text(runs: Mapping[str, tuple[Measured, pd.DataFrame]]) -> str:
    """``README.md`` of the kept runs."""
    shown = {name: _verdict(verdicts) for name, (_, verdicts) in runs.items()}
    rows = [
        _figure(str(paper["paper"]), one, shown) for paper in figures() for one in paper["figures"]
    ]
    open_rules = [row for one in runs.values() for row in _missed(*one)]
    tables = [_row(measured, *shown[name]) for name, (measured, _) in runs.items()]
    parts = [(_HEAD, rows), (_MISSED, open_rules), (_RUNS, tables)]
    return "".join(head + "\n".join(table) + "\n" for head, table in parts if table)


def write(target: Path) -> Path:
    """Write ``README.md``, and the verdicts of each run beside its page."""
    runs = kept(target)
    for measured, verdicts in runs.values():
        verdicts.to_csv(
            measured.folder / "verdicts.csv", index=False, lineterminator="\n", float_format="%.6g"
        )
    path = target / "README.md"
    path.write_text(text(runs), encoding="utf-8")
    return path


def _figure(paper: str, one: Mapping[str, Any], shown: Mapping[str, tuple[str, str]]) -> str:
    names = one.get("experiments", [])
    links = [f"[{name}]({name}/report.html)" if name in shown else f"`{name}`" for name in names]
    verdicts = [
        "{} ({})".format(*shown[name]) if name in shown else one.get("why", "not run")
        for name in names
    ]
    cells = [paper, one["figure"], one["what"]]
    return f"| {' | '.join([*cells, '<br>'.join(links), '<br>'.join(verdicts) or one['why']])} |"


def _verdict(verdicts: pd.DataFrame) -> tuple[str, str]:
    """The verdict of a run, with the number where it differs, and how many of its rules hold."""
    gates = _gates(verdicts)
    if not len(gates):
        return "measured", "no rules"
    word = rules.verdict(gates)
    differing = gates[gates["verdict"] == word]
    if word.startswith("differs") and len(differing):
        first = next(differing.itertuples())
        word += f": {_number(float(str(first.ours)))} for {first.paper}"
    return word, f"{int((gates['verdict'] == 'holds').sum())} of {len(gates)}"


def _gates(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The rules of a run that give its verdict."""
    return verdicts[verdicts["verdict"] != ""]


def _missed(measured: Measured, verdicts: pd.DataFrame) -> list[str]:
    """A row for each rule of a run that does not hold."""
    name = measured.folder.name
    reasons = missed().get(name, {})
    gates = _gates(verdicts)
    return [
        f"| [{name}]({name}/report.html) | {rule.says} | {rule.verdict} | {rule.paper} "
        f"| {_ours(rule)} | {reasons.get(str(rule.id)) or _reason(measured, rule)} |"
        for rule in gates[gates["verdict"] != "holds"].itertuples()
    ]


def _reason(measured: Measured, rule: Any) -> str:
    """What the numbers themselves say of a rule that ``missed.yaml`` does not explain."""
    had, asked = replications(measured)
    if rule.verdict == "not measured":
        return f"The kept run is older than the rule ({rule.why})."
    if rule.verdict == "not settled" and had < asked:
        return f"{had} of {asked} replications."
    if rule.verdict == "not settled" and pd.isna(rule.low):
        return "A single replication has no interval."
    if rule.verdict == "not settled":
        return "The interval contains the limit."
    return "not looked into"


def _number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.3g}"


def _ours(rule: Any) -> str:
    """The number that a rule was judged on, with its interval where there is one."""
    if not _number(rule.ours):
        return str(rule.verdict) if rule.verdict == "not measured" else str(rule.why)
    ours, low, high = map(_number, (rule.ours, rule.low, rule.high))
    return f"{ours} ({low} to {high})" if low and low != high else ours


def _row(measured: Measured, word: str, holds: str) -> str:
    failed = int((~measured.checks["passed"].astype(bool)).sum())
    mark = f" (✗ {failed} checks failed)" if failed else ""
    seen = measured.provenance
    commit = str(seen.get("commit") or "")[:10] + (" with changes" if seen.get("dirty") else "")
    commit += "" if provenance.is_in_history(str(seen.get("commit"))) else "*"
    name = measured.folder.name
    had, asked = replications(measured)
    cells = [
        f"[{name}]({name}/report.html)",
        word + mark,
        holds,
        str(len(measured.plan.get("order", []))),
        f"{had}" if had >= asked else f"**{had} of {asked}**",
        f"{measured.scale:g}" if measured.scale >= 1 else f"**{measured.scale:g}**",
        "**changed**" if is_changed(measured) else "the same",
        str(measured.plan.get("backend", "")),
        commit,
        str(seen.get("began", ""))[:16],
        _took(measured.took),
        machine(seen.get("machine")),
    ]
    return f"| {' | '.join(cells)} |"


def _took(seconds: float | None) -> str:
    return "not noted" if seconds is None else f"{seconds / 60:.1f} min"


def replications(measured: Measured) -> tuple[int, int]:
    """How many replications a run had, and how many its experiment's file asks for today."""
    known = library().get(measured.folder.name, measured.experiment)
    asked = int((known.get("design") or {}).get("replications") or 1)
    return int(measured.plan.get("replications") or 1), asked


def is_changed(measured: Measured) -> bool:
    """Whether the experiment's file measures something else than it did when it was run."""
    today = library().get(measured.folder.name)
    file = measured.folder / "experiment.yaml"
    if today is None or not file.is_file():
        return False
    return _measures(today) != _measures(yaml.safe_load(file.read_text("utf-8")))


def _measures(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """What of an experiment's file decides what is measured."""
    design = {
        key: value
        for key, value in (experiment.get("design") or {}).items()
        if key != "replications"
    }
    rest = {key: value for key, value in experiment.items() if key not in _TEXTS}
    rest.pop("scale", None)
    return {**rest, "design": design}
