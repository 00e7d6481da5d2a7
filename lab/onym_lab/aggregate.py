"""All replicates of a run in one table: the aggregate, joined tables, checks and manifest."""

from __future__ import annotations

import json

import pandas as pd

from onym_lab import provenance
from onym_lab.results import Run, write_atomically, write_table


def of(run: Run) -> pd.DataFrame:
    """Make the aggregate of the replicates that are done."""
    entries = {one["cell"]: one for one in run.plan["cells"]}
    factors = list(run.experiment.get("factors", {}))
    rows = []
    for replicate in run.replicates():
        entry = entries[replicate.cell]
        checks = json.loads((replicate.folder / "checks.json").read_text())
        front = {
            "cell": replicate.cell,
            "label": entry["label"],
            **{f"factor_{name}": entry["levels"].get(name) for name in factors},
            "replication": replicate.replication,
            "seed": replicate.spec["seed"],
        }
        valid = all(check["passed"] for check in checks)
        measures = json.loads((replicate.derived / "measures.json").read_text())
        rows += [{**front, **measure, "valid": valid} for measure in measures]
    columns = [
        "cell", "label", *(f"factor_{name}" for name in factors), "replication", "seed", "scope",
        "where", "hop", "metric", "unit", "value", "valid",
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    frame["hop"] = frame["hop"].astype("Int64")
    frame["value"] = frame["value"].astype(float)
    return frame


def write(run: Run) -> None:
    """Write aggregate, joined tables, checks and manifest."""
    write_table(run.folder / "aggregate.parquet", of(run), csv=True)
    checks = []
    tables: dict[str, list[pd.DataFrame]] = {"samples": [], "traffic": [], "transfers": []}
    for replicate in run.replicates():
        found = json.loads((replicate.folder / "checks.json").read_text())
        front = {"cell": replicate.cell, "replication": replicate.replication}
        checks += [{**front, **row} for row in found]
        for name, parts in tables.items():
            part = replicate.table(name)
            part.insert(0, "replication", replicate.replication)
            part.insert(0, "cell", replicate.cell)
            parts.append(part)
    for name, parts in tables.items():
        if parts:
            write_table(run.folder / f"{name}.parquet", pd.concat(parts, ignore_index=True))
    columns = ["cell", "replication", "check", "value", "limit", "passed"]
    frame = pd.DataFrame(checks, columns=columns)
    write_atomically(run.folder / "checks.csv", frame.to_csv(index=False))
    provenance.write_manifest(run)
