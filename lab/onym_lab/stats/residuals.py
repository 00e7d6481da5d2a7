"""Whether a model's assumptions hold: normal, equally spread, independent residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats as sps

from onym_lab.stats import design
from onym_lab.stats.factorial import Analysis

LEVEL = 0.01
"""Below this probability a check speaks up: many are read, few should cry wolf."""


@dataclass(frozen=True)
class Check:
    """One assumption: its test's probability under the assumption, and what it means."""

    name: str
    p: float
    ok: bool
    note: str


def check(analysis: Analysis, order: ArrayLike | None = None) -> list[Check]:
    """Checks a replicated analysis; ``order`` is the order in which runs were made.

    An unreplicated analysis has no residuals, and the answer says so.
    """
    if analysis.error_dof == 0:
        return [Check("residuals", float("nan"), True, "no replication: nothing to check")]
    flat = analysis.residuals.ravel()
    if np.ptp(flat) == 0:
        return [Check("residuals", float("nan"), True, "replications are equal")]
    found = [_normal(flat), _spread(analysis)]
    if order is not None:
        found.append(_independent(flat, order))
    return found


def _normal(flat: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Check:
    p = float(sps.shapiro(flat).pvalue)
    return Check("normal", p, p >= LEVEL, "Shapiro-Wilk of the residuals")


def _spread(analysis: Analysis) -> Check:
    fitted = np.repeat(analysis.fitted, analysis.responses.shape[1])
    size = np.abs(analysis.residuals.ravel())
    if np.ptp(fitted) == 0 or np.ptp(size) == 0:
        return Check("equal spread", float("nan"), True, "nothing varies")
    test = sps.spearmanr(fitted, size)
    p = float(test.pvalue)
    way = "grows" if float(test.statistic) > 0 else "shrinks"
    note = "spread against fitted values" if p >= LEVEL else f"spread {way} with the value"
    return Check("equal spread", p, p >= LEVEL, note)


def _independent(flat: np.ndarray[tuple[int], np.dtype[np.float64]], order: ArrayLike) -> Check:
    when = np.asarray(order).ravel()
    p = float(sps.spearmanr(when, flat).pvalue)
    return Check("no drift", p, p >= LEVEL, "residuals against the order of the runs")


SIMPLE = {"none": 1.0, "log": 0.0, "sqrt": 0.5, "reciprocal root": -0.5, "reciprocal": -1.0}
"""Powers that a reader can make sense of, those that are easiest to read first."""


@dataclass(frozen=True)
class BoxCox:
    """The power that makes a model's residuals most normal, with its 95 % interval.

    ``suggested`` names a simple power of the interval, or says that it contains none.
    """

    best: float
    low: float
    high: float
    suggested: str


def box_cox(factors: Sequence[str], responses: ArrayLike) -> BoxCox:
    """Suggests a transform by the likelihood of powers from -2 to 2.

    With replication the full model's residuals count; without, the main
    effects' (interactions that a transform removes are the reason to use it).

    Raises:
        ValueError: a response is not above 0.
    """
    table = np.asarray(responses, dtype=np.float64).reshape(2 ** len(factors), -1)
    if (table <= 0).any():
        raise ValueError("Box-Cox needs responses above 0")
    powers = np.linspace(-2, 2, 161)
    scores = np.array([_likelihood(factors, table, power) for power in powers])
    inside = powers[scores >= scores.max() - float(sps.chi2.ppf(0.95, 1)) / 2]
    best = float(powers[int(np.argmax(scores))])
    low, high = float(inside.min()), float(inside.max())
    # Data in their own unit are easiest to read, then a log: taken when the interval allows.
    allowed = [name for name, power in SIMPLE.items() if low - 1e-9 <= power <= high + 1e-9]
    if allowed[:1] not in (["none"], ["log"]):
        allowed.sort(key=lambda name: abs(SIMPLE[name] - best))
    return BoxCox(best, low, high, allowed[0] if allowed else "no simple power")


def _likelihood(
    factors: Sequence[str], table: np.ndarray[tuple[int, int], np.dtype[np.float64]], power: float
) -> float:
    # Over the geometric mean: powers of large numbers would lose all digits, and the
    # likelihoods of powers can be compared without a Jacobian.
    z = table / float(np.exp(np.log(table).mean()))
    y = np.log(z) if abs(power) < 1e-9 else (z**power - 1) / power
    if table.shape[1] > 1:
        rest = y - y.mean(axis=1, keepdims=True)
    else:
        signs = design.full(factors)
        model = np.hstack([np.ones((len(signs), 1)), signs])
        rest = y - model @ np.linalg.lstsq(model, y, rcond=None)[0]
    rss = float(np.sum(rest**2))
    return -table.size / 2 * float(np.log(max(rss, 1e-300) / table.size))
