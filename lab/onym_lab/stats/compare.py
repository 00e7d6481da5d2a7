"""Two systems side by side: paired differences, ratios, and many comparisons at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats as sps
from statsmodels.stats.multitest import multipletests

from onym_lab.stats.intervals import CONFIDENCE, Interval, mean_interval


@dataclass(frozen=True)
class Comparison:
    """How ``ours`` differs from ``theirs``.

    ``effect`` is the mean difference in standard deviations of the
    differences (paired) or pooled (unpaired): Cohen's d.
    """

    difference: Interval
    effect: float
    p: float
    pairs: int

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference leaves zero out."""
        return not self.difference.holds(0.0)


def paired(ours: ArrayLike, theirs: ArrayLike, confidence: float = CONFIDENCE) -> Comparison:
    """Compares replications taken in pairs (same seed, same block, same moment).

    Raises:
        ValueError: the samples differ in length, or there are fewer than two pairs.
    """
    a = np.asarray(ours, dtype=np.float64).ravel()
    b = np.asarray(theirs, dtype=np.float64).ravel()
    if a.size != b.size:
        raise ValueError(f"pairs need samples of one length, not {a.size} and {b.size}")
    both = ~(np.isnan(a) | np.isnan(b))
    gap = (a - b)[both]
    if gap.size < 2:
        raise ValueError(f"pairs: at least two are needed, not {gap.size}")
    spread = float(gap.std(ddof=1))
    interval = mean_interval(gap, confidence)
    if spread == 0:
        return Comparison(interval, float("inf") if gap[0] else 0.0, float(gap[0] == 0), gap.size)
    p = float(sps.ttest_1samp(gap, 0.0).pvalue)
    return Comparison(interval, interval.centre / spread, p, int(gap.size))


def ratio(ours: ArrayLike, theirs: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """The geometric mean ratio of pairs of positive numbers, with its interval."""
    gap = np.log(np.asarray(ours, dtype=np.float64)) - np.log(np.asarray(theirs, dtype=np.float64))
    interval = mean_interval(gap, confidence)
    low, centre, high = np.exp([interval.low, interval.centre, interval.high])
    return Interval(float(centre), float(low), float(high), confidence)


def ratio_of_means(ours: ArrayLike, theirs: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """The ratio of the means of two paired samples by Fieller's theorem, for samples with zeros.

    All ratios r are in the interval for which the mean of ``ours - r * theirs`` may be 0. Where the
    base may itself be 0, the interval has no upper end; what is measured is not negative.
    """
    a = np.asarray(ours, dtype=np.float64).ravel()
    b = np.asarray(theirs, dtype=np.float64).ravel()
    count, nan, inf = a.size, float("nan"), float("inf")
    centre = float(a.mean() / b.mean()) if b.mean() else inf
    if count < 2:
        return Interval(centre, nan, nan, confidence)
    t2 = float(sps.t.ppf((1 + confidence) / 2, count - 1)) ** 2 / count
    spread = np.cov(a, b)
    base = float(b.mean() ** 2 - t2 * spread[1, 1])
    cross = float(a.mean() * b.mean() - t2 * spread[0, 1])
    top = float(a.mean() ** 2 - t2 * spread[0, 0])
    inside = cross**2 - base * top
    if base > 0:
        # The centre is always inside; without spread it is all, but for rounding.
        inside = max(inside, 0.0)
    if base == 0 or inside < 0:
        return Interval(centre, -inf, inf, confidence)
    ends = sorted((cross + sign * inside**0.5) / base for sign in (-1, 1))
    if base > 0:
        return Interval(centre, ends[0], ends[1], confidence)
    low = ends[1] if ends[0] < 0 else -inf
    return Interval(centre, low, inf, confidence)


def ratio_unpaired(ours: ArrayLike, theirs: ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """The ratio of the means of two independent samples, with its interval.

    Of positive samples: Welch's interval of the difference of logarithms, so that
    a ratio never reaches zero; else first-order propagation.
    """
    a = np.asarray(ours, dtype=np.float64).ravel()
    b = np.asarray(theirs, dtype=np.float64).ravel()
    centre = float(a.mean() / b.mean())
    nan = float("nan")
    if a.size < 2 or b.size < 2:
        return Interval(centre, nan, nan, confidence)
    if a.std() == 0 and b.std() == 0:
        return Interval(centre, centre, centre, confidence)
    if (a > 0).all() and (b > 0).all():
        gap = unpaired(np.log(a), np.log(b), confidence).difference
        # Around the ratio of the means, with the reach of the logarithms.
        reach = (gap.high - gap.low) / 2
        low, high = centre * np.exp([-reach, reach])
        return Interval(centre, float(low), float(high), confidence)
    top, base = mean_interval(a, confidence), mean_interval(b, confidence)
    reach = float(np.hypot(top.half_width, centre * base.half_width)) / abs(float(b.mean()))
    return Interval(centre, centre - reach, centre + reach, confidence)


def unpaired(ours: ArrayLike, theirs: ArrayLike, confidence: float = CONFIDENCE) -> Comparison:
    """Welch's comparison of samples without pairs; variances may differ."""
    a = np.asarray(ours, dtype=np.float64).ravel()
    b = np.asarray(theirs, dtype=np.float64).ravel()
    test = sps.ttest_ind(a, b, equal_var=False)
    reach = test.confidence_interval(confidence)
    centre = float(a.mean() - b.mean())
    pooled = float(np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2))
    return Comparison(
        Interval(centre, float(reach.low), float(reach.high), confidence),
        centre / pooled if pooled else 0.0,
        float(test.pvalue),
        0,
    )


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction: the values to compare with the level when many tests are read."""
    if not p:
        return []
    corrected = multipletests(list(p), method="holm")[1]
    return [float(value) for value in corrected]
