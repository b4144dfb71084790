"""Compares models on the same problems: how large the difference is, whether it is real, and what would tell."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ba_eval.errors import InputError
from ba_eval.results import Cell, Results
from ba_eval.stats import CONFIDENCE, Estimate, holm, mean_interval, reach, sign_flip_p
from ba_eval.yaml_file import nearest

Finding = Literal["better", "worse", "not separable", "undefined"]
Standing = Literal["", "best", "tied", "second"]
SUITE = "(suite mean)"
ALPHA = 1 - CONFIDENCE


@dataclass(frozen=True)
class Comparison:
    """`model` against `baseline` on one benchmark, or on the mean of the suite. Scores are shares, 0 to 1."""

    model: str
    baseline: str
    benchmark: str
    problems: int
    """Problems on which both have scored samples; only these count."""
    left_out: int
    """Problems that only one of them has."""
    difference: Estimate
    """avg@n of `model` minus that of `baseline`, paired by problem."""
    p: float
    """Sign-flip permutation p-value, for this comparison alone."""
    p_adjusted: float
    """After Holm, over the comparisons of its family: all pairs on the suite, or all pairs on all benchmarks."""
    finding: Finding
    won: int
    lost: int
    tied: int
    """Problems on which `model` scores higher, lower, the same."""
    detectable: float
    """The smallest true difference that a comparison of this size finds in 80 % of cases, at the family's level."""
    problems_needed: float
    """Problems that would find the observed difference in 80 % of cases (inf: no number); NaN for a suite."""
    samples_needed: float
    """Samples per problem that would, on these problems (inf: no number does, it takes more problems)."""
    problems_factor: float
    samples_factor: float
    """The same as multiples of what there is; also for a suite."""
    tokens: Estimate
    """Mean completion tokens of `model` minus those of `baseline`, paired by problem."""


def compare(results: Results, baseline: str | None = None) -> list[Comparison]:
    """Compares every model with `baseline`, or all pairs; on each benchmark, then on the suite where there are several.

    Raises InputError where there is no such model, or only one.
    """
    names = [model.name for model in results.plan.models]
    if len(names) < 2:
        raise InputError(
            f"{results.run}: has one model; a comparison needs two (`ba-eval compare RUN RUN` takes several runs)"
        )
    if baseline is None:
        pairs = list(itertools.combinations(names, 2))
    elif baseline in names:
        pairs = [(name, baseline) for name in names if name != baseline]
    else:
        raise InputError(f"{results.run}: has no model {baseline!r}{nearest(baseline, names)}")
    benchmarks = [benchmark.name for benchmark in results.plan.benchmarks]

    def family(where: Sequence[tuple[str, list[str]]]) -> list[Comparison]:
        level = ALPHA / (len(pairs) * len(where))
        found = [
            compare_cells([(results.cells[a, name], results.cells[b, name]) for name in members], title, level)
            for a, b in pairs
            for title, members in where
        ]
        return adjust(found)

    found = family([(name, [name]) for name in benchmarks])
    if len(benchmarks) > 1:
        found += family([(SUITE, benchmarks)])
    order = {pair: number for number, pair in enumerate(pairs)}
    return sorted(found, key=lambda one: order[one.model, one.baseline])


def compare_cells(pairs: Sequence[tuple[Cell, Cell]], benchmark: str, level: float = ALPHA) -> Comparison:
    """Compares one model with another on one benchmark, or on the mean over several; `level` is the test's.

    The finding is that of this comparison alone; `adjust` corrects for several.
    """
    aligned = [align(a, b) for a, b in pairs]
    differences = [a.scores - b.scores for a, b in aligned]
    everything = np.concatenate(differences) if differences else np.zeros(0)
    found = reach(differences, [_noise(a) + _noise(b) for a, b in aligned], level=level)
    single = len(pairs) == 1
    n = min(aligned[0][0].benchmark.n, aligned[0][1].benchmark.n) if single else 0
    p = sign_flip_p(differences)
    return Comparison(
        model=pairs[0][0].model.name,
        baseline=pairs[0][1].model.name,
        benchmark=benchmark,
        problems=len(everything),
        left_out=sum(len(set(_scored_ids(a)) ^ set(_scored_ids(b))) for a, b in pairs),
        difference=(difference := mean_interval(differences, limits=(-1.0, 1.0))),
        p=p,
        p_adjusted=p,
        finding=find(difference, p),
        won=int(np.count_nonzero(everything > 0)),
        lost=int(np.count_nonzero(everything < 0)),
        tied=int(np.count_nonzero(everything == 0)),
        detectable=found.detectable,
        problems_needed=_rounded(len(everything) * found.problems_factor) if single else math.nan,
        samples_needed=_rounded(n * found.samples_factor) if single else math.nan,
        problems_factor=found.problems_factor,
        samples_factor=found.samples_factor,
        tokens=mean_interval([_tokens(a) - _tokens(b) for a, b in aligned], limits=None),
    )


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Corrects the findings of one family for their number, by Holm."""
    adjusted = holm([one.p for one in comparisons]).tolist()
    return [
        replace(one, p_adjusted=p, finding=find(one.difference, p))
        for one, p in zip(comparisons, adjusted, strict=True)
    ]


def align(a: Cell, b: Cell) -> tuple[Cell, Cell]:
    """The two cells with the same problems in the same order: those in the score that both have samples of."""
    a, b = a.in_score, b.in_score
    rows = {problem: row for row, problem in enumerate(b.problem_ids)}
    chosen = [
        (row, rows[problem])
        for row, problem in enumerate(a.problem_ids)
        if problem in rows and a.scored[row] and b.scored[rows[problem]]
    ]
    left, right = np.array(chosen, dtype=np.int64).reshape(-1, 2).T
    return a.rows(left), b.rows(right)


def standings(cells: Sequence[Sequence[Cell]]) -> list[Standing]:
    """How each of several models stands in a column: `cells` holds a model's benchmarks (one, or all of a suite)."""
    return stand([_macro(one) for one in cells], lambda number, best: _p(cells[number], cells[best]))


def stand(values: Sequence[float], test: Callable[[int, int], float]) -> list[Standing]:
    """`best`, `tied` (not separable from the best after Holm), or `second` (the highest of those that are separable).

    `test` gives the p-value of the difference between two of them, by number. NaN stands nowhere.
    """
    known = [number for number, value in enumerate(values) if not math.isnan(value)]
    found: list[Standing] = [""] * len(values)
    if len(known) < 2:
        return found
    best = max(known, key=lambda number: values[number])
    others = [number for number in known if number != best]
    separable = []
    for number, p in zip(others, holm([test(number, best) for number in others]), strict=True):
        if p < ALPHA:
            separable.append(number)
        else:
            found[number] = "tied"
    found[best] = "best"
    if separable:
        found[max(separable, key=lambda number: values[number])] = "second"
    return found


def _p(a: Sequence[Cell], b: Sequence[Cell]) -> float:
    aligned = [align(*pair) for pair in zip(a, b, strict=True)]
    return sign_flip_p([left.scores - right.scores for left, right in aligned])


def _macro(cells: Sequence[Cell]) -> float:
    return float(np.mean([mean_score(cell) for cell in cells]))


def mean_score(cell: Cell) -> float:
    """avg@n of a cell, NaN where nothing counts."""
    scores = cell.in_score.scores
    scores = scores[~np.isnan(scores)]
    return float(scores.mean()) if len(scores) else math.nan


def find(difference: Estimate, p: float) -> Finding:
    """What a corrected p-value says of a difference."""
    if math.isnan(difference.value) or math.isnan(p):
        return "undefined"
    if p >= ALPHA:
        return "not separable"
    return "better" if difference.value > 0 else "worse"


def _scored_ids(cell: Cell) -> Iterable[str]:
    cell = cell.in_score
    return (problem for problem, scored in zip(cell.problem_ids, cell.scored, strict=True) if scored)


def _noise(cell: Cell) -> npt.NDArray[np.float64]:
    """The sampling variance of each problem's score, unbiased, (P,); NaN where there is one sample."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(cell.scored > 1, cell.scores * (1 - cell.scores) / (cell.scored - 1), np.nan)


def _tokens(cell: Cell) -> npt.NDArray[np.float64]:
    """The mean completion tokens of each problem, (P,); NaN where nothing was generated."""
    generated = cell.tokens >= 0
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(generated, cell.tokens, 0).sum(axis=1) / generated.sum(axis=1), dtype=np.float64)


def _rounded(value: float) -> float:
    return float(math.ceil(value - 1e-9)) if math.isfinite(value) else value
