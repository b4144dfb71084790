"""What the figures show: numbers with their intervals, before any drawing. Shares are 0 to 1."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np
import numpy.typing as npt

from ba_eval.by_aggregation import Point, Study, study
from ba_eval.errors import InputError
from ba_eval.records import PlannedBenchmark, PlannedModel
from ba_eval.results import Cell, Results
from ba_eval.stats import Estimate, mean_interval, pass_at_k, seeds_interval
from ba_eval.tables.numbers import ModelNumbers, Summary
from ba_eval.tables.rules import sheet as study_sheet
from ba_eval.tables.sheet import Column, Line, Sheet, cell, interval, number, percent

Floats = npt.NDArray[np.float64]
# Curves in one panel that can still be told apart.
CURVES = 12


@dataclass(frozen=True)
class Series:
    """One curve, or one row of dots; `look` numbers its colour."""

    name: str
    look: int
    points: tuple[tuple[float, Estimate], ...]


@dataclass(frozen=True)
class Curves:
    """Lines with bands. `share`: y is a share, drawn in percent; `doubling`: x is a power of 2."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    share: bool = True
    doubling: bool = False


@dataclass(frozen=True)
class Dots:
    """One estimate a row, with its interval."""

    title: str
    x: str
    rows: tuple[tuple[str, int, Estimate], ...]
    """Name, look, estimate."""


@dataclass(frozen=True)
class Box:
    """The spread of one model's response lengths."""

    name: str
    look: int
    quantiles: tuple[float, float, float, float, float]
    """5, 25, 50, 75 and 95 %."""
    mean: float


@dataclass(frozen=True)
class Boxes:
    """One box a row; `limit` is the most tokens a response could have."""

    title: str
    x: str
    rows: tuple[Box, ...]
    limit: int = 0


@dataclass(frozen=True)
class Map:
    """Scores (models, problems), the problems from the easiest to the hardest; NaN where there is none."""

    title: str
    names: tuple[str, ...]
    scores: Floats


Panel = Curves | Dots | Boxes | Map


@dataclass(frozen=True)
class Figure:
    """Panels that share a legend, and the numbers behind them as a table."""

    name: str
    """Of its files."""
    title: str
    caption: str
    panels: tuple[Panel, ...]
    numbers: Sheet | None = None
    legend: tuple[tuple[str, int], ...] = ()
    """Name and look of each curve; empty where rows carry the names."""


def figures(results: Results, summary: Summary) -> list[Figure]:
    """All figures that the run has data for, in the order of the page."""
    made = [scores(summary), pass_curves(results, summary), learning(results), *lengths(results), problem_map(results)]
    return [figure for figure in made if figure is not None]


def scores(summary: Summary) -> Figure:
    """avg@n of each model on each benchmark, and on the suite."""
    shown = [(model, looks(summary.models)[model.name]) for model in summary.models]
    panels = [
        Dots(
            facts.name,
            "avg@n, %",
            tuple((model.name, look, model.benchmarks[facts.name].avg) for model, look in shown),
        )
        for facts in summary.benchmarks
    ]
    if len(panels) > 1:
        rows = tuple((model.name, look, model.suite_avg) for model, look in shown)
        panels.insert(0, Dots(f"{summary.suite or 'suite'} mean", "avg@n, %", rows))
    caption = "Mean accuracy and 95 % interval over problems. Each panel has its own scale."
    return Figure("scores", "Scores", caption, tuple(panels))


def pass_curves(results: Results, summary: Summary) -> Figure | None:
    """pass@k over k, up to the n of each benchmark; None where n is 1 everywhere."""
    benchmarks = [benchmark for benchmark in results.plan.benchmarks if benchmark.n > 1]
    if not benchmarks:
        return None
    shown, note = _chosen(summary)
    grid = sorted({k for benchmark in benchmarks for k in _ks(benchmark.n)})
    panels, rows = [], []
    parts: dict[str, list[dict[int, Floats]]] = {name: [] for name, _ in shown}
    for benchmark in results.plan.benchmarks:
        series = []
        for name, look in shown:
            cell = results.cells[name, benchmark.name].in_score
            values = {k: pass_at_k(cell.scored, cell.correct, k) for k in _ks(benchmark.n)}
            parts[name].append(values)
            series.append(Series(name, look, tuple((k, mean_interval([at])) for k, at in values.items())))
        rows += [_pass_row(benchmark.name, one, grid) for one in series]
        if benchmark.n > 1:
            panels.append(Curves(benchmark.name, "k", "pass@k, %", tuple(series), doubling=True))
    shared = _ks(min(benchmark.n for benchmark in results.plan.benchmarks))
    if len(results.plan.benchmarks) > 1 and len(shared) > 1:
        means = tuple(
            Series(name, look, tuple((k, mean_interval([one[k] for one in parts[name]])) for k in shared))
            for name, look in shown
        )
        title = f"{summary.suite or 'suite'} mean"
        panels.insert(0, Curves(title, "k", "pass@k, %", means, doubling=True))
        rows = [_pass_row(title, one, grid) for one in means] + rows
    columns = [Column(("benchmark",), label=True), Column(("model",), label=True)]
    columns += [Column((f"pass@{k}",)) for k in grid]
    caption = "Chance that at least one of k samples is correct (unbiased), with 95 % band over problems." + note
    return Figure(
        "pass_at_k", "pass@k", caption, tuple(panels), Sheet("pass@k, in %", tuple(columns), rows), tuple(shown)
    )


def _ks(n: int) -> list[int]:
    """1, 2, 4, ... and n."""
    return sorted({2**power for power in range(n.bit_length()) if 2**power <= n} | {n})


def _pass_row(title: str, series: Series, grid: Sequence[int]) -> list[tuple[Line, ...]]:
    at = dict(series.points)
    return [cell(title), cell(series.name), *(_scored(at[k]) if k in at else () for k in grid)]


def _scored(estimate: Estimate) -> tuple[Line, ...]:
    return cell(percent(estimate.value), Line(interval(estimate), "faint"))


def looks(models: Sequence[PlannedModel | ModelNumbers]) -> dict[str, int]:
    """The look of each model by name: the steps of one training run share theirs."""
    groups: dict[tuple[str, int | None], int] = {}
    return {model.name: groups.setdefault(_run(model), len(groups)) for model in models}


def _run(model: PlannedModel | ModelNumbers) -> tuple[str, int | None]:
    """The training run that a model is a step of; a model of no known step is its own."""
    return (model.name if model.step is None else _group(model), model.training_seed)


def _group(model: PlannedModel | ModelNumbers) -> str:
    """What a model's steps have in common: its rule, or its name without the step."""
    return model.aggregation or re.sub(r"@[^@]*$", "", model.name)


def _chosen(summary: Summary) -> tuple[list[tuple[str, int]], str]:
    """Which models get a curve, with their looks, and what the caption must say of it.

    Of models that are steps of one training run, only the last; of too many, those with the highest mean.
    """
    look, note = looks(summary.models), ""
    last: dict[int, int] = {}
    for model in summary.models:
        last[look[model.name]] = max(last.get(look[model.name], 0), model.step or 0)
    models = [model for model in summary.models if (model.step or 0) == last[look[model.name]]]
    if len(models) < len(summary.models):
        note = " Of each training run, its last step."
    if len(models) > CURVES:
        means = {model.name: model.suite_avg.value for model in models}
        best = sorted(means, key=lambda name: math.inf if math.isnan(means[name]) else -means[name])[:CURVES]
        models = [model for model in models if model.name in best]
        note += f" Only the {CURVES} models with the highest mean."
    return [(model.name, look[model.name]) for model in models], note


# Learning curves


def learning(results: Results) -> Figure | None:
    """Score, length and cut responses over training steps; None where no rule or run has two steps."""
    found = learning_study(results)
    if found is None:
        return None
    names = [benchmark.name for benchmark in results.plan.benchmarks]
    look = looks(results.plan.models)
    rules = [(rule.aggregation, look[rule.last.models[0]]) for rule in found.rules]

    def curves(title: str, y: str, of: Callable[[Point], Estimate], share: bool = True) -> Curves:
        series = tuple(
            Series(
                rule.aggregation,
                look[rule.last.models[0]],
                tuple((float(point.step), of(point)) for point in rule.points if point.step is not None),
            )
            for rule in found.rules
        )
        return Curves(title, "training step", y, series, share=share)

    panels = [curves(name, "avg@n, %", partial(_of_benchmark, name)) for name in names]
    if len(names) > 1:
        panels.insert(0, curves("suite mean", "avg@n, %", lambda point: point.suite))
    panels.append(curves("response length", "mean tokens", lambda point: _point_mean(results, point, "tokens"), False))
    panels.append(curves("cut responses", "cut, %", lambda point: _point_mean(results, point, "truncated")))
    seeds = max(len(point.seeds) for rule in found.rules for point in rule.points)
    over = "problems and training seeds" if seeds > 1 else "problems (one training seed)"
    caption = f"Over training steps, with 95 % band over {over}. Length and cut: mean over benchmarks."
    return Figure("learning", "Learning curves", caption, tuple(panels), study_sheet([found], "step"), tuple(rules))


def learning_study(results: Results) -> Study | None:
    """The run grouped by rule (or by name, where no rule is known) and step; None without two steps of one group."""
    trained = [model for model in results.plan.models if model.step is not None]
    models = tuple(msgspec.structs.replace(model, aggregation=_group(model)) for model in trained)
    if not models:
        return None
    try:
        found = study(replace(results, plan=msgspec.structs.replace(results.plan, models=models)))
    except InputError:  # two models of one group, step and seed: there is no curve to draw
        return None
    return found if any(len(rule.points) > 1 for rule in found.rules) else None


def _of_benchmark(name: str, point: Point) -> Estimate:
    return point.benchmarks[name]


def _point_mean(results: Results, point: Point, what: str) -> Estimate:
    """The mean over benchmarks of the mean tokens, or of the cut share, with its interval."""
    of = {"tokens": mean_tokens, "truncated": cut_share}[what]
    grids = [
        np.stack([of(results.cells[model, benchmark.name].in_score) for model in point.models])
        for benchmark in results.plan.benchmarks
    ]
    bounds = (0.0, math.inf) if what == "tokens" else (0.0, 1.0)
    if len(point.models) == 1:
        return mean_interval([grid[0] for grid in grids], limits=None if what == "tokens" else bounds)
    return seeds_interval(grids, limits=bounds)


# Lengths


def mean_tokens(cell: Cell) -> Floats:
    """Mean completion tokens of each problem, (P,); NaN where nothing was generated."""
    return _over_generated(cell, np.where(cell.tokens >= 0, cell.tokens, 0))


def cut_share(cell: Cell) -> Floats:
    """Share of cut responses of each problem, (P,); NaN where nothing was generated."""
    return _over_generated(cell, cell.truncated & (cell.tokens >= 0))


def _over_generated(cell: Cell, values: npt.NDArray[np.generic]) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(values.sum(axis=1) / (cell.tokens >= 0).sum(axis=1), dtype=np.float64)


def lengths(results: Results) -> list[Figure | None]:
    """How long responses are, and how many were cut."""
    names = [model.name for model in results.plan.models]
    boxes = [_boxes(results, benchmark) for benchmark in results.plan.benchmarks]
    cuts: list[Dots] = []
    table: list[list[tuple[Line, ...]]] = [[cell(name)] for name in names]
    for panel in boxes:
        rows = []
        for row, box in enumerate(panel.rows):
            one = results.cells[box.name, panel.title].in_score
            cut = mean_interval([cut_share(one)])
            tokens = mean_interval([mean_tokens(one)], limits=None)
            rows.append((box.name, box.look, cut))
            spread = f"[{number(tokens.low)}, {number(tokens.high)}]" if not math.isnan(tokens.low) else "-"
            quantiles = [number(box.quantiles[at]) for at in (0, 2, 4)]
            table[row].append(
                cell(
                    number(tokens.value),
                    Line(spread, "faint"),
                    " / ".join(quantiles),
                    percent(cut.value),
                    Line(interval(cut), "faint"),
                )
            )
        cuts.append(Dots(panel.title, "cut, %", tuple(rows)))
    labels = cell("mean tokens", Line("95 %", "faint"), "5 / 50 / 95 %", "cut, %", Line("95 %", "faint"))
    rows_ = [[row[0], labels, *row[1:]] for row in table]
    columns = [Column(("model",), label=True), Column(("",), label=True), *(Column((panel.title,)) for panel in boxes)]
    numbers = Sheet("Tokens of a response, and share that was cut", tuple(columns), rows_)
    caption = "Tokens of a response: box 25 to 75 %, whiskers 5 to 95 %, line the median, diamond the mean."
    caption += " Dashed line: where responses are cut."
    figures_: list[Figure | None] = [Figure("lengths", "Response length", caption, tuple(boxes), numbers)]
    if any(estimate.value > 0 for panel in cuts for _, _, estimate in panel.rows):
        caption = "Share of responses that max_tokens or the context ended, with 95 % interval over problems."
        figures_.append(Figure("cut", "Cut responses", caption, tuple(cuts)))
    return figures_


def _boxes(results: Results, benchmark: PlannedBenchmark) -> Boxes:
    rows = []
    for name, look in looks(results.plan.models).items():
        one = results.cells[name, benchmark.name].in_score
        tokens = one.tokens[one.tokens >= 0]
        spread = np.quantile(tokens, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist() if tokens.size else [math.nan] * 5
        rows.append(Box(name, look, tuple(spread), float(tokens.mean()) if tokens.size else math.nan))
    return Boxes(benchmark.name, "tokens", tuple(rows), benchmark.max_tokens)


# Problems


def problem_map(results: Results) -> Figure:
    """The score of each model on each problem."""
    names = tuple(model.name for model in results.plan.models)
    panels = []
    for benchmark in results.plan.benchmarks:
        grid = np.stack([results.cells[name, benchmark.name].in_score.scores for name in names])
        known = ~np.isnan(grid)
        means = np.where(known, grid, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        panels.append(Map(benchmark.name, names, grid[:, np.argsort(-means, kind="stable")]))
    caption = "Share of correct samples of each model (row) on each problem (column), from the easiest to the hardest."
    return Figure("problems", "Problem by problem", caption, tuple(panels))
