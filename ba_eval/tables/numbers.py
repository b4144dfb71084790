"""The numbers of a table, computed once from a run's results. Shares are 0 to 1; NaN is what is undefined."""

import math
from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from ba_eval.records import PlannedModel
from ba_eval.results import Cell, Results, State
from ba_eval.stats import CONFIDENCE, DRAWS, Estimate, mean_interval, pass_at_k

SCHEMA = "ba-eval summary 1"


class CellNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one benchmark."""

    avg: Estimate
    """avg@n: mean over problems of the share of correct samples. Undecided samples count as not correct."""
    pass_at: dict[int, Estimate]
    """k -> pass@k, the mean over the problems that have k samples or more."""
    pass_problems: dict[int, int]
    """k -> over how many problems that is."""
    avg_untruncated: float
    """Share of correct among the samples that were not cut."""
    truncated: float
    """Share of the generated samples that were cut by max_tokens or the context."""
    tokens_mean: float
    tokens_median: float
    problems: int
    """Problems in the score."""
    samples_min: int
    """Fewest and most scored samples of a problem; both n where nothing is missing."""
    samples_max: int
    wanted: int
    """Samples that the plan wants of the problems in the score; of these: """
    missing: int
    ungraded: int
    errors: int
    undecided: int
    apart_problems: int
    """Problems reported apart, not in the score, and their own avg@n."""
    apart_avg: float
    apart_incomplete: int
    """Their missing, ungraded and errored samples."""
    error_reasons: dict[str, int]
    undecided_reasons: dict[str, int]


class ModelNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    path: str
    aggregation: str | None
    step: int | None
    training_seed: int | None
    marks: tuple[str, ...]
    benchmarks: dict[str, CellNumbers]
    suite_avg: Estimate
    """Mean over the benchmarks of avg@n, each weighing the same; undefined where one is."""
    suite_pass_at: dict[int, Estimate]
    suite_truncated: float
    suite_tokens_mean: float


class BenchmarkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One column of the table."""

    name: str
    title: str
    kind: str
    n: int
    problems: int
    apart: dict[str, int]
    """Reason -> how many problems are reported apart for it."""
    content: str
    max_tokens: int
    marks: tuple[str, ...]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of a run's table; `summary.json` is this."""

    schema: str = SCHEMA
    run: str
    suite: str | None
    seed: int
    confidence: float
    draws: int
    """Bootstrap resamples behind each interval."""
    ks: tuple[int, ...]
    marks: tuple[str, ...]
    complete: bool
    missing: int
    ungraded: int
    errors: int
    undecided: int
    benchmarks: tuple[BenchmarkFacts, ...]
    models: tuple[ModelNumbers, ...]


def summarise(results: Results, ks: tuple[int, ...] | None = None) -> Summary:
    """Computes the numbers of a run. `ks` are the k of pass@k, by default those of the plan."""
    plan = results.plan
    ks = tuple(dict.fromkeys(plan.ks if ks is None else ks))
    return Summary(
        run=results.run.name,
        suite=plan.suite,
        seed=plan.seed,
        confidence=CONFIDENCE,
        draws=DRAWS,
        ks=ks,
        marks=plan.marks,
        complete=results.complete,
        missing=results.total(State.MISSING),
        ungraded=results.total(State.UNGRADED),
        errors=results.total(State.ERROR),
        undecided=results.total(State.UNDECIDED),
        benchmarks=tuple(
            BenchmarkFacts(
                name=benchmark.name,
                title=benchmark.title,
                kind=benchmark.kind,
                n=benchmark.n,
                problems=len(benchmark.problem_ids) - len(benchmark.excluded),
                apart=dict(Counter(benchmark.excluded.values())),
                content=benchmark.content,
                max_tokens=benchmark.max_tokens,
                marks=benchmark.marks,
            )
            for benchmark in plan.benchmarks
        ),
        models=tuple(_model(results, model, ks) for model in plan.models),
    )


def _model(results: Results, model: PlannedModel, ks: tuple[int, ...]) -> ModelNumbers:
    cells = {benchmark.name: results.cells[model.name, benchmark.name] for benchmark in results.plan.benchmarks}
    numbers = {name: cell_numbers(cell, ks) for name, cell in cells.items()}
    scored = [cell.in_score for cell in cells.values()]
    passes: Mapping[int, list[npt.NDArray[np.float64]]] = {
        k: [pass_at_k(cell.scored, cell.correct, k) for cell in scored] for k in ks
    }
    return ModelNumbers(
        name=model.name,
        path=model.path,
        aggregation=model.aggregation,
        step=model.step,
        training_seed=model.training_seed,
        marks=model.marks,
        benchmarks=numbers,
        suite_avg=mean_interval([cell.scores for cell in scored]),
        suite_pass_at={k: mean_interval(values) for k, values in passes.items()},
        suite_truncated=float(np.mean([cell.truncated for cell in numbers.values()])),
        suite_tokens_mean=float(np.mean([cell.tokens_mean for cell in numbers.values()])),
    )


def cell_numbers(cell: Cell, ks: tuple[int, ...]) -> CellNumbers:
    """Computes the numbers of one model on one benchmark."""
    apart, cell = cell.apart, cell.in_score
    generated = cell.tokens >= 0
    whole = (cell.state >= State.UNDECIDED) & ~cell.truncated
    passes = {k: pass_at_k(cell.scored, cell.correct, k) for k in ks}
    return CellNumbers(
        avg=mean_interval([cell.scores]),
        pass_at={k: mean_interval([values]) for k, values in passes.items()},
        pass_problems={k: int(np.count_nonzero(~np.isnan(values))) for k, values in passes.items()},
        avg_untruncated=_mean((cell.state == State.CORRECT)[whole]),
        truncated=_mean(cell.truncated[generated]),
        tokens_mean=_mean(cell.tokens[generated]),
        tokens_median=float(np.median(cell.tokens[generated])) if generated.any() else math.nan,
        problems=len(cell.problem_ids),
        samples_min=int(cell.scored.min(initial=cell.benchmark.n)),
        samples_max=int(cell.scored.max(initial=0)),
        wanted=cell.state.size,
        missing=cell.count(State.MISSING),
        ungraded=cell.count(State.UNGRADED),
        errors=cell.count(State.ERROR),
        undecided=cell.count(State.UNDECIDED),
        apart_problems=len(apart.problem_ids),
        apart_avg=_mean(apart.scores[~np.isnan(apart.scores)]),
        apart_incomplete=int(np.count_nonzero(apart.state < State.UNDECIDED)),
        error_reasons=dict(cell.reasons(State.ERROR).most_common()),
        undecided_reasons=dict(cell.reasons(State.UNDECIDED).most_common()),
    )


def _mean(values: npt.NDArray[np.bool_] | npt.NDArray[np.int32] | npt.NDArray[np.float64]) -> float:
    return float(np.mean(values)) if values.size else math.nan
