"""Tables by aggregation rule, through the command line."""

import csv
import io
import json
from pathlib import Path

import pytest

from ba_eval.cli import main
from tests.conftest import ROOT
from tests.runs import make_run
from tests.test_by_aggregation import make_study


def test_ends_of_training_beside_the_published_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_study(tmp_path / "run", 2).run
    command = ["table", str(run), "--by", "aggregation", "--reference", str(ROOT / "results" / "paper.yaml")]
    assert main(command) == 0
    text = capsys.readouterr().out
    header = next(line for line in text.splitlines() if "balanced" in line)
    assert header.split() == ["run", "%", "sequence", "token", "balanced"]
    steps = [line.split()[-2:] for line in text.splitlines() if line.strip().startswith("at step")]
    assert steps == [["300", "300"], ["200", "300"]]
    assert "44.81" in text and "46.95*" in text and "published" in text
    assert "balanced − token at the last step" in text
    for format in ("markdown", "latex"):
        assert main([*command, "--format", format]) == 0
        assert "46.95" in capsys.readouterr().out


def test_learning_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_study(tmp_path / "run", 2).run
    assert main(["table", str(run), "--by", "step", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 2 * 3 * 3
    assert {row["step"] for row in rows} == {"100", "200", "300"}
    assert main(["table", str(run), "--by", "step", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    points = data["studies"][0]["rules"][0]["points"]
    assert float(rows[2]["avg"]) == pytest.approx(points[0]["suite"]["value"], abs=1e-6)
    assert main(["table", str(run), "--by", "step"]) == 0
    assert sum(line.split()[:2] == ["run", "token"] for line in capsys.readouterr().out.splitlines()) == 3


def test_several_runs_are_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(make_study(tmp_path / name, 1).run) for name in ("qwen-dapo", "qwen-polaris")]
    assert main(["table", *runs, "--by", "aggregation"]) == 0
    text = capsys.readouterr().out
    assert "qwen-dapo" in text and "qwen-polaris" in text
    assert "one training seed" in text


@pytest.mark.parametrize("more", [["--reference", "x.yaml"], ["SECOND"]])
def test_what_does_not_go_together_is_bad_input(
    tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(make_run(tmp_path / "run", {"m": {"b": [[1]]}}))
    assert main(["table", run, *(run if part == "SECOND" else part for part in more)]) == 2
    assert "--by" in capsys.readouterr().err
