"""The numbers of a table, computed by hand."""

from math import isnan
from pathlib import Path

import numpy as np
import pytest

from ba_eval.results import load
from ba_eval.tables import summarise
from tests.runs import make_run


def test_numbers_of_a_cell(tmp_path: Path) -> None:
    changes: dict[tuple[int, int], dict[str, object]] = {
        (0, 0): {"finish_reason": "length", "completion_tokens": 3000},
        (1, 1): {"outcome": "undecided"},
    }
    grid = [[0, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
    run = make_run(tmp_path, {"m": {"b": grid}}, change=lambda m, b, row, index: changes.get((row, index), {}))
    summary = summarise(load(run), ks=(1, 2, 4, 8))
    numbers = summary.models[0].benchmarks["b"]
    assert numbers.avg.value == pytest.approx(4 / 12)
    assert numbers.avg.se == pytest.approx(np.std([3 / 4, 0, 1 / 4], ddof=1) / np.sqrt(3))
    assert numbers.pass_at[1].value == pytest.approx(4 / 12)
    assert numbers.pass_at[2].value == pytest.approx((1 + 0 + 1 / 2) / 3)
    assert numbers.pass_at[4].value == pytest.approx(2 / 3)
    assert isnan(numbers.pass_at[8].value)
    assert numbers.truncated == pytest.approx(1 / 12)
    assert numbers.avg_untruncated == pytest.approx(4 / 11)
    assert numbers.tokens_mean == pytest.approx((12 * 101.5 - 100 + 3000) / 12)
    assert numbers.tokens_median == 102
    assert (numbers.undecided, numbers.missing, numbers.errors, numbers.ungraded) == (1, 0, 0, 0)
    assert summary.complete


def test_missing_samples_change_n_not_the_score(tmp_path: Path) -> None:
    grid = [[1, 1, 0, 0], [1, 1, 1, 1]]
    run = make_run(tmp_path, {"m": {"b": grid}}, change=lambda m, b, row, index: None if (row, index) == (0, 3) else {})
    numbers = summarise(load(run), ks=(4,)).models[0].benchmarks["b"]
    assert numbers.avg.value == pytest.approx((2 / 3 + 1) / 2)
    assert numbers.pass_at[4].value == 1.0
    assert numbers.pass_problems == {4: 1}
    assert (numbers.samples_min, numbers.samples_max, numbers.missing) == (3, 4, 1)


def test_the_suite_weighs_benchmarks_the_same_and_is_undefined_where_one_is(tmp_path: Path) -> None:
    small, large = np.ones((2, 4)), np.zeros((6, 2))
    models = summarise(load(make_run(tmp_path / "a", {"m": {"x": small, "y": large}})), ks=(4,)).models
    assert models[0].suite_avg.value == 0.5
    assert isnan(models[0].suite_pass_at[4].value)
    run = make_run(tmp_path / "b", {"m": {"x": small, "y": large}}, change=lambda m, b, r, i: None if b == "y" else {})
    assert isnan(summarise(load(run)).models[0].suite_avg.value)


def test_problems_apart_are_in_no_score(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        {"m": {"b": [[1, 1], [0, 0], [0, 1]]}},
        benchmarks={"b": {"excluded": {"p1": "interactive", "p2": "interactive"}}},
        change=lambda m, b, row, index: None if (row, index) == (2, 0) else {},
    )
    summary = summarise(load(run))
    numbers = summary.models[0].benchmarks["b"]
    assert numbers.avg.value == 1.0
    assert numbers.missing == 0
    assert (numbers.apart_problems, numbers.apart_avg, numbers.apart_incomplete) == (2, 0.5, 1)
    assert summary.benchmarks[0].apart == {"interactive": 2}
    assert summary.missing == 1 and not summary.complete


def test_the_plan_says_which_k_unless_asked(tmp_path: Path) -> None:
    results = load(make_run(tmp_path, {"m": {"b": [[1, 0]]}}, ks=(1, 2)))
    assert summarise(results).ks == (1, 2)
    assert summarise(results, (2,)).ks == (2,)
