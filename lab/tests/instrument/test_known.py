"""Counters are checked against known traffic before a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from onym_lab import experiment, known, life
from onym_lab.backend.base import BackendError
from onym_lab.results import read_json
from onym_lab.tools import MissingToolError, onym

TRUE = {
    "n1": {"cs_hits": 50, "cs_misses": 52, "interests_out": 50, "data_in": 52},
    "n2": {"data_out": 52},
}
TEXT = """schema: onym-lab/1
name: small
title: Small
topology: {preset: line, n: 2}
apps:
  - {id: server, node: n2, kind: producer, prefix: /s}
  - {id: client, node: n1, kind: consumer, prefix: /s, count: 5, window: 1}
"""


def test_counters_that_tell_the_traffic_pass_and_others_do_not() -> None:
    assert all(row["passed"] for row in known.compare(TRUE, 8, True, known.EXPECTED))
    for wrong in (0, 49, 80):
        rows = known.compare(
            {**TRUE, "n1": {**TRUE["n1"], "cs_hits": wrong}}, 8, False, known.EXPECTED
        )
        assert [row["counter"] for row in rows if not row["passed"]] == ["cs_hits"]


def test_a_foreign_forwarder_may_count_its_management_and_lack_counters() -> None:
    theirs = {"n1": {"cs_hits": 50, "cs_misses": 67}}
    assert [row["passed"] for row in known.compare(theirs, 8, False, known.EXPECTED)] == [
        True,
        True,
    ]
    assert [row["passed"] for row in known.compare(theirs, 8, True, known.EXPECTED)] == [
        True,
        False,
    ]


def test_a_campaign_on_counters_that_are_wrong_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        onym()
    except MissingToolError as error:
        pytest.skip(str(error))
    file = tmp_path / "small.yaml"
    file.write_text(TEXT)
    options = life.Options(root=tmp_path, backend="sim", report=False)
    one = life.Life(experiment.load(file), options, life.Listener())
    monkeypatch.setattr(known, "EXPECTED", (("n1", "cs_hits", 51),))
    with pytest.raises(BackendError, match="n1 cs_hits: 50 for 51"):
        one.go()
    assert not list(one.run.replicates())
    monkeypatch.undo()
    run = one.go()
    assert len(read_json(run.folder / "known" / "onym" / "counters.json")) == 5
    assert len(list(run.replicates())) == 1
