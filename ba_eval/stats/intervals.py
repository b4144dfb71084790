"""Confidence intervals of means over problems, and of means of such means (suites), by cluster bootstrap.

The bootstrap resamples problems, within each benchmark for itself. Interval ends are bias-corrected and accelerated
(BCa; Efron 1987) with two corrections for few problems, without which 30 problems give 87-94 % where 95 % is said:
deviations are scaled by sqrt(P / (P - 1)) and normal quantiles are replaced by Student's (Hesterberg 2015,
arXiv 1411.5279). Where almost no problem differs from 0 (or from 1) there is nothing to resample: the Wilson interval
with problems as single draws takes its place, so that "0 of 30 solved" does not claim to be exactly 0.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from ba_eval.stats.estimators import Floats, clustered_se

CONFIDENCE = 0.95
DRAWS = 10_000
# With fewer problems than this off 0 (or off 1) the bootstrap is not to be trusted; found by simulation.
SPARSE = 4
# Resamples at a time: few enough to stay in the processor's cache.
_CHUNK = 100
# Up to this many problems, resamples are kept for the next model: 20 MB each.
_KEEP = 2000


@dataclass(frozen=True)
class Estimate:
    """A number with its confidence interval and analytic standard error; NaN what is undefined."""

    value: float
    low: float = math.nan
    high: float = math.nan
    se: float = math.nan

    @property
    def defined(self) -> bool:
        """Whether there is a number at all."""
        return not math.isnan(self.value)


UNDEFINED = Estimate(math.nan)


def mean_interval(
    strata: Sequence[npt.ArrayLike],
    *,
    limits: tuple[float, float] | None = (0.0, 1.0),
    confidence: float = CONFIDENCE,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """The mean over strata of their means, with its interval.

    `strata` holds one array (P_b,) of per-problem values for each benchmark; NaN is left out. A single benchmark is
    one stratum. `limits` are the bounds of a value ((-1, 1) for differences of scores), None where there are none.
    The value is NaN where a stratum is empty, the interval NaN where one has fewer than two problems.
    """
    samples = [values[~np.isnan(values)] for values in (np.asarray(stratum, dtype=np.float64) for stratum in strata)]
    if not samples or any(len(values) == 0 for values in samples):
        return UNDEFINED
    samples.sort(key=lambda values: (len(values), values.tobytes()))  # their order changes no digit
    value = float(np.mean([values.mean() for values in samples]))
    if any(len(values) < 2 for values in samples):
        return Estimate(value)
    errors = np.array([clustered_se(values) for values in samples]) / len(samples)
    se = float(np.sqrt((errors**2).sum()))

    sparse = [limits is not None and _is_sparse(values) for values in samples]
    dense = [(stream, values) for stream, values in enumerate(samples) if not sparse[stream]]
    low = high = 0.0
    if dense:
        low, high = _bca_deviations(dense, len(samples), confidence, draws, seed)
    # Independent parts are put together by their squared margins (method of variance estimates recovery).
    below, above = low**2, high**2
    for values in (values for values, is_sparse in zip(samples, sparse, strict=True) if is_sparse):
        margins = _sparse_margins(values, confidence, signed=limits is not None and limits[0] < 0)
        below += (margins[0] / len(samples)) ** 2
        above += (margins[1] / len(samples)) ** 2
    low, high = value - math.sqrt(below), value + math.sqrt(above)
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    return Estimate(value, low, high, se)


def _bca_deviations(
    strata: Sequence[tuple[int, Floats]], total: int, confidence: float, draws: int, seed: int
) -> tuple[float, float]:
    """How far the interval of the sum of means / total lies below and above its value."""
    deviations = np.zeros(draws)
    influence = []
    for stream, values in strata:
        centred = values - values.mean()
        deviations += resampled_means(centred, draws, seed, stream) * (_few(len(values)) / total)
        influence.append(centred / (len(values) * total))
    variances = np.array([(part**2).sum() * _few(len(part)) ** 2 for part in influence])
    if not variances.sum() > 0:
        return 0.0, 0.0
    freedom = variances.sum() ** 2 / sum(v**2 / (len(i) - 1) for v, i in zip(variances, influence, strict=True))
    everything = np.concatenate(influence)
    acceleration = float((everything**3).sum() / (6 * (everything**2).sum() ** 1.5))

    tie = 1e-12 * max(1.0, float(np.abs(deviations).max()))
    below = np.mean(deviations < -tie) + 0.5 * np.mean(np.abs(deviations) <= tie)
    normal = NormalDist()
    bias = normal.inv_cdf(float(np.clip(below, 1 / draws, 1 - 1 / draws)))
    t = t_quantile(0.5 + confidence / 2, freedom)
    levels = []
    for z in (-t, t):
        shrink = 1 - acceleration * (bias + z)
        levels.append(normal.cdf(bias + (bias + z) / shrink) if shrink > 0 else float(z > 0))
    low, high = np.quantile(deviations, levels)
    return min(float(low), 0.0), max(float(high), 0.0)


def resampled_means(values: Floats, draws: int, seed: int, stream: int = 0) -> Floats:
    """Means of `draws` resamples of `values` (P,) or (P, M), float64 (draws,) or (draws, M).

    The resamples depend on P, draws, seed and stream alone: two models on the same problems get the same ones.
    """
    size = len(values)
    chunks = _kept_chunks(size, draws, seed, stream) if size <= _KEEP else _chunks(size, draws, seed, stream)
    return np.concatenate([counts.astype(np.float64) @ values for counts in chunks]) / size


def _chunks(size: int, draws: int, seed: int, stream: int) -> Iterator[npt.NDArray[np.uint8]]:
    """How often each of `size` problems is drawn in each resample, (rows, size) at a time. No count nears 255."""
    generator = np.random.default_rng([seed, stream, size])
    for start in range(0, draws, _CHUNK):
        rows = min(_CHUNK, draws - start)
        picks = generator.integers(0, size, (rows, size)) + np.arange(rows)[:, None] * size
        yield np.bincount(picks.ravel(), minlength=rows * size).reshape(rows, size).astype(np.uint8)


@lru_cache(maxsize=16)
def _kept_chunks(size: int, draws: int, seed: int, stream: int) -> tuple[npt.NDArray[np.uint8], ...]:
    return tuple(_chunks(size, draws, seed, stream))


def _few(size: int) -> float:
    return math.sqrt(size / (size - 1))


def _is_sparse(values: Floats) -> bool:
    """Whether too few problems differ from a common bound, or none from each other."""
    off = min(np.count_nonzero(values != bound) for bound in (0.0, 1.0, -1.0))
    return bool(off < SPARSE or np.ptp(values) == 0)


def _sparse_margins(values: Floats, confidence: float, signed: bool) -> tuple[float, float]:
    """Margins below and above the mean, from Wilson intervals of its positive and negative part."""
    up, down = (_wilson(float(part.mean()), len(values), confidence) for part in (values.clip(0), (-values).clip(0)))
    if not signed:
        return up
    return math.hypot(up[0], down[1]), math.hypot(up[1], down[0])


def _wilson(share: float, size: int, confidence: float) -> tuple[float, float]:
    """Margins of the score interval (Wilson 1927) of a share of `size` draws, with Student's quantile."""
    t2 = t_quantile(0.5 + confidence / 2, size - 1) ** 2
    centre = (share + t2 / (2 * size)) / (1 + t2 / size)
    half = math.sqrt(t2 * (share * (1 - share) / size + t2 / (4 * size**2))) / (1 + t2 / size)
    return max(share - (centre - half), 0.0), max(centre + half - share, 0.0)


@lru_cache(maxsize=4096)
def t_quantile(level: float, freedom: float) -> float:
    """The quantile of Student's t with `freedom` >= 1 degrees, to about 1e-7 at usual levels, by Newton steps."""
    if level < 0.5:
        return -t_quantile(1 - level, freedom)
    normal = NormalDist().inv_cdf(level)
    if freedom > 1e6:
        return normal
    # t = sqrt(freedom) tan(angle) makes the density a power of a cosine on a finite range. It falls there, and the
    # normal quantile lies below the root, so that the steps never pass it.
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    nodes, weights = _legendre()
    angle = math.atan(normal / math.sqrt(freedom))
    for _ in range(100):
        integral = angle / 2 * float(weights @ np.cos((nodes + 1) * angle / 2) ** (freedom - 1))
        step = ((level - 0.5) / scale - integral) / math.cos(angle) ** (freedom - 1)
        angle += step
        if abs(step) < 1e-13 * angle or angle == 0:
            break
    return math.sqrt(freedom) * math.tan(angle)


@lru_cache(maxsize=1)
def _legendre() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return nodes, weights
