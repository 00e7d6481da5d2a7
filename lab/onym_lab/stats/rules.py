"""The paper's numbers and acceptance rules beside what was measured.

Rules are judged on means over the valid replicates of a cell. A rule that
several cells must keep is as good as its worst cell, and names it.
The kinds of rules are listed in the laboratory's README.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd

from onym_lab.stats.compare import ratio
from onym_lab.stats.intervals import mean_interval, monotone

Verdict = Literal["holds", "fails", "not measured"]
Entry = Mapping[str, Any]

COLUMNS = ("id", "says", "paper", "ours", "low", "high", "verdict", "why")
"""Columns of what :func:`judge` gives back."""


@dataclass(frozen=True)
class Finding:
    """What one rule found in one cell, or over cells."""

    verdict: Verdict
    why: str
    ours: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")


class _MissingError(Exception):
    """A rule asks for a number that no valid replicate has."""


def judge(
    paper: Entry, aggregate: pd.DataFrame, samples: pd.DataFrame | None = None
) -> pd.DataFrame:
    """One row for each entry of the paper's ``values`` and ``rules``.

    ``samples`` (``samples.parquet``) is needed by the rule ``knee`` only.
    An unknown kind of rule is a mistake of the file and raises ``ValueError``.
    """
    good = aggregate[aggregate["valid"].astype(bool) & aggregate["value"].notna()]
    rows = [_row(entry, _value(entry, good)) for entry in paper.get("values", [])]
    rows += [_row(entry, _rule(entry, good, samples)) for entry in paper.get("rules", [])]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def verdict(judged: pd.DataFrame) -> str:
    """The run's verdict: ``reproduced``, ``not reproduced``, ``not measured``, or ``no rules``.

    Values of the paper that no rule gates do not count.
    """
    gates = judged[judged["verdict"] != ""]
    if (gates["verdict"] == "fails").any():
        return "not reproduced"
    if gates.empty:
        return "no rules"
    if (gates["verdict"] == "not measured").any():
        return "not measured"
    return "reproduced"


def _row(entry: Entry, found: Finding) -> dict[str, object]:
    says = entry.get("says") or _words(entry)
    paper = entry["value"] if "value" in entry else _demand(entry)
    gated = "value" not in entry or "within" in entry or found.verdict == "not measured"
    return {
        "id": entry["id"],
        "says": says,
        "paper": paper,
        "ours": found.ours,
        "low": found.low,
        "high": found.high,
        "verdict": found.verdict if gated else "",
        "why": found.why,
    }


def _words(entry: Entry) -> str:
    """A rule in words when the file gives none."""
    where = f" at {entry['where']}" if entry.get("where") else ""
    source = f" ({entry['source']})" if entry.get("source") else ""
    return f"{entry.get('metric', '')}{where}{source}".strip()


def _demand(entry: Entry) -> str:
    """What a rule asks for, as short as a table cell."""
    low, high = entry.get("at_least"), entry.get("at_most")
    between = " and ".join(
        f"{sign} {limit:g}" for sign, limit in (("≥", low), ("≤", high)) if limit is not None
    )
    match entry["kind"]:
        case "monotone":
            sign = "≤ -" if entry.get("direction") == "falling" else "≥ "
            return f"{entry.get('direction', 'rising')}, rho {sign}{entry.get('rho', 0.9):g}"
        case "spread":
            return f"spread {between}"
        case "order":
            return " < ".join(" ".join(map(str, cell.values())) for cell in entry["cells"])
        case "knee":
            return f"flat at CPU ≥ {entry.get('cpu', 95):g} %"
        case _:
            return between


def pick(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """The rows of an aggregate that an entry's ``metric``, ``where`` and ``cell`` name."""
    rows = frame
    if entry.get("metric"):
        rows = rows[rows["metric"] == entry["metric"]]
    if entry.get("where"):
        rows = rows[rows["where"] == entry["where"]]
    for name, level in (entry.get("cell") or {}).items():
        key = f"factor_{name}"
        if key not in rows:
            raise _MissingError(f"no factor {name}")
        rows = rows[rows[key].astype(str) == str(level)]
    return rows


def _some(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    rows = pick(frame, entry)
    if rows.empty:
        raise _MissingError(f"no valid {entry.get('metric', 'value')}{_place(entry)}")
    return rows


def _place(entry: Entry) -> str:
    where = f" at {entry['where']}" if entry.get("where") else ""
    cell = " ".join(f"{k}={v}" for k, v in (entry.get("cell") or {}).items())
    return where + (f" where {cell}" if cell else "")


def _value(entry: Entry, good: pd.DataFrame) -> Finding:
    try:
        interval = mean_interval(_some(good, entry)["value"])
    except _MissingError as missing:
        return Finding("not measured", str(missing))
    ours, within = interval.centre, entry.get("within")
    off = abs(ours / entry["value"] - 1) if entry["value"] else abs(ours)
    why = f"{entry.get('unit', '')} {entry.get('source', '')}".strip()
    if within is not None:
        why = f"{off:.0%} off, {within:.0%} allowed; {why}"
    kept: Verdict = "holds" if within is None or off <= within else "fails"
    return Finding(kept, why, ours, interval.low, interval.high)


def _rule(entry: Entry, good: pd.DataFrame, samples: pd.DataFrame | None) -> Finding:
    if entry["kind"] not in _KINDS and entry["kind"] != "knee":
        raise ValueError(
            f"rule {entry['id']}: no kind {entry['kind']!r}; "
            f"there are {', '.join([*_KINDS, 'knee'])}"
        )
    try:
        if entry["kind"] == "knee":
            return _knee(entry, good, samples)
        return _KINDS[entry["kind"]](entry, good)
    except _MissingError as missing:
        return Finding("not measured", str(missing))


def _each(rows: pd.DataFrame, one: Callable[[pd.DataFrame], Finding]) -> Finding:
    """The worst finding over the cells that the entry picks."""
    found = [(str(label), one(cell)) for label, cell in rows.groupby("label", sort=False)]
    bad = [(label, f) for label, f in found if f.verdict != "holds"]
    label, worst = (bad or found)[0]
    note = f" in {label}" if len(found) > 1 and bad and label else ""
    if len(found) > 1 and not bad:
        note = f" (in all {len(found)} cells; the first is shown)"
    return Finding(worst.verdict, worst.why + note, worst.ours, worst.low, worst.high)


def _number(label: object) -> float:
    """The number a level's label begins with; NaN where it has none."""
    match = re.match(r"\s*(-?\d+(?:\.\d+)?(?:e-?\d+)?)\s*([kKMG]?)", str(label))
    scale = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
    return float(match[1]) * scale[match[2]] if match else float("nan")


def _axis(rows: pd.DataFrame, over: str) -> pd.Series:
    """The numbers along which a rule looks: hops, or a factor's levels in their order."""
    if over == "hop":
        return rows["hop"].astype(float)
    key = f"factor_{over}"
    if key not in rows:
        raise _MissingError(f"no factor {over}")
    numbers = rows[key].map(_number)
    if numbers.notna().all():
        return numbers
    return rows[key].map({level: i for i, level in enumerate(rows[key].unique())}).astype(float)


def _means(rows: pd.DataFrame, over: str) -> pd.Series:
    """Means over replications along the axis; at least two places are needed."""
    along = rows.assign(axis=_axis(rows, over)).dropna(subset=["axis"])
    means = along.groupby("axis")["value"].mean()
    if len(means) < 2:
        raise _MissingError(f"fewer than two places along {over}")
    return means


def _monotone(entry: Entry, good: pd.DataFrame) -> Finding:
    over = entry.get("over", "hop")
    sign = -1 if entry.get("direction") == "falling" else 1
    need = float(entry.get("rho", 0.9))

    def one(cell: pd.DataFrame) -> Finding:
        means = _means(cell, over)
        rho = monotone([float(x) for x in means.index], [float(y) for y in means])
        each = [_rho(part, over) for _, part in cell.groupby("replication")]
        interval = mean_interval(each)
        low, high = np.clip([interval.low, interval.high], -1, 1)
        kept: Verdict = "holds" if sign * rho >= need else "fails"
        row = " ".join(f"{value:.4g}" for value in means)
        why = f"along {over}: {row}" if not np.isnan(rho) else f"along {over} nothing varies: {row}"
        return Finding(kept, why, rho, float(low), float(high))

    rows = _some(good, entry)
    # Levels of a factor lie in different cells, hops within one.
    return one(rows) if over != "hop" else _each(rows, one)


def _rho(part: pd.DataFrame, over: str) -> float:
    means = _means(part, over)
    return monotone([float(x) for x in means.index], [float(y) for y in means])


def _spread(entry: Entry, good: pd.DataFrame) -> Finding:
    over, most = entry.get("over", "hop"), float(entry["at_most"])

    def one(cell: pd.DataFrame) -> Finding:
        means = _means(cell, over)
        centre = float(means.mean())
        spread = float(means.max() - means.min()) / centre if centre else float("nan")
        row = " ".join(f"{value:.4g}" for value in means)
        return Finding("holds" if spread <= most else "fails", f"along {over}: {row}", spread)

    rows = _some(good, entry)
    return one(rows) if over != "hop" else _each(rows, one)


def _ratio(entry: Entry, good: pd.DataFrame) -> Finding:
    top = _some(good, {"metric": entry.get("metric"), **entry["of"]})
    base = _some(good, {"metric": entry.get("metric"), **entry["to"]})
    pairs = _pairs(top, base, {*entry["of"].get("cell", {}), *entry["to"].get("cell", {})})
    if pairs is not None:
        found = ratio(pairs["value_a"], pairs["value_b"])
        why = f"geometric mean of {len(pairs)} pairs"
        return Finding(_inside(found.centre, entry), why, found.centre, found.low, found.high)
    a, b = mean_interval(top["value"]), mean_interval(base["value"])
    if b.centre == 0:
        return Finding("not measured", f"{a.centre:.4g} over 0")
    quotient = a.centre / b.centre
    # First-order propagation; replicates of different cells are independent.
    reach = abs(quotient) * float(np.hypot(a.relative if a.centre else 0.0, b.relative))
    why = f"{a.centre:.4g} over {b.centre:.4g}"
    kept = _inside(quotient, entry)
    return Finding(kept, why, quotient, quotient - reach, quotient + reach)


def _pairs(top: pd.DataFrame, base: pd.DataFrame, named: set[str]) -> pd.DataFrame | None:
    """Values that differ in what the rule names only: same other factors, same replication.

    None where values do not pair off, or a ratio of them has no logarithm.
    """
    others = [str(c) for c in top.columns if str(c).startswith("factor_") and c[7:] not in named]
    keys = [*others, "replication"]
    if top.duplicated(keys).any() or base.duplicated(keys).any():
        return None
    both = top.merge(base, on=keys, suffixes=("_a", "_b"))
    if len(both) < 2 or (both[["value_a", "value_b"]] <= 0).any(axis=None):
        return None
    return both


def _inside(value: float, entry: Entry) -> Verdict:
    low, high = entry.get("at_least", -np.inf), entry.get("at_most", np.inf)
    return "holds" if low <= value <= high else "fails"


def _order(entry: Entry, good: pd.DataFrame) -> Finding:
    intervals = [
        mean_interval(_some(good, {**entry, "cell": cell})["value"]) for cell in entry["cells"]
    ]
    why = " < ".join(f"{i.centre:.4g}" for i in intervals)
    steps = list(pairwise(intervals))
    if any(a.centre >= b.centre for a, b in steps):
        return Finding("fails", f"means do not rise: {why.replace('<', ',')}")
    if any(np.isnan(i.half_width) for i in intervals):
        return Finding("holds", f"{why} (single replications, no interval)")
    if any(a.high >= b.low for a, b in steps):
        return Finding("fails", f"intervals overlap: {why}")
    return Finding("holds", why)


def _bound(entry: Entry, good: pd.DataFrame) -> Finding:
    def one(cell: pd.DataFrame) -> Finding:
        interval = mean_interval(cell["value"])
        return Finding(
            _inside(interval.centre, entry),
            f"{len(cell)} values",
            interval.centre,
            interval.low,
            interval.high,
        )

    rows = _some(good, entry)
    # Places of one metric are things of their own: each must keep the bound.
    place = rows["label"].astype(str) + " " + rows["where"].astype(str)
    return _each(rows.assign(label=place.str.strip()), one)


def _knee(entry: Entry, good: pd.DataFrame, samples: pd.DataFrame | None) -> Finding:
    """Whether a series stops rising while its processor is busy."""
    if samples is None:
        raise _MissingError("no samples")
    cells = pick(good, {"cell": entry.get("cell")})["cell"].unique()
    rows = samples[samples["cell"].isin(cells)]
    if entry.get("where"):
        rows = rows[rows["node"] == entry["where"]]
    rows = rows.dropna(subset=[entry["metric"], "cpu"])
    if rows.empty:
        raise _MissingError(f"no samples{_place(entry)}")
    parts = [
        _flat(part.sort_values("t"), entry["metric"])
        for _, part in rows.groupby(["cell", "replication"])
    ]
    slopes, loads = [p[0] for p in parts], [p[1] for p in parts]
    slope, load = float(np.mean(slopes)), float(np.mean(loads))
    kept = slope < float(entry.get("slope", 0.01)) and load >= float(entry.get("cpu", 95))
    interval = mean_interval(slopes)
    why = f"at the end {slope:.2%} of its mean a second at CPU {load:.0f} %"
    return Finding("holds" if kept else "fails", why, slope, interval.low, interval.high)


def _flat(part: pd.DataFrame, metric: str) -> tuple[float, float]:
    """Slope of the last quarter in shares of its mean a second, and the CPU then."""
    tail = part.iloc[-max(len(part) // 4, 2) :]
    t, y = tail["t"].to_numpy(dtype=float), tail[metric].to_numpy(dtype=float)
    if np.ptp(t) == 0 or y.mean() == 0:
        return float("inf"), float(tail["cpu"].mean())
    return float(np.polyfit(t - t[0], y, 1)[0] / y.mean()), float(tail["cpu"].mean())


_KINDS: Mapping[str, Callable[[Entry, pd.DataFrame], Finding]] = {
    "monotone": _monotone,
    "spread": _spread,
    "ratio": _ratio,
    "order": _order,
    "bound": _bound,
}


def kinds() -> Sequence[str]:
    """The kinds of rules there are."""
    return [*_KINDS, "knee"]
