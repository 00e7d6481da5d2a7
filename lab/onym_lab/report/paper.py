"""The PDF: a page of words and verdicts, then every picture as vectors."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import numpy as np
import pandas as pd
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from onym_lab.plots import Plot
from onym_lab.plots.style import styled
from onym_lab.report.data import Measured
from onym_lab.report.page import number

A4 = (8.27, 11.69)
LINES = 62
"""Lines of words on a page."""


class Paper:
    """A PDF that is written page by page; use as a context."""

    def __init__(self, path: Path, title: str) -> None:
        # Fixed date: the same results give the same octets.
        epoch = datetime(2000, 1, 1, tzinfo=UTC)
        self._pages = PdfPages(
            path,
            metadata={
                "Title": title,
                "Creator": "onym-lab",
                "CreationDate": epoch,
                "ModDate": epoch,
            },
        )

    def __enter__(self) -> Paper:
        """Begins the file."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the file."""
        # Fonts are written at the end, of the kind that the pages were drawn with.
        with styled():
            self._pages.close()

    def words(self, measured: Measured, judged: pd.DataFrame, verdict: str, origin: str) -> None:
        """The first pages: what was asked, what was found, and from where."""
        lines = _lines(measured, judged, verdict, origin)
        for begin in range(0, len(lines), LINES):
            with styled():
                figure = Figure(figsize=A4)
                if begin == 0:
                    figure.text(0.08, 0.955, measured.title, fontsize=14, fontweight="bold")
                figure.text(
                    0.08,
                    0.93,
                    "\n".join(lines[begin : begin + LINES]),
                    fontsize=8.2,
                    va="top",
                    family="DejaVu Sans Mono",
                    linespacing=1.28,
                )
                self._pages.savefig(figure)

    def plot(self, plot: Plot) -> None:
        """A picture on a page of its own size, with its caption."""
        with styled():
            self._pages.savefig(plot.figure, bbox_inches="tight", pad_inches=0.25)


def _lines(measured: Measured, judged: pd.DataFrame, verdict: str, origin: str) -> list[str]:
    paper = measured.experiment.get("paper") or {}
    lines = [f"{measured.name}, backend {measured.plan.get('backend', '?')}", origin, ""]
    lines += _wrap(str(measured.experiment.get("description") or ""))
    if paper.get("says"):
        lines += _wrap(f"The paper ({paper.get('id', '')}) says: {paper['says']}")
    if measured.scale != 1:
        lines.append(f"Scaled: counts are {measured.scale:g} of those that the file asks for.")
    for note in (measured.experiment.get("report") or {}).get("notes") or []:
        lines += _wrap(str(note))
    bad = int((~measured.checks["passed"].astype(bool)).sum())
    lines += [
        f"Checks: {len(measured.checks) - bad} passed, {bad} failed.",
        "",
        f"Verdict: {verdict}",
        "",
    ]
    for row in judged.to_dict("records"):
        lines += _finding(row)
    return lines


def _finding(row: Mapping[Hashable, object]) -> list[str]:
    verdict = str(row["verdict"]) or "for comparison"
    mark = {"holds": "+", "differs, and better": "+", "fails": "-", "differs, and worse": "-"}.get(
        verdict, " "
    )
    low, high = float(str(row["low"])), float(str(row["high"]))
    interval = "" if np.isnan(low) else f" [{number(low)} .. {number(high)}]"
    lines = _wrap(f"{mark} {row['says']}")
    lines += _wrap(
        f"    paper {number(row['paper'])}; ours {number(row['ours'])}{interval}; {verdict}"
    )
    return [*lines, *_wrap(f"    {row['why']}"), ""]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 92, subsequent_indent="    " if text[:1] in "+- " else "") or [""]
