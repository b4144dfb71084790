"""Groups the models of a run by aggregation rule, training step and training seed.

What a paper on such rules reports: each rule's score at its last and at its best step, and its learning curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ba_eval.compare import Finding, Standing, find, stand
from ba_eval.errors import InputError
from ba_eval.records import PlannedModel
from ba_eval.results import Results
from ba_eval.stats import Estimate, holm, seeds_difference, seeds_interval

ORDER = ("sequence", "token", "balanced")


@dataclass(frozen=True)
class Point:
    """One rule at one training step, over its seeds. Scores are shares, 0 to 1."""

    aggregation: str
    step: int | None
    seeds: tuple[int | None, ...]
    models: tuple[str, ...]
    benchmarks: dict[str, Estimate]
    """avg@n of each benchmark, mean over seeds; the interval covers problems and, with several seeds, those too."""
    suite: Estimate
    """The mean over benchmarks."""
    tokens: float
    """Mean completion tokens: over the samples of a benchmark, then over benchmarks and seeds."""
    truncated: float


@dataclass(frozen=True)
class Rule:
    """One rule's learning curve and its ends."""

    aggregation: str
    points: tuple[Point, ...]
    """By step."""
    last: Point
    peak: Point
    """The step of the highest suite mean. Chosen by the same samples, so its score is flattered by chance."""
    drop: Estimate
    """Peak minus last, paired by problem and seed."""
    last_standing: Standing = ""
    """`best` of the rules at their last steps, `tied` (not separable from it), or `second` (highest of the others)."""
    peak_standing: Standing = ""


@dataclass(frozen=True)
class RuleComparison:
    """Two rules at their last steps, on the suite mean."""

    aggregation: str
    baseline: str
    difference: Estimate
    p: float
    p_adjusted: float
    """After Holm, over the pairs of rules."""
    finding: Finding
    seeds: tuple[int, int]
    """How many seeds of each. With one, nothing is known of how seeds differ."""


@dataclass(frozen=True)
class Study:
    """The rules of one run."""

    run: str
    rules: tuple[Rule, ...]
    comparisons: tuple[RuleComparison, ...]
    left_out: tuple[str, ...]
    """Models that name no aggregation rule."""


def study(results: Results) -> Study:
    """Groups a run. Raises InputError where no model names its rule, or two have the same rule, step and seed."""
    groups: dict[str, dict[int | None, dict[int | None, PlannedModel]]] = {}
    for model in results.plan.models:
        if model.aggregation is None:
            continue
        seeds = groups.setdefault(model.aggregation, {}).setdefault(model.step, {})
        if model.training_seed in seeds:
            raise InputError(
                f"{results.run}: {seeds[model.training_seed].name} and {model.name} have the same aggregation "
                f"({model.aggregation}), step ({model.step}) and training seed ({model.training_seed})"
            )
        seeds[model.training_seed] = model
    if not groups:
        raise InputError(
            f"{results.run}: no model says how it was trained; "
            "checkpoints that `ba-eval train` wrote say it in training.json"
        )
    names = sorted(groups, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    rules = [_rule(results, name, groups[name]) for name in names]
    last = _standings(results, [rule.last for rule in rules])
    peak = _standings(results, [rule.peak for rule in rules])
    return Study(
        run=results.run.name,
        rules=tuple(
            replace(rule, last_standing=a, peak_standing=b) for rule, a, b in zip(rules, last, peak, strict=True)
        ),
        comparisons=tuple(_comparisons(results, rules)),
        left_out=tuple(model.name for model in results.plan.models if model.aggregation is None),
    )


def _rule(results: Results, name: str, steps: dict[int | None, dict[int | None, PlannedModel]]) -> Rule:
    ordered = sorted(steps, key=lambda step: -1 if step is None else step)
    points = tuple(_point(results, name, step, list(steps[step].values())) for step in ordered)
    last = points[-1]
    peak = max(points, key=lambda point: -1.0 if np.isnan(point.suite.value) else point.suite.value)
    shared = [seed for seed in peak.seeds if seed in last.seeds]
    drop = seeds_interval(
        [
            high - low
            for high, low in zip(
                _grids(results, [steps[peak.step][seed].name for seed in shared]),
                _grids(results, [steps[last.step][seed].name for seed in shared]),
                strict=True,
            )
        ],
        limits=(-1.0, 1.0),
    )
    return Rule(name, points, last, peak, drop)


def _point(results: Results, name: str, step: int | None, models: list[PlannedModel]) -> Point:
    models = sorted(models, key=lambda model: -1 if model.training_seed is None else model.training_seed)
    names = [model.name for model in models]
    grids = _grids(results, names)
    benchmarks = [benchmark.name for benchmark in results.plan.benchmarks]
    cells = [results.cells[model, benchmark].in_score for model in names for benchmark in benchmarks]
    generated = [cell.tokens >= 0 for cell in cells]
    return Point(
        aggregation=name,
        step=step,
        seeds=tuple(model.training_seed for model in models),
        models=tuple(names),
        benchmarks={b: seeds_interval([grid]) for b, grid in zip(benchmarks, grids, strict=True)},
        suite=seeds_interval(grids),
        tokens=_mean([cell.tokens[made] for cell, made in zip(cells, generated, strict=True)]),
        truncated=_mean([cell.truncated[made] for cell, made in zip(cells, generated, strict=True)]),
    )


def _grids(results: Results, models: Sequence[str]) -> list[npt.NDArray[np.float64]]:
    """Scores (seeds, problems) of each benchmark."""
    return [
        np.stack([results.cells[model, benchmark.name].in_score.scores for model in models])
        for benchmark in results.plan.benchmarks
    ]


def _comparisons(results: Results, rules: Sequence[Rule]) -> list[RuleComparison]:
    pairs = [(a, b) for number, b in enumerate(rules) for a in rules[number + 1 :]]
    tests = [seeds_difference(_grids(results, a.last.models), _grids(results, b.last.models)) for a, b in pairs]
    adjusted = holm([p for _, p in tests]).tolist()
    return [
        RuleComparison(
            aggregation=a.aggregation,
            baseline=b.aggregation,
            difference=difference,
            p=p,
            p_adjusted=corrected,
            finding=find(difference, corrected),
            seeds=(len(a.last.seeds), len(b.last.seeds)),
        )
        for (a, b), (difference, p), corrected in zip(pairs, tests, adjusted, strict=True)
    ]


def _standings(results: Results, points: Sequence[Point]) -> list[Standing]:
    grids = [_grids(results, point.models) for point in points]
    values = [point.suite.value for point in points]
    return stand(values, lambda number, best: seeds_difference(grids[number], grids[best])[1])


def _mean(parts: Sequence[npt.NDArray[np.int32] | npt.NDArray[np.bool_]]) -> float:
    """The mean of the parts' means, NaN where one has nothing."""
    return float(np.mean([float(part.mean()) if part.size else np.nan for part in parts]))
