"""Which pictures a run gets: those that its file asks for and its data allow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import numpy as np
import pandas as pd

from onym_lab import plots, stats
from onym_lab.plots import Plot
from onym_lab.report.data import Measured
from onym_lab.stats import design

PANELS = ("nodes", "transfers", "hops", "cdf", "effects", "series", "topology")
"""Panels that an experiment's ``report`` may name, in the order of the page."""

MOST = 12
"""Most pictures of a kind: a page of a hundred is read by nobody. The CSV files have all."""

LOG_FROM = 100.0
"""Largest over smallest value from which an axis is logarithmic."""

ALONG = ("pending_mean", "retransmits", "goodput_data", "memory_max", "cpu_mean", "dropped")
"""Metrics drawn along the path."""

SYSTEM = (
    "goodput",
    "transfer_mean",
    "distribution",
    "satisfaction",
    "offload",
    "cs_hits",
    "latency_p50",
    "events_per_second",
    "forwarding_rate",
)
"""Metrics drawn against the levels of factors, when the file names none."""


def draw(measured: Measured) -> Iterator[Plot]:
    """The pictures, one at a time: figures are big."""
    asked = (measured.experiment.get("report") or {}).get("panels") or PANELS
    for panel in PANELS:
        if panel in asked:
            yield from islice(_DRAWERS[panel](measured), MOST)


def _cells(measured: Measured, frame: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    """Cell, label and a short name for files, of cells that a series has."""
    present = set(frame["cell"].astype(str))
    for number, (cell, label) in enumerate(measured.labels.items(), start=1):
        if cell in present:
            yield cell, label, f"{number:02d}"


def _title(measured: Measured, label: str, replication: int) -> str:
    return f"{label or measured.title}, replicate {replication}"


def _nodes(measured: Measured) -> Iterator[Plot]:
    for cell, label, short in _cells(measured, measured.samples):
        samples, number = measured.replicate(measured.samples, cell)
        traffic, _ = measured.replicate(measured.traffic, cell)
        busy = _busy(samples, traffic)
        title = _title(measured, label, number)
        yield plots.overview(f"nodes-{short}", title, samples, traffic, busy, _faults(measured))


def _busy(samples: pd.DataFrame, traffic: pd.DataFrame, most: int = 9) -> list[str]:
    """Nodes in their order along the path; the busiest when they are too many for a picture."""
    order = list(dict.fromkeys([*samples["node"], *traffic["node"]]))
    if "hop" in samples:
        # A node beside the path has no hop.
        hops = samples.groupby("node")["hop"].min().dropna()
        order.sort(key=lambda node: float(hops.get(node, np.inf)))
    if len(order) <= most:
        return order
    column = "pending" if "pending" in samples else "cpu"
    top = samples.groupby("node")[column].mean().nlargest(most).index
    return [node for node in order if node in top]


def _faults(measured: Measured) -> list[tuple[float, float, str]]:
    found = []
    for fault in measured.experiment.get("faults") or []:
        begin, length = fault.get("at"), fault.get("for")
        if isinstance(begin, int | float) and isinstance(length, int | float):
            what = f"{fault.get('link') or fault.get('node') or ''} {fault.get('action', '')}"
            found.append((float(begin), float(begin + length), what.strip()))
    return found


def _transfers(measured: Measured) -> Iterator[Plot]:
    for cell, label, short in _cells(measured, measured.transfers):
        rows, number = measured.replicate(measured.transfers, cell)
        yield plots.bars(f"transfers-{short}", _title(measured, label, number), rows)


def _hops(measured: Measured) -> Iterator[Plot]:
    rows = measured.aggregate[measured.aggregate["valid"]]
    along = [m for m in ALONG if (rows["metric"].eq(m) & rows["hop"].notna()).any()]
    if along and rows["hop"].nunique() > 1:
        yield plots.hops("hops", "Along the path", rows, along)


def _cdf(measured: Measured) -> Iterator[Plot]:
    rows = measured.transfers
    if rows.empty:
        return
    last = rows["stop"].max()
    times = pd.DataFrame(
        {
            "label": rows["cell"].astype(str).map(measured.labels),
            "time": rows["stop"].fillna(last) - rows["start"],
            "completed": rows["completed"].astype(bool),
        }
    )
    # In the order of the cells, not of the runs: colours mean the same in every picture.
    keep = [label for label in measured.labels.values() if label in set(times["label"])][:8]
    shown = pd.concat([times[times["label"] == label] for label in keep])
    yield plots.cdf("cdf", "Download times of all replicates", shown)


def responses(measured: Measured, metric: str, where: str) -> tuple[list[str], np.ndarray] | None:
    """A 2^k r table in standard order, when every factor has two levels and no cell is empty.

    A cell with fewer valid replications than others limits all to its count.
    """
    factors = measured.factors
    rows = measured.aggregate
    rows = rows[
        (rows["metric"] == metric)
        & (rows["where"] == where)
        & rows["valid"]
        & rows["value"].notna()
    ]
    names = {f: _levels(measured, f) for f in factors}
    if not factors or any(len(levels) != 2 for levels in names.values()):
        return None
    groups = []
    for signs in design.full(factors):
        wanted = rows
        for factor, sign in zip(factors, signs, strict=True):
            wanted = wanted[wanted[f"factor_{factor}"] == names[factor][(sign + 1) // 2]]
        groups.append(wanted.sort_values("replication")["value"].to_numpy(dtype=float))
    fewest = min(map(len, groups))
    if fewest == 0:
        return None
    return factors, np.stack([group[:fewest] for group in groups])


def _levels(measured: Measured, factor: str) -> list[str]:
    """A factor's levels in the order of the plan."""
    found = [str(c["levels"].get(factor)) for c in measured.plan.get("cells", [])]
    spec = (measured.experiment.get("factors") or {}).get(factor) or {}
    order = [
        str(level.get("label") if isinstance(level, Mapping) else level)
        for level in spec.get("levels", [])
    ]
    present = list(dict.fromkeys(found))
    return [level for level in order if level in present] or present


def measures(measured: Measured) -> list[tuple[str, str]]:
    """Metric and place that summarise the run: as the file says, else what there is of the usual.

    ``report.metrics`` lists them as ``metric`` or ``metric@where``. The place is empty where a
    metric has several that are to be shown beside each other.
    """
    rows = measured.aggregate[["metric", "where", "scope"]].drop_duplicates()
    asked = (measured.experiment.get("report") or {}).get("metrics") or SYSTEM
    found = []
    for word in asked:
        metric, _, where = str(word).partition("@")
        mine = rows[rows["metric"] == metric]
        if where:
            places = [where] if (mine["where"] == where).any() else []
        else:
            beside = mine[mine["scope"] != "node"]
            places = list(dict.fromkeys(beside["where"]))
            if "all" in places:
                places = ["all"]
            elif len(places) > 1:
                places = [""]
        found += [(metric, place) for place in places]
    return found


def analyses(measured: Measured) -> Iterator[tuple[str, str, str, stats.Analysis]]:
    """Metric, place, unit and additive analysis of every measure of a 2^k design."""
    for metric, where in measures(measured):
        found = responses(measured, metric, where)
        if found is None or len(found[0]) < 2:
            continue
        rows = measured.aggregate
        unit = str(rows.loc[rows["metric"] == metric, "unit"].iloc[0])
        yield metric, where, unit, stats.analyse(*found)


def _effects(measured: Measured) -> Iterator[Plot]:
    for metric, where, unit, analysis in analyses(measured):
        name = f"{metric}-{where}"
        yield plots.shares(f"effects-{name}", f"What decides {metric} of {where}", analysis, unit)
        yield plots.diagnostics(f"residuals-{name}", f"{metric} of {where}", analysis)


def _varied(measured: Measured) -> list[str]:
    return [f for f in measured.factors if measured.aggregate[f"factor_{f}"].nunique() > 1]


def _levels_of(measured: Measured) -> Iterator[Plot]:
    """Each measure against the factor with most levels, one line for each level of the next."""
    rows = measured.aggregate[measured.aggregate["valid"]]
    for metric, where in measures(measured):
        mine = rows[rows["metric"] == metric]
        mine = mine[mine["where"] == where] if where else mine
        axes = _axes(measured)
        if not axes and not where and mine["where"].nunique() > 1:
            # Nothing was varied: the places themselves stand beside each other.
            mine, axes = mine.assign(factor_place=mine["where"]), ["place"]
            title = f"{metric.replace('_', ' ')} of each"
            yield plots.levels(f"series-{metric}-places", title, mine, metric, "place")
            continue
        if mine.empty or not axes:
            continue
        yield from _against(measured, mine, metric, where, axes)


LINES_MOST = 8
"""More lines cannot be told apart."""


def _against(
    measured: Measured, mine: pd.DataFrame, metric: str, where: str | None, axes: list[str]
) -> Iterator[Plot]:
    """One measure against the first of the factors, the others as lines.

    All their combinations, when those can be told apart; else one picture for each of them,
    averaged over the rest. The places of a measure without one are the lines, and the others
    stay at their first levels.
    """
    first, rest = axes[0], axes[1:]
    # Words stand in the order of the file, not in that of the runs.
    rank = {level: place for place, level in enumerate(_levels(measured, first))}
    mine = mine.sort_values(
        f"factor_{first}", key=lambda words: words.astype(str).map(rank), kind="stable"
    )
    name = f"series-{metric}-{where or 'places'}"
    title = f"{metric.replace('_', ' ')}{f' of {where}' if where else ''} by {first}"
    log = _spans(mine["value"])
    if not where:
        held = {f: _levels(measured, f)[0] for f in rest}
        for factor, level in held.items():
            mine = mine[mine[f"factor_{factor}"] == level]
        if held:
            title += f" ({', '.join(f'{factor}={level}' for factor, level in held.items())})"
        mine = mine.assign(factor_where=mine["where"])
        yield plots.levels(name, title, mine, metric, first, "where", log=log)
        return
    orders = [_levels(measured, factor) for factor in rest]
    if len(rest) > 1 and math.prod(map(len, orders)) <= LINES_MOST:
        words = mine[[f"factor_{factor}" for factor in rest]].astype(str).agg(", ".join, axis=1)
        column = ", ".join(rest)
        mine = mine.drop(columns=[f"factor_{factor}" for factor in rest])
        mine = mine.assign(**{f"factor_{column}": words})
        order = [", ".join(levels) for levels in itertools.product(*orders)]
        yield plots.levels(name, title, mine, metric, first, column, log=log, order=order)
        return
    for factor, order in zip(rest, orders, strict=True):
        one = f"{name}-{factor}" if len(rest) > 1 else name
        yield plots.levels(one, title, mine, metric, first, factor, log=log, order=order)
    if not rest:
        yield plots.levels(name, title, mine, metric, first, log=log)


def _spans(values: pd.Series) -> bool:
    """Whether values lie so far apart that a linear axis would show the largest only."""
    above = values[values > 0]
    return len(above) == len(values) > 0 and float(above.max() / above.min()) >= LOG_FROM


def _axes(measured: Measured) -> list[str]:
    """Factors that vary: those with numbers first, then those with most levels."""
    factors = _varied(measured)
    counts = {f: measured.aggregate[f"factor_{f}"].nunique() for f in factors}
    numeric = {
        f: pd.to_numeric(measured.aggregate[f"factor_{f}"].str.extract(r"^([\d.]+)")[0])
        .notna()
        .all()
        for f in factors
    }
    return sorted(factors, key=lambda f: (not numeric[f], -counts[f]))


def _topology(measured: Measured) -> Iterator[Plot]:
    network = measured.experiment.get("resolved") or measured.experiment.get("topology") or {}
    nodes = [
        str(n["name"]) if isinstance(n, Mapping) else str(n) for n in network.get("nodes") or []
    ]
    links = [_ends(link) for link in network.get("links") or []]
    if len(nodes) < 3 or not links or len(nodes) > 200:
        return
    roles = {
        str(app["node"]): "producer" if app.get("kind") in ("producer", "put") else "consumer"
        for app in measured.experiment.get("apps") or []
        if app.get("node")
    }
    name = "the network"
    yield plots.rates(
        "topology", f"{measured.title}: {name}", nodes, links, _carried(measured, links), roles
    )


def _ends(link: object) -> tuple[str, str]:
    if isinstance(link, Mapping):
        ends = link.get("between") or (link.get("a"), link.get("b"))
        return str(ends[0]), str(ends[1])
    assert isinstance(link, list | tuple)
    return str(link[0]), str(link[1])


def _carried(measured: Measured, links: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Mean Data rate on the link of each node toward the producer; only for paths by hop."""
    rows = measured.aggregate
    rows = rows[(rows["metric"] == "throughput_data") & rows["valid"] & rows["hop"].notna()]
    if rows.empty:
        rows = measured.aggregate
        rows = rows[(rows["metric"] == "goodput_data") & rows["valid"] & rows["hop"].notna()]
    mean = rows.groupby("where")["value"].mean()
    hop = rows.groupby("where")["hop"].min()
    found = {}
    for a, b in links:
        near = min((a, b), key=lambda node: float(hop.get(node, np.inf)))
        if near in mean:
            found[(a, b)] = float(mean[near])
    return found


_DRAWERS: Mapping[str, Callable[[Measured], Iterator[Plot]]] = {
    "nodes": _nodes,
    "transfers": _transfers,
    "hops": _hops,
    "cdf": _cdf,
    "effects": _effects,
    "series": _levels_of,
    "topology": _topology,
}
