"""`ba-eval gate` as a CI job runs it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from ba_eval.cli import main
from tests.runs import make_run

GRID = [[1, 1, 0, 1]] * 40


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return make_run(tmp_path / "run", {"ba": {"x": GRID}})


def test_passing_gates_exit_0(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "gate.xml"
    command = ["gate", str(run), "--min", "x:avg=0.7", "--max-drop", "suite:avg=0", "--baseline", str(run)]
    assert main([*command, "--junit", str(report)]) == 0
    assert "ok   ba: min x:avg=0.7: 0.7500" in capsys.readouterr().out
    assert ElementTree.parse(report).getroot().get("failures") == "0"


def test_a_failing_gate_exits_1_with_the_numbers(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", str(run), "--min", "x:avg=0.8"]) == 1
    captured = capsys.readouterr()
    assert "FAIL ba: min x:avg=0.8: 0.7500" in captured.out
    assert "::error" not in captured.out


def test_annotations_on_github(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["gate", str(run), "--min", "x:avg=0.8"]) == 1
    assert "::error title=ba%3A min x%3Aavg=0.8::0.7500" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [["--min", "x:avg=80"], ["--max-drop", "x:avg=0.1"], ["--confidence", "95"], ["--baseline", "nowhere"],
     ["--min", "z:avg=0.1"]],
)  # fmt: skip
def test_bad_input_exits_2(run: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", str(run), *more]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_report_that_cannot_be_written_exits_3(run: Path, tmp_path: Path) -> None:
    assert main(["gate", str(run), "--junit", str(tmp_path / "no" / "gate.xml")]) == 3
