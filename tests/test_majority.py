"""maj@k from records."""

from math import isnan
from pathlib import Path

import pytest

from ba_eval.errors import InputError
from ba_eval.majority import Poll, polls
from ba_eval.results import load
from ba_eval.tables import summarise
from tests.runs import make_run

ANSWERS: list[list[str | None]] = [["1/2", "0.5", "3", None], ["7", "7", "8", "8"]]
GRID = [[0, 0, 1, 0], [1, 1, 0, 0]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path, {"m": {"b": GRID}}, change=lambda m, b, row, index: {"extracted": ANSWERS[row][index]})


def test_answers_vote_by_class(run: Path) -> None:
    cell = load(run, answers=True).cells["m", "b"]
    assert polls(cell) == [Poll([1, 2], [True, False], 4), Poll([2, 2], [True, False], 4)]
    assert polls(cell, group=lambda answers: list(range(len(answers))))[0] == Poll([1, 1, 1], [True, False, False], 4)


def test_correct_answers_are_one_class_whatever_they_look_like(tmp_path: Path) -> None:
    answers = ["1/2", "\\frac12", "0.5", "9"]
    run = make_run(
        tmp_path, {"m": {"b": [[1, 1, 1, 0]]}}, change=lambda m, b, row, index: {"extracted": answers[index]}
    )
    assert polls(load(run, answers=True).cells["m", "b"]) == [Poll([3, 1], [True, False], 4)]


def test_maj_in_the_table(run: Path) -> None:
    results = load(run, answers=True)
    numbers = summarise(results, maj=(1, 4, 8)).models[0].benchmarks["b"]
    assert numbers.maj_at[1].value == pytest.approx(numbers.avg.value)
    assert numbers.maj_at[4].value == pytest.approx((0 + 0.5) / 2)
    assert isnan(numbers.maj_at[8].value)


def test_code_has_no_majority(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}}, benchmarks={"b": {"kind": "code-stdin"}})
    numbers = summarise(load(run, answers=True), maj=(4,)).models[0].benchmarks["b"]
    assert isnan(numbers.maj_at[4].value)


def test_without_answers_it_is_refused(run: Path) -> None:
    with pytest.raises(InputError, match="answers=True"):
        polls(load(run).cells["m", "b"])
