"""maj@k: the most frequent answer, where answers that mean the same count as one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ba_eval.errors import InputError
from ba_eval.results import Cell, State

Grouping = Callable[[Sequence[str]], Sequence[int | None]]


class Poll(NamedTuple):
    """The answers to one problem, as `stats.maj_at_k` takes them."""

    counts: list[int]
    """Samples in each class of equal answers."""
    correct: list[bool]
    n: int
    """Scored samples, those without an answer too."""


def polls(cell: Cell, group: Grouping | None = None) -> list[Poll]:
    """The classes of answers to each problem of a math benchmark.

    Correct answers are one class, by their verdicts; the others are told apart by `group`, by default the math
    grader's equivalence. Raises InputError where the results were loaded without answers.
    """
    if cell.answers is None:
        raise InputError("maj@k needs the extracted answers: load(run, answers=True)")
    found = []
    for row, texts in enumerate(cell.answer_texts):
        counts = cell.state[row] >= State.UNDECIDED
        right = cell.state[row] == State.CORRECT
        answers = cell.answers[row]
        wrong = np.bincount(answers[counts & ~right & (answers >= 0)], minlength=len(texts))
        given = np.flatnonzero(wrong).tolist()
        classes = (group or _equivalent)([texts[number] for number in given]) if len(given) > 1 else range(len(given))
        sizes: dict[int | None, int] = {}
        for number, of in zip(given, classes, strict=True):
            sizes[of] = sizes.get(of, 0) + int(wrong[number])
        correct = [int(np.count_nonzero(right))] if right.any() else []
        found.append(
            Poll(
                [*correct, *sizes.values()], [*map(bool, correct), *[False] * len(sizes)], int(np.count_nonzero(counts))
            )
        )
    return found


def _equivalent(answers: Sequence[str]) -> Sequence[int | None]:
    from ba_eval.grade.math import group_answers

    return group_answers(answers)
