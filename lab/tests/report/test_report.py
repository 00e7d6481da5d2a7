"""A report of recorded data: whole, self-contained, honest about checks, the same twice."""

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import recorded

from onym_lab.report import index, keep, write
from onym_lab.report.data import load, table
from onym_lab.report.pictures import _busy, draw, responses


@pytest.fixture(name="run", scope="module")
def fixture_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded.write(tmp_path_factory.mktemp("results") / "sample" / "sim")


@pytest.fixture(name="files", scope="module")
def fixture_files(run: Path) -> list[Path]:
    return write(run)


def test_a_report_has_a_page_a_pdf_and_pictures_with_their_numbers(
    run: Path, files: list[Path]
) -> None:
    assert files[:2] == [run / "report.html", run / "report.pdf"]
    assert all(file.stat().st_size > 0 for file in files)
    names = {file.stem for file in (run / "plots").iterdir()}
    assert {"nodes-01", "nodes-02", "transfers-01", "hops", "cdf", "topology"} <= names
    for name in names:
        assert {f.suffix for f in (run / "plots").glob(f"{name}.*")} == {".svg", ".png", ".csv"}


def test_the_pdf_embeds_the_fonts_that_its_pages_were_drawn_with(
    run: Path, files: list[Path]
) -> None:
    pdf = (run / "report.pdf").read_bytes()
    assert b"/Subtype /Type3" not in pdf
    assert b"/FontFile2" in pdf


def test_the_page_fetches_nothing(run: Path, files: list[Path]) -> None:
    page = (run / "report.html").read_text()
    outside = re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', page)
    assert outside == []
    assert "@import" not in page


def test_the_page_has_the_papers_numbers_beside_ours_with_a_verdict(
    run: Path, files: list[Path]
) -> None:
    page = (run / "report.html").read_text()
    assert "Pending Interests fall toward the producer." in page
    assert "not reproduced" in page
    verdicts = pd.read_csv(run / "verdicts.csv").set_index("id").verdict
    assert verdicts["falls"] == "holds"
    assert verdicts["weak"] == "holds"
    assert verdicts["speed"] == "fails"


def test_results_whose_checks_failed_are_marked_and_left_out_of_means(
    run: Path, files: list[Path]
) -> None:
    measured = load(run)
    found = table(measured)
    marked = found[found.label == "strength=25%"]
    assert set(marked.marked) == {1}
    assert set(marked["count"]) == {recorded.REPLICATIONS - 1}
    page = (run / "report.html").read_text()
    assert "1 checks failed" in page
    assert 'title="checks failed">✗ 1<' in page


def test_texts_of_an_experiment_are_escaped(tmp_path: Path) -> None:
    folder = recorded.write(tmp_path / "sample" / "sim")
    told = json.loads((folder / "experiment.json").read_text())
    told["description"] = "<script>alert(1)</script>"
    (folder / "experiment.json").write_text(json.dumps(told))
    write(folder)
    page = (folder / "report.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_scaled_run_says_so(run: Path, files: list[Path]) -> None:
    assert "Scaled: counts are 0.1" in (run / "report.html").read_text()


def test_the_same_files_give_the_same_report(run: Path, files: list[Path]) -> None:
    first = {file: file.read_bytes() for file in files}
    assert write(run) == files
    for file in files:
        assert file.read_bytes() == first[file], file.name


def test_the_numbers_behind_a_picture_are_the_aggregates(run: Path, files: list[Path]) -> None:
    hops = pd.read_csv(run / "plots" / "hops.csv")
    rows = load(run).aggregate
    mine = rows[
        rows.valid
        & (rows.metric == "pending_mean")
        & (rows["where"] == "n3")
        & (rows.label == "strength=25%")
    ]
    one = hops[(hops.metric == "pending_mean") & (hops.hop == 2) & (hops.label == "strength=25%")]
    assert one["mean"].iloc[0] == pytest.approx(mine.value.mean())


def test_a_run_without_series_still_has_a_report(tmp_path: Path) -> None:
    folder = recorded.write(tmp_path / "sample" / "sim")
    for name in ("samples", "traffic", "transfers"):
        (folder / f"{name}.parquet").unlink()
    (folder / "checks.csv").unlink()
    files = write(folder)
    assert (folder / "report.html") in files
    assert "No checks were recorded" in (folder / "report.html").read_text()


def test_a_two_level_design_is_found_in_an_aggregate(run: Path) -> None:
    found = responses(load(run), "goodput", "dl")
    assert found is not None
    factors, values = found
    assert factors == ["strength"]
    # The bad replicate of the first cell limits both.
    assert values.shape == (2, 2)
    assert values[0].mean() < values[1].mean()


def test_only_the_panels_that_a_file_names_are_drawn(tmp_path: Path) -> None:
    folder = recorded.write(tmp_path / "sample" / "sim")
    text = (folder / "experiment.json").read_text()
    asked = '"panels": ["nodes", "transfers", "hops", "cdf", "effects", "topology"]'
    (folder / "experiment.json").write_text(text.replace(asked, '"panels": ["hops"]'))
    assert [plot.name for plot in draw(load(folder))] == ["hops"]


def test_a_kept_report_is_small_and_listed_with_its_verdict(
    run: Path, files: list[Path], tmp_path: Path
) -> None:
    place = keep.keep(run, tmp_path)
    assert place.name == "sample"
    text = index.write(tmp_path).read_text()
    assert "| [sample](sample/report.html) | not reproduced (✗ 1 checks failed) | 2 of 3 |" in text
    assert "0123456789" in text
    missed = text.partition("## Rules that are missed, differ or are not settled")[2].partition(
        "\n## "
    )[0]
    assert missed.count("\n| [sample](sample/report.html)") == 1
    assert "| not looked into |" in missed
    assert sum(file.stat().st_size for file in place.iterdir()) < 400_000
    page = (place / "report.html").read_text()
    assert page.count("<figure>") == 1
    assert keep.is_slim(page)


def test_the_index_marks_a_run_that_has_fewer_replications_than_its_file_asks(
    run: Path, files: list[Path], tmp_path: Path
) -> None:
    place = keep.keep(run, tmp_path)
    file = json.loads((place / "experiment.json").read_text()) | {"design": {"replications": 5}}
    (place / "experiment.json").write_text(json.dumps(file))
    for had, cell in ((5, "| 5 |"), (3, "| **3 of 5** |")):
        plan = json.loads((place / "plan.json").read_text()) | {"replications": had}
        (place / "plan.json").write_text(json.dumps(plan))
        runs = index.write(tmp_path).read_text().rpartition("## ")[2]
        assert cell in runs


def test_nodes_beside_the_path_come_last_in_a_picture() -> None:
    samples = pd.DataFrame({"node": ["beside", "b", "a"], "hop": [None, 1, 0]})
    samples["hop"] = samples["hop"].astype("Int64")
    assert _busy(samples, pd.DataFrame({"node": []})) == ["a", "b", "beside"]
