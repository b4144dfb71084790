"""Statistics of scores over problems: estimators, intervals, comparisons. Pure numpy, no I/O.

Problems are the sampling unit: the samples of one problem are not independent, so every interval and test here
works on one value per problem.
"""

from ba_eval.stats.comparison import POWER, Reach, holm, reach, sign_flip_p
from ba_eval.stats.estimators import clustered_se, maj_at_k, pass_at_k
from ba_eval.stats.intervals import CONFIDENCE, DRAWS, UNDEFINED, Estimate, mean_interval, t_quantile
from ba_eval.stats.seeds import seeds_difference, seeds_interval

__all__ = [
    "CONFIDENCE",
    "DRAWS",
    "POWER",
    "UNDEFINED",
    "Estimate",
    "Reach",
    "clustered_se",
    "holm",
    "maj_at_k",
    "mean_interval",
    "pass_at_k",
    "reach",
    "seeds_difference",
    "seeds_interval",
    "sign_flip_p",
    "t_quantile",
]
