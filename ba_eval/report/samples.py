"""The samples in a page: outcome and length of all, and the text of as many as fit, compressed in blocks.

The page decodes a block when one of its samples is looked at. A block holds whole units: one sample index of one
problem, of all models, so that two models can be put side by side wherever one of them can be read.
"""

import base64
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from ba_eval.extract.thinking import split_thinking
from ba_eval.records import RECORDS, ProblemRecord, Sample, VerdictRecord, problems_path, records_path
from ba_eval.results import Cell, Results
from ba_eval.store import read_records

BLOCK = 1 << 18
"""Bytes of a block before compression: some milliseconds of work for a browser."""
LONGEST = 200_000
"""Characters of one text that are kept; of a longer one, the beginning and the end."""
_TAIL = 50_000
_REASON = 300

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Packed:
    """What of the samples goes into the page."""

    index: str
    """The index of all samples, see `_index`: base64 of deflated JSON."""
    problems: str
    """What the problems ask, see `_problems`: base64 of deflated JSON; empty where the run does not say."""
    blocks: list[str]
    """base64 of deflated JSON: a list of units, each a list with an entry or null for each model."""
    kept: int
    """Samples whose text is in the blocks; of `total` that were generated."""
    total: int
    shortened: int
    """Texts among the kept of which only beginning and end are there."""
    whole_levels: int
    """So many sample indices of every problem are there: 0 .. whole_levels - 1."""


def pack(results: Results, budget: int) -> Packed:
    """Packs the samples of a run into about `budget` characters.

    Kept are first the samples 0 of all problems, then the samples 1, and so on; where not all of a level fit, problems
    in a fixed random order, each benchmark in proportion to its size.
    """
    problems = _problems(results)
    blocks: list[str] = []
    members: list[list[int]] = []
    kept = shortened = 0
    size = len(problems)
    with ExitStack() as stack:
        readers = {place: _Reader(results, cell, stack) for place, cell in results.cells.items()}
        order = _order(results)
        for units, text, count, cut in _blocks(results, readers, order):
            block = _deflated(text)
            if size + len(block) > budget:
                break
            size += len(block)
            blocks.append(block)
            members.append(units)
            kept, shortened = kept + count, shortened + cut
        total = sum(reader.total for reader in readers.values())
    packed = sum(map(len, members))
    left = [level for _, _, _, level in order[packed:]]
    return Packed(
        index=_deflated(msgspec.json.encode(_index(results, members))),
        problems=problems,
        blocks=blocks,
        kept=kept,
        total=total,
        shortened=shortened,
        whole_levels=min(left) if left else max((benchmark.n for benchmark in results.plan.benchmarks), default=0),
    )


def _problems(results: Results) -> str:
    """A list for each benchmark: [statement, accepted answer, ...] or null for each problem, in the plan's order."""
    found = []
    for benchmark in results.plan.benchmarks:
        path = problems_path(results.run, benchmark.name)
        known = {problem.id: problem for problem in read_records(path, ProblemRecord)}
        rows = (known.get(id) for id in benchmark.problem_ids)
        found.append([None if row is None else [row.statement[:LONGEST], *row.golds] for row in rows])
    return _deflated(msgspec.json.encode(found)) if any(map(any, found)) else ""


def _order(results: Results) -> list[tuple[int, int, int, int]]:
    """Units in the order they are kept: (number of the unit, benchmark, row, index)."""
    found: list[tuple[tuple[int, float], tuple[int, int, int, int]]] = []
    first = 0
    for number, benchmark in enumerate(results.plan.benchmarks):
        problems, n = len(benchmark.problem_ids), benchmark.n
        shuffled = np.random.default_rng([0, problems]).permutation(problems).tolist()
        for position, row in enumerate(shuffled):
            for index in range(n):
                unit = (first + row * n + index, number, row, index)
                found.append(((index, (position + 0.5) / problems), unit))
        first += problems * n
    return [unit for _, unit in sorted(found)]


def _blocks(
    results: Results, readers: dict[tuple[str, str], "_Reader"], order: list[tuple[int, int, int, int]]
) -> Iterator[tuple[list[int], bytes, int, int]]:
    """Yields for each block its units, its JSON, how many samples it holds and how many of them are shortened."""
    units: list[int] = []
    parts: list[bytes] = []
    size = count = cut = 0
    for unit, benchmark, row, index in order:
        name = results.plan.benchmarks[benchmark].name
        entries = [readers[model.name, name].entry(row, index) for model in results.plan.models]
        units.append(unit)
        parts.append(msgspec.json.encode(entries))
        size += len(parts[-1])
        count += sum(entry is not None for entry in entries)
        cut += sum(entry is not None and "left_out" in entry for entry in entries)
        if size >= BLOCK:
            yield units, b"[" + b",".join(parts) + b"]", count, cut
            units, parts, size, count, cut = [], [], 0, 0, 0
    if units:
        yield units, b"[" + b",".join(parts) + b"]", count, cut


class _Place(msgspec.Struct, gc=False):
    key: str
    problem_id: str
    index: int


class _Reader:
    """Reads single samples of one model on one benchmark, with their verdicts."""

    def __init__(self, results: Results, cell: Cell, stack: ExitStack) -> None:
        key = results.plan.keys[cell.model.name][cell.benchmark.name]
        self._files: list[BinaryIO | None] = []
        self._starts: list[Integers] = []
        for what in RECORDS:
            path = records_path(results.run, what, cell.model.name, cell.benchmark.name)
            self._files.append(stack.enter_context(path.open("rb")) if path.exists() else None)
            self._starts.append(_starts(path, key, cell))
        self.total = int(np.count_nonzero(self._starts[0] >= 0))

    def entry(self, row: int, index: int) -> dict[str, Any] | None:
        """What the page shows of one sample; None where it was never generated."""
        lines = [self._line(what, row, index) for what in (0, 1)]
        if lines[0] is None:
            return None
        sample = msgspec.json.decode(lines[0], type=Sample)
        verdict = msgspec.json.decode(lines[1], type=VerdictRecord) if lines[1] is not None else None
        thinking, answer, closed = _parts(sample)
        entry: dict[str, Any] = {"text": answer}
        if thinking is not None:
            entry |= {"thinking": thinking} if closed else {"thinking": thinking, "open": True}
        if sample.error:
            entry["error"] = sample.error
        if verdict is not None:
            entry |= {"extracted": verdict.extracted, "method": verdict.method, "grader": verdict.grader}
            if verdict.details:
                entry["details"] = msgspec.json.format(msgspec.json.encode(verdict.details), indent=2).decode()
        return _shortened({name: value for name, value in entry.items() if value is not None})

    def _line(self, what: int, row: int, index: int) -> bytes | None:
        file, start = self._files[what], int(self._starts[what][row, index])
        if file is None or start < 0:
            return None
        file.seek(start)
        return file.readline()


def _starts(path: Path, key: str, cell: Cell) -> Integers:
    """Where in the file the line of each sample starts, (P, n); -1 where there is none. Of several the last counts."""
    found = np.full(cell.state.shape, -1, dtype=np.int64)
    rows = {problem: row for row, problem in enumerate(cell.problem_ids)}
    decoder = msgspec.json.Decoder(_Place)
    if not path.exists():
        return found
    start = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            place = decoder.decode(line)
            row = rows.get(place.problem_id)
            if place.key == key and row is not None and 0 <= place.index < cell.benchmark.n:
                found[row, place.index] = start
            start += len(line)
    return found


def _parts(sample: Sample) -> tuple[str | None, str, bool]:
    """Thinking, answer, and whether the thinking ended; also where the prompt opened it and nothing closed it."""
    thinking, answer, closed = split_thinking(sample.text)
    tokens = sample.thinking_tokens or 0
    if thinking is None and 0 < sample.completion_tokens <= tokens:
        return sample.text, "", False
    return thinking, answer, closed


def _shortened(entry: dict[str, Any]) -> dict[str, Any]:
    left_out = 0
    for name, value in entry.items():
        if isinstance(value, str) and len(value) > LONGEST:
            left_out += len(value) - LONGEST
            more = f"\n\n[… {len(value) - LONGEST:,} characters left out …]\n\n"
            entry[name] = value[: LONGEST - _TAIL] + more + value[-_TAIL:]
    return entry | ({"left_out": left_out} if left_out else {})


def _index(results: Results, members: list[list[int]]) -> dict[str, Any]:
    """Outcome, length and reason of every wanted sample; `state` has one digit for each, problem by problem."""
    return {
        "models": [model.name for model in results.plan.models],
        "benchmarks": [
            {
                "name": benchmark.name,
                "kind": benchmark.kind,
                "n": benchmark.n,
                "problems": benchmark.problem_ids,
                "apart": benchmark.excluded,
            }
            for benchmark in results.plan.benchmarks
        ],
        "cells": [
            [_cell_index(results, results.cells[model.name, benchmark.name]) for benchmark in results.plan.benchmarks]
            for model in results.plan.models
        ],
        "blocks": members,
    }


def _cell_index(results: Results, cell: Cell) -> dict[str, Any]:
    path = records_path(results.run, "samples", cell.model.name, cell.benchmark.name)
    return {
        "state": "".join(map(str, cell.state.ravel().tolist())),
        "cut": "".join("01"[value] for value in cell.truncated.ravel().tolist()),
        "open": "".join("01"[value] for value in cell.unclosed.ravel().tolist()),
        "tokens": cell.tokens.ravel().tolist(),
        "reason": cell.reason.ravel().tolist(),
        "reasons": [text[:_REASON] for text in cell.reason_texts],
        "file": path.relative_to(results.run).as_posix(),
    }


def _deflated(text: bytes) -> str:
    return base64.b64encode(zlib.compress(text, 6)).decode()
