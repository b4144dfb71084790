"""The suspicious verdicts of a run, most likely wrong first, from its records alone and in bounded memory."""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ba_eval.errors import InputError
from ba_eval.records import (
    Plan,
    PlannedBenchmark,
    PlannedModel,
    ProblemRecord,
    Sample,
    VerdictRecord,
    problems_path,
    records_path,
)
from ba_eval.store import read_plan, read_records
from ba_eval.yaml_file import nearest

R = TypeVar("R", Sample, VerdictRecord)
N = TypeVar("N", PlannedModel, PlannedBenchmark)

TAIL = 800
"""Characters of a response's end that are kept to show."""

WEIGHTS: Mapping[str, float] = {
    "not graded: an error": 9,
    "gold's numbers in the final lines": 5,
    "gold's words in the final lines": 5,
    "second method disagrees": 4,
    "undecided": 3,
    "answer not read": 3,
    "no code found": 3,
    "found outside the expected format": 2,
    "cut inside the box": 1,
}
"""How much each signal says that a verdict is wrong; those of one verdict add up."""

_CUT = 0.2
"""A cut response rarely has a wrong verdict, whatever its last lines name."""
_CORRECT = 0.1
"""Nor has an answer that stood in an odd place and equals the gold."""


class Finding(NamedTuple):
    """One suspicious verdict."""

    model: str
    benchmark: str
    weight: float
    signals: tuple[str, ...]
    verdict: VerdictRecord
    golds: tuple[str, ...]
    """The accepted answers of a math problem."""
    tail: str
    """The response's end; empty where the sample is not there."""


@dataclass(frozen=True)
class Audit:
    """What `audit` found."""

    verdicts: int
    """Verdicts that were looked at."""
    suspicious: int
    signals: Mapping[str, int]
    """How many verdicts show each signal."""
    findings: tuple[Finding, ...]
    """The most suspicious ones, in order."""


def audit(run: Path, *, model: str | None = None, benchmark: str | None = None, limit: int = 20) -> Audit:
    """Reads the verdicts of a run, or of one model or benchmark, and shows the `limit` most suspicious ones.

    Only what the plan wants counts. Memory is a few bytes a sample and the findings. Raises InputError where the folder
    is no run, a name is not in it, or a line is not a record.
    """
    plan = read_plan(run)
    cells = [
        _Cell(run, plan, m, b)
        for m, b in itertools.product(_chosen(plan.models, model), _chosen(plan.benchmarks, benchmark))
    ]
    signals: Counter[str] = Counter()
    for cell in cells:
        signals.update(cell.signals)
    places = heapq.nsmallest(
        limit, itertools.chain.from_iterable(cell.places(number) for number, cell in enumerate(cells))
    )
    findings: dict[_Place, Finding] = {}
    for number, group in itertools.groupby(sorted(places, key=lambda place: place.cell), key=lambda place: place.cell):
        findings |= cells[number].findings(list(group))
    return Audit(
        verdicts=sum(int(np.count_nonzero(cell.weights >= 0)) for cell in cells),
        suspicious=sum(int(np.count_nonzero(cell.weights > 0)) for cell in cells),
        signals={name: signals[name] for name in WEIGHTS if signals[name]},
        findings=tuple(findings[place] for place in places if place in findings),
    )


def signals_of(verdict: VerdictRecord) -> tuple[str, ...]:
    """Returns what makes a verdict suspicious; nothing for most."""
    found = [flag for flag in verdict.details.get("flags", ()) if flag in WEIGHTS]
    if verdict.outcome == "error":
        found.insert(0, "not graded: an error")
    if verdict.outcome == "undecided" and "undecided" not in found:
        found.append("undecided")
    if verdict.reason == "no code":
        found.append("no code found")
    return tuple(found)


def weigh(verdict: VerdictRecord, signals: Iterable[str]) -> float:
    """Returns how likely a verdict is wrong, on no scale but its own; 0 without a signal."""
    total = sum(WEIGHTS[signal] for signal in signals)
    if verdict.reason == "truncated":
        return total * _CUT
    return total * _CORRECT if verdict.outcome == "correct" else total


class _Place(NamedTuple):
    """Sorts the most suspicious first, then in the plan's order."""

    minus_weight: float
    cell: int
    row: int
    sample: int


class _Cell:
    """The verdicts of one model on one benchmark: their weights, (P, n), -1 where there is none."""

    def __init__(self, run: Path, plan: Plan, model: PlannedModel, benchmark: PlannedBenchmark) -> None:
        self.run, self.model, self.benchmark = run, model.name, benchmark.name
        self.key = plan.keys.get(model.name, {}).get(benchmark.name, "")
        self.ids, self.n = benchmark.problem_ids, benchmark.n
        self.rows = {problem: row for row, problem in enumerate(self.ids)}
        self.weights: npt.NDArray[np.float32] = np.full((len(self.ids), self.n), -1, dtype=np.float32)
        shown: npt.NDArray[np.uint16] = np.zeros((len(self.ids), self.n), dtype=np.uint16)
        bits = {name: 1 << number for number, name in enumerate(WEIGHTS)}
        for spot, verdict in self._wanted(VerdictRecord):  # the last line for a sample counts
            signals = signals_of(verdict)
            self.weights[spot] = weigh(verdict, signals)
            shown[spot] = sum(bits[name] for name in set(signals))
        self.signals = Counter({name: int(np.count_nonzero(shown & bit)) for name, bit in bits.items()})

    def places(self, number: int) -> Iterator[_Place]:
        """Yields the place of each suspicious verdict."""
        for row, index in np.argwhere(self.weights > 0):
            yield _Place(-float(self.weights[row, index]), number, int(row), int(index))

    def findings(self, places: list[_Place]) -> dict[_Place, Finding]:
        """Reads the verdicts and samples at these places."""
        wanted = {(place.row, place.sample): place for place in places}
        verdicts = {spot: verdict for spot, verdict in self._wanted(VerdictRecord) if spot in wanted}
        path = problems_path(self.run, self.benchmark)
        golds = {problem.id: problem.golds for problem in read_records(path, ProblemRecord)}
        tails = {spot: sample.text[-TAIL:] for spot, sample in self._wanted(Sample) if spot in wanted}
        return {
            wanted[spot]: Finding(
                self.model,
                self.benchmark,
                -wanted[spot].minus_weight,
                signals_of(verdict),
                verdict,
                golds.get(verdict.problem_id, ()),
                tails.get(spot, ""),
            )
            for spot, verdict in verdicts.items()
        }

    def _wanted(self, type: type[R]) -> Iterator[tuple[tuple[int, int], R]]:
        """Yields the records that the plan wants, each with its row and index."""
        path = records_path(self.run, "samples" if type is Sample else "verdicts", self.model, self.benchmark)
        for record in read_records(path, type):
            row = self.rows.get(record.problem_id)
            if row is not None and record.key == self.key and 0 <= record.index < self.n:
                yield (row, record.index), record


def _chosen(planned: Iterable[N], name: str | None) -> list[N]:
    """The planned models or benchmarks of this name; all of them where none is asked for."""
    planned = list(planned)
    found = [item for item in planned if name is None or item.name == name]
    if not found:
        raise InputError(f"{name}: is not in this run{nearest(str(name), [item.name for item in planned])}")
    return found
