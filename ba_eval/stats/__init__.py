"""Statistics of scores over problems: estimators, intervals, comparisons. Pure numpy, no I/O.

Problems are the sampling unit: the samples of one problem are not independent, so every interval and test here
works on one value per problem.
"""

from ba_eval.stats.estimators import clustered_se, pass_at_k
from ba_eval.stats.intervals import CONFIDENCE, DRAWS, Estimate, mean_interval, t_quantile

__all__ = ["CONFIDENCE", "DRAWS", "Estimate", "clustered_se", "mean_interval", "pass_at_k", "t_quantile"]
