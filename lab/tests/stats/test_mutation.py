"""No rule of the library survives that its effect is taken out of the evidence.

A rule that holds on the kept data must not hold on any mutation of them; one that does not hold
there must hold once its effect is put in, and then not on mutations of that. The closing lines of
the tests say what each rule was tried with.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from onym_lab.report.data import load
from onym_lab.report.index import library
from onym_lab.stats.mutate import PUT_IN, mutants, trial, verdict

KEPT = Path(__file__).resolve().parents[3] / "docs" / "results"
NAMES = sorted(page.parent.name for page in KEPT.glob("*/report.html"))


def test_there_is_kept_evidence() -> None:
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_of_every_rule_changes_with_the_evidence(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    aggregate = load(KEPT / name).aggregate
    assert len(aggregate), "the kept run has its numbers"
    entries = library()[name].get("paper", {}).get("rules", [])
    tried = [trial(entry, aggregate) for entry in entries]
    for one in tried:
        record_property("tried", f"{name} {one.line}")
        assert {change for change, _ in one.changes} - {PUT_IN}, f"{one.rule} has no mutation"
    assert not [survivor for one in tried for survivor in one.survived]


def test_the_mutation_finds_a_rule_that_cannot_fail() -> None:
    """A rule that this test was written against: it held for a flat line."""
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
    assert trial(octet, aggregate).survived


def test_the_mutation_finds_a_rule_that_cannot_hold() -> None:
    aggregate = load(KEPT / "ccnx-fig6").aggregate
    never = {
        "id": "never",
        "kind": "bound",
        "metric": "memory_growth",
        "where": "n2",
        "cell": {"defences": "off"},
        "at_least": 2,
        "at_most": 1,
    }
    found = trial(never, aggregate)
    assert found.kept == "fails"
    assert found.survived[0].startswith(f"never: {PUT_IN}")
