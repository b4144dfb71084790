"""The study's curves as pictures: score and length at each saved step, and what was logged while training."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ba_eval.by_aggregation import study as by_aggregation
from ba_eval.results import Results
from ba_eval.study.config import BASE
from ba_eval.study.curves import SHOWN, RuleLog

if TYPE_CHECKING:
    from ba_eval.by_aggregation import Rule

COLOURS = {"sequence": "#0072B2", "token": "#D55E00", "balanced": "#009E73"}
"""Told apart by colour-blind readers too (Okabe & Ito)."""
LENGTHS = ("length/mean", "length/cv_within_group", "length/cv_within_sign", "length/gap_relative")
TERMS = ("decomposition/length_gap", "decomposition/length_variation", "groups/zero_advantage", "grad_norm")


def write_plots(folder: Path, results: Results, logs: Sequence[RuleLog]) -> list[str]:
    """Writes the PNG files that there are data for and returns their names."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    if any(model.aggregation for model in results.plan.models):
        made.append(_save(_scores(results), folder / "learning_curve.png"))
    if logs:
        made.append(_save(_logged(logs, ("reward", "length/mean"), 1), folder / "training.png"))
        made.append(_save(_logged(logs, LENGTHS, 2), folder / "length.png"))
        made.append(_save(_logged(logs, TERMS, 2), folder / "decomposition.png"))
    return made


def _scores(results: Results) -> Any:
    """avg@n of the suite and of each benchmark over training steps, from the base at step 0."""
    from matplotlib import pyplot

    rules = by_aggregation(results).rules
    names = [benchmark.name for benchmark in results.plan.benchmarks]
    panels = ["suite", *names] if len(names) > 1 else names
    figure, axes = pyplot.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.4), squeeze=False)
    has_base = any(model.name == BASE for model in results.plan.models)
    for axis, panel in zip(axes[0], panels, strict=True):
        for at, rule in enumerate(rules):
            _score_line(axis, rule, panel, at)
        if has_base:
            chosen = names if panel == "suite" else [panel]
            start = float(np.mean([results.cells[BASE, name].in_score.scores.mean() for name in chosen]))
            axis.axhline(100 * start, color="grey", linewidth=1, linestyle=":", label="base")
        axis.set(title=panel, xlabel="step", ylabel="avg@n, %")
    axes[0][0].legend(fontsize=8)
    return figure


def _score_line(axis: Any, rule: "Rule", panel: str, at: int) -> None:
    points = [point.suite if panel == "suite" else point.benchmarks[panel] for point in rule.points]
    steps = [float(point.step or 0) for point in rule.points]
    width = max(steps, default=1.0) / 100
    axis.errorbar(
        [step + (at - 1) * width for step in steps],  # side by side, so that intervals can be told apart
        [100 * point.value for point in points],
        yerr=[[100 * (p.value - p.low) for p in points], [100 * (p.high - p.value) for p in points]],
        color=COLOURS.get(rule.aggregation),
        marker="o",
        markersize=4,
        capsize=2,
        label=rule.aggregation,
    )


def _logged(logs: Sequence[RuleLog], names: Sequence[str], rows: int) -> Any:
    """What was logged at each step: mean over seeds, and the interval over seeds as a band."""
    from matplotlib import pyplot

    columns = len(names) // rows
    figure, axes = pyplot.subplots(rows, columns, figsize=(4.6 * columns, 3.0 * rows), squeeze=False)
    for axis, name in zip(axes.ravel(), names, strict=True):
        for log in logs:
            middle, half = log.curve(name)
            colour = COLOURS.get(log.rule)
            axis.plot(log.steps, middle, color=colour, linewidth=1.2, label=log.rule)
            axis.fill_between(log.steps, middle - half, middle + half, color=colour, alpha=0.15, linewidth=0)
        axis.set(xlabel="step")
        axis.set_title(SHOWN[name], fontsize=9)
    axes[0][0].legend(fontsize=8)
    return figure


def _save(figure: Any, file: Path) -> str:
    from matplotlib import pyplot

    figure.tight_layout()
    # Without the version and date in it, the same study gives the same file.
    figure.savefig(file, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
    return file.name
