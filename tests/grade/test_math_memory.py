"""A long run of the math grader: memory stays flat."""

import random
from pathlib import Path

import pytest

from ba_eval.benchmark.problem import Problem
from ba_eval.grade.math import MathGrader


def _resident_mb(pid: int | str = "self") -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_million_answers_in_flat_memory() -> None:
    """Nine in ten answers are plain numbers, all distinct; the others need the worker, one in four of them anew.

    Each response is long, so that one kept alive by anything would show.
    """
    page = "Some reasoning that goes on and on. " * 100
    draw = random.Random(7)
    marks: list[tuple[float, float]] = []
    with MathGrader() as grader:
        for block in range(10):
            for start in range(0, 100_000, 1000):
                futures = []
                for k in range(start, start + 1000):
                    if k % 10:
                        gold, answer = str(draw.randint(0, 999)), str(block * 100_000 + k)
                    else:
                        root = draw.randint(2, 10**6) if k % 40 == 0 else draw.randint(2, 99)
                        gold, answer = f"2\\sqrt{{{root}}}", f"\\sqrt{{{4 * root}}}"
                    response = f"{page}{k} The answer is $\\boxed{{{answer}}}$."
                    futures.append((k, grader.submit(Problem("p", "", golds=(gold,)), response)))
                assert all(future.result().outcome == "correct" for k, future in futures if k % 10 == 0)
            worker = grader._pool._idle.queue[0].process.pid
            marks.append((_resident_mb(), _resident_mb(worker)))
    print(marks)
    assert marks[-1][0] - marks[3][0] < 30
    assert marks[-1][1] - marks[3][1] < 30
