"""Short implementations from the papers, to compare those of SciPy and statsmodels with."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats as sps

from onym_lab.stats.intervals import Values


def bca(
    data: Values, statistic: Callable[[Values], float], confidence: float, draws: int, seed: int
) -> tuple[float, float]:
    """The bias-corrected and accelerated interval (Efron 1987)."""
    rng = np.random.default_rng(seed)
    centre = statistic(data)
    picks = rng.integers(0, data.size, size=(draws, data.size))
    replicas = np.array([statistic(data[pick]) for pick in picks])
    # Ties count half: a discrete statistic would else look biased.
    below = (np.sum(replicas < centre) + 0.5 * np.sum(replicas == centre)) / replicas.size
    bias = sps.norm.ppf(np.clip(below, 1e-6, 1 - 1e-6))
    jack = np.array([statistic(np.delete(data, i)) for i in range(data.size)])
    off = jack.mean() - jack
    scale = 6 * np.sum(off**2) ** 1.5
    bend = float(np.sum(off**3) / scale) if scale > 0 else 0.0

    def level(tail: float) -> float:
        z = bias + sps.norm.ppf(tail)
        return float(sps.norm.cdf(bias + z / (1 - bend * z)))

    low, high = np.quantile(replicas, [level((1 - confidence) / 2), level((1 + confidence) / 2)])
    return float(low), float(high)


def holm(p: Sequence[float]) -> list[float]:
    """Holm 1979: the smallest value times their number, the next times one less, never falling."""
    corrected, worst = [0.0] * len(p), 0.0
    for rank, index in enumerate(np.argsort(np.asarray(p))):
        worst = max(worst, min(1.0, (len(p) - rank) * p[index]))
        corrected[index] = worst
    return corrected


def kaplan_meier(t: Values, done: np.ndarray) -> tuple[list[float], list[float]]:
    """Kaplan and Meier 1958: the product over completions of the share that went on."""
    moments, share, left = np.unique(t[done]), 1.0, []
    for moment in moments:
        share *= 1 - int(np.sum(t[done] == moment)) / int(np.sum(t >= moment))
        left.append(share)
    return moments.tolist(), left
