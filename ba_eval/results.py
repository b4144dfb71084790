"""Reads a run folder's records into arrays: what every table, comparison, gate and report starts from.

Only what the plan wants counts: samples under the plan's key, of wanted problems, with index < n. What is wanted and
not there is counted as missing, never scored.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from ba_eval.errors import InputError
from ba_eval.records import Plan, PlannedBenchmark, PlannedModel, SampleHead, VerdictHead, records_path
from ba_eval.store import read_blocks, read_plan

if TYPE_CHECKING:
    import pandas


class State(IntEnum):
    """What became of a wanted sample. From `UNDECIDED` upwards it is scored; only `CORRECT` scores."""

    MISSING = 0
    UNGRADED = 1
    ERROR = 2
    UNDECIDED = 3
    WRONG = 4
    CORRECT = 5


_OUTCOMES = {"error": State.ERROR, "undecided": State.UNDECIDED, "wrong": State.WRONG, "correct": State.CORRECT}
_LACKS = {"samples missing": State.MISSING, "not graded": State.UNGRADED, "with errors": State.ERROR}


@dataclass(frozen=True)
class Cell:
    """One model on one benchmark. Arrays are (P, n): wanted problems x samples, in the plan's order."""

    model: PlannedModel
    benchmark: PlannedBenchmark
    problem_ids: tuple[str, ...]
    state: npt.NDArray[np.int8]
    """`State` of each sample."""
    truncated: npt.NDArray[np.bool_]
    """Cut by max_tokens or the context."""
    tokens: npt.NDArray[np.int32]
    """Completion tokens; -1 where nothing was generated."""
    thinking: npt.NDArray[np.int32]
    """Tokens of thinking among them; -1 where the response had none, or its engine did not count them."""
    reason: npt.NDArray[np.int32]
    """Which of `reason_texts` the verdict (or the failed generation) gave, -1 for none."""
    reason_texts: tuple[str, ...]
    graders: tuple[str, ...] = ()
    """Name and version of the graders whose verdicts count, as `math 1`."""
    answers: npt.NDArray[np.int32] | None = None
    """Which extracted answer of its problem, -1 for none; None where `load` was not asked for answers."""
    answer_texts: tuple[tuple[str, ...], ...] = ()
    """The distinct extracted answers of each problem, as `answers` numbers them."""

    @functools.cached_property
    def scored(self) -> npt.NDArray[np.int64]:
        """Samples that count, for each problem: (P,)."""
        return np.asarray(np.count_nonzero(self.state >= State.UNDECIDED, axis=1), dtype=np.int64)

    @functools.cached_property
    def correct(self) -> npt.NDArray[np.int64]:
        """Correct samples, for each problem: (P,)."""
        return np.asarray(np.count_nonzero(self.state == State.CORRECT, axis=1), dtype=np.int64)

    @property
    def unclosed(self) -> npt.NDArray[np.bool_]:
        """Responses that were still thinking when they ended, (P, n)."""
        return (self.thinking >= self.tokens) & (self.thinking > 0)

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        """The share of correct samples of each problem, float64 (P,), NaN where none counts."""
        with np.errstate(invalid="ignore"):
            return self.correct / self.scored

    def count(self, state: State) -> int:
        """How many samples are in this state."""
        return int(np.count_nonzero(self.state == state))

    def reasons(self, state: State) -> Counter[str]:
        """How often each reason was given for this state."""
        numbers = self.reason[(self.state == state) & (self.reason >= 0)]
        counts = np.bincount(numbers, minlength=len(self.reason_texts)).tolist()
        return Counter({text: count for text, count in zip(self.reason_texts, counts, strict=True) if count})

    def rows(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> "Cell":
        """The cell with only these problems: a mask (P,) or row numbers."""
        numbers = np.arange(len(self.problem_ids))[chosen]
        return replace(
            self,
            problem_ids=tuple(self.problem_ids[row] for row in numbers),
            state=self.state[numbers],
            truncated=self.truncated[numbers],
            tokens=self.tokens[numbers],
            thinking=self.thinking[numbers],
            reason=self.reason[numbers],
            answers=None if self.answers is None else self.answers[numbers],
            answer_texts=tuple(self.answer_texts[row] for row in numbers) if self.answer_texts else (),
        )

    @functools.cached_property
    def _is_apart(self) -> npt.NDArray[np.bool_]:
        return np.array([problem in self.benchmark.excluded for problem in self.problem_ids], dtype=np.bool_)

    @functools.cached_property
    def in_score(self) -> "Cell":
        """The problems that make the score."""
        return self.rows(~self._is_apart) if self._is_apart.any() else self

    @functools.cached_property
    def apart(self) -> "Cell":
        """The problems that the benchmark reports apart."""
        return self.rows(self._is_apart)


@dataclass(frozen=True)
class Results:
    """All cells of one run."""

    run: Path
    plan: Plan
    cells: Mapping[tuple[str, str], Cell]
    """(model name, benchmark name) -> cell, complete."""

    def total(self, state: State) -> int:
        """How many wanted samples of the run are in this state."""
        return sum(cell.count(state) for cell in self.cells.values())

    @property
    def complete(self) -> bool:
        """Whether every wanted sample was generated and graded without an error."""
        return not any(map(self.total, _LACKS.values()))

    def lacks(self) -> str:
        """What is not there, in words; empty where the run is complete."""
        counts = {name: self.total(state) for name, state in _LACKS.items()}
        return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)

    def only(self, model: str) -> "Results":
        """The results with the cells of one model."""
        return replace(self, cells={place: cell for place, cell in self.cells.items() if place[0] == model})

    def table(self, ks: tuple[int, ...] | None = None) -> "pandas.DataFrame":
        """The numbers of `ba-eval table` as a data frame, one row a model and benchmark (see docs/statistics.md)."""
        from ba_eval.tables import frame

        return frame(self, ks)


def load(run: str | Path, *, answers: bool = False) -> Results:
    """Reads a run folder.

    `answers` reads the extracted answers too, which maj@k needs and which cost memory. A torn last line is left out.
    Raises InputError where there is no run, or where a line is not a record (naming it).
    """
    run = Path(run)
    plan = read_plan(run)
    cells = {}
    for model, benchmark in itertools.product(plan.models, plan.benchmarks):
        key = plan.keys.get(model.name, {}).get(benchmark.name)
        if key is None:
            raise InputError(f"{run / 'plan.json'}: has no key for {model.name} on {benchmark.name}")
        cells[model.name, benchmark.name] = _load_cell(run, model, benchmark, key, answers)
    return Results(run, plan, cells)


class _SampleLine(SampleHead, frozen=True, gc=False):
    completion_tokens: int
    thinking_tokens: int | None = None
    error: str | None = None


class _VerdictLine(VerdictHead, frozen=True, gc=False):
    reason: str


class _AnswerLine(_VerdictLine, frozen=True, gc=False):
    extracted: str | None = None


_Line = TypeVar("_Line", _SampleLine, _VerdictLine, _AnswerLine)


def _load_cell(run: Path, model: PlannedModel, benchmark: PlannedBenchmark, key: str, answers: bool) -> Cell:
    n = benchmark.n
    shape = (len(benchmark.problem_ids), n)
    wanted = _Wanted(key, {problem: row for row, problem in enumerate(benchmark.problem_ids)}, n)
    reasons: dict[str, int] = {}

    state = np.full(shape, State.MISSING, dtype=np.int8)
    truncated = np.zeros(shape, dtype=np.bool_)
    tokens = np.full(shape, -1, dtype=np.int32)
    thinking = np.full(shape, -1, dtype=np.int32)
    reason = np.full(shape, -1, dtype=np.int32)
    for samples, spots in wanted.pick(records_path(run, "samples", model.name, benchmark.name), _SampleLine):
        made = np.array([line.finish_reason != "error" for line in samples], dtype=np.bool_)
        state.flat[spots] = np.where(made, State.UNGRADED, State.ERROR)
        truncated.flat[spots] = [line.finish_reason == "length" for line in samples]
        tokens.flat[spots] = np.where(made, [line.completion_tokens for line in samples], -1)
        thinking.flat[spots] = [-1 if line.thinking_tokens is None else line.thinking_tokens for line in samples]
        reason.flat[spots] = -1
        for number in np.flatnonzero(~made):
            text = samples[number].error or "not generated"
            reason.flat[spots[number]] = reasons.setdefault(text, len(reasons))

    graded = np.full(shape, State.MISSING, dtype=np.int8)
    graded_reason = np.full(shape, -1, dtype=np.int32)
    extracted = np.full(shape, -1, dtype=np.int32)
    graders: set[str] = set()
    texts: list[dict[str, int]] = [{} for _ in benchmark.problem_ids]
    path = records_path(run, "verdicts", model.name, benchmark.name)
    for verdicts, spots in wanted.pick(path, _AnswerLine if answers else _VerdictLine):
        graded.flat[spots] = [_OUTCOMES[line.outcome] for line in verdicts]
        graders.update(line.grader for line in verdicts)
        graded_reason.flat[spots] = [reasons.setdefault(line.reason, len(reasons)) for line in verdicts]
        for line, spot in zip(verdicts, spots.tolist(), strict=True) if answers else ():
            known, text = texts[spot // n], getattr(line, "extracted", None)
            extracted.flat[spot] = -1 if text is None else known.setdefault(text, len(known))
    counts = (state == State.UNGRADED) & (graded != State.MISSING)
    return Cell(
        model=model,
        benchmark=benchmark,
        problem_ids=benchmark.problem_ids,
        state=np.where(counts, graded, state),
        truncated=truncated,
        tokens=tokens,
        thinking=thinking,
        reason=np.where(counts, graded_reason, reason),
        reason_texts=tuple(reasons),
        graders=tuple(sorted(graders)),
        answers=np.where(counts, extracted, -1) if answers else None,
        answer_texts=tuple(map(tuple, texts)) if answers else (),
    )


@dataclass(frozen=True)
class _Wanted:
    """Which records of a file count, and their place in an array (P, n)."""

    key: str
    rows: Mapping[str, int]
    n: int

    def pick(self, path: Path, type: type[_Line]) -> Iterator[tuple[list[_Line], npt.NDArray[np.int64]]]:
        """Yields the records that count, with their flat places; of several for one place the last one stays."""
        row_of, key, n = self.rows.get, self.key, self.n
        for block in read_blocks(path, type):
            rows = np.array([row_of(line.problem_id, -1) if line.key == key else -1 for line in block], dtype=np.int64)
            indices = np.array([line.index for line in block], dtype=np.int64)
            chosen = np.flatnonzero((rows >= 0) & (indices >= 0) & (indices < n))
            spots = rows[chosen] * n + indices[chosen]
            # numpy promises no order where a place is assigned twice.
            _, last = np.unique(spots[::-1], return_index=True)
            if len(last) < len(spots):
                keep = np.sort(len(spots) - 1 - last)
                chosen, spots = chosen[keep], spots[keep]
            yield (block if len(chosen) == len(block) else [block[number] for number in chosen.tolist()]), spots
