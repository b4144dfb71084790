"""Two levels of chance, problems and training seeds: by hand and by simulation."""

import numpy as np
import numpy.typing as npt
import pytest

from ba_eval.stats import mean_interval, seeds_difference, seeds_interval

SHAPES = ((30, 32), (300, 4))


Grids = list[npt.NDArray[np.float64]]


def problems_of(generator: np.random.Generator) -> Grids:
    return [generator.uniform(0.25, 0.75, size) for size, _ in SHAPES]


def train(
    generator: np.random.Generator, problems: Grids, seeds: int, shift: float = 0.0, spread: float = 0.02
) -> Grids:
    """Scores (S, P) of one rule: seeds differ by `spread`, and problems differ by seed."""
    lift = generator.normal(shift, spread, seeds)
    return [
        generator.binomial(n, np.clip(p + lift[:, None] + generator.normal(0, 0.08, (seeds, size)), 0, 1)) / n
        for p, (size, n) in zip(problems, SHAPES, strict=True)
    ]


def study(generator: np.random.Generator, seeds: int, spread: float = 0.02) -> Grids:
    return train(generator, problems_of(generator), seeds, spread=spread)


def test_one_seed_is_the_interval_over_problems() -> None:
    scores = np.random.default_rng(0).random(40)
    assert seeds_interval([scores[None]]) == mean_interval([scores])


def test_variance_by_hand() -> None:
    grid = np.array([[0.0, 0.5, 1.0, 0.5], [0.5, 0.5, 1.0, 0.0], [0.5, 1.0, 1.0, 0.5]])
    estimate = seeds_interval([grid])
    seeds = grid.mean(axis=1).var(ddof=1) / 3
    problems = grid.mean(axis=0).var(ddof=1) / 4
    rest = grid - grid.mean(axis=0) - grid.mean(axis=1)[:, None] + grid.mean()
    interaction = (rest**2).sum() / (2 * 3) / 12
    assert estimate.value == grid.mean()
    assert estimate.se == pytest.approx(np.sqrt(seeds + problems - interaction))


def test_seeds_that_do_not_differ_leave_the_variance_of_problems() -> None:
    scores = np.random.default_rng(1).random(50)
    estimate = seeds_interval([np.tile(scores, (3, 1))])
    assert estimate.se == pytest.approx(scores.std(ddof=1) / np.sqrt(50))


def test_seeds_that_differ_widen_the_interval() -> None:
    narrow, wide = (seeds_interval(study(np.random.default_rng(2), 3, spread=s)) for s in (0.0, 0.15))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_undefined() -> None:
    assert np.isnan(seeds_interval([]).value)
    assert np.isnan(seeds_interval([np.full((3, 2), np.nan)]).value)
    difference, p = seeds_difference([np.ones((2, 1))], [np.ones((2, 1))])
    assert np.isnan(difference.value) and np.isnan(p)


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "spread"), [(2, 0.02), (3, 0.02), (3, 0.08), (5, 0.03), (3, 0.0)])
def test_coverage_over_problems_and_seeds(seeds: int, spread: float) -> None:
    generator = np.random.default_rng(3)
    estimates = [seeds_interval(study(generator, seeds, spread=spread)) for _ in range(1500)]
    covered = np.mean([estimate.low <= 0.5 <= estimate.high for estimate in estimates])
    assert 0.93 <= covered <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.02, 0.08])
def test_rules_that_do_not_differ_are_called_one_in_twenty_times(spread: float) -> None:
    generator = np.random.default_rng(4)
    called = []
    for _ in range(500):
        problems = problems_of(generator)
        a, b = (train(generator, problems, 3, spread=spread) for _ in range(2))
        called.append(seeds_difference(a, b)[1] < 0.05)
    assert np.mean(called) <= 0.07


def test_the_p_value_is_where_the_interval_reaches_zero() -> None:
    generator = np.random.default_rng(6)
    problems = problems_of(generator)
    a, b = train(generator, problems, 3, 0.05), train(generator, problems, 3, 0.0)
    _, p = seeds_difference(a, b)
    assert 0.001 < p < 0.9
    difference, _ = seeds_difference(a, b, confidence=1 - p)
    assert difference.low == pytest.approx(0, abs=1e-6)


def test_one_seed_each_is_the_paired_t_test() -> None:
    """scipy.stats.ttest_rel([.1, .4, .35, .8, .5], [.0, .5, .2, .6, .4]).pvalue"""
    _, p = seeds_difference([[[0.1, 0.4, 0.35, 0.8, 0.5]]], [[[0.0, 0.5, 0.2, 0.6, 0.4]]])
    assert p == pytest.approx(0.15231742, rel=1e-6)


def test_seeds_alone_are_the_two_sample_t_test() -> None:
    """Problems of one difficulty: scipy.stats.ttest_ind([.1, .2, .4], [.5, .6, .55, .7]).pvalue"""
    a, b = (np.tile(np.array(seeds)[:, None], (1, 4)) for seeds in ([0.1, 0.2, 0.4], [0.5, 0.6, 0.55, 0.7]))
    _, p = seeds_difference([a], [b])
    assert p == pytest.approx(0.01073680, rel=1e-6)


def test_a_clear_difference_is_found() -> None:
    generator = np.random.default_rng(5)
    problems = problems_of(generator)
    a, b = train(generator, problems, 3, 0.15), train(generator, problems, 3, 0.0)
    difference, p = seeds_difference(a, b)
    assert p < 0.01 and 0.08 < difference.low < difference.value < difference.high < 0.25
    mirrored, same = seeds_difference(b, a)
    assert mirrored.value == pytest.approx(-difference.value)
    assert same == pytest.approx(p)
