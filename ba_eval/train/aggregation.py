"""How the token terms of sampled responses become one loss: the aggregation rules, as one weight per response.

A prompt is sampled G times. Response i has n_i loss tokens, the advantage A_i and the clipped PPO terms l_it of its
tokens. Every rule here is linear in the terms: loss = sum_i w_i sum_t l_it, and w_i is known once the group is
sampled. For one group, with S(i) the responses whose advantage has the sign of A_i and T_X the tokens of X:

    token      w_i = 1 / T_group               DAPO's token mean
    sequence   w_i = 1 / (G n_i)               original GRPO
    balanced   w_i = (|S(i)| / G) / T_S(i)     Balanced Aggregation (arXiv 2605.04077)

The batch's loss is the mean over its groups. With `scope="batch"` the whole batch is taken as one group: `token` is
then the token mean of the batch, which is what TRL's `dapo` and verl's `token-mean` compute.

PPO's clipping is positively homogeneous in A, so a weight can be folded into the advantage instead of the loss.

Pure numpy. Arrays are one value per response, shape (N,), in the same order; `groups` holds any labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ba_eval.errors import InputError
from ba_eval.yaml_file import nearest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Scope = Literal["group", "batch"]
Rule = Callable[[Floats, Ints, Ints], Floats]
"""(lengths, signs in {-1, 0, 1}, groups 0..P-1) -> what a term of each response is divided by, within its group."""

ZERO = 5e-3
"""|A| up to this counts as no advantage. Rewards are normalised in float32 as (r - mean) / (std + 1e-4): the rounding
of the mean gives a group of equal rewards advantages up to 2.4e-3. The smallest real one of 1,000 binary rewards
is 0.03."""


def token(lengths: Floats, signs: Ints, groups: Ints) -> Floats:
    """Every token of the group weighs the same."""
    return _sum(lengths, groups)


def sequence(lengths: Floats, signs: Ints, groups: Ints) -> Floats:
    """Every response of the group weighs the same, and so do the tokens within it."""
    return _sum(np.ones_like(lengths), groups) * lengths


def balanced(lengths: Floats, signs: Ints, groups: Ints) -> Floats:
    """Every token of a sign weighs the same, and a sign weighs as many responses as it has.

    Responses without advantage are a subset of their own: they take weight from neither sign.
    """
    one, subset = np.ones_like(lengths), _subsets(signs, groups)
    return _sum(one, groups) * _sum(lengths, subset) / _sum(one, subset)


RULES: dict[str, Rule] = {"token": token, "sequence": sequence, "balanced": balanced}
"""A further rule is one more function in this table: the trainers, the diagnostics and the command line read it."""


def divisors(rule: str, lengths: ArrayLike, advantages: ArrayLike, groups: ArrayLike, scope: Scope = "group") -> Floats:
    """Returns 1 / w_i, shape (N,): what each token term of response i is divided by in the batch's loss.

    0 where a weight is undefined because every token it would weigh is masked. Dividing once, as total / divisor,
    keeps `token` at batch scope exactly 1 where `weights` * total would be off by a rounding.

    Raises `InputError` on an unknown rule or scope, `ValueError` on arrays that do not belong together.
    """
    n, signs, labels = _prepare(lengths, advantages, groups, scope)
    divide = RULES.get(rule)
    if divide is None:
        raise InputError(f"aggregation rule {rule!r} is unknown{nearest(rule, RULES)}")
    return divide(n, signs, labels) * float(labels.max() + 1)


def weights(rule: str, lengths: ArrayLike, advantages: ArrayLike, groups: ArrayLike, scope: Scope = "group") -> Floats:
    """Returns w_i, shape (N,): sum_i w_i sum_t l_it is the loss of the batch, the mean over groups included.

    sum_i w_i n_i = 1 as long as no response is masked whole. `lengths` counts loss tokens; a response without any
    (n_i = 0) has weight 0 where its own tokens are the divisor. Raises as `divisors` does.
    """
    return _divide(1.0, divisors(rule, lengths, advantages, groups, scope))


@dataclass(frozen=True)
class Decomposition:
    """Where the three rules part, exactly; both arrays have one value per group, shape (P,); a batch's is the mean.

    With q_s = |S_s| / G, nbar_s the mean length of a sign, mu_i a response's token mean and m_s a sign's:
    """

    length_variation: Floats
    """balanced - sequence = sum_s q_s Cov_s(n_i, mu_i) / nbar_s: lengths differ inside a sign."""
    length_gap: Floats
    """token - balanced = sum over pairs q_s q_u (nbar_s - nbar_u) / nbar (m_s - m_u): lengths differ between signs.

    Of two signs that is p (1 - p) (nbar+ - nbar-) / nbar (m+ - m-)."""


def decompose(
    lengths: ArrayLike, means: ArrayLike, advantages: ArrayLike, groups: ArrayLike, scope: Scope = "group"
) -> Decomposition:
    """Splits the differences of the three losses into their two causes.

    `means`: mean of l_it over the loss tokens of each response, shape (N,); ignored where there are none.
    While sampling, where every ratio is 1, l_it is A_i.
    """
    n, signs, labels = _prepare(lengths, advantages, groups, scope)
    mu = np.where(n > 0, np.asarray(means, dtype=np.float64), 0.0)
    count = int(labels.max()) + 1
    subset = _subsets(signs, labels)

    def per_subset(values: Floats) -> Floats:
        return np.bincount(subset, values, minlength=3 * count).astype(np.float64).reshape(count, 3)

    members = per_subset(np.ones_like(n))
    share = members / members.sum(axis=1, keepdims=True)
    length = _divide(per_subset(n), members)  # nbar_s
    mean = _divide(per_subset(n * mu), per_subset(n))  # m_s
    centred_n = n - length.ravel()[subset]
    centred_mu = mu - _divide(per_subset(mu), members).ravel()[subset]
    covariance = _divide(per_subset(centred_n * centred_mu), members)
    gap = np.zeros(count)
    for s, u in ((2, 0), (2, 1), (1, 0)):  # +-, +0, 0-
        gap += share[:, s] * share[:, u] * (length[:, s] - length[:, u]) * (mean[:, s] - mean[:, u])
    return Decomposition(
        length_variation=(share * _divide(covariance, length)).sum(axis=1),
        length_gap=_divide(gap, (share * length).sum(axis=1)),
    )


def group_rows(
    lengths: ArrayLike,
    advantages: ArrayLike,
    groups: ArrayLike,
    rewards: ArrayLike | None = None,
    truncated: ArrayLike | None = None,
) -> dict[str, NDArray[Any]]:
    """Returns one row per group as columns of shape (P,): counts and lengths by sign, and the two terms at ratio 1.

    NaN where a column is undefined: the mean length of a sign that the group does not have.
    """
    n, signs, labels = _prepare(lengths, advantages, groups, "group")
    count = int(labels.max()) + 1
    a = np.asarray(advantages, dtype=np.float64)

    def mean(values: Floats, where: NDArray[np.bool_] | None = None) -> Floats:
        chosen = np.ones_like(n) if where is None else where.astype(np.float64)
        total = np.bincount(labels, chosen, minlength=count)
        return _divide(np.bincount(labels, values * chosen, minlength=count), total, np.nan)

    length = mean(n)
    terms = decompose(n, a, a, labels)
    rows: dict[str, NDArray[Any]] = {
        "responses": np.bincount(labels, minlength=count),
        "positive": np.bincount(labels, signs > 0, minlength=count).astype(np.int64),
        "negative": np.bincount(labels, signs < 0, minlength=count).astype(np.int64),
        "tokens": np.bincount(labels, n, minlength=count).astype(np.int64),
        "length_mean": length,
        "length_std": np.sqrt(mean((n - length[labels]) ** 2)),
        "length_positive": mean(n, signs > 0),
        "length_negative": mean(n, signs < 0),
        "length_variation": terms.length_variation,
        "length_gap": terms.length_gap,
    }
    if rewards is not None:
        rows["reward_mean"] = mean(np.asarray(rewards, dtype=np.float64))
    if truncated is not None:
        rows["truncated"] = mean(np.asarray(truncated, dtype=np.float64))
    return rows


def diagnostics(
    lengths: ArrayLike,
    advantages: ArrayLike,
    groups: ArrayLike,
    scope: Scope = "group",
    *,
    correct: ArrayLike | None = None,
    truncated: ArrayLike | None = None,
) -> dict[str, float]:
    """Returns what a study of the rule needs from one sampled batch, under every rule on the same batch.

    Lengths are in tokens, standard deviations those of the population. `push` is sum w n A, what a sign adds to the
    loss at ratio 1. `effective_samples` is (sum w n)^2 / sum (w n)^2. The two terms are those of `decompose` at
    ratio 1, where the first needs advantages that differ within a sign; `length/cv_within_sign` is its driver
    whatever they are. `moved` is the share of the loss' weight that two rules put on different responses, the total
    variation distance of w n: it is there even where both terms are 0. `correct` and `truncated` are booleans of shape
    (N,). NaN where a value is undefined.
    """
    n, signs, _ = _prepare(lengths, advantages, groups, scope)
    a = np.asarray(advantages, dtype=np.float64)
    within = _prepare(lengths, advantages, groups, "group")[2]
    terms = decompose(n, a, a, groups, scope)
    positive, negative = signs > 0, signs < 0
    long, short = _mean(n[positive]), _mean(n[negative])
    zero_groups = np.bincount(within, signs != 0) == 0
    found = {
        "length/mean": _mean(n),
        "length/std": float(n.std()),
        "length/cv": float(_divide(n.std(), n.mean(), np.nan)),
        "length/cv_within_group": _mean(_variation(n, within)),
        "length/cv_within_sign": _mean(_variation(n, _subsets(signs, within))),
        "length/positive": long,
        "length/negative": short,
        "length/gap": long - short,
        "length/gap_relative": float(_divide(long - short, n.mean(), np.nan)),
        "groups/zero_advantage": _mean(zero_groups),
        "decomposition/length_variation": _mean(terms.length_variation),
        "decomposition/length_gap": _mean(terms.length_gap),
    }
    if correct is not None:
        right = np.bincount(within, np.asarray(correct, dtype=np.float64)) / np.bincount(within)
        found |= {"groups/all_right": _mean(right == 1), "groups/all_wrong": _mean(right == 0)}
    if truncated is not None:
        cut = np.asarray(truncated, dtype=np.float64)
        found |= {
            "truncated/all": _mean(cut),
            "truncated/positive": _mean(cut[positive]),
            "truncated/negative": _mean(cut[negative]),
        }
    masses = {rule: weights(rule, n, a, groups, scope) * n for rule in RULES}
    for one, other in (("balanced", "sequence"), ("token", "balanced")):
        found[f"moved/{one}_{other}"] = float(np.abs(masses[one] - masses[other]).sum() / 2)
    for rule, mass in masses.items():
        push = mass * a
        found |= {
            f"{rule}/weight_positive": float(mass[positive].sum()),
            f"{rule}/weight_negative": float(mass[negative].sum()),
            f"{rule}/push_positive": float(push[positive].sum()),
            f"{rule}/push_negative": float(push[negative].sum()),
            f"{rule}/push_net": float(push.sum()),
            f"{rule}/effective_samples": float(_divide(mass.sum() ** 2, (mass**2).sum(), np.nan)),
        }
    return found


def _prepare(lengths: ArrayLike, advantages: ArrayLike, groups: ArrayLike, scope: Scope) -> tuple[Floats, Ints, Ints]:
    """Returns lengths, signs and group numbers 0..P-1, checked."""
    n, a = np.asarray(lengths, dtype=np.float64), np.asarray(advantages, dtype=np.float64)
    labels = np.asarray(groups)
    if n.ndim != 1 or n.shape != a.shape or n.shape != labels.shape or not n.size:
        raise ValueError(f"one value per response is needed, got shapes {n.shape}, {a.shape} and {labels.shape}")
    if not np.isfinite(a).all() or not (np.isfinite(n) & (n >= 0)).all():
        raise ValueError("lengths must be finite and not negative, and advantages finite")
    if scope not in ("group", "batch"):
        raise InputError(f"aggregation scope {scope!r} is unknown: use group or batch")
    signs = np.where(np.abs(a) <= ZERO, 0, np.sign(a)).astype(np.int64)
    if scope == "batch":
        return n, signs, np.zeros(n.size, dtype=np.int64)
    return n, signs, np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _subsets(signs: Ints, groups: Ints) -> Ints:
    """Returns a number per (group, sign), shape (N,)."""
    return 3 * groups + signs + 1


def _sum(values: Floats, labels: Ints) -> Floats:
    """Returns for every response the sum over all that share its label, shape (N,)."""
    total: Floats = np.bincount(labels, values).astype(np.float64)[labels]
    return total


def _divide(top: ArrayLike, bottom: ArrayLike, undefined: float = 0.0) -> Floats:
    """Divides, with `undefined` where the divisor is 0."""
    top, bottom = np.broadcast_arrays(np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64))
    quotient: Floats = np.divide(top, bottom, out=np.full(top.shape, undefined), where=bottom != 0)
    return quotient


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _variation(values: Floats, labels: Ints) -> Floats:
    """Returns std / mean of the values of each label that occurs (and has a mean that is not 0)."""
    at = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(at)
    mean = np.bincount(at, values) / size
    variance = np.bincount(at, (values - mean[at]) ** 2) / size
    return np.sqrt(variance[mean > 0]) / mean[mean > 0]
