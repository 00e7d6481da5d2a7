"""The paper's overview of a node: six panels over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from onym_lab.plots.style import ALARM, Plot, ordered, panels, scaled, styled

PANELS = (
    ("cpu", "CPU of the forwarder", "% of a core"),
    ("memory", "Memory", "octets"),
    ("pending", "Pending Interests", "entries"),
    ("goodput_interest", "Interest direction, goodput", "B/s"),
    ("goodput_data", "Data direction, goodput", "B/s"),
    ("duplicates", "Interest retransmits", "1/s"),
)
"""Column, title and unit of each panel, in the order of the paper's overview."""

Faults = Sequence[tuple[float, float, str]]
"""When something was broken: from, until (seconds), and what."""


def overview(
    name: str,
    title: str,
    samples: pd.DataFrame,
    traffic: pd.DataFrame,
    nodes: Sequence[str],
    faults: Faults = (),
) -> Plot:
    """Six panels with one line for each node, dark near the consumer, light near the producer.

    ``samples`` and ``traffic`` are those of one replicate. Samples that were
    not valid leave a gap in their line and a mark on the time axis.
    """
    with styled():
        series = {column: _series(column, samples, traffic) for column, _, _ in PANELS}
        # Without captures the second row has nothing to show.
        rows = 2 if any(series[one]["value"].notna().any() for one, _, _ in PANELS[3:]) else 1
        figure, axes = panels(rows, 3, 3.7, 2.5)
        for ax, (column, head, unit) in zip(axes, PANELS[: 3 * rows], strict=True):
            _panel(ax, series[column], nodes, head, unit, faults)
        _misses(axes[0], samples)
        for ax in axes[-3:]:
            ax.set_xlabel("time, s")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        handles, names = axes[0].get_legend_handles_labels()
        if len(names) > 1:
            figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 10))
    frames = [frame.assign(panel=column) for column, frame in series.items()]
    caption = (
        "CPU, memory, pending Interests, goodput in both directions and Interest retransmits "
        f"over time, {', '.join(nodes)}."
    )
    return Plot(name, caption, figure, pd.concat(frames)[["panel", "node", "t", "value"]])


def _series(column: str, samples: pd.DataFrame, traffic: pd.DataFrame) -> pd.DataFrame:
    source = samples if column in samples else traffic
    if column not in source:
        return pd.DataFrame(
            {
                "node": pd.Series(dtype=str),
                "t": pd.Series(dtype=float),
                "value": pd.Series(dtype=float),
            }
        )
    frame = source[["node", "t", column]].rename(columns={column: "value"})
    if "valid" in source and column not in ("cpu", "memory"):
        frame["value"] = frame["value"].where(source["valid"].astype(bool))
    return frame


def _panel(
    ax: Axes, frame: pd.DataFrame, nodes: Sequence[str], head: str, unit: str, faults: Faults
) -> None:
    divisor, label = scaled(frame["value"], unit)
    for shade, node in zip(ordered(len(nodes)), nodes, strict=True):
        line = frame[frame["node"] == node].sort_values("t")
        # One value for each second: of a short run too few to be seen as a line.
        # A line without values that is not clipped reaches to the corner of the picture.
        marker = "o" if 1 <= line["value"].notna().sum() <= 3 else None
        ax.plot(
            line["t"],
            line["value"] / divisor,
            color=shade,
            label=node,
            linewidth=1.2,
            marker=marker,
            markersize=3.5,
            clip_on=marker is None,
        )
    for begin, end, _ in faults:
        ax.axvspan(begin, end, color=ALARM, alpha=0.12, linewidth=0)
    if frame["value"].notna().sum() == 0:
        ax.text(
            0.5,
            0.5,
            "not measured here",
            ha="center",
            va="center",
            transform=ax.transAxes,
            color="#808080",
        )
    ax.set_title(f"{head}, {label}")
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)


def _misses(ax: Axes, samples: pd.DataFrame) -> None:
    """Marks the times at which a node did not answer the sampler."""
    if "valid" in samples:
        lost = samples.loc[~samples["valid"].astype(bool), "t"]
        # As above.
        if len(lost):
            ax.plot(lost, np.zeros(len(lost)), "|", color=ALARM, markersize=7, clip_on=False)
