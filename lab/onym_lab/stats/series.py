"""Series in time within one run: where warm-up ends, and the mean of what follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onym_lab.stats.intervals import CONFIDENCE, Interval, Values, mean_interval, values


@dataclass(frozen=True)
class WarmUp:
    """Where a series settles.

    ``cut`` values belong to warm-up; ``settled`` is false when the best cut
    lies in the second half, which means that the run was too short to tell.
    """

    cut: int
    settled: bool


def mser(series: ArrayLike, batch: int = 5) -> WarmUp:
    """MSER-5 (White 1997): the cut that makes the rest's mean most certain.

    The series is averaged in batches, and the cut minimises the squared
    standard error of what remains.
    """
    data = values(series)
    count = data.size // batch
    if count < 4:
        return WarmUp(0, False)
    means = data[: count * batch].reshape(count, batch).mean(axis=1)
    # Suffix sums give every candidate's variance in one pass.
    left = np.arange(count, 0, -1)
    total = np.cumsum(means[::-1])[::-1]
    square = np.cumsum(means[::-1] ** 2)[::-1]
    spread = np.maximum(square - total**2 / left, 0.0)
    # A tail of a few batches can be calm by chance.
    candidates = max(count - 5, count // 2 + 1)
    error = (spread / left.astype(np.float64) ** 2)[:candidates]
    best = int(np.argmin(error))
    return WarmUp(best * batch, best <= count // 2)


def welch(runs: ArrayLike, window: int) -> Values:
    """Welch's curve: the mean over runs (rows), smoothed over ``2 * window + 1`` samples.

    Towards the start the window shrinks so that it stays centred. The reader
    looks for where it gets flat.
    """
    table = np.atleast_2d(np.asarray(runs, dtype=np.float64))
    mean = np.nanmean(table, axis=0)
    length = mean.size - window
    return np.array(
        [mean[i - min(i, window) : i + min(i, window) + 1].mean() for i in range(max(length, 0))]
    )


def lag_one(series: ArrayLike) -> float:
    """Correlation of the series with itself one step later; 0 for a flat one."""
    data = values(series)
    if data.size < 3 or np.ptp(data) == 0:
        return 0.0
    off = data - data.mean()
    return float(np.sum(off[1:] * off[:-1]) / np.sum(off**2))


def batch_interval(
    series: ArrayLike, batches: int = 20, confidence: float = CONFIDENCE
) -> Interval:
    """The interval of a long run's mean by the method of batch means.

    Samples of one run depend on each other; means of long batches hardly do.
    """
    data = values(series)
    size = data.size // batches
    if size < 2:
        return Interval(
            float(data.mean()) if data.size else float("nan"),
            float("nan"),
            float("nan"),
            confidence,
        )
    return mean_interval(
        data[data.size - size * batches :].reshape(batches, size).mean(axis=1), confidence
    )


def steady_mean(series: ArrayLike, batch: int = 5) -> tuple[float, WarmUp]:
    """The mean after warm-up, and where warm-up was cut."""
    data = values(series)
    cut = mser(data, batch)
    rest = data[cut.cut :]
    return (float(rest.mean()) if rest.size else float("nan")), cut
