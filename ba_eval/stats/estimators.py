"""Point estimates from counts of samples."""

from collections.abc import Sequence
from functools import lru_cache
from math import lgamma, log, log1p
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pass_at_k(n: npt.ArrayLike, c: npt.ArrayLike, k: int) -> Floats:
    """The unbiased chance that at least one of k samples is correct, for each problem.

    `n` samples of which `c` are correct, integer arrays of one shape (P,). Returns float64 (P,), NaN where n < k.
    1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374, eq. 1), summed in log space: full precision at
    any n, where the product of binomials would overflow.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    counts = np.stack([np.asarray(n, dtype=np.int64).ravel(), np.asarray(c, dtype=np.int64).ravel()], axis=1)
    if np.any((counts[:, 1] < 0) | (counts[:, 1] > counts[:, 0])):
        raise ValueError("needs 0 <= c <= n")
    distinct, where = np.unique(counts, axis=0, return_inverse=True)
    values = np.array([_pass_at_k(int(total), int(right), k) for total, right in distinct], dtype=np.float64)
    return values[where.ravel()].reshape(np.shape(n))


def _pass_at_k(n: int, c: int, k: int) -> float:
    if n < k:
        return float("nan")
    if n - c < k:
        return 1.0
    # C(n-c, k) / C(n, k) is symmetric in c and k: the shorter product is taken.
    few, many = min(c, k), max(c, k)
    return float(-np.expm1(np.log1p(-many / np.arange(n - few + 1, n + 1, dtype=np.float64)).sum()))


def clustered_se(values: npt.ArrayLike) -> float:
    """The standard error of the mean of one value per problem, (P,), NaN left out; NaN for fewer than two problems.

    With equally many samples per problem this is the cluster-robust error of the mean over all samples,
    sqrt(sum_i (sum_j e_ij)^2) / N, with the small-sample factor P / (P - 1) (Miller 2024, arXiv 2411.00640).
    """
    known: Floats = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if len(known) < 2:
        return float("nan")
    return float(known.std(ddof=1) / np.sqrt(len(known)))


def maj_at_k(counts: Sequence[int], correct: Sequence[bool], n: int, k: int) -> float:
    """The expected correctness of the most frequent answer among k of the n samples of one problem.

    `counts` holds how many samples gave each class of equal answers, `correct` which classes are right; the other
    n - sum(counts) samples gave no answer and no vote. Equally frequent answers share the vote (a fair draw between
    them); no answer at all is not correct. NaN where n < k or k < 1.

    Exact over all subsets of size k: with c_i ~ Binomial(m_i, k/n) given sum c_i = k, a class with w votes wins with
    E[1 / (1 + ties)], all others below or at w. 1 / (1 + t) is the integral of x^t over 0..1, which makes the joint
    generating function a product over classes; Gauss-Legendre quadrature is exact for polynomials.
    """
    if k < 1 or n < k:
        return float("nan")
    order = sorted(zip(counts, correct, strict=True))
    return _maj_at_k(tuple(m for m, _ in order), tuple(bool(right) for _, right in order), n, k)


@lru_cache(maxsize=100_000)
def _maj_at_k(counts: tuple[int, ...], correct: tuple[bool, ...], n: int, k: int) -> float:
    if k == n:
        most = max(counts, default=0)
        winners = [right for m, right in zip(counts, correct, strict=True) if m == most]
        return sum(winners) / len(winners) if winners else 0.0
    votes = [_binomial(m, k / n)[: k + 1] for m in counts]
    silent = _binomial(n - sum(counts), k / n)[: k + 1]
    total = 0.0
    for winner in (number for number, right in enumerate(correct) if right):
        others = [poll for number, poll in enumerate(votes) if number != winner]
        for w in range(1, min(counts[winner], k) + 1):
            most_ties = min(len(others), k // w - 1)
            nodes, weights = np.polynomial.legendre.leggauss(most_ties // 2 + 1)
            for x, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
                product: npt.NDArray[np.floating[Any]] = silent
                for poll in others:
                    below = poll[: w + 1].copy()
                    below[w:] *= x
                    product = np.convolve(product, below)[: k - w + 1]
                if len(product) > k - w:
                    total += weight * votes[winner][w] * product[k - w]
    return float(total / _binomial(n, k / n)[k])


@lru_cache(maxsize=1024)
def _binomial(n: int, p: float) -> Floats:
    """The probabilities of 0..n successes, 0 < p < 1."""
    logs = [lgamma(n + 1) - lgamma(a + 1) - lgamma(n - a + 1) + a * log(p) + (n - a) * log1p(-p) for a in range(n + 1)]
    probabilities: Floats = np.exp(np.array(logs, dtype=np.float64))
    return probabilities
