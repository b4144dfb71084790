"""What the arms logged while they trained, by rule: means over seeds with intervals, step by step and overall."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ba_eval.stats import CONFIDENCE, Estimate, t_quantile
from ba_eval.study.config import Arm

SHOWN = {
    "reward": "reward",
    "length/mean": "tokens of a response",
    "length/cv_within_group": "length variation in a group (CV)",
    "length/cv_within_sign": "length variation inside a sign (CV)",
    "length/positive": "tokens, right",
    "length/negative": "tokens, wrong",
    "length/gap_relative": "length gap, right - wrong, of the mean",
    "decomposition/length_variation": "balanced - sequence, at ratio 1",
    "decomposition/length_gap": "token - balanced, at ratio 1",
    "moved/balanced_sequence": "weight moved, balanced against sequence",
    "moved/token_balanced": "weight moved, token against balanced",
    "groups/zero_advantage": "groups without advantage",
    "truncated/all": "truncated",
    "grad_norm": "gradient norm",
}
"""Logged names and what tables call them, in their order."""


@dataclass(frozen=True)
class RuleLog:
    """The logs of one rule's arms."""

    rule: str
    seeds: tuple[int, ...]
    steps: npt.NDArray[np.int64]
    """(T,)."""
    values: Mapping[str, npt.NDArray[np.float64]]
    """Logged name to values of shape (S, T); NaN where undefined or not reached."""

    def curve(self, name: str) -> list[Estimate]:
        """The mean over seeds at each step, T of them."""
        return [mean_over_seeds(self.values[name][:, at]) for at in range(len(self.steps))]

    def overall(self, name: str, part: slice = slice(None)) -> Estimate:
        """Mean over these steps, then over seeds."""
        grid = self.values[name][:, part]
        rows = [row[~np.isnan(row)] for row in grid]
        return mean_over_seeds(np.array([row.mean() if row.size else np.nan for row in rows]))


def mean_over_seeds(values: npt.NDArray[np.float64]) -> Estimate:
    """The mean of one value per seed, with Student's interval; NaN bounds with fewer than two."""
    known = values[~np.isnan(values)]
    if not len(known):
        return Estimate(math.nan)
    mean = float(known.mean())
    if len(known) < 2:
        return Estimate(mean)
    se = float(known.std(ddof=1) / math.sqrt(len(known)))
    half = t_quantile(0.5 + CONFIDENCE / 2, len(known) - 1) * se
    return Estimate(mean, mean - half, mean + half, se)


def read_logs(arms: Sequence[Arm]) -> list[RuleLog]:
    """Reads the diagnostics of the arms that have some, by rule. Lines that were torn are left out."""
    by_rule: dict[str, dict[int, dict[int, dict[str, float]]]] = {}
    for arm in arms:
        rows = read_rows(arm)
        if rows:
            by_rule.setdefault(arm.train.rule, {})[arm.train.seed] = {int(row["step"]): row for row in rows}
    logs = []
    for rule, seeds in by_rule.items():
        steps = np.array(sorted({step for rows in seeds.values() for step in rows}), dtype=np.int64)
        values = {
            name: np.array(
                [[_number(rows.get(step, {}).get(name)) for step in steps.tolist()] for rows in seeds.values()]
            )
            for name in SHOWN
        }
        logs.append(RuleLog(rule, tuple(seeds), steps, values))
    return logs


def read_rows(arm: Arm) -> list[dict[str, float]]:
    """The lines of an arm's diagnostics."""
    file = arm.folder / "diagnostics.jsonl"
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append(row)
    return rows


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
