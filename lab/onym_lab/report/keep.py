"""Keeps reports in the source tree: ``python -m onym_lab.report.keep docs/results RUN...``.

Copies what a reader needs (page, verdicts, aggregate, file, provenance) and writes the index again.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

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

_HEAD = """# Results

Reports of real runs, put here by `python -m onym_lab.report.keep`; pictures are in the page.
A verdict is the worst of the rules that an experiment's file states; "holds" counts them.
A run is scaled when its counts are a part of what the file asks for.
What it all says: [findings](findings.md).

| experiment | verdict | holds | runs | backend | scale | commit | begun | machine |
|---|---|---|---|---|---|---|---|---|
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


def index(target: Path) -> Path:
    """Writes ``README.md`` with a row for each kept run."""
    rows = [_row(load(page.parent)) for page in sorted(target.glob("*/report.html"))]
    path = target / "README.md"
    path.write_text(_HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def _row(measured: Measured) -> str:
    file = measured.folder / "verdicts.csv"
    judged = pd.read_csv(file, keep_default_na=False) if file.exists() else pd.DataFrame()
    gates = judged[judged["verdict"] != ""] if len(judged) else judged
    held = int((gates["verdict"] == "holds").sum()) if len(gates) else 0
    verdict = rules.verdict(gates) if len(gates) else "no rules"
    failed = int((~measured.checks["passed"].astype(bool)).sum())
    mark = f" (✗ {failed} checks failed)" if failed else ""
    seen = measured.provenance
    commit = str(seen.get("commit") or "")[:10] + (" with changes" if seen.get("dirty") else "")
    name = measured.folder.name
    cells = [
        f"[{name}]({name}/report.html)",
        verdict + mark,
        f"{held} of {len(gates)}",
        str(len(measured.plan.get("order", []))),
        str(measured.plan.get("backend", "")),
        f"{measured.scale:g}",
        commit,
        str(seen.get("began", ""))[:16],
        machine(seen.get("machine")),
    ]
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str]) -> None:
    """Keeps the named runs and writes the index."""
    target = Path(argv[0])
    for run in argv[1:]:
        keep(Path(run), target)
    index(target)


if __name__ == "__main__":
    main(sys.argv[1:])
