"""Keeps reports in the source tree: ``python -m onym_lab.report.keep docs/results RUN...``.

Of a run it copies what a reader needs: verdicts, aggregate, file, provenance, and the page with one
picture. Every kept run is judged by the rules that its experiment has now, and the index is written
again. With ``--archive DIR`` what is left out goes into ``DIR``: each run whole, and the pages of
the tree that still have all their pictures.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import zstandard

from onym_lab import provenance
from onym_lab.report import index
from onym_lab.results import Run

KEPT = (
    "report.html",
    "verdicts.csv",
    "aggregate.csv",
    "experiment.yaml",
    "experiment.json",
    "plan.json",
    "provenance.json",
    "checks.csv",
    "state.json",
)
"""Files of a run that are kept."""

CSV_MOST = 300_000
"""A larger aggregate is kept as Parquet, a thirtieth of its size."""

ROWS_MOST = 200
"""Rows of results on a kept page; ``aggregate`` has all."""

_FIGURE = re.compile(r"<figure>.*?</figure>\n?", re.DOTALL)
_NUMBERS = re.compile(r' <a download="[^"]*" href="data:text/csv[^"]*">[^<]*</a>')
_LINES = re.compile(r'(<table id="all">.*?<tbody>\n?)(.*?)(</tbody>)', re.DOTALL)

_LATER = ("CPU, memory,", "Start to stop of ")
"""How captions begin of pictures of one replicate, and of the network: those of all say more."""


class FullPageError(Exception):
    """A page of the tree still has what no archive was named for."""


def keep(run: Path, target: Path) -> Path:
    """Copies a run into ``target/<experiment>/`` in place of an earlier one."""
    place = target / run.parent.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in KEPT:
        source = run / name
        if name == "aggregate.csv" and source.exists() and source.stat().st_size > CSV_MOST:
            source = run / "aggregate.parquet"
        if source.exists():
            shutil.copyfile(source, place / source.name)
    page = place / "report.html"
    if page.exists():
        page.write_text(slim(page.read_text("utf-8")), encoding="utf-8")
    return place


def slim(page: str) -> str:
    """A page with the picture that says most, without the numbers behind it, and few rows."""
    found = _FIGURE.findall(page)
    if found:
        more = f"<p>{len(found) - 1} more pictures are in the whole report.</p>\n"
        best = _NUMBERS.sub("", min(found, key=_rank)) + (more if len(found) > 1 else "")
        kept = iter([best])
        page = _FIGURE.sub(lambda _: next(kept, ""), page)

    def fewer(table: re.Match[str]) -> str:
        rows = table[2].splitlines(keepends=True)
        return table[1] + "".join(rows[:ROWS_MOST]) + table[3]

    return _LINES.sub(fewer, page)


def _rank(figure: str) -> int:
    caption = figure.partition('alt="')[2]
    if re.match(r"\d+ nodes, \d+ links", caption):
        return 2
    return int(caption.startswith(_LATER))


def is_slim(page: str) -> bool:
    """Whether a page has one picture at most."""
    return len(_FIGURE.findall(page)) <= 1 and not _NUMBERS.search(page)


def thin(target: Path, archive: Path | None) -> None:
    """Makes the pages of the tree slim; whole they go into an archive first.

    Raises:
        FullPageError: There are such pages, and no archive was named.
    """
    pages = sorted(target.glob("*/report.html"))
    full = [page for page in pages if not is_slim(page.read_text("utf-8"))]
    if not full:
        return
    if archive is None:
        raise FullPageError(
            f"{len(full)} pages in {target} have all their pictures: name a folder for them "
            "with --archive"
        )
    squeeze = zstandard.ZstdCompressor(level=19)
    with (
        (archive / "pages.tar.zst").open("xb") as file,
        squeeze.stream_writer(file) as stream,
        tarfile.open(fileobj=stream, mode="w|") as tar,
    ):
        for page in full:
            tar.add(page, arcname=f"{page.parent.name}/{page.name}")
    for page in full:
        page.write_text(slim(page.read_text("utf-8")), encoding="utf-8")


def main(argv: Sequence[str]) -> None:
    """Keeps the named runs and writes the index."""
    parser = argparse.ArgumentParser(prog="python -m onym_lab.report.keep")
    parser.add_argument("target", type=Path, help="the folder of kept reports: docs/results")
    parser.add_argument("run", type=Path, nargs="*", help="folders of runs that are finished")
    parser.add_argument("--archive", type=Path, metavar="DIR", help="where the rest of them goes")
    args = parser.parse_args(argv)
    if args.archive:
        args.archive.mkdir(parents=True, exist_ok=True)
    for run in args.run:
        if args.archive:
            name = f"{run.resolve().parent.name}-{run.resolve().name}.tar.zst"
            provenance.archive(Run(run), args.archive / name)
        keep(run.resolve(), args.target)
    try:
        thin(args.target, args.archive)
    except (FullPageError, OSError) as error:
        sys.exit(f"keep: {error}")
    print(index.write(args.target))


if __name__ == "__main__":
    main(sys.argv[1:])
