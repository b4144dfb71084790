"""Intervals against a statistics package, and by simulation."""

import json
from math import isnan
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ba_eval.stats import mean_interval, t_quantile

CASES = json.loads((Path(__file__).parent.parent / "cases" / "statistics.json").read_text())


@pytest.mark.parametrize("case", CASES["t_quantile"]["cases"])
def test_t_quantile(case: dict[str, float]) -> None:
    assert t_quantile(case["level"], case["df"]) == pytest.approx(case["value"], rel=1e-8)
    assert t_quantile(1 - case["level"], case["df"]) == pytest.approx(-case["value"], rel=1e-8)


@pytest.mark.parametrize("case", CASES["bca"]["cases"])
def test_many_problems_give_the_usual_bca_interval(case: dict[str, list[float]]) -> None:
    scores = np.array(case["correct"]) / np.array(case["n"])
    estimate = mean_interval([scores])
    assert estimate.value == scores.mean()
    # Both are Monte Carlo, and ours is wider by the small-sample factors: 0.3 % of the width at 500 problems.
    assert [estimate.low, estimate.high] == pytest.approx(case["low_high"], abs=0.0015)


@pytest.mark.parametrize("case", CASES["wilson"]["cases"])
def test_where_hardly_a_problem_differs_it_is_the_wilson_interval(case: dict[str, object]) -> None:
    size, count = case["size"], case["count"]
    assert isinstance(size, int) and isinstance(count, int)
    scores = np.zeros(size)
    scores[:count] = 1
    estimate = mean_interval([scores])
    assert [estimate.low, estimate.high] == pytest.approx(case["low_high"], abs=2e-6)


def test_none_solved_does_not_mean_certainly_none() -> None:
    estimate = mean_interval([np.zeros(30)])
    assert (estimate.value, estimate.low) == (0.0, 0.0)
    assert 0.10 < estimate.high < 0.13
    almost = np.zeros(30)
    almost[0] = 1 / 32
    assert estimate.high <= mean_interval([almost]).high < 0.13
    all_solved = mean_interval([np.ones(30)])
    assert (all_solved.low, all_solved.high) == pytest.approx((1 - estimate.high, 1.0))


def test_equal_scores_everywhere_leave_the_difference_open_on_both_sides() -> None:
    estimate = mean_interval([np.zeros(30)], limits=(-1, 1))
    assert estimate.low == pytest.approx(-estimate.high)
    assert 0.10 < estimate.high < 0.13


def test_the_same_data_give_the_same_interval_and_mirrored_data_the_mirrored_one() -> None:
    scores = np.random.default_rng(3).binomial(32, 0.3, 30) / 32
    assert mean_interval([scores]) == mean_interval([scores])
    other = mean_interval([1 - scores])
    assert (1 - other.high, 1 - other.low) == pytest.approx(
        (mean_interval([scores]).low, mean_interval([scores]).high), abs=0.002
    )


def test_undefined_values() -> None:
    assert isnan(mean_interval([[]]).value)
    assert isnan(mean_interval([]).value)
    assert isnan(mean_interval([[np.nan, np.nan]]).value)
    assert isnan(mean_interval([[0.5, 0.5], [np.nan]]).value)
    single = mean_interval([[0.25]])
    assert single.value == 0.25
    assert isnan(single.low) and isnan(single.high) and isnan(single.se)


def test_a_suite_weighs_benchmarks_the_same_and_adds_their_variances() -> None:
    generator = np.random.default_rng(5)
    small, large = generator.random(30), generator.random(500)
    estimate = mean_interval([small, large])
    assert estimate.value == pytest.approx((small.mean() + large.mean()) / 2)
    expected = np.sqrt(small.var(ddof=1) / 30 + large.var(ddof=1) / 500) / 2
    assert estimate.se == pytest.approx(expected)
    # Welch's degrees of freedom lie between those of the smaller part and the sum.
    half = (estimate.high - estimate.low) / 2
    assert 1.96 * expected * 0.97 < half < 2.045 * expected * 1.03


def test_the_order_of_benchmarks_changes_no_digit() -> None:
    generator = np.random.default_rng(11)
    strata = [generator.random(size).round(1) for size in (30, 30, 500, 12)] + [np.zeros(30)]
    for order in ([4, 3, 2, 1, 0], [1, 0, 3, 4, 2]):
        assert mean_interval([strata[number] for number in order]) == mean_interval(strata)


def test_an_unsolved_benchmark_widens_the_suite_upwards() -> None:
    scores = np.random.default_rng(6).random(500)
    estimate = mean_interval([scores, np.zeros(30)])
    alone = mean_interval([scores])
    assert estimate.high - estimate.value > 1.5 * (alone.high - alone.value) / 2
    assert estimate.value - estimate.low == pytest.approx((alone.value - alone.low) / 2, rel=0.02)


def _coverage(problems: int, n: int, a: float, b: float, runs: int, seed: int) -> float:
    """How often the interval holds the true mean where problems' chances are Beta(a, b)."""
    generator = np.random.default_rng(seed)
    hits = 0
    for _ in range(runs):
        chances = generator.beta(a, b, problems)
        estimate = mean_interval([generator.binomial(n, chances) / n], draws=2000, seed=seed)
        hits += int(estimate.low <= a / (a + b) <= estimate.high)
    return hits / runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problems", "n", "a", "b"),
    [(30, 32, 0.3, 1.0), (30, 32, 0.2, 1.8), (30, 32, 0.5, 0.5), (30, 32, 2, 0.5),
     (500, 4, 1.0, 1.0), (500, 4, 0.3, 0.1), (500, 4, 0.1, 3.0)],
)  # fmt: skip
def test_coverage_is_as_promised(problems: int, n: int, a: float, b: float) -> None:
    assert 0.93 <= _coverage(problems, n, a, b, runs=4000, seed=11) <= 0.97


@pytest.mark.slow
def test_coverage_of_a_suite_is_as_promised() -> None:
    generator = np.random.default_rng(12)
    shapes = [(30, 32, 0.3, 1.0), (30, 32, 0.2, 1.8), (500, 4, 1.0, 1.0), (272, 4, 0.5, 1.0)]
    truth = np.mean([a / (a + b) for _, _, a, b in shapes])
    hits = 0
    for _ in range(2000):
        strata: list[npt.ArrayLike] = [generator.binomial(n, generator.beta(a, b, p)) / n for p, n, a, b in shapes]
        estimate = mean_interval(strata, draws=2000)
        hits += int(estimate.low <= truth <= estimate.high)
    assert 0.93 <= hits / 2000 <= 0.97


def test_coverage_roughly() -> None:
    """The fast guard of the slow simulations: 600 runs have a standard error of 0.9 points."""
    assert 0.92 <= _coverage(30, 32, 0.3, 1.0, runs=600, seed=1) <= 0.98
