"""From a run's folder to its report."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from onym_lab import plots
from onym_lab.report import data, page, pictures
from onym_lab.report.paper import Paper
from onym_lab.stats import rules


class HasFolder(Protocol):
    """What of a run the report needs: the place of its files."""

    @property
    def folder(self) -> Path:
        """``results/<experiment>/<run>``."""
        ...


def write(run: HasFolder | Path) -> list[Path]:
    """Writes ``report.html``, ``report.pdf`` and ``plots/``, and returns their paths.

    Pure: it reads the run's files and nothing else, and the same files give
    the same report. Pictures of an earlier report are taken away first.
    """
    folder = run if isinstance(run, Path) else run.folder
    measured = data.load(folder)
    judged = rules.judge(measured.experiment.get("paper") or {}, measured.aggregate)
    verdict = rules.verdict(judged)
    place = folder / "plots"
    for old in place.glob("*.*"):
        if old.suffix in (".svg", ".png", ".csv"):
            old.unlink()
    drawn = []
    pdf = folder / "report.pdf"
    with Paper(pdf, measured.title) as paper:
        paper.words(measured, judged, verdict, page.origin(measured))
        for plot in pictures.draw(measured):
            drawn.append(page.Picture(plot.name, plot.caption, plots.save(plot, place)))
            paper.plot(plot)
    table = data.table(measured)
    html = folder / "report.html"
    html.write_text(page.render(measured, judged, verdict, table, drawn), encoding="utf-8")
    judged.to_csv(folder / "verdicts.csv", index=False, lineterminator="\n")
    return [html, pdf, folder / "verdicts.csv", *(file for d in drawn for file in d.files)]
