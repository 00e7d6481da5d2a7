"""The content distribution paper's Table 5 gives its Table 6, and where it does not."""

import numpy as np
import pandas as pd
import pytest

from onym_lab import stats
from onym_lab.stats import design

FACTORS = "ABCD"
TABLE_5 = [25, 27, 21, 18, 97, 103, 46, 48, 26, 24, 15, 13, 61, 59, 31, 28]
"""Mbps in standard order, A fastest (the paper's Table 5)."""

TABLE_6 = {"C": 51, "B": 22, "BC": 9.5, "D": 9, "CD": 5.6}
"""Percent of the variation, as printed in the paper's Table 6."""

ADDITIVE = {
    # term: (q, sum of squares, percent of the variation)
    "C": (19.000, 5776.00, 50.712),
    "B": (-12.625, 2550.25, 22.391),
    "BC": (-8.250, 1089.00, 9.561),
    "D": (-8.000, 1024.00, 8.991),
    "CD": (-6.375, 650.25, 5.709),
    "BCD": (3.375, 182.25, 1.600),
    "BD": (2.250, 81.00, 0.711),
}
LOG = {"C": 64.07, "B": 23.59, "BC": 1.53, "D": 7.84, "CD": 1.59, "BCD": 0.49, "BD": 0.27}
SQRT = {"C": 58.5, "B": 23.1, "D": 8.4, "BC": 5.2, "CD": 3.6}


@pytest.fixture(name="additive")
def fixture_additive() -> stats.Analysis:
    return stats.analyse(FACTORS, TABLE_5)


def test_the_mean_and_the_total_variation_of_table_5(additive: stats.Analysis) -> None:
    assert additive.mean == 40.125
    assert additive.sst == 11389.75


@pytest.mark.parametrize("term", ADDITIVE)
def test_the_additive_effects_to_three_decimals(additive: stats.Analysis, term: str) -> None:
    q, ss, share = ADDITIVE[term]
    row = additive.effects.set_index("term").loc[term]
    assert round(float(row["q"]), 3) == q
    assert round(float(row["ss"]), 3) == ss
    assert round(float(row["share"]), 3) == share


def test_table_6_follows_from_table_5_within_four_tenths_of_a_point(
    additive: stats.Analysis,
) -> None:
    assert additive.top(5) == list(TABLE_6)
    for term, printed in TABLE_6.items():
        assert abs(additive.share(term) - printed) <= 0.4
    for term in ("C", "B", "D"):
        assert round(additive.share(term)) == TABLE_6[term]


def test_the_cache_size_explains_a_third_of_a_percent(additive: stats.Analysis) -> None:
    with_a = additive.effects[additive.effects.term.str.contains("A")]
    assert with_a.ss.sum() == pytest.approx(37.0)
    assert with_a.share.sum() == pytest.approx(0.325, abs=5e-4)


def test_five_terms_explain_97_percent_and_main_effects_82(additive: stats.Analysis) -> None:
    assert sum(additive.share(term) for term in TABLE_6) == pytest.approx(97.36, abs=5e-3)
    assert additive.main_share == pytest.approx(82.1, abs=0.05)


def test_the_log_model_orders_effects_otherwise() -> None:
    log = stats.analyse(FACTORS, TABLE_5, "log")
    for term, share in LOG.items():
        assert log.share(term) == pytest.approx(share, abs=5e-3)
    assert log.top(5) == ["C", "B", "D", "CD", "BC"]
    assert sum(log.share(term) for term in "BCD") == pytest.approx(95.5, abs=0.05)


def test_the_log_effects_are_the_factors_of_throughput() -> None:
    log = stats.analyse(FACTORS, TABLE_5, "log")
    times = {term: float(np.exp(2 * log.q(term))) for term in FACTORS}
    assert times["C"] == pytest.approx(2.62, abs=5e-3)
    assert times["B"] == pytest.approx(0.557, abs=5e-4)
    assert times["D"] == pytest.approx(0.714, abs=5e-4)
    assert times["A"] == pytest.approx(0.959, abs=5e-4)
    assert float(np.exp(log.mean)) == pytest.approx(33.2, abs=0.05)


def test_the_square_root_model_lies_between() -> None:
    root = stats.analyse(FACTORS, TABLE_5, "sqrt")
    for term, share in SQRT.items():
        assert root.share(term) == pytest.approx(share, abs=0.05)


def test_the_cache_size_as_hidden_replicate_makes_seven_effects_significant() -> None:
    folded = stats.fold(FACTORS, TABLE_5, "A")
    assert folded.error_dof == 8
    assert folded.error_sd == pytest.approx(2.15, abs=5e-3)
    assert folded.error_sd / 4 == pytest.approx(0.538, abs=5e-4)
    reach = (folded.effects.high - folded.effects.low) / 2
    assert reach.iloc[0] == pytest.approx(1.24, abs=5e-3)
    assert folded.effects.significant.all()


def test_the_cache_size_itself_is_nothing_in_pairs() -> None:
    table = np.asarray(TABLE_5, dtype=float)
    pair = stats.paired(table[1::2], table[0::2])
    assert pair.difference.centre == -0.25
    assert pair.pairs == 8
    assert pair.effect * np.sqrt(8) == pytest.approx(-0.22, abs=0.01)
    assert not pair.differs


def test_lenths_margins_of_table_5(additive: stats.Analysis) -> None:
    margins = stats.lenth(additive)
    assert margins.pse == pytest.approx(1.69, abs=5e-3)
    assert margins.me == pytest.approx(4.34, abs=5e-3)
    assert margins.sme == pytest.approx(8.81, abs=5e-3)
    contrasts = {term: abs(2 * additive.q(term)) for term in ADDITIVE}
    assert [term for term, size in contrasts.items() if size > margins.sme] == list(TABLE_6)
    assert [t for t, c in contrasts.items() if margins.me < c <= margins.sme] == ["BCD", "BD"]


def test_integer_rounding_of_table_5_leaves_bands_that_hold_table_6() -> None:
    bands = stats.rank_uncertainty(FACTORS, TABLE_5, 0.5, "uniform", draws=20_000)
    table = bands.set_index("term")
    expected = {
        "C": (50.2, 51.2),
        "B": (21.9, 22.8),
        "BC": (9.25, 9.88),
        "D": (8.7, 9.3),
        "CD": (5.47, 5.96),
    }
    for term, (low, high) in expected.items():
        assert table.loc[term, "low"] == pytest.approx(low, abs=0.06)
        assert table.loc[term, "high"] == pytest.approx(high, abs=0.06)
        assert low <= TABLE_6[term] <= high


def _swaps(noise: float, kind: str) -> float:
    """How often D explains more than BC when the values are off."""
    rng = np.random.default_rng(7)
    shape = (4000, 16)
    off = rng.normal(0, noise, shape) if kind == "normal" else rng.uniform(-noise, noise, shape)
    table = np.asarray(TABLE_5) + off
    signs = design.full(FACTORS)
    size = {term: np.abs(table @ design.column(signs, FACTORS, term)) for term in ("D", "BC")}
    return float(np.mean(size["D"] > size["BC"]))


def test_the_order_of_bc_and_d_is_not_firm() -> None:
    assert _swaps(2.15, "normal") == pytest.approx(0.37, abs=0.03)
    assert _swaps(0.5, "uniform") == pytest.approx(0.007, abs=0.005)


def test_side_by_side_shows_all_models_largest_additive_first() -> None:
    table = stats.side_by_side(FACTORS, TABLE_5)
    assert list(table.columns) == ["term", "additive", "log", "sqrt"]
    assert list(table.term.head(5)) == list(TABLE_6)
    for model in ("additive", "log", "sqrt"):
        assert table[model].sum() == pytest.approx(100)


def test_shares_and_error_add_up_with_replications() -> None:
    rng = np.random.default_rng(3)
    table = np.asarray(TABLE_5)[:, None] + rng.normal(0, 2, (16, 4))
    run = stats.analyse(FACTORS, table)
    assert run.effects.share.sum() + run.error_share == pytest.approx(100)
    assert run.error_dof == 48
    assert run.error_sd == pytest.approx(2, rel=0.3)
    found = run.effects.set_index("term").significant
    assert all(found[term] for term in TABLE_6)


def test_jains_memory_cache_example() -> None:
    # Jain, chapter 18.1: 2^2 3 workstation study, y = (15,18,12),(45,48,51),(25,28,19),(75,75,81).
    run = stats.analyse("AB", [[15, 18, 12], [45, 48, 51], [25, 28, 19], [75, 75, 81]])
    assert run.mean == 41
    assert [run.q(term) for term in ("A", "B", "AB")] == [21.5, 9.5, 5.0]
    assert run.sse == 102
    assert run.error_sd == pytest.approx(3.57, abs=5e-3)


def test_predictions_of_all_terms_are_the_data(additive: stats.Analysis) -> None:
    frame = stats.predict(additive, list(additive.effects.term))
    np.testing.assert_allclose(frame.predicted, TABLE_5)
    few = stats.predict(additive, list(TABLE_6))
    assert (few.predicted - few.measured).abs().max() < 10


def test_the_half_normal_plot_ends_with_the_largest(additive: stats.Analysis) -> None:
    points = stats.half_normal(additive)
    assert list(points.term.tail(5)) == ["CD", "D", "BC", "B", "C"]
    assert points["quantile"].is_monotonic_increasing


def test_box_cox_suggests_a_power_of_its_interval_only() -> None:
    # For Table 5 the interval excludes the additive model and the log, too.
    power = stats.box_cox(FACTORS, TABLE_5)
    assert power.suggested == "reciprocal root"
    assert power.low <= -0.5 <= power.high < 0


def test_no_power_that_box_cox_allows_keeps_the_papers_third_contributor() -> None:
    power = stats.box_cox(FACTORS, TABLE_5)
    for one in np.linspace(power.low, power.high, 5):
        assert stats.analyse(FACTORS, np.asarray(TABLE_5, dtype=float) ** one).share("BC") < 0.8


def test_box_cox_does_not_depend_on_the_unit() -> None:
    rng = np.random.default_rng(4)
    table = np.asarray(TABLE_5)[:, None] * np.exp(rng.normal(0, 0.1, (16, 3)))
    small, large = (stats.box_cox(FACTORS, table * unit) for unit in (1, 1e9))
    assert small == large
    assert small.low <= 0.5
    assert small.suggested == "log"


def test_a_table_that_is_not_whole_is_refused() -> None:
    with pytest.raises(ValueError, match="16 combinations, not 15"):
        stats.analyse(FACTORS, TABLE_5[:15])
    with pytest.raises(ValueError, match="no value"):
        stats.analyse("A", [1.0, float("nan")])
    with pytest.raises(ValueError, match="above 0"):
        stats.analyse("A", [1.0, 0.0], "log")


def test_the_half_fraction_aliases_main_effects_with_three_factors() -> None:
    half = stats.fraction("ABCD", {"D": "ABC"})
    assert len(half.signs) == 8
    assert half.resolution == 4
    assert half.aliases["A"] == ("BCD",)
    assert half.aliases["AB"] == ("CD",)
    with pytest.raises(ValueError, match="generator D=ABX"):
        stats.fraction("ABCD", {"D": "ABX"})


def test_effects_frame_has_the_declared_columns(additive: stats.Analysis) -> None:
    assert isinstance(additive.effects, pd.DataFrame)
    assert list(additive.effects.columns) == [
        "term",
        "order",
        "q",
        "ss",
        "share",
        "low",
        "high",
        "significant",
    ]
