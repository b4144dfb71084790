"""The records of a run folder, as they stand on disk. A person can read them; a table needs nothing else.

    run.yaml                              what was asked, resolved
    plan.json                             `Plan`: which samples are wanted, under which key
    environment.json                      versions, hardware, git
    problems/<benchmark>.jsonl            one `ProblemRecord` a line, for readers of the samples
    samples/<model>/<benchmark>.jsonl     one `Sample` a line, appended as it finishes
    verdicts/<model>/<benchmark>.jsonl    one `VerdictRecord` a line, appended as it is graded

A sample is identified by (key, problem_id, index). The key is a hash over all that a sample depends on besides these:
weights, tokenizer, prompt template, benchmark content, sampling parameters and run seed. A file may hold samples
of older keys (a checkpoint overwritten in place); only those under the plan's key count.
"""

from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import msgspec

RECORDS: tuple[Literal["samples"], Literal["verdicts"]] = ("samples", "verdicts")
"""The kinds of records of a model on a benchmark, as `records_path` names them."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One generated response."""

    key: str
    problem_id: str
    index: int
    """0 .. n-1: which of the samples of this problem."""
    seed: int
    finish_reason: str
    """`stop`, `length` (cut by max_tokens or the context), or `error` (never generated; `error` says why)."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    text: str
    thinking_tokens: int | None = None
    error: str | None = None


class VerdictRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict on the sample of the same key, problem_id and index. The last line for a sample counts."""

    key: str
    problem_id: str
    index: int
    outcome: Literal["correct", "wrong", "undecided", "error"]
    reason: str
    grader: str
    """Name and version of the grader, as `math 1`."""
    seconds: float = 0.0
    extracted: str | None = None
    method: str = ""
    details: dict[str, Any] = {}


class ProblemRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a problem asks; no number depends on it."""

    id: str
    statement: str
    golds: tuple[str, ...] = ()
    """The accepted answers of a math problem."""


class SampleHead(msgspec.Struct, frozen=True, gc=False):
    """What of a `Sample` says which it is, and no text: for looking through many."""

    key: str
    problem_id: str
    index: int
    finish_reason: str


class VerdictHead(msgspec.Struct, frozen=True, gc=False):
    """The same of a `VerdictRecord`."""

    key: str
    problem_id: str
    index: int
    outcome: Literal["correct", "wrong", "undecided", "error"]
    grader: str


class PlannedModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of the tables."""

    name: str
    path: str
    weights: str
    """Identity of the weights: a hash over the weight files' headers, sizes and content samples."""
    aggregation: str | None = None
    step: int | None = None
    training_seed: int | None = None
    marks: tuple[str, ...] = ()
    """What a reader of a table must know, as `prompt from training.json`."""


class PlannedBenchmark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column of the tables."""

    name: str
    """As asked, with parameters: `math500`, `livecodebench@v6`. Also the file name of its records."""
    title: str
    kind: str
    n: int
    problem_ids: tuple[str, ...]
    content: str
    """Hash over the problems."""
    excluded: dict[str, str] = {}
    """Problems reported apart (problem id to reason): not in the score."""
    max_tokens: int = 0
    marks: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything a table has to know besides the records."""

    models: tuple[PlannedModel, ...]
    benchmarks: tuple[PlannedBenchmark, ...]
    keys: dict[str, dict[str, str]]
    """model name -> benchmark name -> the key whose samples count."""
    ks: tuple[int, ...] = (1,)
    """The k of pass@k that were asked for."""
    seed: int = 0
    marks: tuple[str, ...] = ()
    """Marks of the whole run, as `unsafe: code ran without a sandbox`."""
    suite: str | None = None


def records_path(run: Path, what: Literal["samples", "verdicts"], model: str, benchmark: str) -> Path:
    """The file that holds the records of one model on one benchmark; any name makes a safe file name."""
    return run / what / quote(model, safe="@+=, ") / f"{quote(benchmark, safe='@+=, ')}.jsonl"


def problems_path(run: Path, benchmark: str) -> Path:
    """The file that holds the problems of a benchmark."""
    return run / "problems" / f"{quote(benchmark, safe='@+=, ')}.jsonl"
