"""Comparisons of models: by hand, and on a synthetic study of known effects."""

from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest

from ba_eval.compare import SUITE, align, compare, standings
from ba_eval.errors import InputError
from ba_eval.results import load
from ba_eval.stats import holm, sign_flip_p
from tests.runs import make_run


def draw(generator: np.random.Generator, chances: np.ndarray, n: int) -> np.ndarray:
    return np.asarray(generator.random((len(chances), n)) < chances[:, None])


def test_a_comparison_by_hand(tmp_path: Path) -> None:
    scores = {"ba": {"x": [[1, 1], [1, 0], [0, 0], [1, 1]]}, "token": {"x": [[0, 1], [1, 0], [0, 1], [0, 0]]}}
    tokens = {"ba": 200, "token": 150}
    run = make_run(tmp_path, scores, change=lambda model, b, r, i: {"completion_tokens": tokens[model] + r})
    [one] = compare(load(run))
    assert (one.model, one.baseline, one.benchmark) == ("ba", "token", "x")
    assert one.difference.value == pytest.approx((0.5 + 0 - 0.5 + 1) / 4)
    assert (one.won, one.lost, one.tied, one.problems) == (2, 1, 1, 4)
    # Sign patterns of (0.5, -0.5, 1): |sum| >= 1 in 6 of 8.
    assert one.p == one.p_adjusted == 0.75
    assert one.finding == "not separable"
    assert one.tokens.value == one.tokens.low == one.tokens.high == 50


def test_only_problems_that_both_have_count(tmp_path: Path) -> None:
    grid = np.ones((10, 2), dtype=bool)
    run = make_run(
        tmp_path,
        {"a": {"x": grid}, "b": {"x": ~grid}},
        change=lambda model, b, row, i: None if model == "a" and row < 3 else {},
    )
    [one] = compare(load(run))
    assert (one.problems, one.left_out, one.won) == (7, 3, 7)


def test_cells_are_aligned_by_problem_not_by_place(tmp_path: Path) -> None:
    a = load(make_run(tmp_path / "a", {"m": {"x": [[1], [0], [1]]}})).cells["m", "x"]
    ids = ("p2", "p0", "p7")
    b = load(make_run(tmp_path / "b", {"m": {"x": [[1], [0], [1]]}}, benchmarks={"x": {"problem_ids": ids}}))
    left, right = align(a, b.cells["m", "x"])
    assert left.problem_ids == right.problem_ids == ("p0", "p2")
    assert left.scores.tolist() == [1, 1]
    assert right.scores.tolist() == [0, 1]


def test_a_baseline_limits_the_pairs_and_the_correction(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    models = {name: {b: draw(generator, np.full(40, 0.5), 4) for b in ("x", "y")} for name in ("a", "b", "c", "d")}
    results = load(make_run(tmp_path, models))
    against = compare(results, "c")
    assert [(one.model, one.baseline, one.benchmark) for one in against] == [
        (model, "c", where) for model in ("a", "b", "d") for where in ("x", "y", SUITE)
    ]
    suite = [one for one in against if one.benchmark == SUITE]
    single = [one for one in against if one.benchmark != SUITE]
    for family in (suite, single):
        assert [one.p_adjusted for one in family] == pytest.approx(holm([one.p for one in family]))
    assert len(compare(results)) == 6 * 3
    assert (
        against[0].detectable
        > compare(load(make_run(tmp_path / "two", {k: models[k] for k in ("a", "c")})))[0].detectable
    )


def test_a_clear_difference_is_called_and_in_the_right_direction(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    chances = generator.uniform(0.1, 0.6, 200)
    run = make_run(
        tmp_path, {"low": {"x": draw(generator, chances, 4)}, "high": {"x": draw(generator, chances + 0.3, 4)}}
    )
    [up] = compare(load(run), "low")
    assert up.finding == "better" and up.difference.low > 0.2
    [down] = compare(load(run), "high")
    assert down.finding == "worse"
    assert down.difference.value == -up.difference.value
    assert down.p == up.p


def test_one_model_or_an_unknown_baseline_is_bad_input(tmp_path: Path) -> None:
    run = make_run(tmp_path / "one", {"a": {"x": [[1]]}})
    with pytest.raises(InputError, match="needs two"):
        compare(load(run))
    run = make_run(tmp_path / "two", {"token": {"x": [[1]]}, "ba": {"x": [[1]]}})
    with pytest.raises(InputError, match="did you mean 'token'"):
        compare(load(run), "tokne")


def test_nothing_to_compare_is_undefined(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"a": {"x": [[1]]}, "b": {"x": [[1]]}}, change=lambda m, b, r, i: None if m == "a" else {})
    [one] = compare(load(run))
    assert one.finding == "undefined"
    assert isnan(one.difference.value) and isnan(one.p)


def test_standings(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    chances = generator.uniform(0.3, 0.6, 300)
    shifts = {"best": 0.3, "close": 0.297, "middle": 0.1, "low": -0.2, "none": 0.0}
    run = make_run(
        tmp_path,
        {name: {"x": draw(generator, chances + shift, 8)} for name, shift in shifts.items()},
        change=lambda model, b, r, i: None if model == "none" else {},
    )
    cells = load(run).cells
    places = standings([[cells[name, "x"]] for name in shifts])
    assert sorted(places[:2]) == ["best", "tied"]
    assert places[2:] == ["second", "", ""]
    assert standings([[cells["best", "x"]]]) == [""]


@pytest.mark.slow
def test_a_study_of_known_effects() -> None:
    """9 models on 6 benchmarks: three of each of three rules, of which one is better by what the study can detect."""
    generator = np.random.default_rng(3)
    shapes = [(500, 4), (30, 32), (30, 32), (675, 4), (272, 4), (400, 4)]
    rules = np.repeat([0.0, 0.0, 0.04], 3)
    wrong = found = 0
    studies, true_pairs = 150, 18
    for _ in range(studies):
        problems = [generator.beta(1, 1.2, size) for size, _ in shapes]
        grids = [
            [generator.binomial(n, np.clip(p + rule, 0, 1)) / n for p, (_, n) in zip(problems, shapes, strict=True)]
            for rule in rules
        ]
        p_values, is_null = [], []
        for a in range(9):
            for b in range(a):
                p_values.append(sign_flip_p([x - y for x, y in zip(grids[a], grids[b], strict=True)], flips=4000))
                is_null.append(rules[a] == rules[b])
        called = holm(p_values) < 0.05
        wrong += bool(np.any(called & is_null))
        found += int(np.count_nonzero(called & ~np.array(is_null)))
    # The error rate is of the whole table of 36 comparisons: one false call in it is one too many.
    assert wrong / studies <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / studies)
    assert found / (studies * true_pairs) >= 0.95


def test_nan_is_no_difference() -> None:
    assert isnan(sign_flip_p([[nan]]))
