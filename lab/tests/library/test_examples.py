"""The worked example of docs/examples: it runs, and answers its question."""

import shlex
from pathlib import Path

import pytest

from onym_lab import cli
from onym_lab.results import Run
from onym_lab.tools import MissingToolError, onym

ROOT = Path(__file__).resolve().parents[3]
# The command of the page, which looks for it here.
COMMAND = "onym-lab run docs/examples/laboratory/campaign.yaml --backend sim"


def test_caches_on_the_way_pay_in_the_laboratory_of_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        onym()
    except MissingToolError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(ROOT)
    words = shlex.split(COMMAND)[1:]
    assert cli.main(["--results", str(tmp_path), *words, "--no-report", "--plain"]) == 0
    run = Run(tmp_path / "laboratory" / "sim")
    assert run.checks["passed"].all()
    rows = run.aggregate
    asked = rows[(rows["where"] == "origin") & (rows["metric"] == "data")]
    without = asked[asked["factor_cache"].astype(str) == "0"]["value"]
    cached = asked[asked["factor_cache"].astype(str) == "1000"]["value"]
    # Both readers reach the origin, or the first one only.
    assert without.tolist() == [600] * 3
    assert cached.tolist() == [300] * 3
