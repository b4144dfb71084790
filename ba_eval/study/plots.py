"""The study's curves as pictures: scores at each saved step, and what was logged while training."""

from collections.abc import Sequence
from pathlib import Path

from ba_eval.report.draw import write_files
from ba_eval.report.figures import Curves, Figure, Series, learning
from ba_eval.results import Results
from ba_eval.study.curves import SHOWN, RuleLog

FIGURES = {
    "training": ("reward", "length/mean", "groups/zero_advantage", "grad_norm"),
    "length": ("length/cv_within_group", "length/cv_within_sign", "length/gap_relative"),
    "terms": (
        "decomposition/length_gap",
        "decomposition/length_variation",
        "moved/token_balanced",
        "moved/balanced_sequence",
    ),
}
"""Figure to the logged names that it shows."""


def write_plots(folder: Path, results: Results, logs: Sequence[RuleLog]) -> list[str]:
    """Writes each figure that there are data for, as PNG and SVG, and returns the names of the files."""
    figures = [learning(results), *(_logged(name, logs) for name in FIGURES if logs)]
    return [file.name for file in write_files([figure for figure in figures if figure], folder)]


def _logged(name: str, logs: Sequence[RuleLog]) -> Figure:
    """What was logged at each step: mean over seeds, and the interval over seeds as a band."""
    panels = tuple(
        Curves(
            SHOWN[measure],
            "training step",
            "",
            tuple(
                Series(log.rule, look, tuple(zip(map(float, log.steps), log.curve(measure), strict=True)))
                for look, log in enumerate(logs)
            ),
            share=False,
        )
        for measure in FIGURES[name]
    )
    caption = "Mean over training seeds, with 95 % band over seeds."
    return Figure(name, name, caption, panels, legend=tuple((log.rule, look) for look, log in enumerate(logs)))
