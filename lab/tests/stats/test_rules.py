"""The paper's sentences as rules, judged on an aggregate."""

from itertools import product

import pandas as pd
import pytest

from onym_lab.stats.rules import COLUMNS, judge, verdict

COSTS = {"25%": [100, 90, 80, 10, 5], "100%": [100, 70, 50, 30, 5]}


def aggregate() -> pd.DataFrame:
    """Five nodes, two strengths, four replications a little apart."""
    rows = [
        {
            "cell": f"cell{strength}",
            "label": f"strength={strength}",
            "factor_strength": strength,
            "replication": r,
            "seed": r,
            "scope": "node",
            "where": f"n{hop + 1}",
            "hop": hop,
            "metric": "pending_mean",
            "unit": "entries",
            "value": COSTS[strength][hop] + r / 10,
            "valid": True,
        }
        for strength, hop, r in product(COSTS, range(5), range(1, 5))
    ]
    return pd.DataFrame(rows)


def one(rule: dict[str, object]) -> pd.Series:
    return judge({"rules": [{"id": "x", "metric": "pending_mean", **rule}]}, aggregate()).iloc[0]


def test_a_fall_along_the_hops_holds_in_every_cell() -> None:
    row = one({"kind": "monotone", "over": "hop", "direction": "falling", "rho": 0.9})
    assert row.verdict == "holds"
    assert row.ours == pytest.approx(-1)
    assert "all 2 cells" in row.why


def test_a_rise_is_not_a_fall_and_the_cell_is_named() -> None:
    row = one({"kind": "monotone", "over": "hop", "direction": "rising"})
    assert row.verdict == "fails"
    assert "strength=25%" in row.why


def test_a_factor_is_an_axis_in_the_order_of_its_numbers() -> None:
    row = one({"kind": "monotone", "over": "strength", "direction": "rising", "where": "n4"})
    assert row.verdict == "holds"


def test_a_spread_over_hops_and_a_ratio_of_cells() -> None:
    assert one({"kind": "spread", "over": "hop", "at_most": 0.1}).verdict == "fails"
    row = one(
        {
            "kind": "ratio",
            "at_least": 1.2,
            "of": {"where": "n2", "cell": {"strength": "25%"}},
            "to": {"where": "n2", "cell": {"strength": "100%"}},
        }
    )
    assert row.verdict == "holds"
    assert row.ours == pytest.approx(90.25 / 70.25, rel=1e-3)
    assert row.low < row.ours < row.high


def test_a_ratio_pairs_off_replications_and_other_factors() -> None:
    rows = [
        {
            "label": f"{a}{b}",
            "factor_a": a,
            "factor_b": b,
            "replication": r,
            "hop": None,
            "where": "x",
            "metric": "rate",
            "unit": "1/s",
            "valid": True,
            "value": {"low": 1, "high": 2}[a] * {"slow": 1, "fast": 1000}[b] * (1 + r / 10),
        }
        for a, b, r in product(("low", "high"), ("slow", "fast"), (1, 2, 3))
    ]
    rule = {
        "id": "r",
        "kind": "ratio",
        "metric": "rate",
        "at_least": 2,
        "of": {"cell": {"a": "high"}},
        "to": {"cell": {"a": "low"}},
    }
    row = judge({"rules": [rule]}, pd.DataFrame(rows)).iloc[0]
    # The second factor's spread of a thousand is no uncertainty of the first one's effect.
    assert (row.ours, row.low, row.high) == pytest.approx((2, 2, 2))
    assert "6 pairs" in row.why


def test_an_order_needs_intervals_apart() -> None:
    cells = [{"strength": "100%"}, {"strength": "25%"}]
    assert one({"kind": "order", "where": "n4", "cells": cells[::-1]}).verdict == "holds"
    assert one({"kind": "order", "where": "n2", "cells": cells[::-1]}).verdict == "fails"
    assert one({"kind": "order", "where": "n1", "cells": cells}).verdict == "not settled"


def test_a_bound_holds_or_fails_with_its_whole_interval_and_is_not_settled_between() -> None:
    bound = {"kind": "bound", "where": "n1"}
    assert one({**bound, "at_least": 100}).verdict == "holds"
    assert one({**bound, "at_most": 100}).verdict == "fails"
    row = one({**bound, "at_least": 100.2})
    assert row.verdict == "not settled"
    assert row.low < 100.2 < row.high


def test_a_single_value_settles_nothing_unless_it_repeats_exactly() -> None:
    frame = aggregate()
    frame = frame[frame.replication == 1]
    bound = {"id": "x", "metric": "pending_mean", "kind": "bound", "where": "n1", "at_least": 9}
    assert judge({"rules": [bound]}, frame).verdict.tolist() == ["not settled"]
    assert judge({"rules": [{**bound, "exact": True}]}, frame).verdict.tolist() == ["holds"]
    falls = {"id": "x", "metric": "pending_mean", "kind": "monotone", "direction": "falling"}
    assert judge({"rules": [falls]}, frame).verdict.tolist() == ["not settled"]


def test_a_finding_that_is_the_opposite_of_the_papers_has_its_own_word() -> None:
    # What the paper found, in the rule; the opposite is better, or worse.
    paper = {"kind": "bound", "where": "n1", "at_least": 200}
    assert one(paper).verdict == "fails"
    row = one({**paper, "differs": "better"})
    assert (row.verdict, row.ours) == ("differs, and better", pytest.approx(100.25))
    assert one({**paper, "differs": "worse"}).verdict == "differs, and worse"
    # What holds and what is not settled stays so.
    assert one({**paper, "at_least": 100, "differs": "better"}).verdict == "holds"
    assert one({**paper, "at_least": 100.2, "differs": "better"}).verdict == "not settled"


@pytest.mark.parametrize(
    ("words", "run"),
    [
        (["holds", "differs, and better"], "differs, and better"),
        (["differs, and worse", "differs, and better"], "differs, and worse"),
        (["not settled", "differs, and worse"], "not settled"),
        (["fails", "not measured"], "not reproduced"),
        (["holds", ""], "reproduced"),
    ],
)
def test_a_run_is_as_good_as_its_worst_rule(words: list[str], run: str) -> None:
    assert verdict(pd.DataFrame({"verdict": words})) == run


def test_of_several_places_every_one_must_keep_a_bound_or_any() -> None:
    rule = {"kind": "bound", "at_least": 95, "cell": {"strength": "25%"}}
    assert one(rule).verdict == "fails"
    row = one({**rule, "any": True})
    assert row.verdict == "holds"
    assert "n1, of 5" in row.why
    row = one({**rule, "any": True, "at_least": 200})
    assert (row.verdict, row.ours) == ("fails", pytest.approx(100.25))


def test_a_ratio_of_pairs_with_a_zero_is_fiellers() -> None:
    place = {"metric": "pending_mean", "valid": True, "hop": 0, "label": "", "unit": ""}
    values = {"n3": [263, 255, 256], "n5": [0, 9.7, 10.8]}
    frame = pd.DataFrame(
        [
            {**place, "where": where, "replication": r, "value": value}
            for where, several in values.items()
            for r, value in enumerate(several, 1)
        ]
    )
    rule = {"id": "x", "kind": "ratio", "of": {"where": "n3"}, "to": {"where": "n5"}}
    row = judge({"rules": [{**rule, "metric": "pending_mean", "at_least": 1.5}]}, frame).iloc[0]
    # The base may be 0, so that there is no upper end; all of the interval is above the limit.
    assert row.verdict == "holds"
    assert 1.5 < row.low < row.ours < row.high == float("inf")
    row = judge({"rules": [{**rule, "metric": "pending_mean", "at_least": 20}]}, frame).iloc[0]
    assert row.verdict == "not settled"


def test_a_ratio_of_something_to_itself_is_a_mistake_of_the_file() -> None:
    place = {"where": "n1"}
    with pytest.raises(ValueError, match="always 1"):
        one({"kind": "ratio", "of": place, "to": place, "at_least": 1})


def test_what_no_valid_replicate_has_is_not_measured() -> None:
    frame = aggregate().assign(valid=False)
    paper = {
        "rules": [{"id": "x", "kind": "bound", "metric": "pending_mean", "at_least": 1}],
        "values": [{"id": "v", "metric": "pending_mean", "value": 5}],
    }
    judged = judge(paper, frame)
    assert set(judged.verdict) == {"not measured"}
    assert verdict(judged) == "not measured"


def test_a_value_of_the_paper_is_no_gate_unless_it_says_within() -> None:
    value = {"id": "v", "metric": "pending_mean", "where": "n1", "value": 2000}
    judged = judge({"values": [value, {**value, "id": "w", "within": 0.5}]}, aggregate())
    assert list(judged.columns) == list(COLUMNS)
    assert judged.verdict.tolist() == ["", "fails"]
    assert judged.ours.iloc[0] == pytest.approx(100.25)
    assert verdict(judged) == "not reproduced"
    assert verdict(judged.head(1)) == "no rules"


def ends(rise: float, change: float, load: float) -> pd.DataFrame:
    """What deriving makes of three series, a little apart."""
    base = aggregate()
    base = base[(base["where"] == "n2") & (base["replication"] < 4)]
    numbers = {"pending_rise": rise, "pending_change_end": change, "cpu_load_end": load}
    return pd.concat(
        [
            base.assign(metric=name, value=value * (1 + base["replication"] / 1000))
            for name, value in numbers.items()
        ]
    )


def test_a_knee_has_risen_and_is_flat_at_a_busy_processor() -> None:
    rule = {"id": "k", "kind": "knee", "metric": "pending", "where": "n2", "change": 0.1, "cpu": 95}

    def verdict_of(frame: pd.DataFrame) -> str:
        return str(judge({"rules": [rule]}, frame).verdict[0])

    assert verdict_of(ends(3, 0.001, 99)) == "holds"
    assert verdict_of(ends(3, 0.3, 99)) == "fails"
    assert verdict_of(ends(3, 0.001, 20)) == "fails"
    assert verdict_of(ends(1, 0.001, 99)) == "fails"
    assert verdict_of(aggregate()) == "not measured"


def test_an_unknown_kind_is_a_mistake_of_the_file() -> None:
    with pytest.raises(ValueError, match=r"rule x: no kind 'guess'; there are monotone, .*knee"):
        one({"kind": "guess"})


def test_an_unknown_factor_is_not_measured() -> None:
    row = one({"kind": "bound", "cell": {"colour": "red"}, "at_least": 1})
    assert (row.verdict, row.why) == ("not measured", "no factor colour")
