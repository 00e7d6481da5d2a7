"""A measurement that is no network goes through the same life, and what is missing is named."""

from pathlib import Path

import pandas as pd
import pytest

from onym_lab import experiment as files
from onym_lab import life
from onym_lab.backend.base import Refused

LIBRARY = Path(__file__).parents[2] / "experiments"


@pytest.fixture(name="paper", scope="module")
def fixture_paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    one = files.load(LIBRARY / "content" / "content-paper.yaml")
    options = life.Options(tmp_path_factory.mktemp("results"), "bench")
    return life.Life(one, options, life.Listener()).go().folder


def test_the_papers_own_table_goes_through_the_whole_life(paper: Path) -> None:
    rows = pd.read_csv(paper / "aggregate.csv")
    assert len(rows) == 16
    assert rows.valid.all()
    assert rows.value.mean() == 40.125e6
    verdicts = pd.read_csv(paper / "verdicts.csv")
    assert set(verdicts.verdict) == {"holds"}


def test_the_report_shows_both_models_side_by_side(paper: Path) -> None:
    page = (paper / "report.html").read_text()
    assert "<td>C</td><td class=n>50.71</td><td class=n>64.07</td>" in page
    assert "<td>BC</td><td class=n>9.56</td><td class=n>1.53</td>" in page
    shares = pd.read_csv(paper / "plots" / "effects-forwarding_rate-router.csv")
    assert list(shares.term.head(5)) == ["C", "B", "BC", "D", "CD"]


def test_a_part_that_is_not_built_refuses_the_experiment_by_name(tmp_path: Path) -> None:
    text = (LIBRARY / "parts" / "istack-table1.yaml").read_text()
    file = tmp_path / "parts.yaml"
    file.write_text(text.replace("kernel/tests/bench.sh", "no/such/bench.sh"))
    with pytest.raises(Refused) as refused:
        life.Life(files.load(file), life.Options(tmp_path, "bench"), life.Listener())
    assert refused.value.reasons == [
        "the kernel module is not built here: there is no no/such/bench.sh"
    ]


@pytest.mark.parametrize("file", sorted(LIBRARY.rglob("*.yaml")), ids=lambda file: file.stem)
def test_every_file_of_the_library_is_right(file: Path) -> None:
    one = files.load(file)
    assert one.name == file.stem
