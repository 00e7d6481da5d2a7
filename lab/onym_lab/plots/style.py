"""How every picture looks, and how it is written: SVG, PNG and the numbers as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C00")
"""Okabe and Ito's colours: told apart with any common colour blindness."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""A second way to tell series apart, for prints without colour."""

INK, FAINT, ALARM = "#222222", "#B8B8B8", "#D55E00"

_SETTINGS: Any = {
    "figure.dpi": 100,
    "savefig.dpi": 120,
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.edgecolor": "#808080",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.labelcolor": INK,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
    # The same numbers give the same octets.
    "svg.hashsalt": "onym-lab",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Plot:
    """A picture, what it shows in a sentence, and the numbers behind it."""

    name: str
    caption: str
    figure: Figure
    data: pd.DataFrame


@contextmanager
def styled() -> Iterator[None]:
    """Everything drawn within looks alike."""
    with mpl.rc_context(_SETTINGS):
        yield


def panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of equal panels, each ``width`` by ``height`` inches."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [axes for line in grid for axes in line]


def colour(index: int) -> str:
    """The colour of a series; after eight they begin again with another marker order."""
    return PALETTE[index % len(PALETTE)]


def marker(index: int) -> str:
    """The marker of a series."""
    return MARKERS[(index + index // len(PALETTE)) % len(MARKERS)]


def ordered(count: int) -> list[tuple[float, float, float, float]]:
    """Colours for things that have an order, such as hops: dark to light, never too pale."""
    scale = mpl.colormaps["viridis"]
    return [scale(x) for x in np.linspace(0.0, 0.88, max(count, 1))]


def magnitude(largest: float, base: int = 1000) -> tuple[float, str]:
    """A divisor and its prefix that keep numbers on an axis short."""
    prefixes = ("", "k", "M", "G", "T") if base == 1000 else ("", "Ki", "Mi", "Gi", "Ti")
    step = 0
    while np.isfinite(largest) and abs(largest) >= base and step < len(prefixes) - 1:
        largest /= base
        step += 1
    return float(base**step), prefixes[step]


UNITS = {
    "B/s": ("B/s", 1000),
    "bit/s": ("bit/s", 1000),
    "octets": ("B", 1024),
    "B": ("B", 1024),
    "entries": ("entries", 1000),
    "packets": ("packets", 1000),
    "1/s": ("1/s", 1000),
}
"""Units that take a prefix on an axis, and its base."""


def scaled(numbers: pd.Series | Sequence[float], unit: str) -> tuple[float, str]:
    """The divisor and the label of an axis for numbers of a unit."""
    if unit not in UNITS:
        return 1.0, unit
    name, base = UNITS[unit]
    finite = np.asarray(pd.Series(numbers, dtype=float).dropna(), dtype=float)
    divisor, prefix = magnitude(float(np.abs(finite).max()) if finite.size else 0.0, base)
    if prefix and name in ("entries", "packets", "1/s"):
        word = {"k": "thousand", "M": "million"}.get(prefix, prefix)
        return divisor, f"{word}/s" if name == "1/s" else f"{word} {name}"
    return divisor, prefix + name


def save(plot: Plot, folder: Path) -> list[Path]:
    """Writes ``<name>.svg``, ``.png`` and ``.csv``; the same data gives the same files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{plot.name}.{kind}" for kind in ("svg", "png", "csv")]
    with styled():
        # Laid out once; each file would else do it again.
        plot.figure.draw_without_rendering()
        plot.figure.set_layout_engine("none")
        plot.figure.savefig(files[0], metadata={"Date": None, "Creator": "onym-lab"})
        plot.figure.savefig(files[1], metadata={"Software": "onym-lab"})
    plot.data.to_csv(files[2], index=False, lineterminator="\n")
    return files
