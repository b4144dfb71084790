"""What the tests of the math grader share."""

import json
from pathlib import Path
from typing import Any

from ba_eval.benchmark.problem import Problem
from ba_eval.grade.math.decide import decide

CASES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parents[1] / "cases" / "math.jsonl").read_text().splitlines()
]


def problem(*golds: str, **meta: Any) -> Problem:
    """A problem with these golds."""
    return Problem("p", "", golds=golds, meta=meta)


def same(gold: str, answer: str) -> bool:
    """Whether the two are equal; they must be decided."""
    outcome = decide(gold, answer)[0]
    assert outcome in ("correct", "wrong"), (gold, answer, outcome)
    return outcome == "correct"
