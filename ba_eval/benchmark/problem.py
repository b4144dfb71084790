"""A problem as every other module sees it, whatever its source looked like."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal

Kind = Literal["math", "code-stdin", "code-function"]


@dataclass(frozen=True)
class StdinTest:
    """The program reads `stdin` and must print `stdout`."""

    stdin: str
    stdout: str


@dataclass(frozen=True)
class CallTest:
    """The entry point called with `args` must return `expected` (plain data)."""

    args: Sequence[Any]
    expected: Any
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckTest:
    """A test program that defines `check(candidate)`, or holds asserts that name the entry point."""

    source: str


@dataclass(frozen=True)
class EvalplusTest:
    """Inputs of HumanEval+ or MBPP+: outputs are compared with the reference's on the same inputs.

    `base_input` and `plus_input` are as evalplus's own deserialiser leaves them: one list of arguments per call.
    """

    dataset: Literal["humaneval", "mbpp"]
    task_id: str
    base_input: Sequence[Sequence[Any]]
    plus_input: Sequence[Sequence[Any]]
    reference: str
    """The complete reference program (prompt and canonical solution)."""
    atol: float


@dataclass(frozen=True)
class CodeTask:
    """What a code problem asks: tests of one kind, and what is called."""

    tests: Sequence[StdinTest] | Sequence[CallTest] | CheckTest | EvalplusTest
    entry_point: str | None = None
    """A function's name, or `Solution.method`; None where the whole program is run on stdin."""
    prefix: str = ""
    """Code of the prompt (imports, signature, docstring) that a body-only answer continues."""
    excluded: str | None = None
    """Why the problem is reported apart (several accepted outputs, interactive, wrong tests), else None."""

    @cached_property
    def digest(self) -> str:
        """sha256 over the tests and what they call."""
        digest = getattr(self.tests, "digest", None)  # tests that are read when used know their own
        if isinstance(digest, str):
            return digest
        text = json.dumps([self.entry_point, self.tests], default=_plain)
        return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Turns what JSON does not know (sets in sorted order, complex numbers, dataclasses) into JSON data."""
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(value, key=repr)}
    return list(value) if isinstance(value, Sequence) else repr(value)


@dataclass(frozen=True)
class Problem:
    """One problem of a benchmark.

    `id` is unique within the benchmark and stable over copies of the data. `prompt` is the statement that the
    benchmark's prompt template wraps. `golds` are the accepted answers of a math problem (any of them is right).
    """

    id: str
    prompt: str
    golds: tuple[str, ...] = ()
    code: CodeTask | None = None
    reference: str | None = None
    """The set's own solution: text for math, a complete program for code."""
    meta: Mapping[str, Any] = field(default_factory=dict)
