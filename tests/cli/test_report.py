"""`ba-eval report` as a user runs it."""

from pathlib import Path

import pytest

from ba_eval.cli import main
from tests.runs import make_run

SCORES = {"a": {"x": [[1, 0], [0, 0], [1, 1]]}, "b": {"x": [[1, 1], [0, 1], [1, 1]]}}


def test_report_is_written_into_the_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", SCORES)
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out.startswith(f"{run / 'report.html'} (0.")
    assert (run / "report.html").read_text("utf-8").startswith("<!doctype html>")
    assert not list(run.glob("*.tmp"))


def test_output_baseline_and_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", SCORES)
    output, plots = tmp_path / "out.html", tmp_path / "new" / "plots"
    assert main(["report", str(run), "-o", str(output), "--baseline", "a", "--plots", str(plots)]) == 0
    assert "Each model minus a" in output.read_text("utf-8")
    assert {"scores.png", "scores.svg", "problems.png"} <= {path.name for path in plots.iterdir()}
    assert f"plots in {plots}" in capsys.readouterr().out
    assert not (run / "report.html").exists()


def test_an_incomplete_run_is_reported_and_exits_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", SCORES, change=lambda m, b, row, index: None if row == 1 else {})
    assert main(["report", str(run)]) == 3
    assert "4 samples missing" in capsys.readouterr().err
    assert "Incomplete: 4 samples missing" in (run / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{run}/no"], "{run}/no: is not a run folder"),
        (["{run}", "--baseline", "A"], "{run}: has no model 'A'"),
        (["{run}", "-o", "{run}/no/out.html"], "{run}/no/out.html: there is no folder {run}/no"),
        (["{run}", "-o", "{run}"], "{run}: is a folder"),
        (["{run}", "--plots", "{run}/plan.json"], "{run}/plan.json: is a file"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    run = make_run(tmp_path / "run", SCORES)
    assert main(["report", *(one.format(run=run) for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"ba-eval: {said.format(run=run)}") and error.count("\n") == 1
    assert not list(run.glob("report.html*"))
