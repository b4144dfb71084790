"""The numbers behind the figures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ba_eval.report.draw import svg, write_files
from ba_eval.report.figures import CURVES, Boxes, Curves, Dots, Figure, Map, figures, looks
from ba_eval.results import Results, load
from ba_eval.stats import mean_interval, pass_at_k
from ba_eval.tables import summarise
from tests.runs import make_run


def made(results: Results) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(results, summarise(results))}


def two_models(folder: Path, **more: Any) -> Results:
    generator = np.random.default_rng(0)
    scores = {
        model: {"x": generator.random((20, 8)) < share, "y": generator.random((10, 4)) < share}
        for model, share in (("a", 0.3), ("b", 0.6))
    }
    return load(make_run(folder, scores, **more))


def test_pass_curves_hold_the_estimates_up_to_n(tmp_path: Path) -> None:
    results = two_models(tmp_path / "run")
    figure = made(results)["pass_at_k"]
    suite, x, y = figure.panels
    assert isinstance(suite, Curves) and isinstance(x, Curves) and isinstance(y, Curves)
    assert [[k for k, _ in panel.series[0].points] for panel in (suite, x, y)] == [[1, 2, 4], [1, 2, 4, 8], [1, 2, 4]]
    cell = results.cells["b", "x"]
    for k, estimate in x.series[1].points:
        assert estimate == mean_interval([pass_at_k(cell.scored, cell.correct, int(k))])
    assert suite.series[0].points[2][1].value == pytest.approx(
        (x.series[0].points[2][1].value + y.series[0].points[2][1].value) / 2
    )
    assert figure.numbers is not None
    row = next(row for row in figure.numbers.rows if (row[0][0].text, row[1][0].text) == ("y", "a"))
    assert row[-1] == ()  # pass@8 of 4 samples
    assert [name for name, _ in figure.legend] == ["a", "b"]


def test_no_pass_curves_where_n_is_1(tmp_path: Path) -> None:
    found = made(load(make_run(tmp_path / "run", {"a": {"x": [[1], [0]]}})))
    assert set(found) == {"scores", "lengths", "problems"}


def test_scores_are_those_of_the_table(tmp_path: Path) -> None:
    results = two_models(tmp_path / "run")
    summary = summarise(results)
    suite, x, _ = made(results)["scores"].panels
    assert isinstance(suite, Dots) and isinstance(x, Dots)
    assert [row[2] for row in suite.rows] == [model.suite_avg for model in summary.models]
    assert [row[2] for row in x.rows] == [model.benchmarks["x"].avg for model in summary.models]


def test_lengths_and_cuts(tmp_path: Path) -> None:
    """Tokens are 100 .. 107 for each problem of x; sample 7 of each is cut."""
    results = two_models(
        tmp_path / "run", change=lambda m, b, row, index: {"finish_reason": "length"} if index == 7 else {}
    )
    found = made(results)
    boxes = found["lengths"].panels[0]
    assert isinstance(boxes, Boxes)
    assert boxes.rows[0].mean == 103.5
    assert boxes.rows[0].quantiles == pytest.approx(
        np.quantile(np.tile(np.arange(100, 108), 20), (0.05, 0.25, 0.5, 0.75, 0.95))
    )
    assert boxes.limit == 3072
    x, y = found["cut"].panels
    assert isinstance(x, Dots) and isinstance(y, Dots)
    assert x.rows[0][2].value == 0.125 and y.rows[0][2].value == 0
    assert y.rows[0][2].high > 0.1  # nothing cut of 10 problems is not certainly nothing


def test_problems_are_sorted_from_easy_to_hard(tmp_path: Path) -> None:
    grid = [[0, 0], [1, 1], [1, 0]]
    panel = made(load(make_run(tmp_path / "run", {"a": {"x": grid}, "b": {"x": grid}})))["problems"].panels[0]
    assert isinstance(panel, Map)
    assert panel.scores.tolist() == [[1, 0.5, 0]] * 2


def trained(folder: Path, steps: tuple[int, ...], seeds: int = 1, rule: bool = True) -> Results:
    generator = np.random.default_rng(0)
    models: dict[str, dict[str, Any]] = {
        f"{name}-{seed}@{step}": {"step": step, "training_seed": seed} | ({"aggregation": name} if rule else {})
        for name in ("token", "balanced")
        for seed in range(seeds)
        for step in steps
    }
    scores = {name: {"x": generator.random((30, 4)) < 0.1 * facts["step"]} for name, facts in models.items()}
    return load(make_run(folder, scores, models=models))


def test_learning_curves_by_rule(tmp_path: Path) -> None:
    results = trained(tmp_path / "run", (2, 4, 6), seeds=2)
    figure = made(results)["learning"]
    assert [panel.title for panel in figure.panels] == ["x", "response length", "cut responses"]
    score, length, _ = figure.panels
    assert isinstance(score, Curves) and isinstance(length, Curves)
    assert [series.name for series in score.series] == ["token", "balanced"]
    assert [step for step, _ in score.series[0].points] == [2, 4, 6]
    mean = np.mean([results.cells[f"token-{seed}@4", "x"].scores.mean() for seed in (0, 1)])
    assert score.series[0].points[1][1].value == pytest.approx(mean)
    assert length.series[0].points[0][1].value == 101.5
    assert "training seeds" in figure.caption


def test_learning_curves_by_name_where_no_rule_is_known(tmp_path: Path) -> None:
    score = made(trained(tmp_path / "run", (1, 2), rule=False))["learning"].panels[0]
    assert isinstance(score, Curves)
    assert sorted(series.name for series in score.series) == ["balanced-0", "token-0"]


def test_no_learning_curves_of_one_step(tmp_path: Path) -> None:
    assert "learning" not in made(trained(tmp_path / "run", (5,)))
    assert "learning" not in made(two_models(tmp_path / "other"))


def test_of_steps_and_of_many_models_some_get_a_curve(tmp_path: Path) -> None:
    results = trained(tmp_path / "run", (1, 2, 3))
    figure = made(results)["pass_at_k"]
    assert [name for name, _ in figure.legend] == ["token-0@3", "balanced-0@3"]
    assert "last step" in figure.caption
    assert looks(results.plan.models)["token-0@1"] == looks(results.plan.models)["token-0@3"]
    scores = {f"m{number}": {"x": [[1, 1]] * number + [[0, 0]] * (20 - number)} for number in range(CURVES + 3)}
    figure = made(load(make_run(tmp_path / "many", scores)))["pass_at_k"]
    assert [name for name, _ in figure.legend] == [f"m{number}" for number in range(3, CURVES + 3)]
    assert f"{CURVES} models with the highest mean" in figure.caption


def test_every_figure_is_drawn_with_nothing_to_show_too(tmp_path: Path) -> None:
    """One model has no sample of y at all: its numbers are undefined."""
    results = two_models(
        tmp_path / "run", change=lambda m, b, row, index: None if (m, b) == ("a", "y") or row == 3 else {}
    )
    found = figures(results, summarise(results))
    for figure in found:
        for panel in figure.panels:
            drawn = svg(panel)
            assert drawn.startswith("<svg viewBox=") and "<style" not in drawn and "var(--ink)" in drawn
            assert "#2f86ee" not in drawn
    found = found[:2]
    written = write_files(found, tmp_path / "plots")
    names = {path.name for path in written}
    assert names == {f"{figure.name}.{suffix}" for figure in found for suffix in ("png", "svg")}
    for path in written:
        head = path.read_bytes()[:60]
        assert head.startswith(b"\x89PNG") if path.suffix == ".png" else b"<?xml" in head


def test_names_cannot_become_markup_or_formulas_in_a_figure(tmp_path: Path) -> None:
    name = "<script>$\\frac$</script>"
    results = load(make_run(tmp_path / "run", {name: {"x": [[1, 0], [0, 0]]}, "b": {"x": [[1, 1], [0, 1]]}}))
    for figure in figures(results, summarise(results)):
        for panel in figure.panels:
            drawn = svg(panel)
            assert "<script" not in drawn
            if not isinstance(panel, Curves):
                assert "&lt;script&gt;$\\frac" in drawn


def test_the_same_numbers_give_the_same_files(tmp_path: Path) -> None:
    results = two_models(tmp_path / "run")
    found = figures(results, summarise(results))[:1]
    for folder in ("one", "two"):
        write_files(found, tmp_path / folder)
    for name in ("scores.svg", "scores.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
