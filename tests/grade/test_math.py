"""The math grader: right values from outside it, and what a verdict says."""

import asyncio
import threading
from typing import Any

import pytest

from ba_eval.grade.math import MathGrader, MathOptions, equivalent, grade, group_answers
from ba_eval.grade.verdict import Verdict
from tests.grade.math_answers import CASES, problem


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_cases(case: dict[str, Any], math_grader: MathGrader) -> None:
    golds = case["gold"] if isinstance(case["gold"], list) else [case["gold"]]
    if "answer" in case:
        verdict = math_grader.submit_answer(golds, case["answer"]).result()
    else:
        verdict = math_grader.submit(problem(*golds), case["response"], case.get("finish_reason", "stop")).result()
    expected = case["expected"]  # an outcome, or whether it is correct
    assert (verdict.outcome if isinstance(expected, str) else verdict.outcome == "correct") == expected, verdict


# -- what a verdict says


def test_reasons(math_grader: MathGrader) -> None:
    def of(response: str, finish: str = "stop", gold: str = "5") -> Verdict:
        return math_grader.submit(problem(gold), response, finish).result()

    assert (of("").outcome, of("").reason) == ("wrong", "no answer")
    assert of("<think>\\boxed{5}", "length").reason == "truncated"
    assert of("<think>\\boxed{5}").reason == "no answer"
    assert of("so $x=5$ and then", "length").reason == "truncated"
    assert of("\\boxed{5} and some more words that were c", "length").outcome == "correct"
    cut = of("so \\boxed{12", "length")
    assert (cut.reason, cut.details["flags"]) == ("truncated", ["cut inside the box"])
    huge = of("\\boxed{9^{9^{9^{9}}}}")
    assert (huge.outcome, huge.reason) == ("undecided", "too large: a power")
    assert "undecided" in huge.details["flags"]
    wrong = of("2 + 5 = 8\n\\boxed{8}")
    assert (wrong.outcome, wrong.extracted) == ("wrong", "8")
    assert "gold's numbers in the final lines" in wrong.details["flags"]
    assert "found outside the expected format" in of("Thus there are 5 of them.").details["flags"]
    no_gold = math_grader.submit(problem(), "\\boxed{5}", "stop").result()
    assert no_gold.outcome == "error"


def test_a_second_method_marks_what_it_calls_equal(math_grader: MathGrader) -> None:
    # math-verify takes these two for equal: its known false positive.
    verdict = math_grader.submit(
        problem("1 - \\frac{1}{\\mathrm{e}}"), "\\boxed{1 + \\frac{1}{\\mathrm{e}}}", "stop"
    ).result()
    assert verdict.outcome == "wrong"
    assert "second method disagrees" in verdict.details["flags"]


def test_tolerance_only_where_given(math_grader: MathGrader) -> None:
    def of(gold: str, answer: str, **meta: Any) -> str:
        return math_grader.submit(problem(gold, **meta), f"\\boxed{{{answer}}}", "stop").result().outcome

    assert of("4.2", "4.25") == "wrong"
    assert of("4.2", "4.25", tolerance=0.1, unit="%") == "correct"
    assert of("4.2", "4.3", tolerance="1e-1") == "correct"
    assert of("4.2", "4.4", tolerance=0.1) == "wrong"
    with MathGrader(MathOptions(relative_tolerance=0.01)) as loose:
        assert loose.submit(problem("1000"), "\\boxed{1009}", "stop").result().outcome == "correct"
        assert loose.submit(problem("1000"), "\\boxed{1011}", "stop").result().outcome == "wrong"
        assert loose.submit(problem("\\pi"), "\\boxed{3.14}", "stop").result().outcome == "correct"


def test_unit_of_the_problem(math_grader: MathGrader) -> None:
    def of(answer: str) -> str:
        return math_grader.submit(problem("45", unit="minute"), f"\\boxed{{{answer}}}", "stop").result().outcome

    assert of("45") == of("45\\text{ minutes}") == of("0.75 \\text{ hours}") == "correct"
    assert of("45 \\text{ km}") == "wrong"


def test_alternatives(math_grader: MathGrader) -> None:
    golds = ("0.01", "0.02")
    assert math_grader.submit(problem(*golds), "\\boxed{0.02}", "stop").result().outcome == "correct"
    assert math_grader.submit(problem(*golds), "\\boxed{0.03}", "stop").result().outcome == "wrong"


# -- plain functions


def test_grade_from_threads_and_async_code() -> None:
    results: list[str] = []

    def work() -> None:
        results.append(grade("\\sqrt{8}", "\\boxed{2\\sqrt{2}}").outcome)
        results.append(grade(["1", "2"], "\\boxed{3}").outcome)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["correct"] * 8 + ["wrong"] * 8

    async def several(made: MathGrader) -> list[str]:
        futures = [made.submit(problem("\\sqrt{3}"), f"\\boxed{{3^{{1/{k}}}}}", "stop") for k in (2, 3)]
        return [v.outcome for v in await asyncio.gather(*map(asyncio.wrap_future, futures))]

    with MathGrader() as made:
        assert asyncio.run(several(made)) == ["correct", "wrong"]


def test_equivalent_has_three_outcomes() -> None:
    assert equivalent("\\frac{1}{2}", "0.5") == equivalent("0.5", "\\frac{1}{2}") == "correct"
    assert equivalent("2", "3") == "wrong"
    assert equivalent("9^{9^{9^9}}", "8^{9^{9^9}}") == "undecided"


def test_group_answers() -> None:
    answers = ["1/2", "0.5", None, "\\frac{2}{4}", "x=2", "2", "\\sqrt{2}", "2^{1/2}", "pear"]
    assert group_answers(answers) == [0, 0, None, 0, 1, 1, 2, 2, 3]
