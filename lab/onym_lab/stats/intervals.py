"""Summaries of a sample and confidence intervals.

A replication is one number; nothing here looks inside a run.
Samples are never cleaned: :func:`outliers` marks, the reader decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats as sps

Values = NDArray[np.float64]

CONFIDENCE = 0.95
"""The confidence of every interval that does not say otherwise."""


@dataclass(frozen=True)
class Interval:
    """A range that holds the true value with the given confidence.

    ``low`` and ``high`` are NaN where the sample is too small to know.
    """

    centre: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    @property
    def half_width(self) -> float:
        """Half of the interval's length, in the unit of the sample."""
        return (self.high - self.low) / 2

    @property
    def relative(self) -> float:
        """Half width over the centre's magnitude; infinite at a centre of zero."""
        return self.half_width / abs(self.centre) if self.centre else float("inf")

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies in the interval."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Summary:
    """What a table shows of one metric in one cell."""

    count: int
    mean: float
    sd: float
    median: float
    low: float
    high: float
    p95: float
    p99: float
    interval: Interval
    outliers: int


def values(sample: ArrayLike) -> Values:
    """The sample as a flat array of numbers that are there (no NaN)."""
    flat = np.asarray(sample, dtype=np.float64).ravel()
    return flat[~np.isnan(flat)]


def mean_interval(sample: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Student's interval of the mean; bounds are NaN below two values."""
    data = values(sample)
    if data.size == 0:
        return Interval(float("nan"), float("nan"), float("nan"), confidence)
    centre = float(data.mean())
    if data.size == 1:
        return Interval(centre, float("nan"), float("nan"), confidence)
    spread = float(data.std(ddof=1)) / np.sqrt(data.size)
    reach = float(sps.t.ppf((1 + confidence) / 2, data.size - 1)) * spread
    return Interval(centre, centre - reach, centre + reach, confidence)


def bootstrap_interval(
    sample: ArrayLike,
    statistic: Callable[[Values], float] = lambda data: float(np.median(data)),
    confidence: float = CONFIDENCE,
    draws: int = 2000,
    seed: int = 1,
) -> Interval:
    """The bias-corrected and accelerated bootstrap interval of any statistic.

    For skewed metrics, ratios and quantiles, where Student's is wrong.
    A sample without spread has the interval of its one value.
    """
    data = values(sample)
    centre = float(statistic(data)) if data.size else float("nan")
    if data.size < 2:
        return Interval(centre, float("nan"), float("nan"), confidence)
    if np.ptp(data) == 0:
        return Interval(centre, centre, centre, confidence)
    with warnings.catch_warnings():
        # BCa has no levels where the statistic does not change; the percentiles remain.
        warnings.simplefilter("ignore")
        found = _bootstrap(data, statistic, confidence, draws, seed, "BCa")
    if np.isnan([found.low, found.high]).any():
        found = _bootstrap(data, statistic, confidence, draws, seed, "percentile")
    return Interval(centre, float(found.low), float(found.high), confidence)


def _bootstrap(
    data: Values,
    statistic: Callable[[Values], float],
    confidence: float,
    draws: int,
    seed: int,
    method: str,
) -> Any:
    return sps.bootstrap(
        (data,),
        statistic,
        n_resamples=draws,
        confidence_level=confidence,
        method=method,
        vectorized=False,
        random_state=np.random.default_rng(seed),
    ).confidence_interval


def outliers(sample: ArrayLike, fences: float = 3.0) -> NDArray[np.bool_]:
    """Marks values beyond ``fences`` interquartile ranges of the quartiles (Tukey's far out)."""
    data = np.asarray(sample, dtype=np.float64).ravel()
    if values(data).size < 4:
        return np.zeros(data.size, dtype=np.bool_)
    first, third = np.nanquantile(data, [0.25, 0.75])
    reach = fences * (third - first)
    far: NDArray[np.bool_] = (data < first - reach) | (data > third + reach)
    return far


def summary(sample: ArrayLike, confidence: float = CONFIDENCE) -> Summary:
    """Everything a table shows of one metric in one cell."""
    data = values(sample)
    if data.size == 0:
        nan = float("nan")
        return Summary(0, nan, nan, nan, nan, nan, nan, nan, mean_interval(data, confidence), 0)
    p95, p99 = np.quantile(data, [0.95, 0.99])
    return Summary(
        count=int(data.size),
        mean=float(data.mean()),
        sd=float(data.std(ddof=1)) if data.size > 1 else float("nan"),
        median=float(np.median(data)),
        low=float(data.min()),
        high=float(data.max()),
        p95=float(p95),
        p99=float(p99),
        interval=mean_interval(data, confidence),
        outliers=int(outliers(data).sum()),
    )


def jain(shares: ArrayLike) -> float:
    """Jain's fairness of the shares: 1 is equal, 1/n is one taker of all."""
    data = values(shares)
    square = float(np.sum(data**2))
    return float(np.sum(data)) ** 2 / (data.size * square) if square > 0 else float("nan")


def monotone(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation of two series; NaN where either does not vary."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(sps.spearmanr(x, y).statistic)


def half_width(sample: ArrayLike, level: float = CONFIDENCE) -> float:
    """Half of Student's interval of the mean; infinite below two values."""
    reach = mean_interval(sample, level).half_width
    return float("inf") if np.isnan(reach) else reach
