"""Ranks the models of many runs; only what was measured the same way is ranked together."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ba_eval.compare import ALPHA, align
from ba_eval.measure import differences, label, measure
from ba_eval.records import PlannedModel
from ba_eval.results import Cell, Results
from ba_eval.stats import Estimate, holm, mean_interval, sign_flip_p


@dataclass(frozen=True)
class Entry:
    """One model of one run."""

    label: str
    """The model's name, with its run where that is not enough."""
    run: str
    model: PlannedModel
    rank: tuple[int, int] | None
    """The best and the worst rank that its paired tests leave open; None where its score is undefined."""
    suite: Estimate
    """The mean over the benchmarks of avg@n."""
    benchmarks: dict[str, Estimate]
    tokens: float
    truncated: float
    lacks: str
    """What is missing of its samples; empty where nothing is."""


@dataclass(frozen=True)
class Group:
    """Entries that were measured the same way, by rank."""

    entries: tuple[Entry, ...]
    differs: tuple[str, ...]
    """How the measurement differs from that of the first group; empty for that."""


def leaderboard(runs: Sequence[Results]) -> list[Group]:
    """Groups and ranks the models of the runs; the largest group comes first.

    Measured the same way: same benchmarks, content, prompt settings, sampling parameters and grader. n may differ:
    avg@n does not depend on it. Raises InputError where a run does not say how it was made.
    """
    members: dict[str, list[tuple[Results, PlannedModel]]] = {}
    measures: dict[str, Mapping[str, Any]] = {}
    for results in runs:
        for model in results.plan.models:
            measured = measure(results, model)
            key = json.dumps(measured, sort_keys=True)
            measures[key] = measured
            members.setdefault(key, []).append((results, model))
    order = sorted(members, key=lambda key: -len(members[key]))
    return [
        Group(
            entries=tuple(_rank(members[key], runs)),
            differs=tuple(differences(measures[order[0]], measures[key])) if key != order[0] else (),
        )
        for key in order
    ]


def _rank(members: Sequence[tuple[Results, PlannedModel]], runs: Sequence[Results]) -> list[Entry]:
    cells = [
        [
            results.cells[model.name, benchmark.name]
            for benchmark in sorted(results.plan.benchmarks, key=lambda b: b.name)
        ]
        for results, model in members
    ]
    suites = [mean_interval([cell.in_score.scores for cell in row]) for row in cells]
    known = [number for number, suite in enumerate(suites) if suite.defined]
    ranks = _rank_intervals([cells[number] for number in known], [suites[number].value for number in known])
    of = dict(zip(known, ranks, strict=True))
    entries = [
        _entry(
            label(results, model, runs),
            results,
            model,
            cells[number],
            suites[number],
            of.get(number),
        )
        for number, (results, model) in enumerate(members)
    ]
    return sorted(entries, key=lambda entry: -entry.suite.value if entry.suite.defined else math.inf)


def _rank_intervals(cells: Sequence[Sequence[Cell]], values: Sequence[float]) -> list[tuple[int, int]]:
    """Best and worst possible rank of each: all pairs tested on the suite mean, after Holm."""
    pairs = list(itertools.combinations(range(len(cells)), 2))
    adjusted = holm([_test(cells[a], cells[b]) for a, b in pairs])
    above, below = [0] * len(cells), [0] * len(cells)
    for (a, b), p in zip(pairs, adjusted, strict=True):
        if p < ALPHA:
            better, worse = (a, b) if values[a] > values[b] else (b, a)
            above[worse] += 1
            below[better] += 1
    return [(1 + above[number], len(cells) - below[number]) for number in range(len(cells))]


def _test(a: Sequence[Cell], b: Sequence[Cell]) -> float:
    aligned = [align(left, right) for left, right in zip(a, b, strict=True)]
    return sign_flip_p([left.scores - right.scores for left, right in aligned])


def _entry(
    label: str,
    results: Results,
    model: PlannedModel,
    cells: Sequence[Cell],
    suite: Estimate,
    rank: tuple[int, int] | None,
) -> Entry:
    generated = [cell.in_score.tokens >= 0 for cell in cells]
    return Entry(
        label=label,
        run=str(results.run),
        model=model,
        rank=rank,
        suite=suite,
        benchmarks={cell.benchmark.name: mean_interval([cell.in_score.scores]) for cell in cells},
        tokens=_mean([cell.in_score.tokens[made] for cell, made in zip(cells, generated, strict=True)]),
        truncated=_mean([cell.in_score.truncated[made] for cell, made in zip(cells, generated, strict=True)]),
        lacks=results.only(model.name).lacks(),
    )


def _mean(parts: Sequence[Any]) -> float:
    """The mean of the parts' means, NaN where one has nothing."""
    return float(np.mean([float(part.mean()) if part.size else math.nan for part in parts]))
