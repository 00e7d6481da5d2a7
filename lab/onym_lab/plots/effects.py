"""What a 2^k r analysis says, as pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy import stats as sps

from onym_lab.plots.style import ALARM, Plot, colour, panels, scaled, styled
from onym_lab.stats import Analysis, half_normal, lenth, side_by_side

SHOWN = 10
"""Most terms in a bar chart; the CSV has all."""


def shares(name: str, title: str, analysis: Analysis, unit: str) -> Plot:
    """Allocation of variation under the additive and the log model, and the effects' sizes.

    ``analysis`` is the additive one. The log model needs values above zero.
    """
    factors = analysis.factors
    positive = bool((analysis.responses > 0).all())
    table = (
        side_by_side(factors, analysis.responses)
        if positive
        else analysis.effects[["term", "share"]]
        .rename(columns={"share": "additive"})
        .sort_values("additive", ascending=False)
    )
    table = table.merge(analysis.effects[["term", "q", "low", "high", "significant"]], on="term")
    top = table.head(SHOWN).iloc[::-1]
    with styled():
        figure, (left, right) = panels(1, 2, 4.6, 3.5)
        _shares(left, top, positive)
        _sizes(right, top, unit)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    noise = f"; error {analysis.error_share:.1f} %" if analysis.error_dof else "; unreplicated"
    caption = f"Shares of the variation by model (left) and effects on the value (right){noise}."
    return Plot(name, caption, figure, table)


def _shares(ax: Axes, top: pd.DataFrame, positive: bool) -> None:
    place = np.arange(len(top))
    height = 0.38 if positive else 0.7
    ax.barh(
        place + (height / 2 if positive else 0),
        top["additive"],
        height,
        color=colour(0),
        label="additive model",
    )
    if positive:
        ax.barh(place - height / 2, top["log"], height, color=colour(4), label="log model")
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    ax.set_yticks(place, top["term"])
    ax.set_xlabel("share of the variation, %")
    ax.grid(axis="y", visible=False)


def _sizes(ax: Axes, top: pd.DataFrame, unit: str) -> None:
    place = np.arange(len(top))
    divisor, unit = scaled(top["q"], unit)
    reach = (top["high"] - top["low"]).to_numpy(dtype=float) / 2 / divisor
    known = bool(np.isfinite(reach).all())
    shade = [colour(2) if kept is not False else "#B0B0B0" for kept in top["significant"]]
    ax.barh(
        place,
        top["q"] / divisor,
        0.7,
        xerr=reach if known else None,
        color=shade,
        error_kw={"lw": 1, "capsize": 2.5},
    )
    ax.axvline(0, color="#606060", lw=0.8)
    ax.set_yticks(place, top["term"])
    grey = " (grey: not significant)" if known else ""
    ax.set_xlabel(f"effect q, {unit}{grey}")
    ax.grid(axis="y", visible=False)


def diagnostics(name: str, title: str, analysis: Analysis) -> Plot:
    """Residuals with replication, the half-normal plot without."""
    with styled():
        if analysis.error_dof == 0:
            return _half_normal(name, title, analysis)
        figure, (left, right) = panels(1, 2, 4.2, 3.1)
        fitted = np.repeat(analysis.fitted, analysis.responses.shape[1])
        flat = analysis.residuals.ravel()
        left.plot(fitted, flat, "o", color=colour(0), alpha=0.6, markersize=3.5)
        left.axhline(0, color="#606060", lw=0.8)
        left.set_xlabel("fitted value")
        left.set_ylabel("residual")
        left.set_title("Residuals")
        (x, y), (slope, at, _) = sps.probplot(flat)
        right.plot(x, y, "o", color=colour(0), alpha=0.6, markersize=3.5)
        right.plot(x, slope * x + at, color=ALARM, lw=1)
        right.set_xlabel("normal quantile")
        right.set_title("Against the normal distribution")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
    data = pd.DataFrame({"fitted": fitted, "residual": flat})
    caption = "Residuals against fitted values and against the normal distribution."
    return Plot(name, caption, figure, data)


def _half_normal(name: str, title: str, analysis: Analysis) -> Plot:
    points, margins = half_normal(analysis), lenth(analysis)
    figure, (ax,) = panels(1, 1, 5.6, 3.6)
    ax.plot(points["quantile"], points["magnitude"], "o", color=colour(0))
    for level, word in ((margins.me, "margin of error"), (margins.sme, "simultaneous margin")):
        ax.axhline(level, color=ALARM, lw=1, ls="--" if level == margins.me else "-")
        ax.text(0.02, level, word, color=ALARM, fontsize=8, va="bottom")
    for point in points[points["magnitude"] > margins.me].itertuples():
        ax.annotate(
            str(point.term),
            (float(str(point.quantile)), float(str(point.magnitude))),
            xytext=(-6, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    ax.set_xlabel("half-normal quantile")
    ax.set_ylabel("size of the effect, 2|q|")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.set_title(title)
    caption = "Effects beyond the simultaneous margin (Lenth) are real; no replication was needed."
    return Plot(name, caption, figure, points)
