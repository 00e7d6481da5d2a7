"""Times to completion when some runs were cut off (Kaplan and Meier 1958).

A download that hit its time limit is not missing and not as long as the
limit: it is at least as long. Means over such samples lie; medians need not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats as sps

from onym_lab.stats.intervals import Values


@dataclass(frozen=True)
class Survival:
    """The share that is not done yet after each time at which something got done."""

    times: Values
    open: Values
    censored: int

    @property
    def median(self) -> float:
        """The time after which half are done; infinite when fewer than half ever were."""
        done = np.flatnonzero(self.open <= 0.5 + 1e-12)
        return float(self.times[done[0]]) if done.size else float("inf")


def kaplan_meier(times: ArrayLike, completed: ArrayLike) -> Survival:
    """Estimates from times and whether each ended by completion (else by a cut)."""
    t = np.asarray(times, dtype=np.float64).ravel()
    done = np.asarray(completed, dtype=np.bool_).ravel()
    if t.size != done.size:
        raise ValueError(f"one flag for each time, not {done.size} for {t.size}")
    if not done.any():
        none = np.empty(0, dtype=np.float64)
        return Survival(none, none, int(t.size))
    found = sps.ecdf(sps.CensoredData(uncensored=t[done], right=t[~done])).sf
    # The estimate changes where something got done; SciPy lists the cuts, too.
    kept = np.isin(found.quantiles, t[done])
    return Survival(found.quantiles[kept], found.probabilities[kept], int(np.sum(~done)))
