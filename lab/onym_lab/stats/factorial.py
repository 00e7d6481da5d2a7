"""2^k r factorial analysis: effects, allocation of variation, errors, significance.

After Jain, The Art of Computer Systems Performance Analysis, chapters 17 and
18. Effects are the coefficients ``q`` of the sign table; the share of an effect
is ``2^k r q^2`` over the total variation. An additive and a multiplicative
(log) model of the same data can rank effects differently, so both are shown
side by side (:func:`side_by_side`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats as sps

from onym_lab.stats import design
from onym_lab.stats.intervals import CONFIDENCE, Values

Transform = Literal["none", "log", "sqrt"]

_FORWARD: dict[Transform, Callable[[Values], Values]] = {
    "none": lambda y: y,
    "log": lambda y: np.log(y),
    "sqrt": lambda y: np.sqrt(y),
}
_BACK: dict[Transform, Callable[[Values], Values]] = {
    "none": lambda y: y,
    "log": lambda y: np.exp(y),
    "sqrt": lambda y: np.square(y),
}


@dataclass(frozen=True)
class Analysis:
    """What a 2^k r experiment says.

    ``effects`` has a row for each term in standard order of size: ``term``,
    ``q``, ``ss``, ``share`` (percent of the variation), ``low`` and ``high`` of
    q's interval and ``significant`` (both NaN and None without replication).
    """

    factors: tuple[str, ...]
    transform: Transform
    mean: float
    effects: pd.DataFrame
    responses: Values
    fitted: Values
    residuals: Values
    sse: float
    sst: float
    error_sd: float
    error_dof: int
    confidence: float

    @property
    def error_share(self) -> float:
        """Percent of the variation that no effect explains."""
        return 100 * self.sse / self.sst if self.sst else 0.0

    @property
    def main_share(self) -> float:
        """Percent of the variation that the main effects alone explain."""
        return float(self.effects.loc[self.effects.order == 1, "share"].sum())

    def share(self, term: str) -> float:
        """Percent of the variation due to ``term``."""
        return self._value(term, "share")

    def q(self, term: str) -> float:
        """The effect of ``term`` in the transformed unit."""
        return self._value(term, "q")

    def _value(self, term: str, name: str) -> float:
        return float(self.effects.loc[self.effects["term"] == term, name].iloc[0])

    def top(self, count: int) -> list[str]:
        """The terms that explain most."""
        ranked = self.effects.sort_values("share", ascending=False, kind="stable")
        return [str(term) for term in ranked["term"].head(count)]


def analyse(
    factors: Sequence[str],
    responses: ArrayLike,
    transform: Transform = "none",
    confidence: float = CONFIDENCE,
) -> Analysis:
    """Analyses responses in standard order: one row a combination, one column a replication.

    Raises:
        ValueError: there are not 2^k rows, a value is missing, or a transform
            meets a number that it does not take.
    """
    table = _table(factors, responses, transform)
    rows, r = table.shape
    means = table.mean(axis=1)
    signs = design.full(factors)
    terms = design.terms(factors)
    columns = np.stack([design.column(signs, factors, term) for term in terms], axis=1)
    mean = float(means.mean())
    q = columns.T @ means / rows
    residuals = table - means[:, None]
    sst = float(np.sum((table - mean) ** 2))
    sse = float(np.sum(residuals**2))
    dof = rows * (r - 1)
    sd = float(np.sqrt(sse / dof)) if dof else float("nan")
    reach = float(sps.t.ppf((1 + confidence) / 2, dof)) * sd / np.sqrt(rows * r) if dof else np.nan
    ss = rows * r * q**2
    frame = pd.DataFrame(
        {
            "term": [design.label(term) for term in terms],
            "order": [len(term) for term in terms],
            "q": q,
            "ss": ss,
            "share": 100 * ss / sst if sst else np.zeros_like(ss),
            "low": q - reach,
            "high": q + reach,
            "significant": [bool(abs(value) > reach) if dof else None for value in q],
        }
    )
    return Analysis(
        tuple(factors),
        transform,
        mean,
        frame,
        table,
        means,
        residuals,
        sse,
        sst,
        sd,
        dof,
        confidence,
    )


def _table(factors: Sequence[str], responses: ArrayLike, transform: Transform) -> Values:
    table = np.asarray(responses, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.shape[0] != 2 ** len(factors):
        raise ValueError(
            f"{len(factors)} factors need {2 ** len(factors)} combinations, not {table.shape[0]}"
        )
    if np.isnan(table).any():
        raise ValueError("a combination has no value; repeat it or leave the replication out")
    if transform != "none" and (table <= 0).any():
        raise ValueError(f"the {transform} transform needs values above 0")
    return np.asarray(_FORWARD[transform](table), dtype=np.float64)


def fold(
    factors: Sequence[str],
    responses: ArrayLike,
    inert: str,
    transform: Transform = "none",
    confidence: float = CONFIDENCE,
) -> Analysis:
    """Analyses with an inert factor taken as replication (a hidden replicate).

    What an unreplicated design offers when one factor does nothing: its levels
    stand for two replications of the others.
    """
    table = np.asarray(responses, dtype=np.float64).reshape(2 ** len(factors), -1)
    signs = design.full(factors)
    index = list(factors).index(inert)
    halves = [table[signs[:, index] == level] for level in (-1, 1)]
    rest = [name for name in factors if name != inert]
    return analyse(rest, np.hstack(halves), transform, confidence)


@dataclass(frozen=True)
class Lenth:
    """Lenth's margins for an unreplicated design, on the scale of ``2 q``.

    Beyond ``sme`` an effect is real; between ``me`` and ``sme`` it may be.
    """

    pse: float
    me: float
    sme: float


def lenth(analysis: Analysis) -> Lenth:
    """Pseudo standard error and margins (Lenth 1989)."""
    contrasts = np.abs(2 * analysis.effects["q"].to_numpy(dtype=np.float64))
    first = 1.5 * float(np.median(contrasts))
    pse = 1.5 * float(np.median(contrasts[contrasts < 2.5 * first])) if first else 0.0
    count = contrasts.size
    tail = (1 + analysis.confidence ** (1 / count)) / 2
    me = float(sps.t.ppf((1 + analysis.confidence) / 2, count / 3)) * pse
    return Lenth(pse, me, float(sps.t.ppf(tail, count / 3)) * pse)


def half_normal(analysis: Analysis) -> pd.DataFrame:
    """Points of the half-normal plot: ``term``, ``magnitude`` (2|q|), ``quantile``."""
    size = (2 * analysis.effects["q"]).abs()
    frame = pd.DataFrame({"term": analysis.effects["term"], "magnitude": size})
    frame = frame.sort_values("magnitude", kind="stable").reset_index(drop=True)
    frame["quantile"] = sps.halfnorm.ppf((np.arange(len(frame)) + 0.5) / len(frame))
    return frame


def predict(analysis: Analysis, terms: Sequence[str]) -> pd.DataFrame:
    """What a model of only these terms says of every combination, in the unit of the data."""
    signs = design.full(analysis.factors)
    guess = np.full(len(signs), analysis.mean)
    for term in design.terms(analysis.factors):
        if design.label(term) in terms:
            q = analysis.q(design.label(term))
            guess = guess + q * design.column(signs, analysis.factors, term)
    frame = pd.DataFrame(signs, columns=list(analysis.factors))
    frame["predicted"] = _BACK[analysis.transform](guess)
    frame["measured"] = _BACK[analysis.transform](analysis.fitted)
    return frame


def side_by_side(factors: Sequence[str], responses: ArrayLike) -> pd.DataFrame:
    """Shares under the additive, log and square-root models, largest additive first."""
    models: tuple[Transform, ...] = ("none", "log", "sqrt")
    frames = [
        analyse(factors, responses, model).effects.set_index("term")["share"] for model in models
    ]
    table = pd.concat(frames, axis=1, keys=["additive", "log", "sqrt"])
    return table.sort_values("additive", ascending=False, kind="stable").reset_index()


def rank_uncertainty(
    factors: Sequence[str],
    responses: ArrayLike,
    noise: float,
    kind: Literal["uniform", "normal"] = "normal",
    draws: int = 4000,
    seed: int = 1,
) -> pd.DataFrame:
    """How firm shares and ranks are when every value is off by ``noise``.

    ``uniform`` is rounding (± noise), ``normal`` an error with that standard
    deviation. Columns: ``term``, ``share``, ``low`` and ``high`` (central
    95 %), ``keeps_rank`` (share of draws in which the rank is that of the data).
    """
    base = np.asarray(responses, dtype=np.float64).reshape(2 ** len(factors), -1).mean(axis=1)
    rng = np.random.default_rng(seed)
    shape = (draws, base.size)
    off = rng.uniform(-noise, noise, shape) if kind == "uniform" else rng.normal(0, noise, shape)
    signs = design.full(factors)
    terms = design.terms(factors)
    columns = np.stack([design.column(signs, factors, term) for term in terms], axis=1)

    def shares(table: Values) -> Values:
        q = table @ columns / base.size
        return np.asarray(100 * q**2 / np.sum(q**2, axis=1, keepdims=True), dtype=np.float64)

    drawn = shares(base + off)
    here = shares(base[None, :])[0]
    ranks = np.argsort(np.argsort(-drawn, axis=1, kind="stable"), axis=1)
    rank = np.argsort(np.argsort(-here, kind="stable"))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    frame = pd.DataFrame(
        {
            "term": [design.label(term) for term in terms],
            "share": here,
            "low": low,
            "high": high,
            "keeps_rank": (ranks == rank).mean(axis=0),
        }
    )
    return frame.sort_values("share", ascending=False, kind="stable").reset_index(drop=True)
