"""The rules against plain loops over the formulas of the paper, and the decomposition against the losses themselves."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_eval.errors import InputError
from ba_eval.train import aggregation
from ba_eval.train.aggregation import RULES, decompose, diagnostics, divisors, group_rows, weights

Batch = tuple[list[int], list[float], list[list[float]], list[int]]


def plain_group_loss(rule: str, terms: list[list[float]], advantages: list[float]) -> float:
    """The loss of one group, written as the formula is written."""
    size = len(terms)
    if rule == "sequence":
        return math.fsum(math.fsum(t) / len(t) for t in terms if t) / size
    if rule == "token":
        tokens = sum(len(t) for t in terms)
        return math.fsum(x for t in terms for x in t) / tokens if tokens else 0.0
    loss = []
    subsets = (
        [t for t, a in zip(terms, advantages, strict=True) if a > aggregation.ZERO],
        [t for t, a in zip(terms, advantages, strict=True) if a < -aggregation.ZERO],
        [t for t, a in zip(terms, advantages, strict=True) if abs(a) <= aggregation.ZERO],
    )
    for subset in subsets:
        tokens = sum(len(t) for t in subset)
        if tokens:
            loss.append(len(subset) / size * math.fsum(x for t in subset for x in t) / tokens)
    return math.fsum(loss)


def plain_loss(rule: str, batch: Batch, scope: str) -> float:
    _, advantages, terms, groups = batch
    if scope == "batch":
        return plain_group_loss(rule, terms, advantages)
    losses = []
    for group in sorted(set(groups)):
        chosen = [i for i, g in enumerate(groups) if g == group]
        losses.append(plain_group_loss(rule, [terms[i] for i in chosen], [advantages[i] for i in chosen]))
    return math.fsum(losses) / len(losses)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Groups of 1 to 6 in any order, with one-token and masked responses, zero advantages, all-right groups."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    groups = draw(st.permutations([g for g, size in enumerate(sizes) for _ in range(size)]))
    flat = {g for g in set(groups) if draw(st.booleans()) and draw(st.booleans())}
    lengths = [draw(st.one_of(st.just(1), st.just(0), st.integers(1, 12))) for _ in groups]
    advantage = st.one_of(st.just(0.0), st.floats(0.01, 3), st.floats(-3, -0.01), st.sampled_from([1.0, -1.0]))
    advantages = [0.0 if g in flat else draw(advantage) for g in groups]
    terms = [[draw(st.floats(-4, 4)) for _ in range(n)] for n in lengths]
    return lengths, advantages, terms, list(groups)


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-12 * max(1.0, abs(a), abs(b))


@settings(max_examples=150, deadline=None)
@given(batches(), st.sampled_from(list(RULES)), st.sampled_from(["group", "batch"]))
def test_weights_give_the_loss_of_the_formula(batch: Batch, rule: str, scope: Any) -> None:
    lengths, advantages, terms, groups = batch
    w = weights(rule, lengths, advantages, groups, scope)
    assert w.shape == (len(lengths),) and (w >= 0).all() and np.isfinite(w).all()
    assert close(math.fsum(w[i] * x for i, t in enumerate(terms) for x in t), plain_loss(rule, batch, scope))
    if min(lengths) > 0:
        assert close(float(w @ np.array(lengths)), 1.0)


@settings(max_examples=150, deadline=None)
@given(batches(), st.sampled_from(["group", "batch"]))
def test_decomposition_is_exact(batch: Batch, scope: Any) -> None:
    lengths, advantages, terms, groups = batch
    means = [math.fsum(t) / len(t) if t else math.nan for t in terms]
    found = decompose(lengths, means, advantages, groups, scope)
    loss = {rule: plain_loss(rule, batch, scope) for rule in RULES}
    assert found.length_gap.shape == (len(set(groups)) if scope == "group" else 1,)
    assert close(float(found.length_variation.mean()), loss["balanced"] - loss["sequence"])
    assert close(float(found.length_gap.mean()), loss["token"] - loss["balanced"])


@settings(max_examples=50, deadline=None)
@given(batches(), st.randoms(use_true_random=False))
def test_order_and_labels_do_not_matter(batch: Batch, random: Any) -> None:
    lengths, advantages, _, groups = batch
    order = list(range(len(lengths)))
    random.shuffle(order)
    for rule in RULES:
        w = weights(rule, lengths, advantages, groups)
        shuffled = weights(
            rule, [lengths[i] for i in order], [advantages[i] for i in order], [f"g{groups[i]}" for i in order]
        )
        assert np.allclose(w[order], shuffled, rtol=1e-14, atol=0)


def test_two_signs_by_hand() -> None:
    """G = 4: one right response of 10 tokens, wrong ones of 20, 30 and 40."""
    lengths, advantages, groups = [10, 20, 30, 40], [1.5, -0.5, -0.5, -0.5], [0, 0, 0, 0]
    assert weights("token", lengths, advantages, groups) == pytest.approx([0.01] * 4, rel=1e-15)
    assert weights("sequence", lengths, advantages, groups) == pytest.approx([1 / 40, 1 / 80, 1 / 120, 1 / 160])
    assert weights("balanced", lengths, advantages, groups) == pytest.approx([1 / 40, 1 / 120, 1 / 120, 1 / 120])
    terms = decompose(lengths, advantages, advantages, groups)
    # p (1 - p) (nbar+ - nbar-) / nbar (m+ - m-)
    assert terms.length_gap == pytest.approx([0.25 * 0.75 * (10 - 30) / 25 * 2.0])
    assert terms.length_variation == pytest.approx([0.0])


def test_token_at_batch_scope_leaves_an_advantage_as_it_is() -> None:
    """total / divisor must be 1 to the last bit for every total: 49 * (1 / 49) is not."""
    for total in range(1, 2000):
        assert total / divisors("token", [total], [1.0], [0], "batch")[0] == 1.0


@pytest.mark.parametrize("size", [3, 7])
def test_float_noise_is_no_advantage(size: int) -> None:
    """Groups of equal rewards normalised in float32 as the trainers do it: no sign may hold weight."""
    rewards = np.random.default_rng(0).uniform(0, 2, (500, 1)).astype(np.float32).repeat(size, axis=1)
    centred = rewards - (rewards.sum(1, keepdims=True) / np.float32(size)).astype(np.float32)
    noise = (centred / (np.sqrt((centred**2).sum(1, keepdims=True) / (size - 1)) + np.float32(1e-4))).ravel()
    assert 0 < np.abs(noise).max() < aggregation.ZERO
    found = diagnostics(np.full(noise.size, 5), noise, np.arange(noise.size) // size)
    assert found["balanced/weight_positive"] == found["balanced/weight_negative"] == 0.0
    assert found["groups/zero_advantage"] == 1.0


def test_zero_advantages_count_in_the_mean_over_groups() -> None:
    w = weights("balanced", [5, 5, 5, 5], [1, -1, 0, 0], [0, 0, 1, 1])
    assert w == pytest.approx([0.05] * 4)


def test_diagnostics_by_hand() -> None:
    lengths, advantages, groups = [10, 20, 30, 40, 7, 7], [1.5, -0.5, -0.5, -0.5, 0, 0], [0, 0, 0, 0, 1, 1]
    found = diagnostics(
        lengths, advantages, groups, correct=[1, 0, 0, 0, 1, 1], truncated=[False, False, False, True, False, False]
    )
    assert found["length/mean"] == 19 and found["length/positive"] == 10 and found["length/negative"] == 30
    assert found["length/gap"] == -20
    assert found["length/cv_within_group"] == pytest.approx((math.sqrt(125) / 25 + 0) / 2)
    assert found["length/cv_within_sign"] == pytest.approx((0 + math.sqrt(200 / 3) / 30 + 0) / 3)
    assert found["groups/zero_advantage"] == 0.5
    assert (found["groups/all_right"], found["groups/all_wrong"]) == (0.5, 0.0)
    assert found["truncated/negative"] == pytest.approx(1 / 3) and found["truncated/positive"] == 0
    assert found["token/weight_positive"] == pytest.approx(0.05) and found["balanced/weight_positive"] == 0.125
    assert found["sequence/push_net"] == pytest.approx(0) and found["balanced/push_net"] == pytest.approx(0)
    assert found["moved/balanced_sequence"] == pytest.approx(1 / 24) and found["moved/token_balanced"] == pytest.approx(
        0.075
    )
    assert found["token/push_net"] == pytest.approx((0.1 * 1.5 - 0.9 * 0.5) / 2)
    assert found["decomposition/length_gap"] == pytest.approx(found["token/push_net"] - found["balanced/push_net"])
    # equal shares of weight: as many effective samples as responses of the group of four, were it alone
    assert diagnostics(lengths[:4], advantages[:4], groups[:4])["sequence/effective_samples"] == pytest.approx(4)


def test_undefined_is_nan_not_zero() -> None:
    found = diagnostics([3, 4], [0, 0], [0, 0], truncated=[0, 1])
    assert math.isnan(found["length/positive"]) and math.isnan(found["length/gap"])
    assert math.isnan(found["truncated/negative"])
    found = diagnostics([0, 0], [1, -1], [0, 0])
    assert math.isnan(found["token/effective_samples"]) and math.isnan(found["length/cv_within_group"])


def test_group_rows() -> None:
    rows = group_rows([10, 20, 7, 7], [1, -1, 0, 0], ["a", "a", "b", "b"], rewards=[1, 0, 1, 1], truncated=[0, 1, 0, 0])
    assert rows["positive"].tolist() == [1, 0] and rows["negative"].tolist() == [1, 0]
    assert rows["tokens"].tolist() == [30, 14] and rows["reward_mean"].tolist() == [0.5, 1.0]
    assert rows["length_positive"][0] == 10 and math.isnan(rows["length_positive"][1])
    assert rows["length_gap"].tolist() == pytest.approx([0.25 * (-10 / 15) * 2, 0.0])


def test_a_rule_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over tokens with a constant divisor (Dr. GRPO's) needs nothing but its function."""
    monkeypatch.setitem(RULES, "constant", lambda lengths, signs, groups: np.full_like(lengths, 100.0))
    assert weights("constant", [1, 2], [1, -1], [0, 0]).tolist() == [0.01, 0.01]
    assert "constant/push_net" in diagnostics([1, 2], [1, -1], [0, 0])


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="did you mean 'balanced'"):
        weights("balance", [1], [0], [0])
    with pytest.raises(InputError, match="group or batch"):
        weights("token", [1], [0], [0], "global")  # type: ignore[arg-type]
    for lengths, advantages in (([1, 2], [0]), ([], []), ([-1], [0]), ([1], [math.nan])):
        with pytest.raises(ValueError):
            weights("token", lengths, advantages, [0] * len(lengths))
