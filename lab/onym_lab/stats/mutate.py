"""Mutated evidence: data in which a rule's effect is gone or turned.

A rule that still holds on such data shows nothing, and neither does one that cannot hold.
:func:`trial` tries one rule: on the kept data where it holds there, else first on data into which
its effect was put, and then on every change of those after which it must no longer hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from onym_lab.stats import rules
from onym_lab.stats.kinds import Entry, MissingError, axis_of, limits, pick

FAR = 10.0
"""A bound that holds for ten times what was measured is no bound of it."""

TORN = 1000.0
"""What replications that say nothing together are apart."""

REPLICATIONS = 5
"""Of data that a rule's effect was put into."""

PUT_IN = "the effect put in"
"""The change that makes a rule hold that does not."""


@dataclass(frozen=True)
class Trial:
    """What one rule was tried with, and what came of it."""

    rule: str
    kept: str
    changes: Sequence[tuple[str, str]]
    """Each change of the data, and the verdict after it."""

    @property
    def survived(self) -> list[str]:
        """Changes after which the verdict is what it should not be."""
        return [
            f"{self.rule}: {change} ({verdict})"
            for change, verdict in self.changes
            if (verdict == "holds") != (change == PUT_IN)
        ]

    @property
    def line(self) -> str:
        """The rule, its verdict on the kept data, and the changes with theirs."""
        told = ", ".join(f"{change}: {verdict}" for change, verdict in self.changes)
        return f"{self.rule} ({self.kept}): {told}"


def trial(entry: Entry, frame: pd.DataFrame) -> Trial:
    """Try one rule on the rows of its kept run."""
    frame = frame[frame["valid"].astype(bool) & frame["value"].notna()]
    kept = verdict(entry, frame)
    tried = []
    if kept != "holds":
        frame = established(entry, frame)
        tried.append((PUT_IN, verdict(entry, frame)))
    tried += [(change, verdict(entry, changed)) for change, changed in mutants(entry, frame)]
    return Trial(str(entry["id"]), kept, tried)


def verdict(entry: Entry, frame: pd.DataFrame) -> str:
    """The verdict of one rule."""
    return str(rules.judge({"rules": [entry]}, frame)["verdict"][0])


def reads(entry: Entry) -> list[Entry]:
    """What a rule reads: metric, place and cell of each of its parts."""
    match entry["kind"]:
        case "ratio":
            return [{"metric": entry.get("metric"), **entry[side]} for side in ("of", "to")]
        case "order":
            return [{**entry, "cell": cell} for cell in entry["cells"]]
        case "knee":
            ends = (f"{entry['metric']}_rise", f"{entry['metric']}_change_end", "cpu_load_end")
            return [{**entry, "metric": name} for name in ends]
        case _:
            return [entry]


def established(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Data of the same places and cells in which what the rule says is so, beyond noise."""
    frame = _replicated(entry, frame)
    low, high = limits(entry)
    parts = reads(entry)
    match entry["kind"]:
        case "monotone":
            along = axis_of(frame[_mask(frame, entry)], entry.get("over", "hop")).rank(
                method="dense"
            )
            falls = entry.get("direction") == "falling"
            return _put(frame, entry, (along.max() + 1 - along) if falls else along)
        case "spread":
            return _put(frame, entry, 1.0)
        case "order":
            for place, part in enumerate(parts, 1):
                frame = _put(frame, part, float(place))
            return frame
        case "ratio":
            return _put(_put(frame, parts[1], 1.0), parts[0], _within(low, high))
        case "bound":
            return _put(frame, entry, _within(low, high))
        case _:
            rise, busy = float(entry.get("rise", 2)), float(entry.get("cpu", 95))
            for part, value in zip(parts, (2 * rise, 0.0, _within(busy, 100)), strict=True):
                frame = _put(frame, part, value)
            return frame


def _within(low: float, high: float) -> float:
    """A number that keeps limits with room for noise."""
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2
    if np.isfinite(low):
        return low * 1.5 if low > 0 else low + 1
    return high / 1.5 if high > 0 else high


def _put(frame: pd.DataFrame, entry: Entry, values: pd.Series | float) -> pd.DataFrame:
    changed, mask = frame.copy(), _mask(frame, entry)
    low, high = limits(entry)
    # What must be one number has no noise.
    changed.loc[mask, "value"] = values * (1.0 if low == high else _noise(frame[mask]))
    return changed


def _replicated(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that a rule reads in :data:`REPLICATIONS` valid replications.

    Rows that the kept run has not are made of others of the same cells.
    """
    frame = frame.assign(value=frame["value"].astype(float))
    parts = []
    for part in reads(entry):
        mine = pick(frame, part)
        if mine.empty:
            mine = _cells(part, frame)
        keys = ["label", "where", "metric", "hop"]
        first = mine.drop_duplicates(subset=keys)
        parts += [first.assign(replication=r) for r in range(1, REPLICATIONS + 1)]
    made = pd.concat(parts, ignore_index=True).assign(valid=True, value=1.0)
    # Two parts may read the same rows.
    made = made.drop_duplicates(subset=["label", "where", "metric", "hop", "replication"])
    rest = frame.drop(index=[i for part in reads(entry) for i in pick(frame, part).index])
    return pd.concat([rest, made], ignore_index=True)


def _cells(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell that a part reads, of what the kept run has not measured."""
    try:
        made = pick(frame, {"cell": entry.get("cell")}).drop_duplicates(subset=["label"])
    except MissingError:
        made = frame.head(0)
    if made.empty:
        # Nor is there such a cell: one is made of another.
        made = frame.head(1)
        for factor, level in (entry.get("cell") or {}).items():
            made = made.assign(**{f"factor_{factor}": str(level)})
        made = made.assign(label=" ".join(f"{k}={v}" for k, v in entry.get("cell", {}).items()))
    return made.assign(metric=entry["metric"], where=entry.get("where", "all"))


def mutants(entry: Entry, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Names and data of the mutations of one rule that holds on the data."""
    match entry["kind"]:
        case "monotone":
            yield "flattened", _flat(entry, frame)
            yield "reversed", _reversed(entry, frame)
            yield "half reversed", _reversed(entry, frame, half=True)
        case "spread":
            yield "tilted", _tilted(entry, frame)
        case "order":
            yield "flattened", _level(entry, frame)
            yield "reversed", _swapped(entry, frame)
            yield "one far off", _over_all(entry, frame)
        case "ratio":
            yield from _ratios(entry, frame)
        case "bound":
            yield from _bounds(entry, frame)
        case "knee":
            metric = entry["metric"]
            yield "still rising", _set(frame, {**entry, "metric": f"{metric}_change_end"}, 1.0)
            yield "flat from the start", _set(frame, {**entry, "metric": f"{metric}_rise"}, 1.0)
            yield "idle", _set(frame, {**entry, "metric": "cpu_load_end"}, 5.0)


def _mask(frame: pd.DataFrame, entry: Entry) -> pd.Series:
    return pd.Series(frame.index.isin(pick(frame, entry).index), index=frame.index)


def _set(frame: pd.DataFrame, entry: Entry, value: float) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[_mask(frame, entry), "value"] = value
    return changed


def _scaled(frame: pd.DataFrame, entry: Entry, factor: float) -> pd.DataFrame:
    changed = frame.copy()
    changed.loc[_mask(frame, entry), "value"] *= factor
    return changed


def _centred(frame: pd.DataFrame, entry: Entry, centre: float) -> pd.DataFrame:
    """The rows that an entry picks with another mean, their relative noise kept."""
    mean = pick(frame, entry)["value"].mean()
    return _scaled(frame, entry, centre / mean) if mean else _set(frame, entry, centre)


def _noise(frame: pd.DataFrame) -> pd.Series:
    """A replication's own small share, so that a flat line has an interval and no order."""
    turn = (frame["replication"].astype(float) * 7919 + np.arange(len(frame))) % 13
    return 1 + (turn - 6) * 1e-3


def _flat(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    changed, mask = frame.copy(), _mask(frame, entry)
    centre = frame.loc[mask, "value"].mean()
    changed.loc[mask, "value"] = centre * _noise(frame[mask])
    return changed


def _reversed(entry: Entry, frame: pd.DataFrame, half: bool = False) -> pd.DataFrame:
    """Values mirrored around their middle, in all blocks or every other one.

    What rose falls, noise stays as large.
    """
    changed, mask = frame.copy(), _mask(frame, entry)
    values = frame.loc[mask, "value"]
    mirrored = values.max() + values.min() - values
    if half:
        over = entry.get("over", "hop")
        others = [c for c in frame.columns if str(c).startswith("factor_") and str(c)[7:] != over]
        block = frame.loc[mask, ["replication", *others]].apply(lambda c: pd.factorize(c)[0])
        mirrored = mirrored.where(block.sum(axis=1) % 2 == 0, values)
    changed.loc[mask, "value"] = mirrored
    return changed


def _torn(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """The first replication is far above the others."""
    changed, mask = frame.copy(), _mask(frame, entry)
    first = frame["replication"] == frame.loc[mask, "replication"].min()
    changed.loc[mask & first, "value"] *= TORN
    return changed


def _over_all(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """The first replication of the least cell is far above all cells."""
    cells = [_mask(frame, {**entry, "cell": cell}) for cell in entry["cells"]]
    least = min(cells, key=lambda mask: frame.loc[mask, "value"].mean())
    greatest = max(frame.loc[mask, "value"].mean() for mask in cells)
    changed = frame.copy()
    first = frame["replication"] == frame.loc[least, "replication"].min()
    changed.loc[least & first, "value"] = TORN * greatest
    return changed


def _torn_apart(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Every other value is far above what it was, the rest as far below."""
    changed, mask = frame.copy(), _mask(frame, entry)
    signs = np.where(np.arange(int(mask.sum())) % 2, 1.0, -1.0)
    changed.loc[mask, "value"] *= TORN**signs
    return changed


def _tilted(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """The far end carries less by three times the spread that is allowed."""
    changed, mask = frame.copy(), _mask(frame, entry)
    along = axis_of(frame[mask], entry.get("over", "hop"))
    last = along[along == along.max()].index
    changed.loc[last, "value"] *= max(0.0, 1 - 3 * float(entry["at_most"]))
    return changed


def _level(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    changed = frame.copy()
    cells = [_mask(frame, {**entry, "cell": cell}) for cell in entry["cells"]]
    centre = frame.loc[cells[0], "value"].mean()
    for cell in cells:
        changed.loc[cell, "value"] = centre * _noise(frame[cell])
    return changed


def _swapped(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """The first cell has the last one's values, and the last the first one's."""
    changed = frame.copy()
    first, last = (_mask(frame, {**entry, "cell": entry["cells"][i]}) for i in (0, -1))
    means = frame.loc[first, "value"].mean(), frame.loc[last, "value"].mean()
    for mask, own, other in ((first, *means), (last, *means[::-1])):
        changed.loc[mask, "value"] += other - own
    return changed


def _ratios(entry: Entry, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The effect gone (a ratio of 1) where that breaks the rule; and turned beyond each limit."""
    of = {"metric": entry.get("metric"), **entry["of"]}
    to = {"metric": entry.get("metric"), **entry["to"]}
    base = pick(frame, to)["value"].mean()
    low, high = limits(entry)
    if not low <= 1 <= high:
        yield "the effect gone", _centred(frame, of, base)
    if "at_least" in entry:
        yield "turned", _centred(frame, of, base * low / 2)
    if "at_most" in entry:
        yield "turned up", _centred(frame, of, base * high * 2)
    if not entry.get("exact") and pick(frame, of)["value"].abs().max() > 0:
        yield "torn apart", _torn_apart(of, frame)


def _bounds(entry: Entry, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    low, high = limits(entry)
    rows = pick(frame, entry)["value"]
    if "at_least" in entry:
        yield "a tenth", _scaled(frame, entry, 1 / FAR) if low > 0 else _set(frame, entry, low - 1)
    if "at_most" in entry:
        yield (
            "ten times",
            _scaled(frame, entry, FAR) if rows.mean() > 0 else _set(frame, entry, high + 1),
        )
    if not entry.get("exact") and rows.abs().max() > 0:
        yield "one far off", _torn(entry, frame)
