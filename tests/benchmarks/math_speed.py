"""Speed of the math grader against math-verify, one worker each, in the same run.

    python tests/benchmarks/math_speed.py DATA

DATA is a folder with aime24.jsonl and math500.jsonl. Prints seconds and ratios; asserts nothing, for a machine may be
busy. Both sides take turns in small portions, so that a busy moment meets both.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from math_verify import parse, verify

from ba_eval.benchmark.problem import Problem
from ba_eval.grade.math import MathGrader

Sample = tuple[str, str]
"""(gold, response)"""


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def aime(data: Path, repeat: int = 10) -> list[Sample]:
    """Integer golds; two answers in three are right, each response has a page of reasoning."""
    draw = random.Random(1)
    samples = []
    for row in _rows(data / "aime24.jsonl") * repeat:
        answer = row["expected_answer"] if draw.random() < 2 / 3 else str(draw.randint(0, 999))
        samples.append((row["expected_answer"], f"{row['reference_solution']}\n\nThe answer is $\\boxed{{{answer}}}$."))
    return samples


def math500(data: Path, n: int = 16, problems: int = 500) -> list[Sample]:
    """n samples a problem as models give them: mostly one answer, and some of a few other answers again and again."""
    draw = random.Random(2)
    rows = _rows(data / "math500.jsonl")
    golds = [row["answer"] for row in rows]
    samples = []
    for row in rows[:problems]:
        wrong = draw.sample(golds, 3)
        right = draw.betavariate(2, 1)
        for _ in range(n):
            answer = row["answer"] if draw.random() < right else draw.choice(wrong)
            samples.append((row["answer"], f"{row['solution'][:1500]}\n\nSo the answer is $\\boxed{{{answer}}}$."))
    draw.shuffle(samples)
    return samples


def long_response(characters: int = 116_000, repeat: int = 10) -> list[Sample]:
    """Reasoning of 116k characters with formulas, and the answer without a box."""
    draw = random.Random(3)
    text = ""
    while len(text) < characters:
        a, b = draw.randint(2, 99), draw.randint(2, 99)
        text += (
            f"Wait, if $x_{a} = {b}$ then \\(\\frac{{{a}}}{{{b}}} + {a}\\) is wrong, so try ${a} \\cdot {b}$ again.\n"
        )
    return [("42", f"{text}{k}\n\nThe final answer is $42$.") for k in range(repeat)]


def ours(grader: MathGrader) -> Callable[[list[Sample]], int]:
    def grade(samples: list[Sample]) -> int:
        futures = [grader.submit(Problem("", "", golds=(gold,)), response) for gold, response in samples]
        return sum(future.result().outcome == "correct" for future in futures)

    return grade


def theirs(samples: list[Sample]) -> int:
    return sum(
        verify(parse(f"${gold}$", parsing_timeout=None), parse(response, parsing_timeout=None), timeout_seconds=None)
        for gold, response in samples
    )


def compare(name: str, samples: list[Sample], portion: int, share: int = 1) -> None:
    """Times both on the same samples; `share` > 1: math-verify gets only every share-th portion, scaled up."""
    mine = other = 0.0
    right = [0, 0]
    with MathGrader() as grader:
        grader.submit(Problem("", "", golds=("\\sqrt{8}",)), "\\boxed{2\\sqrt{2}}").result()  # starts the worker
        theirs([("\\sqrt{8}", "\\boxed{2\\sqrt{2}}")])
        for k in range(0, len(samples), portion):
            part = samples[k : k + portion]
            start = time.perf_counter()
            right[0] += ours(grader)(part)
            mine += time.perf_counter() - start
            if (k // portion) % share == 0:
                start = time.perf_counter()
                right[1] += theirs(part)
                other += (time.perf_counter() - start) * share
    count = len(samples)
    print(
        f"{name}: {count} responses; {1000 * mine / count:.3f} ms, math-verify {1000 * other / count:.3f} ms each: "
        f"{other / mine:.0f} x (correct: {right[0]}, math-verify {right[1] * share})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--share", type=int, default=20, help="math-verify grades one portion in this many of MATH-500")
    arguments = parser.parse_args()
    compare("AIME integers", aime(arguments.data), 100)
    compare("116k characters", long_response(), 2)
    compare("MATH-500 x 16", math500(arguments.data), 100, arguments.share)


if __name__ == "__main__":
    main()
