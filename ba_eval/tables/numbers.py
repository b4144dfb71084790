"""The numbers of a table, computed once from a run's results. Shares are 0 to 1; NaN is what is undefined."""

import math
from collections import Counter
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from ba_eval.compare import Standing, standings
from ba_eval.majority import polls
from ba_eval.records import PlannedModel
from ba_eval.results import Cell, Results, State
from ba_eval.stats import CONFIDENCE, DRAWS, Estimate, maj_at_k, mean_interval, pass_at_k

Floats = npt.NDArray[np.float64]
SCHEMA = "ba-eval summary 1"


class CellNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one benchmark."""

    avg: Estimate
    """avg@n: mean over problems of the share of correct samples. Undecided samples count as not correct."""
    standing: Standing = ""
    """`best` of the column, `tied` (not separable from the best), or `second` (highest of the separable)."""
    pass_at: dict[int, Estimate]
    """k -> pass@k, the mean over the problems that have k samples or more."""
    pass_problems: dict[int, int]
    """k -> over how many problems that is."""
    maj_at: dict[int, Estimate]
    """k -> maj@k, where asked for: expected correctness of the most frequent answer among k samples; math only."""
    avg_untruncated: float
    """Share of correct among the samples that were not cut."""
    truncated: float
    """Share of the generated samples that were cut by max_tokens or the context."""
    tokens_mean: float
    tokens_median: float
    thinking_mean: float
    """Mean thinking tokens of the responses that think; undefined where none does."""
    unclosed: float
    """Share of the responses that were still thinking when they ended, among those that think."""
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
    suite_standing: Standing = ""
    suite_pass_at: dict[int, Estimate]
    suite_maj_at: dict[int, Estimate]
    suite_avg_untruncated: float
    suite_truncated: float
    suite_tokens_mean: float
    suite_thinking_mean: float
    suite_unclosed: float


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
    maj: tuple[int, ...]
    marks: tuple[str, ...]
    complete: bool
    missing: int
    ungraded: int
    errors: int
    undecided: int
    benchmarks: tuple[BenchmarkFacts, ...]
    models: tuple[ModelNumbers, ...]


def summarise(results: Results, ks: tuple[int, ...] | None = None, maj: tuple[int, ...] = ()) -> Summary:
    """Computes the numbers of a run. `ks` are the k of pass@k, by default those of the plan; `maj` those of maj@k.

    maj@k needs results that were loaded with their answers.
    """
    plan = results.plan
    ks = tuple(dict.fromkeys(plan.ks if ks is None else ks))
    maj = tuple(dict.fromkeys(maj))
    models = [_model(results, model, ks, maj) for model in plan.models]
    for benchmark in plan.benchmarks:
        places = standings([[results.cells[model.name, benchmark.name]] for model in models])
        for model, place in zip(models, places, strict=True):
            model.benchmarks[benchmark.name] = replace(model.benchmarks[benchmark.name], standing=place)
    places = standings([[results.cells[model.name, column.name] for column in plan.benchmarks] for model in models])
    return Summary(
        run=results.run.name,
        suite=plan.suite,
        seed=plan.seed,
        confidence=CONFIDENCE,
        draws=DRAWS,
        ks=ks,
        maj=maj,
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
        models=tuple(replace(model, suite_standing=place) for model, place in zip(models, places, strict=True)),
    )


def _model(results: Results, model: PlannedModel, ks: tuple[int, ...], maj: tuple[int, ...]) -> ModelNumbers:
    cells = [results.cells[model.name, benchmark.name] for benchmark in results.plan.benchmarks]
    columns = [_per_problem(cell.in_score, ks, maj) for cell in cells]
    numbers = {cell.benchmark.name: _cell_numbers(cell, column) for cell, column in zip(cells, columns, strict=True)}
    return ModelNumbers(
        name=model.name,
        path=model.path,
        aggregation=model.aggregation,
        step=model.step,
        training_seed=model.training_seed,
        marks=model.marks,
        benchmarks=numbers,
        suite_avg=mean_interval([column.avg for column in columns]),
        suite_pass_at={k: mean_interval([column.pass_at[k] for column in columns]) for k in ks},
        suite_maj_at={k: mean_interval([column.maj_at[k] for column in columns]) for k in maj},
        suite_avg_untruncated=_mean_over(numbers, "avg_untruncated"),
        suite_truncated=_mean_over(numbers, "truncated"),
        suite_tokens_mean=_mean_over(numbers, "tokens_mean"),
        suite_thinking_mean=_mean_over(numbers, "thinking_mean"),
        suite_unclosed=_mean_over(numbers, "unclosed"),
    )


class _PerProblem(NamedTuple):
    """One value for each problem in the score, (P,) each."""

    avg: Floats
    pass_at: dict[int, Floats]
    maj_at: dict[int, Floats]


def _per_problem(cell: Cell, ks: tuple[int, ...], maj: tuple[int, ...]) -> _PerProblem:
    ballots = polls(cell) if maj and cell.benchmark.kind == "math" else []
    no_vote = np.full(len(cell.problem_ids), np.nan)
    return _PerProblem(
        avg=cell.scores,
        pass_at={k: pass_at_k(cell.scored, cell.correct, k) for k in ks},
        maj_at={k: np.array([maj_at_k(*poll, k) for poll in ballots]) if ballots else no_vote for k in maj},
    )


def _cell_numbers(cell: Cell, column: _PerProblem) -> CellNumbers:
    apart, cell = cell.apart, cell.in_score
    generated = cell.tokens >= 0
    whole = (cell.state >= State.UNDECIDED) & ~cell.truncated
    thinks = generated & (cell.thinking > 0)
    passes = column.pass_at
    return CellNumbers(
        avg=mean_interval([column.avg]),
        pass_at={k: mean_interval([values]) for k, values in passes.items()},
        pass_problems={k: int(np.count_nonzero(~np.isnan(values))) for k, values in passes.items()},
        maj_at={k: mean_interval([values]) for k, values in column.maj_at.items()},
        avg_untruncated=_mean((cell.state == State.CORRECT)[whole]),
        truncated=_mean(cell.truncated[generated]),
        tokens_mean=_mean(cell.tokens[generated]),
        tokens_median=float(np.median(cell.tokens[generated])) if generated.any() else math.nan,
        thinking_mean=_mean(cell.thinking[thinks]),
        unclosed=_mean(cell.unclosed[thinks]),
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


def _mean_over(numbers: dict[str, CellNumbers], name: str) -> float:
    return float(np.mean([getattr(cell, name) for cell in numbers.values()]))


def _mean(values: npt.NDArray[np.bool_] | npt.NDArray[np.int32] | npt.NDArray[np.float64]) -> float:
    return float(np.mean(values)) if values.size else math.nan
