"""Rewards are the evaluation's verdicts, and shaping adds what it says."""

from concurrent.futures import Future
from typing import Any

import pytest

from ba_eval.benchmark.problem import Problem
from ba_eval.errors import MachineError
from ba_eval.grade.math import MathGrader, grade
from ba_eval.grade.verdict import Verdict
from ba_eval.train.config import DataConfig, OverlongConfig, RewardConfig, TrainConfig
from ba_eval.train.rewards import overlong_penalty, reward_functions

END = 2
PROBLEMS = {"a": Problem(id="a", prompt="1/2?", golds=("\\frac{1}{2}",)), "b": Problem(id="b", prompt="", golds=("7",))}


def config(**reward: Any) -> TrainConfig:
    return TrainConfig(
        model="m", out="o", data=DataConfig(source="s"), steps=1, max_response=4, reward=RewardConfig(**reward)
    )


def call(functions: list[Any], texts: list[str], ids: list[list[int]], problems: list[str]) -> tuple[list[Any], Any]:
    logged: dict[str, float] = {}
    found = [
        f(completions=texts, completion_ids=ids, problem_id=problems, log_metric=logged.__setitem__, prompts=texts)
        for f in functions
    ]
    return found, logged


def test_a_reward_is_the_verdict_of_the_evaluation() -> None:
    texts = ["so \\boxed{0.5}", "so \\boxed{7}", "\\boxed{7}", "<think>\\boxed{7}", "I do not know."]
    ids = [[5, END], [5, END], [5, 5, 5, 5], [5, END], [5, END]]
    problems = ["a", "a", "b", "b", "b"]
    with MathGrader() as grader:
        functions, weights = reward_functions(config(), PROBLEMS, grader, {END})
        (rewards,), logged = call(functions, texts, ids, problems)
    expected = [
        float(grade(PROBLEMS[p].golds, text, "length" if len(i) == 4 else "stop").outcome == "correct")
        for p, text, i in zip(problems, texts, ids, strict=True)
    ]
    assert rewards == expected == [1, 0, 1, 0, 0] and weights == [1.0]
    assert logged == {"grader/undecided": 0.0, "grader/failed": 0.0}


def test_shaping() -> None:
    reward = config(format=0.25, overlong=OverlongConfig(buffer=2, weight=0.5))
    with MathGrader() as grader:
        functions, weights = reward_functions(reward, PROBLEMS, grader, {END})
        found, _ = call(functions, ["\\boxed{1}", "7", "\\boxed{7"], [[9], [9] * 3, [9] * 4], ["b", "b", "b"])
    assert [f.__name__ for f in functions] == ["accuracy", "format", "overlong"] and weights == [1.0, 0.25, 0.5]
    assert found[1] == [1, 0, 0] and found[2] == [0, -0.5, -1]


@pytest.mark.parametrize(("length", "penalty"), [(0, 0), (12288, 0), (14336, -0.5), (16384, -1), (20000, -1)])
def test_overlong_penalty_of_dapo(length: int, penalty: float) -> None:
    """The published setting: 16,384 tokens expected, the last 4,096 of them the soft buffer."""
    assert overlong_penalty(length, 16384, 4096) == penalty


class Failing:
    version = "failing"

    def __init__(self, outcomes: list[str]) -> None:
        self.outcomes = iter(outcomes)

    def submit(self, problem: Problem, response: str, finish_reason: str) -> "Future[Verdict]":
        future: Future[Verdict] = Future()
        future.set_result(Verdict(next(self.outcomes), "sandbox gone", details={"message": "no bwrap"}))  # type: ignore[arg-type]
        return future

    def close(self) -> None: ...


def test_a_failed_grading_is_no_reward_of_any_function() -> None:
    grader = Failing(["error", "correct", "undecided"])
    functions, _ = reward_functions(config(format=0.5), PROBLEMS, grader, {END})
    found, logged = call(functions, ["\\boxed{7}"] * 3, [[1]] * 3, ["b"] * 3)
    assert found == [[None, 1.0, 0.0], [None, 1.0, 1.0]]
    assert logged == {"grader/undecided": pytest.approx(1 / 3), "grader/failed": pytest.approx(1 / 3)}


def test_a_grader_that_is_down_stops_the_run() -> None:
    functions, _ = reward_functions(config(), PROBLEMS, Failing(["error"] * 2), {END})
    with pytest.raises(MachineError, match=r"all 2 responses of a batch: sandbox gone \(no bwrap\)"):
        call(functions, ["x", "y"], [[1], [1]], ["b", "b"])
