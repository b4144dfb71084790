"""Tests of differences against a statistics package, enumeration and simulation."""

import json
from itertools import product
from math import inf, isnan, nan
from pathlib import Path

import numpy as np
import pytest

from ba_eval.stats import holm, reach, sign_flip_p

CASES = json.loads((Path(__file__).parent.parent / "cases" / "statistics.json").read_text())


@pytest.mark.parametrize("case", CASES["sign_flip"]["cases"])
def test_sign_flip_p_is_that_of_exact_permutation(case: dict[str, object]) -> None:
    differences = np.array(case["differences"])
    exact = np.count_nonzero(differences) <= 14
    assert sign_flip_p([differences]) == pytest.approx(case["p"], abs=1e-12 if exact else 0.01)


def test_many_differences_are_drawn_and_agree_with_enumeration() -> None:
    differences = np.random.default_rng(4).normal(0.3, 1, 16)
    sums = np.array([np.dot(signs, differences) for signs in product((-1, 1), repeat=16)])
    exact = np.mean(np.abs(sums) >= abs(differences.sum()) - 1e-12)
    assert sign_flip_p([differences]) == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))


def test_a_suite_is_flipped_as_a_whole() -> None:
    a, b = np.array([0.5, 0.25, -0.25]), np.array([1.0, 0.5])
    observed = abs((a.mean() + b.mean()) / 2)
    flips = [(np.dot(s[:3], a) / 3 + np.dot(s[3:], b) / 2) / 2 for s in product((-1, 1), repeat=5)]
    assert sign_flip_p([a, b]) == pytest.approx(np.mean(np.abs(flips) >= observed - 1e-12))


def test_p_values_at_their_ends() -> None:
    assert sign_flip_p([np.zeros(50)]) == 1.0
    assert sign_flip_p([np.ones(500)]) == pytest.approx(2 * np.exp(-250))
    assert isnan(sign_flip_p([[]]))
    assert isnan(sign_flip_p([]))
    assert sign_flip_p([[nan, 1.0, 1.0]]) == 0.5


@pytest.mark.parametrize("case", CASES["holm"]["cases"])
def test_holm(case: dict[str, list[float]]) -> None:
    assert holm(case["p"]) == pytest.approx(case["adjusted"])


def test_holm_does_not_count_what_was_not_tested() -> None:
    assert holm([0.01, nan, 0.04]) == pytest.approx([0.02, nan, 0.04], nan_ok=True)
    assert len(holm([])) == 0


def _pair(generator: np.random.Generator, problems: int, n: int, effect: float) -> tuple[np.ndarray, np.ndarray]:
    """Differences and sampling noise of two models whose chances differ by `effect` on average."""
    chances = generator.uniform(0.2, 0.8, problems)
    other = np.clip(chances + effect + generator.normal(0, 0.1, problems), 0, 1)
    a, b = generator.binomial(n, other) / n, generator.binomial(n, chances) / n
    noise = (a * (1 - a) + b * (1 - b)) / (n - 1) if n > 1 else np.full(problems, nan)
    return a - b, noise


def test_reach_by_hand() -> None:
    differences = np.array([0.5, -0.5, 0.5, 0.5, 0.0, 0.5] * 50)
    noise = np.full(300, 0.08)
    found = reach([differences], [noise])
    se = differences.std(ddof=1) / np.sqrt(300)
    needed = 1.9679 + 0.8428  # t quantiles of 0.975 and 0.8 at 299 degrees
    assert found.detectable == pytest.approx(needed * se, rel=1e-3)
    target = (differences.mean() / needed) ** 2
    assert found.problems_factor == pytest.approx(se**2 / target, rel=1e-3)
    assert found.samples_factor == pytest.approx((0.08 / 300) / (target - (se**2 - 0.08 / 300)), rel=1e-3)


def test_reach_where_no_number_helps_or_nothing_is_known() -> None:
    assert reach([[0.5, -0.5]], [[0.1, 0.1]]).problems_factor == inf
    assert isnan(reach([[0.5]], [[0.1]]).detectable)
    assert isnan(reach([[0.5, 0.1, 0.2]], [[nan] * 3]).samples_factor)
    # Problems differ far more than sampling explains: more samples cannot do it.
    assert reach([[1.0, -0.9, 0.95, -1.0]], [[0.001] * 4]).samples_factor == inf


@pytest.mark.slow
def test_the_detectable_difference_is_found_with_the_promised_power() -> None:
    generator = np.random.default_rng(8)
    sizes = [reach([d], [v]).detectable for d, v in (_pair(generator, 300, 4, 0.0) for _ in range(50))]
    effect = float(np.mean(sizes))
    found = [sign_flip_p([_pair(generator, 300, 4, effect)[0]], flips=2000) < 0.05 for _ in range(1000)]
    assert 0.76 <= np.mean(found) <= 0.84


@pytest.mark.slow
@pytest.mark.parametrize(("problems", "n"), [(30, 32), (500, 4)])
def test_no_difference_is_called_one_in_twenty_times(problems: int, n: int) -> None:
    generator = np.random.default_rng(9)
    called = [sign_flip_p([_pair(generator, problems, n, 0.0)[0]], flips=1000) < 0.05 for _ in range(2000)]
    assert np.mean(called) <= 0.06


@pytest.mark.slow
def test_the_factors_lead_to_the_promised_power() -> None:
    generator = np.random.default_rng(10)
    effect = 0.03
    factors = [reach(*([part] for part in _pair(generator, 4000, 4, effect))) for _ in range(20)]
    problems = round(4000 * float(np.median([found.problems_factor for found in factors])))
    found = [sign_flip_p([_pair(generator, problems, 4, effect)[0]], flips=1000) < 0.05 for _ in range(1000)]
    assert 0.74 <= np.mean(found) <= 0.86
    # More samples on 400 problems.
    few = [reach(*([part] for part in _pair(generator, 400, 4, effect))) for _ in range(100)]
    n = round(4 * float(np.median([found.samples_factor for found in few])))
    assert n > 4
    found = [sign_flip_p([_pair(generator, 400, n, effect)[0]], flips=1000) < 0.05 for _ in range(1000)]
    assert 0.72 <= np.mean(found) <= 0.88


def test_large_differences_are_below_what_random_patterns_can_show() -> None:
    """All of 40 problems lost by the same amount: the exact p is 2 / 2^40, and its bound 2 exp(-20)."""
    p = sign_flip_p([np.full(40, 0.5)])
    assert 2 / 2**40 <= p == pytest.approx(2 * np.exp(-20), rel=1e-6)
    # A difference that random patterns reach is theirs to judge.
    small = sign_flip_p([np.tile([0.5, -0.5, 0.5], 20)])
    assert 1 / 20_001 < small < 0.05
