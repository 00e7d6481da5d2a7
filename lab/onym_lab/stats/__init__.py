"""Statistics of experiments: pure functions on arrays and frames.

====================  =========================================================
module                what it answers
====================  =========================================================
``intervals``         how certain a mean, median or ratio is
``series``            where warm-up ends; the mean of one long run
``stopping``          whether more replications are needed
``compare``           whether two systems differ, and by how much
``survival``          times to completion when some were cut off
``design``            sign tables of two-level designs, full and fractional
``factorial``         which factors matter (2^k r), additive and log
``residuals``         whether a model's assumptions hold
====================  =========================================================
"""

from onym_lab.stats.compare import Comparison, holm, paired, ratio, unpaired
from onym_lab.stats.design import Fraction, fraction
from onym_lab.stats.factorial import (
    Analysis,
    Lenth,
    analyse,
    fold,
    half_normal,
    lenth,
    predict,
    rank_uncertainty,
    side_by_side,
)
from onym_lab.stats.intervals import (
    CONFIDENCE,
    Interval,
    Summary,
    bootstrap_interval,
    half_width,
    jain,
    mean_interval,
    monotone,
    outliers,
    summary,
)
from onym_lab.stats.residuals import BoxCox, Check, box_cox, check
from onym_lab.stats.series import (
    WarmUp,
    batch_interval,
    lag_one,
    mser,
    steady_mean,
    welch,
)
from onym_lab.stats.stopping import Decision, StopRule
from onym_lab.stats.survival import Survival, kaplan_meier

__all__ = [
    "CONFIDENCE",
    "Analysis",
    "BoxCox",
    "Check",
    "Comparison",
    "Decision",
    "Fraction",
    "Interval",
    "Lenth",
    "StopRule",
    "Summary",
    "Survival",
    "WarmUp",
    "analyse",
    "batch_interval",
    "bootstrap_interval",
    "box_cox",
    "check",
    "fold",
    "fraction",
    "half_normal",
    "half_width",
    "holm",
    "jain",
    "kaplan_meier",
    "lag_one",
    "lenth",
    "mean_interval",
    "monotone",
    "mser",
    "outliers",
    "paired",
    "predict",
    "rank_uncertainty",
    "ratio",
    "side_by_side",
    "steady_mean",
    "summary",
    "unpaired",
    "welch",
]
