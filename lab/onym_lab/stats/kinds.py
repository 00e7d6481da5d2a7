"""The kinds of acceptance rules: each turns measured rows into one finding.

A finding is judged by the 95 % interval of what it is about, never by its
mean alone: it holds where the whole interval keeps the rule, fails where the
whole interval breaks it, and is not settled between, or where there is no
interval because a single value was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats as sps

from onym_lab.stats.compare import ratio, ratio_of_means, ratio_unpaired
from onym_lab.stats.intervals import Interval, Values, mean_interval

Verdict = Literal[
    "holds", "differs, and better", "differs, and worse", "not settled", "not measured", "fails"
]
Entry = Mapping[str, Any]

WORST = (
    "fails",
    "not measured",
    "not settled",
    "differs, and worse",
    "differs, and better",
    "holds",
)
"""Verdicts, the worst first."""

DRAWS = 400
"""Resamples behind the interval of a rank correlation or a spread."""


@dataclass(frozen=True)
class Finding:
    """What one rule found in one cell, or over cells."""

    verdict: Verdict
    why: str
    ours: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")


class MissingError(Exception):
    """A rule asks for a number that no valid replicate has."""


def settle(
    interval: Interval,
    at_least: float = -np.inf,
    at_most: float = np.inf,
    exact: bool = False,
) -> Verdict:
    """Where an interval lies beside the limits of a rule.

    ``exact`` says that the quantity repeats exactly (a count of instructions, a
    printed table), so that it is its own interval.
    """
    low, high = interval.low, interval.high
    if exact:
        low = high = interval.centre
    if np.isnan(low) or np.isnan(high):
        return "not settled"
    if _reaches(low, at_least) and _reaches(-high, -at_most):
        return "holds"
    if not _reaches(high, at_least) or not _reaches(-low, -at_most):
        return "fails"
    return "not settled"


def _reaches(value: float, limit: float) -> bool:
    """Whether a value is the limit or more, but for rounding."""
    return value >= limit or bool(np.isclose(value, limit, rtol=1e-9, atol=0))


def limits(entry: Entry) -> tuple[float, float]:
    """The limits of a rule that states any."""
    return float(entry.get("at_least", -np.inf)), float(entry.get("at_most", np.inf))


def pick(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """The rows that an entry names: ``metric``, ``where``, ``except``, ``cell``."""
    rows = frame
    if entry.get("metric"):
        rows = rows[rows["metric"] == entry["metric"]]
    if entry.get("where"):
        rows = rows[rows["where"] == entry["where"]]
    if entry.get("except"):
        rows = rows[~rows["where"].isin(entry["except"])]
    for name, level in (entry.get("cell") or {}).items():
        key = f"factor_{name}"
        if key not in rows:
            raise MissingError(f"no factor {name}")
        rows = rows[rows[key].astype(str) == str(level)]
    return rows


def some(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """The rows that an entry picks; there is at least one, or :class:`MissingError`."""
    rows = pick(frame, entry)
    if rows.empty:
        raise MissingError(f"no valid {entry.get('metric', 'value')}{place(entry)}")
    return rows


def place(entry: Entry) -> str:
    """Where an entry looks, in words."""
    where = f" at {entry['where']}" if entry.get("where") else ""
    cell = " ".join(f"{k}={v}" for k, v in (entry.get("cell") or {}).items())
    return where + (f" where {cell}" if cell else "")


def _each(
    rows: pd.DataFrame, one: Callable[[pd.DataFrame], Finding], any_of: bool = False
) -> Finding:
    """The worst finding over the cells that the entry picks.

    Where one of them is enough, the best, and of equals the largest.
    """
    found = [(str(label), one(cell)) for label, cell in rows.groupby("label", sort=False)]
    if any_of:
        label, best = max(found, key=lambda pair: (WORST.index(pair[1].verdict), pair[1].ours))
        note = f" ({label}, of {len(found)})"
        return Finding(best.verdict, best.why + note, best.ours, best.low, best.high)
    label, worst = min(found, key=lambda pair: WORST.index(pair[1].verdict))
    note = ""
    if len(found) > 1 and worst.verdict == "holds":
        note = f" (in all {len(found)} cells; the first is shown)"
    elif len(found) > 1 and label:
        note = f" in {label}"
    return Finding(worst.verdict, worst.why + note, worst.ours, worst.low, worst.high)


def _number(label: object) -> float:
    """The number a level's label begins with; NaN where it has none."""
    match = re.match(r"\s*(-?\d+(?:\.\d+)?(?:e-?\d+)?)\s*([kKMG]?)", str(label))
    scale = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
    return float(match[1]) * scale[match[2]] if match else float("nan")


def axis_of(rows: pd.DataFrame, over: str) -> pd.Series:
    """The numbers along which a rule looks: hops, or a factor's levels in their order."""
    if over == "hop":
        return rows["hop"].astype(float)
    key = f"factor_{over}"
    if key not in rows:
        raise MissingError(f"no factor {over}")
    numbers = rows[key].map(_number)
    if numbers.notna().all():
        return numbers
    return rows[key].map({level: i for i, level in enumerate(rows[key].unique())}).astype(float)


def _replicates(rows: pd.DataFrame, over: str) -> pd.DataFrame:
    """Values by place along the axis (index) and by block (columns), at least two places.

    A block is one replication of one setting of the other factors: hops of one
    run, or runs that differ in the axis only. Blocks that lack a place are left out
    of the interval by :func:`resampled`.
    """
    along = rows.assign(axis=axis_of(rows, over)).dropna(subset=["axis"])
    others = [str(c) for c in along.columns if str(c).startswith("factor_") and c[7:] != over]
    found = along.pivot_table(
        index="axis", columns=["replication", *others], values="value", aggfunc="mean"
    )
    if len(found) < 2:
        raise MissingError(f"fewer than two places along {over}")
    return found


def resampled(found: pd.DataFrame, statistic: Callable[[Values], Values]) -> Interval:
    """The percentile interval of a statistic of the means, blocks drawn with replacement.

    ``statistic`` maps rows of means (one column a place) to one number a row.
    With fewer than two whole blocks there is no interval.
    """
    centre = float(statistic(found.mean(axis=1).to_numpy(dtype=np.float64)[np.newaxis])[0])
    blocks = found.dropna(axis=1).to_numpy(dtype=np.float64)
    count = blocks.shape[1]
    if count < 2:
        return Interval(centre, float("nan"), float("nan"))
    picks = np.random.default_rng(1).integers(0, count, (DRAWS, count))
    drawn = statistic(blocks[:, picks].mean(axis=2).T)
    if np.isnan(drawn).all():
        return Interval(centre, centre, centre)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Interval(centre, float(low), float(high))


def rank_correlations(axis: Values, rows: Values) -> Values:
    """Spearman's rank correlation of each row with the axis; NaN where a row does not vary."""
    x, y = sps.rankdata(axis), sps.rankdata(rows, axis=1)
    x, y = x - x.mean(), y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x**2).sum() * (y**2).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Values = (y @ x) / scale
    return found


def _row(means: pd.Series) -> str:
    return " ".join(f"{value:.4g}" for value in means)


def _monotone(entry: Entry, good: pd.DataFrame) -> Finding:
    """Spearman's rank correlation along hops or a factor, and that something varies at all."""
    over = entry.get("over", "hop")
    sign = -1 if entry.get("direction") == "falling" else 1
    need = float(entry.get("rho", 0.9))

    def one(cell: pd.DataFrame) -> Finding:
        found = _replicates(cell, over)
        means = found.mean(axis=1)
        along = found.index.to_numpy(dtype=np.float64)
        interval = resampled(found, lambda rows: rank_correlations(along, rows))
        if np.isnan(interval.centre):
            return Finding("fails", f"along {over} nothing varies: {_row(means)}", 0.0)
        low, high = (need, np.inf) if sign > 0 else (-np.inf, -need)
        kept = settle(interval, low, high, bool(entry.get("exact")))
        why = f"along {over}: {_row(means)}"
        return Finding(kept, why, interval.centre, interval.low, interval.high)

    rows = some(good, entry)
    # Levels of a factor lie in different cells, hops within one.
    return one(rows) if over != "hop" else _each(rows, one)


def _spread(entry: Entry, good: pd.DataFrame) -> Finding:
    """The range of the means over their mean."""
    over, most = entry.get("over", "hop"), float(entry["at_most"])

    def range_over_mean(rows: Values) -> Values:
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Values = np.ptp(rows, axis=1) / rows.mean(axis=1)
        return found

    def one(cell: pd.DataFrame) -> Finding:
        found = _replicates(cell, over)
        interval = resampled(found, range_over_mean)
        kept = settle(interval, at_most=most, exact=bool(entry.get("exact")))
        why = f"along {over}: {_row(found.mean(axis=1))}"
        return Finding(kept, why, interval.centre, interval.low, interval.high)

    rows = some(good, entry)
    return one(rows) if over != "hop" else _each(rows, one)


def _ratio(entry: Entry, good: pd.DataFrame) -> Finding:
    if entry["of"] == entry["to"]:
        raise ValueError(f"rule {entry['id']}: a ratio of something to itself is always 1")
    top = some(good, {"metric": entry.get("metric"), **entry["of"]})
    base = some(good, {"metric": entry.get("metric"), **entry["to"]})
    pairs = _pairs(top, base, {*entry["of"].get("cell", {}), *entry["to"].get("cell", {})})
    if pairs is not None and (pairs[["value_a", "value_b"]] > 0).all(axis=None):
        found = ratio(pairs["value_a"], pairs["value_b"])
        why = f"geometric mean of {len(pairs)} pairs"
    elif pairs is not None and float(base["value"].mean()) > 0 < float(top["value"].mean()):
        # A zero has no logarithm.
        found = ratio_of_means(pairs["value_a"], pairs["value_b"])
        why = f"{top['value'].mean():.4g} over {base['value'].mean():.4g}, {len(pairs)} pairs"
    elif float(base["value"].mean()) == 0:
        return Finding("not measured", f"{top['value'].mean():.4g} over 0")
    else:
        found = ratio_unpaired(top["value"], base["value"])
        why = f"{top['value'].mean():.4g} over {base['value'].mean():.4g}"
    kept = settle(found, *limits(entry), exact=bool(entry.get("exact")))
    return Finding(kept, why, found.centre, found.low, found.high)


def _pairs(top: pd.DataFrame, base: pd.DataFrame, named: set[str]) -> pd.DataFrame | None:
    """Values that differ in what the rule names only: same other factors, same replication.

    None where they do not pair off.
    """
    others = [str(c) for c in top.columns if str(c).startswith("factor_") and c[7:] not in named]
    keys = [*others, "replication"]
    if top.duplicated(keys).any() or base.duplicated(keys).any():
        return None
    both = top.merge(base, on=keys, suffixes=("_a", "_b"))
    return both if len(both) > 1 else None


def _order(entry: Entry, good: pd.DataFrame) -> Finding:
    """Means of cells that rise, with intervals apart."""
    intervals = [
        mean_interval(some(good, {**entry, "cell": cell})["value"]) for cell in entry["cells"]
    ]
    shown = [f"{i.centre:.4g}" for i in intervals]
    steps = list(pairwise(intervals))
    if any(a.low > b.high for a, b in steps):
        return Finding("fails", f"the means fall: {', '.join(shown)}")
    if any(np.isnan(i.half_width) for i in intervals):
        if entry.get("exact"):
            rises = all(a.centre < b.centre for a, b in steps)
            return Finding("holds" if rises else "fails", " < ".join(shown))
        return Finding("not settled", f"{', '.join(shown)} (single values have no interval)")
    if any(a.high >= b.low for a, b in steps):
        return Finding("not settled", f"intervals overlap: {', '.join(shown)}")
    return Finding("holds", " < ".join(shown))


def _bound(entry: Entry, good: pd.DataFrame) -> Finding:
    def one(cell: pd.DataFrame) -> Finding:
        interval = mean_interval(cell["value"])
        kept = settle(interval, *limits(entry), exact=bool(entry.get("exact")))
        count = "one value" if len(cell) == 1 else f"{len(cell)} values"
        return Finding(kept, count, interval.centre, interval.low, interval.high)

    rows = some(good, entry)
    # Places of one metric are things of their own: each must keep the bound, or any.
    where = rows["label"].astype(str) + " " + rows["where"].astype(str)
    return _each(rows.assign(label=where.str.strip()), one, bool(entry.get("any")))


def _knee(entry: Entry, good: pd.DataFrame) -> Finding:
    """Whether a quantity rose, and stopped rising while its processor was busy.

    Reads what :mod:`onym_lab.derive` makes of a series: ``<metric>_rise`` (the mean of the last
    quarter over that of the first), ``<metric>_change_end`` (change over the last quarter in shares
    of its mean) and ``cpu_load_end`` (percent, mean of the last quarter).
    """
    metric, most = entry["metric"], float(entry.get("change", 0.1))
    asked = (
        (f"{metric}_rise", float(entry.get("rise", 2)), np.inf),
        (f"{metric}_change_end", -most, most),
        ("cpu_load_end", float(entry.get("cpu", 95)), np.inf),
    )
    found = []
    for name, low, high in asked:
        interval = mean_interval(some(good, {**entry, "metric": name})["value"])
        found.append((settle(interval, low, high), name, interval))
    kept = min((one[0] for one in found), key=WORST.index)
    why = ", ".join(f"{name} {interval.centre:.3g}" for _, name, interval in found)
    change = found[1][2]
    return Finding(kept, why, change.centre, change.low, change.high)


KINDS: Mapping[str, Callable[[Entry, pd.DataFrame], Finding]] = {
    "monotone": _monotone,
    "spread": _spread,
    "ratio": _ratio,
    "order": _order,
    "bound": _bound,
    "knee": _knee,
}


def kinds() -> Sequence[str]:
    """The kinds of rules there are."""
    return [*KINDS]
