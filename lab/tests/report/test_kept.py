"""The reports that are kept in the tree: small, and with an index that says what they say."""

import re
from pathlib import Path

import pandas as pd
import pytest

from onym_lab.report import index, keep

KEPT = Path(__file__).resolve().parents[3] / "docs" / "results"
OCTETS_MOST = 12_000_000
"""More belongs into an archive outside the tree."""


def test_the_index_is_what_the_kept_numbers_and_the_rules_of_today_make_of_it() -> None:
    def plain(text: str) -> str:
        # Whether a commit is in this history is not known in a clone without one.
        return re.sub(r"(\| [0-9a-f]{10})\*( \|)", r"\1\2", text)

    runs = index.kept(KEPT)
    mend = "python -m onym_lab.report.keep docs/results"
    assert plain((KEPT / "README.md").read_text("utf-8")) == plain(index.text(runs)), mend
    for name, (measured, verdicts) in runs.items():
        kept = pd.read_csv(measured.folder / "verdicts.csv", keep_default_na=False)
        assert kept["verdict"].tolist() == verdicts["verdict"].tolist(), f"{name}: {mend}"


def test_every_rule_that_does_not_hold_has_its_reason() -> None:
    text = (KEPT / "README.md").read_text("utf-8")
    assert "not looked into" not in text
    known = {
        (name, rule["id"])
        for name, one in index.library().items()
        for rule in one.get("paper", {}).get("rules", [])
    }
    told = {(name, rule) for name, rules in index.missed().items() for rule in rules}
    assert told <= known, "reasons of rules that are no more"


def test_a_kept_page_has_one_picture_and_the_tree_stays_small() -> None:
    pages = list(KEPT.glob("*/report.html"))
    assert [page for page in pages if not keep.is_slim(page.read_text("utf-8"))] == []
    assert sum(file.stat().st_size for file in KEPT.rglob("*.*")) < OCTETS_MOST


def test_a_whole_page_goes_into_an_archive_before_it_is_made_slim(tmp_path: Path) -> None:
    figure = '<figure><img alt="{}" src="data:,"><figcaption></figcaption></figure>\n'
    page = tmp_path / "results" / "one" / "report.html"
    page.parent.mkdir(parents=True)
    whole = figure.format("CPU, memory, all of it") + figure.format("Along the path")
    page.write_text(whole)
    with pytest.raises(keep.FullPageError, match="--archive"):
        keep.thin(tmp_path / "results", None)
    assert page.read_text() == whole
    keep.thin(tmp_path / "results", tmp_path)
    assert keep.is_slim(page.read_text())
    assert "Along the path" in page.read_text()
    assert "1 more pictures" in page.read_text()
    assert (tmp_path / "pages.tar.zst").stat().st_size > 0
