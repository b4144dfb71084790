"""Whether two models differ on the same problems, and what it would take to tell.

Everything works on one paired difference per problem, (P,) for each benchmark.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ba_eval.stats.estimators import Floats
from ba_eval.stats.intervals import CONFIDENCE, t_quantile

POWER = 0.8
FLIPS = 20_000
# Up to this many differing problems every pattern of signs is counted: 16,384 of them.
_EXACT = 14
_CHUNK = 200


def sign_flip_p(strata: Sequence[npt.ArrayLike], *, flips: int = FLIPS, seed: int = 0) -> float:
    """The two-sided p-value of "no difference", by flipping the sign of each problem's difference.

    Under the null hypothesis the two models are exchangeable on each problem. The statistic is the mean over strata
    (P_b,) of the mean difference. Exact by enumeration where few problems differ; otherwise `flips` random patterns,
    p = (1 + as extreme) / (1 + flips) (Phipson & Smyth 2010). Where none of them is as extreme, the true p may be far
    smaller, and a large table's correction would hide any difference: then the bound on such sums,
    2 exp(-s^2 / (2 sum of squares)) (Hoeffding 1963), is taken where it is lower. NaN where a stratum is empty.
    """
    known = [_known(stratum) for stratum in strata]
    if not known or any(len(values) == 0 for values in known):
        return math.nan
    terms = np.concatenate([values / (len(values) * len(known)) for values in known])
    terms = terms[terms != 0]
    if len(terms) == 0:
        return 1.0
    observed = abs(terms.sum()) * (1 - 1e-9)  # sums in another order differ in the last digits
    if len(terms) <= _EXACT:
        patterns = (np.arange(2 ** len(terms))[:, None] >> np.arange(len(terms))) & 1
        return float(np.mean(np.abs((2 * patterns - 1) @ terms) >= observed))
    generator = np.random.default_rng([seed, len(terms)])
    extreme = 0
    for start in range(0, flips, _CHUNK):
        rows = min(_CHUNK, flips - start)
        bits = np.unpackbits(
            np.frombuffer(generator.bytes(rows * (-(-len(terms) // 8))), dtype=np.uint8).reshape(rows, -1), axis=1
        )
        sums = 2 * (bits[:, : len(terms)].astype(np.float64) @ terms) - terms.sum()
        extreme += int(np.count_nonzero(np.abs(sums) >= observed))
    p = (1 + extreme) / (1 + flips)
    return min(p, 2 * math.exp(-(observed**2) / (2 * float(terms @ terms)))) if extreme == 0 else p


def holm(p: npt.ArrayLike) -> Floats:
    """p-values adjusted for their number (Holm 1979), float64 of the same length; NaN stays and does not count."""
    values: Floats = np.asarray(p, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    order = np.argsort(values)
    order = order[~np.isnan(values[order])]
    steps = values[order] * (len(order) - np.arange(len(order)))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


@dataclass(frozen=True)
class Reach:
    """What a comparison of this size can tell. Factors are NaN where unknown, inf where no number would do."""

    detectable: float
    """The smallest true difference that is found with `POWER`."""
    problems_factor: float
    """How many times as many problems of this kind would find the observed difference with `POWER`."""
    samples_factor: float
    """How many times as many samples per problem would, on the same number of problems."""


def reach(
    differences: Sequence[npt.ArrayLike],
    noise: Sequence[npt.ArrayLike],
    *,
    level: float = 1 - CONFIDENCE,
) -> Reach:
    """What a comparison can tell, for a two-sided test at `level`.

    `differences` holds a benchmark's differences (P_b,); `noise` how much of the variance of each is due to sampling,
    p_a (1 - p_a) / (n_a - 1) + p_b (1 - p_b) / (n_b - 1), (P_b,), NaN where n is 1. Sampling noise falls with n, the
    rest of the variance (problems on which the models truly differ) only with the number of problems.
    """
    known = [_known(values) for values in differences]
    if not known or any(len(values) < 2 for values in known):
        return Reach(math.nan, math.nan, math.nan)
    share = 1 / len(known)
    parts = np.array([share**2 * values.var(ddof=1) / len(values) for values in known])
    variance = float(parts.sum())
    if variance == 0:
        return Reach(math.nan, math.nan, math.nan)
    freedom = variance**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, known, strict=True))
    needed = t_quantile(1 - level / 2, freedom) + t_quantile(POWER, freedom)
    value = abs(float(np.mean([values.mean() for values in known])))
    if value == 0:
        return Reach(needed * math.sqrt(variance), math.inf, math.inf)
    target = (value / needed) ** 2
    sampling = sum(share**2 * float(np.mean(_known(part))) / len(values) if len(_known(part)) else math.nan
                   for part, values in zip(noise, known, strict=True))  # fmt: skip
    between = max(variance - min(sampling, variance), 0.0)
    if math.isnan(sampling):
        samples = math.nan
    else:
        samples = min(sampling, variance) / (target - between) if target > between else math.inf
    return Reach(needed * math.sqrt(variance), variance / target, samples)


def _known(values: npt.ArrayLike) -> Floats:
    array: Floats = np.asarray(values, dtype=np.float64)
    known: Floats = array[~np.isnan(array)]
    return known
