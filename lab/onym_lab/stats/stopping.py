"""When to stop replicating: the interval is narrow enough, or patience ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from onym_lab.stats.intervals import CONFIDENCE, Interval, mean_interval, values

Reason = Literal["too few", "too wide", "precise", "most reached"]


@dataclass(frozen=True)
class Decision:
    """Whether to stop, why, and the interval that decided."""

    stop: bool
    reason: Reason
    interval: Interval


@dataclass(frozen=True)
class StopRule:
    """Replicate until the relative half width of the mean's interval is small.

    Looking after every replication makes the rule stop a little early, on a
    lucky streak; ``fewest`` of five or more keeps the loss of coverage within
    about two points (the tests simulate it).
    """

    rel_half_width: float = 0.05
    fewest: int = 5
    most: int = 30
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        """Refuses a rule that could not stop or would never look."""
        if not 2 <= self.fewest <= self.most:
            raise ValueError(f"stop rule: 2 <= fewest <= most, not {self.fewest} and {self.most}")
        if self.rel_half_width <= 0:
            raise ValueError(f"stop rule: rel_half_width above 0, not {self.rel_half_width}")

    def decide(self, sample: ArrayLike) -> Decision:
        """Looks at what there is so far."""
        data = values(sample)
        interval = mean_interval(data, self.confidence)
        if data.size < self.fewest:
            return Decision(False, "too few", interval)
        if interval.relative <= self.rel_half_width:
            return Decision(True, "precise", interval)
        if data.size >= self.most:
            return Decision(True, "most reached", interval)
        return Decision(False, "too wide", interval)
