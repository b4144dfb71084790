"""Fixtures of the graders' tests."""

from collections.abc import Iterator

import pytest

from ba_eval.grade.math import MathGrader


@pytest.fixture(scope="module")
def math_grader() -> Iterator[MathGrader]:
    """A math grader with one worker."""
    with MathGrader() as grader:
        yield grader
