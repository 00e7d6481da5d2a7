"""A metric along hops or along the levels of a factor, with bands of confidence."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from onym_lab.plots.style import Plot, colour, marker, panels, scaled, styled
from onym_lab.stats import CONFIDENCE, mean_interval


def means(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean and 95 % interval of ``value`` over replications for each group, in order."""
    found = []
    for key, part in rows.groupby(list(by), sort=False, dropna=False):
        interval = mean_interval(part["value"])
        found.append([*key, interval.centre, interval.low, interval.high, len(part)])
    return pd.DataFrame(found, columns=[*by, "mean", "low", "high", "count"])


def hops(name: str, title: str, aggregate: pd.DataFrame, metrics: Sequence[str]) -> Plot:
    """One panel for each metric, one line for each cell, from the consumer to the producer."""
    rows = aggregate[aggregate["hop"].notna() & aggregate["value"].notna()]
    # What never happened anywhere is said by the tables.
    present = [one for one in metrics if rows.loc[rows["metric"] == one, "value"].any()]
    with styled():
        columns = min(len(present), 3) or 1
        lines = -(-len(present) // columns) or 1
        figure, axes = panels(lines, columns, 3.7, 2.7)
        table = means(rows[rows["metric"].isin(present)], ["metric", "unit", "label", "hop"])
        for ax, metric in zip(axes, present, strict=False):
            _along(ax, table[table["metric"] == metric], metric)
        for ax in axes[len(present) :]:
            ax.set_visible(False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        handles, names = axes[0].get_legend_handles_labels()
        if len(names) > 1:
            figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4))
    caption = (
        "Along the path, 0 is the consumer's node: mean over replications and "
        f"{CONFIDENCE:.0%} interval."
    )
    return Plot(name, caption, figure, table)


def natural(label: object) -> list[tuple[int, float, str]]:
    """A key that sorts labels by their words, and numbers in them by their value."""
    parts = re.split(r"(\d+(?:\.\d+)?)", str(label))
    return [(0, float(one), "") if n % 2 else (1, 0.0, one) for n, one in enumerate(parts)]


def _along(ax: Axes, table: pd.DataFrame, metric: str) -> None:
    divisor, unit = scaled(table["high"].fillna(table["mean"]), str(table["unit"].iloc[0]))
    for number, label in enumerate(sorted(table["label"].unique(), key=natural)):
        line = table[table["label"] == label].sort_values("hop")
        x = line["hop"].astype(int)
        ax.plot(
            x,
            line["mean"] / divisor,
            marker=marker(number),
            color=colour(number),
            label=str(label) or "all",
        )
        ax.fill_between(
            x,
            # Nothing that is measured along a path is below zero.
            line["low"].astype(float).clip(lower=0) / divisor,
            line["high"].astype(float) / divisor,
            color=colour(number),
            alpha=0.18,
            linewidth=0,
        )
    ax.set_xticks(sorted(table["hop"].astype(int).unique()))
    ax.set_xlabel("hop")
    ax.set_title(f"{metric.replace('_', ' ')}, {unit}")
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))


def levels(
    name: str,
    title: str,
    aggregate: pd.DataFrame,
    metric: str,
    factor: str,
    series: str | None = None,
    log: bool = False,
    order: Sequence[str] = (),
) -> Plot:
    """A metric against a factor's levels (numbers on an axis, words as bars).

    ``series`` is a second factor whose levels are lines. Other factors are
    averaged over; the caption says which. ``order`` is that of the second factor's levels.
    """
    key = f"factor_{factor}"
    rows = aggregate[(aggregate["metric"] == metric) & aggregate["value"].notna()].copy()
    rows["level"] = rows[key].astype(str)
    rows["series"] = rows[f"factor_{series}"].astype(str) if series else ""
    table = means(rows, ["series", "level", "unit"])
    if order:
        rank = {level: place for place, level in enumerate(order)}
        table = table.sort_values(
            "series", key=lambda names: names.map(rank).fillna(len(rank)), kind="stable"
        )
    unit = str(table["unit"].iloc[0]) if len(table) else ""
    divisor, word = scaled(table["high"].fillna(table["mean"]), unit)
    numbers = pd.to_numeric(table["level"].str.extract(r"^(-?[\d.]+(?:e-?\d+)?)")[0])
    with styled():
        figure, (ax,) = panels(1, 1, 5.8, 3.4)
        if numbers.notna().all() and numbers.nunique() > 1:
            _lines(ax, table.assign(x=numbers), divisor)
            ax.set_xlabel(factor.replace("_", " "))
            if numbers.min() > 0 and numbers.max() / numbers.min() >= 16:
                ax.set_xscale("log", base=10 if numbers.max() / numbers.min() >= 1000 else 2)
                ticks = sorted(numbers.unique())
                ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
                ax.minorticks_off()
        else:
            _bars(ax, table, divisor)
        if log:
            ax.set_yscale("log")
            # Intervals of few values reach below zero; the axis is that of the means.
            ax.set_ylim(bottom=0.5 * float((table["mean"] / divisor).min()))
        else:
            # Values that are all alike would lie on the frame.
            ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
        ax.set_title(title)
        ax.set_ylabel(f"{metric.replace('_', ' ')}, {word}")
        if series:
            ax.legend(title=series.replace("_", " "), loc="best")
    others = [
        c[7:]
        for c in map(str, aggregate.columns)
        if c.startswith("factor_") and c[7:] not in (factor, series)
    ]
    others = [name for name in others if rows[f"factor_{name}"].nunique() > 1]
    over = f", averaged over {', '.join(others)}" if others else ""
    caption = f"{metric.replace('_', ' ')} by {factor}{over}; mean and {CONFIDENCE:.0%} interval."
    return Plot(name, caption, figure, table)


def _reach(
    table: pd.DataFrame, divisor: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.nan_to_num(
        np.stack([table["mean"] - table["low"], table["high"] - table["mean"]]) / divisor
    )


def _lines(ax: Axes, table: pd.DataFrame, divisor: float) -> None:
    for number, (label, line) in enumerate(table.groupby("series", sort=False)):
        line = line.sort_values("x")
        ax.errorbar(
            line["x"],
            line["mean"] / divisor,
            yerr=_reach(line, divisor),
            capsize=2.5,
            marker=marker(number),
            color=colour(number),
            label=str(label),
        )


def _bars(ax: Axes, table: pd.DataFrame, divisor: float) -> None:
    places = list(dict.fromkeys(table["level"]))
    groups = list(dict.fromkeys(table["series"]))
    width = 0.8 / len(groups)
    for number, label in enumerate(groups):
        line = table[table["series"] == label]
        x = [
            places.index(level) + (number - (len(groups) - 1) / 2) * width
            for level in line["level"]
        ]
        ax.bar(
            x,
            line["mean"] / divisor,
            width * 0.92,
            yerr=_reach(line, divisor),
            capsize=2.5,
            color=colour(number),
            label=str(label),
            error_kw={"ecolor": "#222222", "lw": 1},
        )
    long = max(map(len, places), default=0) * len(places) > 55
    ax.set_xticks(
        range(len(places)), places, rotation=25 if long else 0, ha="right" if long else "center"
    )
    ax.grid(axis="x", visible=False)
