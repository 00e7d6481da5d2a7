"""What a report reads: the run's folder as its life cycle left it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from onym_lab.stats import mean_interval

SERIES = {
    "samples": ["cell", "replication", "t", "node", "valid"],
    "traffic": ["cell", "replication", "t", "node"],
    "transfers": ["cell", "replication", "app", "node", "object", "start", "stop", "completed"],
}
"""Series that a run may have, with the columns that a picture cannot do without."""

AGGREGATE = [
    "cell",
    "label",
    "replication",
    "scope",
    "where",
    "hop",
    "metric",
    "unit",
    "value",
    "valid",
]


@dataclass(frozen=True)
class Measured:
    """Everything that a report shows."""

    folder: Path
    experiment: Mapping[str, Any]
    plan: Mapping[str, Any]
    provenance: Mapping[str, Any]
    aggregate: pd.DataFrame
    samples: pd.DataFrame
    traffic: pd.DataFrame
    transfers: pd.DataFrame
    checks: pd.DataFrame
    took: float | None = None
    """Seconds that all replicates took together, where the run noted it."""

    @property
    def title(self) -> str:
        """The experiment's title."""
        return str(self.experiment.get("title") or self.experiment.get("name") or "experiment")

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.experiment.get("name") or self.folder.parent.name)

    @property
    def factors(self) -> list[str]:
        """Names of the factors in the order of the file."""
        return [str(c)[7:] for c in self.aggregate.columns if str(c).startswith("factor_")]

    @property
    def labels(self) -> dict[str, str]:
        """The label of each cell, in the order of the plan."""
        return {str(c["cell"]): str(c["label"]) for c in self.plan.get("cells", [])}

    @property
    def scale(self) -> float:
        """What counts of the experiment were multiplied with; 1 is the paper's size."""
        return float(self.plan.get("scale") or 1)

    def replicate(self, frame: pd.DataFrame, cell: str) -> tuple[pd.DataFrame, int]:
        """The first valid replicate of a cell in a series (the first if none is valid)."""
        rows = frame[frame["cell"].astype(str) == cell]
        numbers = sorted(rows["replication"].unique())
        good = self.aggregate[
            (self.aggregate["cell"].astype(str) == cell) & self.aggregate["valid"].astype(bool)
        ]["replication"].unique()
        number = next((n for n in numbers if n in good), numbers[0] if numbers else 0)
        return rows[rows["replication"] == number], int(number)


def load(folder: Path) -> Measured:
    """Reads a run; series that were not recorded are empty."""
    return Measured(
        folder=folder,
        experiment=_json(folder / "experiment.json"),
        plan=_json(folder / "plan.json"),
        provenance=_json(folder / "provenance.json"),
        aggregate=_aggregate(folder),
        samples=_series(folder, "samples"),
        traffic=_series(folder, "traffic"),
        transfers=_series(folder, "transfers"),
        checks=_checks(folder / "checks.csv"),
        took=_json(folder / "state.json").get("took"),
    )


def _json(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        return {}
    found: Mapping[str, Any] = json.loads(path.read_text())
    return found


def _aggregate(folder: Path) -> pd.DataFrame:
    path = folder / "aggregate.csv"
    large = folder / "aggregate.parquet"
    if path.exists():
        # A cell's hash may look like a number.
        frame = pd.read_csv(path, dtype={"cell": str, "label": str, "where": str})
    elif large.exists():
        frame = pd.read_parquet(large)
    else:
        return pd.DataFrame(columns=AGGREGATE)
    frame["label"] = frame["label"].fillna("")
    frame["valid"] = frame["valid"].astype(str).str.lower() == "true"
    for name in frame.columns:
        if str(name).startswith("factor_"):
            frame[name] = frame[name].astype(str)
    return frame


def _series(folder: Path, name: str) -> pd.DataFrame:
    path = folder / f"{name}.parquet"
    if path.exists():
        frame = pd.read_parquet(path)
        if not frame.empty:
            return frame
    return pd.DataFrame(columns=SERIES[name])


def _checks(path: Path) -> pd.DataFrame:
    columns = ["cell", "replication", "check", "value", "limit", "passed"]
    if not path.exists() or path.stat().st_size == 0:
        return pd.DataFrame(columns=columns)
    frame = pd.read_csv(path, dtype={"cell": str})
    frame["passed"] = frame["passed"].astype(str).str.lower() == "true"
    return frame


def table(measured: Measured) -> pd.DataFrame:
    """Mean, interval and count of every metric in every cell and place.

    ``marked`` counts replicates whose checks failed; they are left out of the
    mean unless there are no others, and the table says which.
    """
    rows = []
    keys = ["label", "scope", "where", "metric", "unit"]
    for key, part in measured.aggregate.groupby(keys, sort=False, dropna=False):
        good = part[part["valid"]]
        used = good if len(good) else part
        interval = mean_interval(used["value"])
        rows.append(
            [
                *key,
                interval.centre,
                interval.low,
                interval.high,
                int(used["value"].notna().sum()),
                len(part) - len(good),
            ]
        )
    return pd.DataFrame(rows, columns=[*keys, "mean", "low", "high", "count", "marked"])
