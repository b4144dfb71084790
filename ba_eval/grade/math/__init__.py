"""The math grader, and the same verdicts as plain functions: rewards, equivalence, classes of equal answers."""

from collections.abc import Sequence

from ba_eval.benchmark.problem import Problem
from ba_eval.grade.math.fingerprint import may_be_equal
from ba_eval.grade.math.grader import VERSION, MathGrader, shared_grader
from ba_eval.grade.math.judge import judge_file
from ba_eval.grade.math.options import MathOptions
from ba_eval.grade.verdict import Outcome, Verdict

__all__ = ["VERSION", "MathGrader", "MathOptions", "equivalent", "grade", "group_answers", "judge_file"]

MOST_COMPARED = 64
"""Classes that one answer is compared with in the grouping of answers."""


def grade(gold: str | Sequence[str], response: str, finish_reason: str = "stop") -> Verdict:
    """Grades one response against a gold, or against several accepted ones; usable as a reward from any thread.

    Blocks until the verdict is there (microseconds for plain numbers, at most the time limit otherwise); in async code
    await `asyncio.wrap_future(grader.submit(...))` of a `MathGrader` instead.
    """
    golds = (gold,) if isinstance(gold, str) else tuple(gold)
    return shared_grader().submit(Problem(id="", prompt="", golds=golds), response, finish_reason).result()


def equivalent(a: str, b: str) -> Outcome:
    """Tells whether two answers mean the same: `correct`, `wrong` or `undecided`; symmetric, without extraction."""
    grader = shared_grader()
    verdicts = [grader.submit_answer([a], b).result(), grader.submit_answer([b], a).result()]
    outcomes = {v.outcome for v in verdicts}
    for outcome in ("correct", "error", "undecided"):
        if outcome in outcomes:
            return outcome
    return "wrong"


def group_answers(answers: Sequence[str | None], grader: MathGrader | None = None) -> list[int | None]:
    """Returns the class of each answer, numbered in order of first appearance; None stays None (no answer).

    Two answers share a class when one is equivalent to the class's first answer; undecided pairs stay apart. Most
    unequal answers are told apart by their fingerprints; an answer that has none is compared with at most
    `MOST_COMPARED` classes, the largest first.
    """
    grader = grader or shared_grader()
    distinct = list(dict.fromkeys(answer for answer in answers if answer is not None))
    prints = dict(zip(distinct, grader.fingerprints(distinct), strict=True))
    leaders: list[str] = []
    sizes: list[int] = []
    classes: dict[str | None, int | None] = {None: None}
    for answer in answers:
        if answer not in classes:
            assert answer is not None
            likely = [n for n, leader in enumerate(leaders) if may_be_equal(prints[leader], prints[answer])]
            likely = sorted(likely, key=lambda n: -sizes[n])[:MOST_COMPARED]
            classes[answer] = next((n for n in sorted(likely) if _equal(grader, leaders[n], answer)), len(leaders))
            if classes[answer] == len(leaders):
                leaders.append(answer)
                sizes.append(0)
        if (number := classes[answer]) is not None:
            sizes[number] += 1
    return [classes[answer] for answer in answers]


def _equal(grader: MathGrader, a: str, b: str) -> bool:
    pair = (grader.submit_answer([a], b), grader.submit_answer([b], a))
    return any(future.result().outcome == "correct" for future in pair)
