"""Point estimates against exact arithmetic, the published estimator and a statistics package."""

import json
from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb, isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_eval.stats import clustered_se, maj_at_k, pass_at_k

CASES = json.loads((Path(__file__).parent.parent / "cases" / "statistics.json").read_text())


@pytest.mark.parametrize(
    ("n", "c", "k"),
    [
        (200, 50, 10), (200, 1, 100), (10_000, 3, 5_000), (10_000, 9_990, 5), (10_000, 100, 100), (10_000, 1, 1),
        (10_000, 5_000, 9_999), (10_000, 1, 10_000), (1, 1, 1), (1, 0, 1), (64, 64, 64),
    ],
)  # fmt: skip
def test_pass_at_k_is_exact(n: int, c: int, k: int) -> None:
    exact = float(1 - Fraction(comb(n - c, k), comb(n, k)))
    assert pass_at_k([n], [c], k)[0] == pytest.approx(exact, rel=1e-13)


@given(st.integers(1, 60), st.data())
def test_pass_at_k_agrees_with_the_published_product(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    published = 1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))
    assert pass_at_k([n], [c], k)[0] == pytest.approx(published, abs=1e-12)


def test_pass_at_k_is_undefined_where_n_is_too_small() -> None:
    values = pass_at_k([4, 8, 3, 0], [4, 1, 0, 0], 4)
    assert values[0] == 1.0
    assert values[1] == pytest.approx(0.5)
    assert isnan(values[2])
    assert isnan(values[3])


def test_pass_at_1_is_the_share_of_correct_samples() -> None:
    assert pass_at_k([8, 8], [3, 8], 1) == pytest.approx([3 / 8, 1.0])


@pytest.mark.parametrize(("n", "c", "k"), [([4], [5], 1), ([4], [-1], 1), ([4], [2], 0)])
def test_pass_at_k_refuses_impossible_counts(n: list[int], c: list[int], k: int) -> None:
    with pytest.raises(ValueError, match=r"needs 0 <= c|k must be"):
        pass_at_k(n, c, k)


@pytest.mark.parametrize("case", CASES["clustered_se"]["cases"])
def test_clustered_se_is_that_of_a_regression_with_clustered_errors(case: dict[str, object]) -> None:
    scores = np.array(case["correct"]) / np.array(case["n"])
    assert scores.mean() == pytest.approx(case["mean"], rel=1e-9)
    assert clustered_se(scores) == pytest.approx(case["se"], rel=1e-9)


def test_clustered_se_leaves_nan_out_and_needs_two_problems() -> None:
    assert clustered_se([0.0, np.nan, 1.0]) == clustered_se([0.0, 1.0]) == pytest.approx(0.5)
    assert isnan(clustered_se([0.5]))
    assert isnan(clustered_se([]))


def _majority_by_enumeration(counts: list[int], correct: list[bool], n: int, k: int) -> float:
    samples: list[int | None] = [number for number, count in enumerate(counts) for _ in range(count)]
    samples += [None] * (n - len(samples))
    total = subsets = 0.0
    for subset in combinations(samples, k):
        votes = Counter(answer for answer in subset if answer is not None)
        subsets += 1
        if votes:
            most = max(votes.values())
            winners = [answer for answer, count in votes.items() if count == most]
            total += sum(correct[answer] for answer in winners) / len(winners)
    return total / subsets


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=5), st.integers(0, 3), st.data())
def test_maj_at_k_is_the_mean_over_all_subsets(
    classes: list[tuple[int, bool]], silent: int, data: st.DataObject
) -> None:
    counts, correct = [count for count, _ in classes], [right for _, right in classes]
    n = sum(counts) + silent
    if n == 0 or n > 12:
        return
    k = data.draw(st.integers(1, n))
    assert maj_at_k(counts, correct, n, k) == pytest.approx(_majority_by_enumeration(counts, correct, n, k), abs=1e-12)


def test_maj_at_k_at_its_ends() -> None:
    assert maj_at_k([3, 5], [True, False], 10, 1) == pytest.approx(0.3)
    assert maj_at_k([5, 3], [True, False], 10, 10) == 1.0
    assert maj_at_k([4, 4], [True, False], 8, 8) == 0.5
    assert maj_at_k([], [], 8, 4) == 0.0
    assert isnan(maj_at_k([4], [True], 4, 8))


def test_maj_at_k_of_many_samples_agrees_with_drawing_subsets() -> None:
    counts, correct = [20, 18, 9, *[1] * 12], [False, True, False, *[False] * 12]
    generator = np.random.default_rng(0)
    answers = np.repeat(np.arange(len(counts)), counts)
    total = 0.0
    for _ in range(4000):
        subset = generator.choice(64, 16, replace=False)
        picked = np.bincount(answers[subset[subset < len(answers)]], minlength=len(counts))
        winners = np.flatnonzero(picked == picked.max())
        total += (1 in winners) / len(winners)
    assert maj_at_k(counts, correct, 64, 16) == pytest.approx(total / 4000, abs=0.025)
