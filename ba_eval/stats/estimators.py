"""Point estimates from counts of samples."""

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
