"""Mutated evidence: data in which a rule's effect is gone or turned.

A rule that still holds on such data shows nothing. :func:`mutants` makes, for
one rule and the rows that it was judged on, every change after which it must
no longer hold.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from onym_lab.stats.kinds import Entry, axis_of, limits, pick

FAR = 10.0
"""A bound that holds for ten times what was measured is no bound of it."""


def mutants(entry: Entry, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Names and data of the mutations of one rule."""
    match entry["kind"]:
        case "monotone":
            yield "flattened", _flat(entry, frame)
            yield "reversed", _reversed(entry, frame)
        case "spread":
            yield "tilted", _tilted(entry, frame)
        case "order":
            yield "flattened", _level(entry, frame)
            yield "reversed", _swapped(entry, frame)
        case "ratio":
            yield from _ratios(entry, frame)
        case "bound":
            yield from _bounds(entry, frame)
        case "knee":
            metric = entry["metric"]
            yield "still rising", _set(frame, {**entry, "metric": f"{metric}_slope_end"}, 1.0)
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


def _reversed(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Values mirrored around their middle: what rose falls, noise stays as large."""
    changed, mask = frame.copy(), _mask(frame, entry)
    values = frame.loc[mask, "value"]
    changed.loc[mask, "value"] = values.max() + values.min() - values
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


def _bounds(entry: Entry, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    low, high = limits(entry)
    if "at_least" in entry:
        yield "a tenth", _scaled(frame, entry, 1 / FAR) if low > 0 else _set(frame, entry, low - 1)
    if "at_most" in entry:
        centre = pick(frame, entry)["value"].mean()
        yield (
            "ten times",
            _scaled(frame, entry, FAR) if centre > 0 else _set(frame, entry, high + 1),
        )
