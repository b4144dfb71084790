"""Intervals and tests where a training rule was run with several seeds: problems and seeds both vary.

Seeds and problems are crossed (every seed answers the same problems), both drawn at random. The variance of the mean
is that of a two-way layout, V_seeds + V_problems - V_interaction, the last being held by both (Cameron, Gelbach &
Miller 2011, eq. 2.4). Each level's margin has its own Student quantile, and margins are added by their squares: with
three seeds that is 96-98 % where 95 % is said, where degrees of freedom pooled by Satterthwaite gave 90 % and
resampling three seeds would understate their variance by a third.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ba_eval.stats.estimators import Floats
from ba_eval.stats.intervals import CONFIDENCE, UNDEFINED, Estimate, mean_interval, t_quantile

# p-values below this are given as this.
_LEAST_P = 1e-6


def seeds_interval(
    strata: Sequence[npt.ArrayLike], *, limits: tuple[float, float] = (0.0, 1.0), confidence: float = CONFIDENCE
) -> Estimate:
    """The mean over benchmarks, seeds and problems, with its interval.

    `strata` holds one array (S, P_b) for each benchmark, the seeds in one order. With one seed it is
    `mean_interval` over problems alone. `limits` are the bounds of a value; a problem with a NaN is left out.
    """
    grids = [_whole(stratum) for stratum in strata]
    if not grids or any(grid.shape[1] == 0 for grid in grids):
        return UNDEFINED
    if grids[0].shape[0] == 1:
        return mean_interval([grid[0] for grid in grids], limits=limits, confidence=confidence)
    value = float(np.mean([grid.mean() for grid in grids]))
    if any(grid.shape[1] < 2 for grid in grids):
        return Estimate(value)
    seeds, interaction = _seed_part(grids)
    se, margin = _levels((seeds, grids[0].shape[0] - 1), _problem_part(grids), interaction)
    half = margin(confidence)
    return Estimate(value, max(value - half, limits[0]), min(value + half, limits[1]), se)


def seeds_difference(
    a: Sequence[npt.ArrayLike], b: Sequence[npt.ArrayLike], *, confidence: float = CONFIDENCE
) -> tuple[Estimate, float]:
    """The difference of the means of two rules on the same problems, and its two-sided p-value.

    `a` and `b` hold one array (S, P_b) for each benchmark. Problems are paired, seeds are not: two trainings with the
    same seed have little in common. Seeds are taken to vary as much under both rules (as in the two-sample t-test).
    With one seed on both sides the interval covers problems alone, and the p-value says nothing of other seeds.
    """
    pairs = [_paired(x, y) for x, y in zip(a, b, strict=True)]
    if not pairs or any(x.shape[1] < 2 for x, _ in pairs):
        return UNDEFINED, math.nan
    means = [(x.mean(axis=0) - y.mean(axis=0))[None] for x, y in pairs]
    value = float(np.mean([mean.mean() for mean in means]))
    sides = [_seed_part([pair[side] for pair in pairs]) for side in (0, 1)]
    counts = [pairs[0][side].shape[0] for side in (0, 1)]
    freedom = sum(counts) - 2
    spread = sum(variance * count * (count - 1) for (variance, _), count in zip(sides, counts, strict=True))
    seeds = spread / max(freedom, 1) * sum(1 / count for count in counts)
    se, margin = _levels((seeds, freedom), _problem_part(means), sum(interaction for _, interaction in sides))
    if se == 0:
        return Estimate(value, value, value, 0.0), 1.0 if value == 0 else 0.0
    half = margin(confidence)
    return Estimate(value, max(value - half, -1.0), min(value + half, 1.0), se), _p_value(abs(value), margin)


def _levels(
    seeds: tuple[float, float], problems: tuple[float, float], interaction: float
) -> tuple[float, Callable[[float], float]]:
    """The standard error, and the margin at a confidence, from a (variance, degrees of freedom) for each level."""
    rest = max(problems[0] - interaction, 0.0)

    def margin(confidence: float) -> float:
        of_problems = t_quantile(0.5 + confidence / 2, problems[1]) ** 2
        of_seeds = t_quantile(0.5 + confidence / 2, seeds[1]) ** 2 * seeds[0] if seeds[0] > 0 else 0.0
        return math.sqrt(max(of_seeds + of_problems * rest, of_problems * problems[0]))

    return math.sqrt(max(seeds[0] + rest, problems[0])), margin


def _p_value(value: float, margin: Callable[[float], float]) -> float:
    """The level at which the interval just reaches zero."""
    low, high = math.log(_LEAST_P), 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if margin(-math.expm1(middle)) > value else (low, middle)
    return math.exp(high)


def _seed_part(grids: Sequence[Floats]) -> tuple[float, float]:
    """The variance of the mean from seeds, and the part of it that is interaction of seeds with problems."""
    seeds = grids[0].shape[0]
    if seeds < 2:
        return 0.0, 0.0
    macro = np.mean([grid.mean(axis=1) for grid in grids], axis=0)
    interaction = 0.0
    for grid in grids:
        rest = grid - grid.mean(axis=0) - grid.mean(axis=1, keepdims=True) + grid.mean()
        freedom = (seeds - 1) * (grid.shape[1] - 1)
        interaction += float((rest**2).sum()) / freedom / grid.size / len(grids) ** 2
    return float(macro.var(ddof=1)) / seeds, interaction


def _problem_part(grids: Sequence[Floats]) -> tuple[float, float]:
    """The variance of the mean from problems, with Welch's degrees of freedom."""
    means = [grid.mean(axis=0) for grid in grids]
    parts = [float(mean.var(ddof=1)) / len(mean) / len(grids) ** 2 for mean in means]
    spread = sum(part**2 / (len(mean) - 1) for part, mean in zip(parts, means, strict=True))
    return sum(parts), (sum(parts) ** 2 / spread if spread > 0 else 1.0)


def _whole(stratum: npt.ArrayLike) -> Floats:
    grid: Floats = np.atleast_2d(np.asarray(stratum, dtype=np.float64))
    return np.asarray(grid[:, ~np.isnan(grid).any(axis=0)])


def _paired(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Floats]:
    left, right = (np.atleast_2d(np.asarray(grid, dtype=np.float64)) for grid in (a, b))
    known = ~(np.isnan(left).any(axis=0) | np.isnan(right).any(axis=0))
    return left[:, known], right[:, known]
