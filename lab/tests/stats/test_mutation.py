"""No rule of the library survives that its effect is taken out of the kept evidence."""

from pathlib import Path

import pandas as pd
import pytest

from onym_lab.report.data import load
from onym_lab.report.keep import library
from onym_lab.stats import rules
from onym_lab.stats.mutate import mutants

KEPT = Path(__file__).resolve().parents[3] / "docs" / "results"
NAMES = sorted(page.parent.name for page in KEPT.glob("*/report.html"))
HELD = ("holds", "differs")


def test_there_is_kept_evidence() -> None:
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_that_holds_on_the_kept_data_does_not_without_its_effect(name: str) -> None:
    aggregate = load(KEPT / name).aggregate
    assert len(aggregate), "the kept run has its numbers"
    survived = []
    for entry in library()[name].get("paper", {}).get("rules", []):
        if verdict(entry, aggregate) not in HELD:
            # What does not hold today is told by the index.
            continue
        survived += [
            f"{entry['id']}: {change}"
            for change, changed in mutants(entry, aggregate)
            if verdict(entry, changed) in HELD
        ]
    assert not survived


def verdict(entry: rules.Entry, frame: pd.DataFrame) -> str:
    return str(rules.judge({"rules": [entry]}, frame)["verdict"][0])


def test_the_mutation_finds_a_rule_that_cannot_fail() -> None:
    """The rules that this test was written against: both held for a flat line."""
    aggregate = load(KEPT / "ccnx-fig6").aggregate
    octet = {
        "id": "octet",
        "kind": "bound",
        "metric": "memory_growth",
        "where": "n2",
        "cell": {"defences": "off"},
        "at_least": 1,
    }
    assert verdict(octet, aggregate) == "holds"
    assert [w for w, changed in mutants(octet, aggregate) if verdict(octet, changed) == "holds"]


def test_every_rule_of_the_library_has_a_mutation() -> None:
    for name in NAMES:
        aggregate = load(KEPT / name).aggregate
        for entry in library()[name].get("paper", {}).get("rules", []):
            if verdict(entry, aggregate) in HELD:
                assert list(mutants(entry, aggregate)), f"{name}: {entry['id']}"
