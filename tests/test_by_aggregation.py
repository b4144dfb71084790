"""Runs grouped by rule, step and seed."""

from pathlib import Path

import numpy as np
import pytest

from ba_eval.by_aggregation import study
from ba_eval.errors import InputError
from ba_eval.reference import read_reference
from ba_eval.results import Results, load
from tests.conftest import ROOT
from tests.runs import make_run

SHARES = {"token": {100: 0.4, 200: 0.6, 300: 0.4}, "balanced": {100: 0.4, 200: 0.6, 300: 0.75}}


def make_study(folder: Path, seeds: int, *, shares: dict[str, dict[int, float]] = SHARES) -> Results:
    generator = np.random.default_rng(0)
    chances = {"x": generator.uniform(-0.2, 0.2, 60), "y": generator.uniform(-0.2, 0.2, 120)}
    scores, models = {}, {}
    for rule, steps in shares.items():
        for step, share in steps.items():
            for seed in range(seeds):
                name = f"{rule}-{step}-{seed}"
                models[name] = {"aggregation": rule, "step": step, "training_seed": seed}
                scores[name] = {b: generator.random((len(c), 4)) < c[:, None] + share for b, c in chances.items()}
    return load(make_run(folder, scores, models=models))


def test_last_peak_and_drop(tmp_path: Path) -> None:
    results = make_study(tmp_path, 2)
    found = study(results)
    token, balanced = found.rules
    assert (token.aggregation, balanced.aggregation) == ("token", "balanced")
    assert [point.step for point in token.points] == [100, 200, 300]
    assert (token.last.step, token.peak.step) == (300, 200)
    assert (balanced.last.step, balanced.peak.step) == (300, 300)
    assert balanced.drop.value == 0
    means = {
        step: np.mean([results.cells[f"token-{step}-{seed}", b].scores.mean() for seed in (0, 1) for b in "xy"])
        for step in (200, 300)
    }
    assert token.last.suite.value == pytest.approx(means[300])
    assert token.drop.value == pytest.approx(means[200] - means[300])
    assert token.drop.low > 0
    assert token.last.seeds == (0, 1)
    assert token.last.models == ("token-300-0", "token-300-1")
    assert token.last.tokens == pytest.approx(101.5)


def test_rules_are_compared_at_their_last_steps(tmp_path: Path) -> None:
    found = study(make_study(tmp_path, 3))
    [one] = found.comparisons
    assert (one.aggregation, one.baseline, one.finding, one.seeds) == ("balanced", "token", "better", (3, 3))
    assert [rule.last_standing for rule in found.rules] == ["second", "best"]


def test_rules_that_do_not_differ_are_tied(tmp_path: Path) -> None:
    found = study(make_study(tmp_path, 2, shares={"token": {1: 0.5}, "sequence": {1: 0.5}, "balanced": {1: 0.5}}))
    assert [rule.aggregation for rule in found.rules] == ["sequence", "token", "balanced"]
    assert {rule.last_standing for rule in found.rules} == {"best", "tied"}
    assert {one.finding for one in found.comparisons} == {"not separable"}
    assert len(found.comparisons) == 3


def test_models_without_a_rule_are_left_out(tmp_path: Path) -> None:
    grid = {"x": [[1, 0], [1, 1]]}
    models = {"t": {"aggregation": "token", "step": 5}}
    found = study(load(make_run(tmp_path / "a", {"t": grid, "base": grid}, models=models)))
    assert found.left_out == ("base",)
    assert [rule.aggregation for rule in found.rules] == ["token"]
    with pytest.raises(InputError, match="no model says how it was trained"):
        study(load(make_run(tmp_path / "b", {"base": grid})))


def test_two_models_in_one_place_are_bad_input(tmp_path: Path) -> None:
    grid = {"x": [[1, 0], [1, 1]]}
    same = {"aggregation": "token", "step": 5, "training_seed": 1}
    with pytest.raises(InputError, match="a and b have the same aggregation"):
        study(load(make_run(tmp_path, {"a": grid, "b": grid}, models={"a": same, "b": same})))


def test_the_published_numbers() -> None:
    reference = read_reference(ROOT / "results" / "paper.yaml")
    assert len(reference.rows) == 4
    assert reference.rows[2].scores == {"sequence": 0.4481, "token": 0.436, "balanced": 0.4695}


def test_a_reference_of_percentages_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("source: s\nmeasure: m\nrows: [{model: a, data: b, scores: {token: 33.6}}]\n")
    with pytest.raises(InputError, match=r"33\.6 is not a share"):
        read_reference(tmp_path / "r.yaml")
