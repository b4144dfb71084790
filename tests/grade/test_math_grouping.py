"""Classes of equal answers: the fingerprints that spare comparisons must not part what is equal."""

import random
from contextlib import closing
from typing import Any

import pytest

from ba_eval.grade.math import MathGrader, MathOptions, group_answers
from ba_eval.grade.math.decide import decide
from ba_eval.grade.math.fingerprint import Fingerprint, may_be_equal, of_number
from ba_eval.grade.math.shapes import fingerprint
from tests.grade.math_answers import CASES


def taken(answer: str) -> Fingerprint | None:
    return of_number(answer) or fingerprint(answer)


def test_what_the_grader_calls_equal_is_compared() -> None:
    pairs = {(c["gold"], c["answer"]) for c in CASES if "answer" in c and isinstance(c["gold"], str)}
    parted = [
        (gold, answer)
        for gold, answer in sorted(pairs)
        if not may_be_equal(taken(gold), taken(answer))
        and "correct" in (decide(gold, answer)[0], decide(answer, gold)[0])
    ]
    assert not parted


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("\\frac{3\\sqrt{5}}{7}", "\\frac{3\\sqrt{5}}{8}"),
        ("(2, \\sqrt{3})", "(3, \\sqrt{3})"),
        ("x \\ge \\sqrt{5}", "x \\ge \\sqrt{6}"),
        ("(-3, 2) \\cup [9, \\infty)", "(-3, 2) \\cup [8, \\infty)"),
        ("f(x)=3x+1", "f(x)=3x+2"),
        ("n^2-3n+1", "n^2-3n+2"),
        ("12", "13"),
    ],
)
def test_what_plainly_differs_is_not_compared(a: str, b: str) -> None:
    assert not may_be_equal(taken(a), taken(b))


class Counting(MathGrader):
    """Counts the comparisons that are asked for."""

    asked = 0

    def submit_answer(self, *args: Any, **kwargs: Any) -> Any:
        self.asked += 1
        return super().submit_answer(*args, **kwargs)


def test_many_distinct_answers_need_few_comparisons() -> None:
    draw = random.Random(4)
    answers = {f"\\frac{{{draw.randint(2, 99)}\\sqrt{{{p}}}}}{{{draw.randint(2, 99)}}}" for p in range(2, 60)}
    answers |= {f"({a}, {a}\\pi)" for a in range(40)} | {f"y={a}x+{a % 7}" for a in range(2, 40)}
    with closing(Counting()) as grader:
        classes = group_answers(sorted(answers) + sorted(answers)[::-1], grader)
        assert grader.asked < 200
    assert classes == classes[::-1]


def test_grouping_with_and_without_fingerprints_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [c["answer"] for c in CASES if "answer" in c][:: len(CASES) // 16]
    answers += ["75\\%", "0.75", "\\frac34", "75 cents", "\\$0.75", "0.333333", "1/3", "x=\\pm 2", "2,-2", "\\{-2,2\\}"]
    with MathGrader() as grader:
        found = group_answers(answers, grader)
        monkeypatch.setattr("ba_eval.grade.math.may_be_equal", lambda a, b: True)
        monkeypatch.setattr("ba_eval.grade.math.MOST_COMPARED", 1000)
        assert group_answers(answers, grader) == found


def test_a_tolerance_is_not_for_fingerprints() -> None:
    with MathGrader(MathOptions(relative_tolerance=0.1)) as grader:
        assert group_answers(["100", "105", "200"], grader) == [0, 0, 1]
