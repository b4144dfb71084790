"""What a grader says of one response."""

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Literal, Protocol

import msgspec

from ba_eval.benchmark.problem import Problem

Outcome = Literal["correct", "wrong", "undecided", "error"]


class Verdict(msgspec.Struct, frozen=True):
    """One verdict. `undecided`: the grader could not tell; `error`: the harness or sandbox failed, never scored."""

    outcome: Outcome
    reason: str
    """Short and fixed in kind, for counting: `equal`, `no answer`, `no code`, `timeout`, `failed test`, ..."""
    extracted: str | None = None
    """The final answer or program that was taken from the response."""
    method: str = ""
    seconds: float = 0.0
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """JSON data for people: tests passed and total, the first failed test (shortened), base and plus status."""


class Grader(Protocol):
    """Grades while the engine generates: `submit` returns at once, the future holds the verdict.

    A future never raises for something a response did; it holds an `error` verdict where the harness failed.
    """

    version: str

    def submit(self, problem: Problem, response: str, finish_reason: str) -> Future[Verdict]: ...

    def close(self) -> None: ...
