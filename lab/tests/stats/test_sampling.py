"""Intervals cover, warm-up is found, stop rules stop, comparisons tell."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import oracles

from onym_lab import stats

SEED = 20261121


def test_students_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(SEED)
    runs = rng.normal(10, 3, (8000, 6))
    hits = [stats.mean_interval(run).holds(10) for run in runs]
    assert 0.94 <= np.mean(hits) <= 0.96


def test_students_interval_of_known_numbers() -> None:
    interval = stats.mean_interval([1, 2, 3, 4, 5])
    assert interval.centre == 3
    assert interval.half_width == pytest.approx(1.9632, abs=1e-4)


def test_an_interval_of_one_value_is_unknown_and_of_none_is_nothing() -> None:
    assert np.isnan(stats.mean_interval([4.0]).low)
    assert stats.mean_interval([4.0]).centre == 4
    assert np.isnan(stats.mean_interval([]).centre)
    assert stats.summary([]).count == 0


def test_the_bootstrap_covers_the_median_of_a_skewed_sample() -> None:
    rng = np.random.default_rng(SEED)
    true = float(np.log(2))
    hits = [
        stats.bootstrap_interval(rng.exponential(1, 40), draws=300, seed=i).holds(true)
        for i in range(120)
    ]
    assert 0.88 <= np.mean(hits) <= 0.99


def test_the_bootstrap_of_equal_values_is_that_value() -> None:
    interval = stats.bootstrap_interval([2.0, 2.0, 2.0])
    assert (interval.low, interval.high) == (2.0, 2.0)


def test_the_bootstrap_is_that_of_the_paper() -> None:
    data = np.random.default_rng(SEED).exponential(1, 40)
    mean = lambda part: float(np.mean(part))  # noqa: E731
    found = stats.bootstrap_interval(data, mean, draws=4000, seed=3)
    low, high = oracles.bca(data, mean, 0.95, 4000, 4)
    # Two draws of 4000: their ends differ by some hundredths of the width.
    width = high - low
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * width)


def test_the_bootstrap_of_a_statistic_that_does_not_change_is_a_point() -> None:
    interval = stats.bootstrap_interval([1.0, 2.0, 3.0], lambda _: 7.0, draws=50)
    assert (interval.low, interval.high) == (7.0, 7.0)


def test_outliers_are_marked_and_stay_in_the_summary() -> None:
    sample = [1, 1.1, 0.9, 1.05, 0.95, 50]
    assert stats.outliers(sample).tolist() == [False] * 5 + [True]
    found = stats.summary(sample)
    assert (found.outliers, found.high, found.count) == (1, 50, 6)


def test_missing_values_are_left_out_of_a_summary() -> None:
    assert stats.summary([1.0, float("nan"), 3.0]).count == 2


def test_mser_finds_the_end_of_a_ramp() -> None:
    rng = np.random.default_rng(SEED)
    series = np.concatenate([np.linspace(0, 100, 100), np.full(400, 100.0)])
    found = stats.mser(series + rng.normal(0, 2, 500))
    assert found.settled
    assert 85 <= found.cut <= 130
    mean, _ = stats.steady_mean(series)
    assert mean == pytest.approx(100, abs=0.5)


def test_mser_says_when_a_series_never_settles() -> None:
    assert not stats.mser(np.linspace(0, 1, 200)).settled
    assert not stats.mser([1, 2, 3]).settled


def test_welchs_curve_of_a_constant_is_flat() -> None:
    curve = stats.welch(np.full((3, 50), 7.0), window=5)
    assert curve.tolist() == [7.0] * 45


def test_batch_means_cover_where_single_samples_do_not() -> None:
    rng = np.random.default_rng(SEED)

    def walk() -> np.ndarray:
        noise = rng.normal(0, 1, 2100)
        out = np.zeros(2100)
        for i in range(1, 2100):
            out[i] = 0.8 * out[i - 1] + noise[i]
        return out[100:]

    runs = [walk() for _ in range(200)]
    batched = np.mean([stats.batch_interval(run).holds(0) for run in runs])
    naive = np.mean([stats.mean_interval(run).holds(0) for run in runs])
    assert batched > 0.88
    assert naive < 0.65
    assert stats.lag_one(runs[0]) == pytest.approx(0.8, abs=0.08)


def test_the_stop_rule_waits_for_precision_and_gives_up_at_its_most() -> None:
    rule = stats.StopRule(rel_half_width=0.05, fewest=5, most=8)
    assert rule.decide([10, 10, 10]).reason == "too few"
    assert rule.decide([10, 10.1, 9.9, 10, 10]).reason == "precise"
    assert rule.decide([1, 20, 5, 40, 9]).reason == "too wide"
    assert rule.decide([1, 20, 5, 40, 9, 3, 2, 60]).reason == "most reached"
    with pytest.raises(ValueError, match="fewest"):
        stats.StopRule(fewest=1)
    with pytest.raises(ValueError, match="above 0"):
        stats.StopRule(rel_half_width=0)


def test_the_stop_rule_loses_little_coverage() -> None:
    rng = np.random.default_rng(SEED)
    rule = stats.StopRule(rel_half_width=0.05, fewest=5, most=60)
    hits = 0
    for _ in range(800):
        sample = rng.normal(10, 1, 60)
        for count in range(5, 61):
            decision = rule.decide(sample[:count])
            if decision.stop:
                hits += decision.interval.holds(10)
                break
    assert hits / 800 > 0.91


def test_pairs_find_a_difference_that_the_unpaired_test_misses() -> None:
    rng = np.random.default_rng(SEED)
    machine = rng.normal(100, 20, 12)
    slow, fast = machine + rng.normal(0, 1, 12), machine + 3 + rng.normal(0, 1, 12)
    assert stats.paired(fast, slow).differs
    assert not stats.unpaired(fast, slow).differs


def test_a_ratio_of_pairs_is_geometric() -> None:
    interval = stats.ratio([2, 8, 4], [1, 2, 2])
    assert interval.centre == pytest.approx((2 * 4 * 2) ** (1 / 3))
    assert interval.low < interval.centre < interval.high


def test_pairs_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        stats.paired([1, 2], [1])
    with pytest.raises(ValueError, match="two are needed"):
        stats.paired([1], [1])


def test_holm_keeps_order_and_never_falls() -> None:
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_holm_and_kaplan_meier_are_those_of_their_papers() -> None:
    rng = np.random.default_rng(SEED)
    for count in (1, 2, 7, 40):
        p = rng.random(count).tolist()
        assert stats.holm(p) == pytest.approx(oracles.holm(p))
        # Few different times, so that completions and cuts meet.
        times, done = rng.integers(1, 9, count).astype(float), rng.random(count) < 0.7
        curve = stats.kaplan_meier(times, done)
        moments, left = oracles.kaplan_meier(times, done)
        assert (curve.times.tolist(), curve.open.tolist()) == (moments, pytest.approx(left))
    assert stats.holm([]) == []


def test_kaplan_meier_counts_a_cut_run_as_at_least_as_long() -> None:
    curve = stats.kaplan_meier([1, 2, 3, 4, 5], [True, True, False, True, False])
    assert curve.open.tolist() == pytest.approx([0.8, 0.6, 0.3])
    assert curve.median == 4
    assert curve.censored == 2
    assert stats.kaplan_meier([9, 9], [False, False]).median == float("inf")


def test_fairness_is_one_for_equals_and_an_nth_for_one_taker() -> None:
    assert stats.jain([5, 5, 5]) == pytest.approx(1)
    assert stats.jain([9, 0, 0]) == pytest.approx(1 / 3)


def test_monotone_is_minus_one_for_a_falling_series() -> None:
    assert stats.monotone([1, 2, 3, 4], [9, 5, 4, 1]) == pytest.approx(-1)
    assert np.isnan(stats.monotone([1, 2, 3], [4, 4, 4]))


def test_residual_checks_see_a_spread_that_grows_and_a_drift() -> None:
    rng = np.random.default_rng(SEED)
    levels = np.array([1, 10, 100, 1000.0])
    good = stats.analyse("AB", levels[:, None] + np.random.default_rng(1).normal(0, 1, (4, 20)))
    assert all(found.ok for found in stats.check(good))
    grown = stats.analyse("AB", levels[:, None] * np.exp(rng.normal(0, 0.3, (4, 20))))
    assert not {c.name: c.ok for c in stats.check(grown)}["equal spread"]
    order = np.arange(80).reshape(20, 4).T
    drift = stats.analyse("AB", levels[:, None] + rng.normal(0, 1, (4, 20)) + order / 10)
    assert not {c.name: c.ok for c in stats.check(drift, order)}["no drift"]


def test_without_replication_there_is_nothing_to_check() -> None:
    assert "no replication" in stats.check(stats.analyse("A", [1.0, 2.0]))[0].note
