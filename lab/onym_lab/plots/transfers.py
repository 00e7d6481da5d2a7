"""File transfers: bars from start to stop, and distributions of their times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from onym_lab.plots.style import ALARM, Plot, colour, panels, scaled, styled
from onym_lab.stats import kaplan_meier


def bars(name: str, title: str, transfers: pd.DataFrame) -> Plot:
    """One horizontal bar for each file of one replicate; unfinished ones in another colour."""
    rows = transfers.sort_values("start", kind="stable").reset_index(drop=True)
    done = rows["completed"].astype(bool)
    last = float(rows["stop"].max()) if len(rows) else 0.0
    stop = rows["stop"].where(rows["stop"].notna(), last)
    with styled():
        figure, (ax,) = panels(1, 1, 6.5, min(6.0, max(2.6, 0.012 * len(rows) + 1.6)))
        width = float(np.clip(260 / max(len(rows), 1), 0.6, 6))
        for mask, shade in ((done, colour(0)), (~done, ALARM)):
            ax.hlines(rows.index[mask], rows["start"][mask], stop[mask], color=shade, lw=width)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("time, s")
        ax.set_ylabel("file, in order of its start")
        ax.set_title(title)
        if (~done).any():
            key = [Line2D([], [], color=c, lw=4) for c in (colour(0), ALARM)]
            ax.legend(
                key, ["complete", "not finished"], loc="lower right", bbox_to_anchor=(1, 1), ncols=2
            )
    caption = f"Start to stop of {len(rows)} files, {int((~done).sum())} of them not finished."
    return Plot(name, caption, figure, rows)


def _labelled(times: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for label, part in times.groupby("label", sort=False):
        yield str(label), part


def cdf(
    name: str, title: str, times: pd.DataFrame, unit: str = "s", axis: str = "download time"
) -> Plot:
    """Distribution of times for each ``label``; columns ``label``, ``time``, ``completed``.

    What did not finish counts as at least as long (Kaplan-Meier), so that a
    curve ends below 1 where downloads were cut off.
    """
    with styled():
        figure, (ax,) = panels(1, 1, 5.8, 3.4)
        divisor, word = scaled(times["time"], unit)
        curves = []
        for number, (label, part) in enumerate(_labelled(times)):
            curve = kaplan_meier(part["time"], part["completed"])
            x = np.concatenate([[0.0], curve.times])
            y = np.concatenate([[0.0], 1 - curve.open])
            style = ("-", "--", "-.", ":")[number // 8 % 4]
            ax.step(
                x / divisor,
                y,
                where="post",
                color=colour(number),
                linestyle=style,
                label=f"{label or 'all'} (median {curve.median / divisor:.3g} {word})",
            )
            curves.append(pd.DataFrame({"label": label, "time": x, "share": y}))
        ax.set_ylim(0, 1.02)
        ax.set_xlim(left=0)
        ax.set_xlabel(f"{axis}, {word}")
        ax.set_ylabel("share done")
        ax.set_title(title)
        ax.legend(loc="best")
    data = pd.concat(curves) if curves else pd.DataFrame(columns=["label", "time", "share"])
    return Plot(name, f"Share that is done after a time: {axis}.", figure, data)
