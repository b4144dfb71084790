"""`ba-eval table` as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ba_eval.cli import main
from tests.runs import make_run


def test_a_complete_run_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"ba": {"b": [[1, 1], [0, 1]]}, "token": {"b": [[0, 0], [0, 1]]}})
    assert main(["table", str(run)]) == 0
    captured = capsys.readouterr()
    assert "75.0" in captured.out and "25.0" in captured.out
    assert captured.err == ""


def test_missing_and_errored_samples_exit_3_and_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = {(0, 0): None, (1, 0): {"outcome": "error", "reason": "lost"}}
    run = make_run(tmp_path / "run", {"m": {"b": [[1, 1], [0, 1]]}}, change=lambda m, b, r, i: changes.get((r, i), {}))
    assert main(["table", str(run)]) == 3
    captured = capsys.readouterr()
    assert "1 samples missing, 1 with errors" in captured.err
    assert "missing" in captured.out


def test_formats_and_k(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"m": {"b": [[1, 0, 0, 0], [0, 0, 0, 0]]}})
    assert main(["table", str(run), "--format", "json", "-k", "2,8"]) == 0
    passes = json.loads(capsys.readouterr().out)["models"][0]["benchmarks"]["b"]["pass_at"]
    assert passes["2"]["value"] == pytest.approx(0.25)
    assert passes["8"]["value"] is None


@pytest.mark.parametrize("k", ["0", "a", "1,,2", ""])
def test_a_bad_k_is_bad_input(tmp_path: Path, k: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["table", str(tmp_path), "-k", k])
    assert stopped.value.code == 2
    assert "-k" in capsys.readouterr().err


def test_no_run_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(tmp_path / "nothing")]) == 2
    assert "not a run folder" in capsys.readouterr().err


def test_a_closed_pipe_is_no_failed_gate(tmp_path: Path) -> None:
    """`ba-eval table RUN | true`: 141 as the shell has it, not 1, and no traceback."""
    run = make_run(tmp_path / "run", {"m": {"math500": np.ones((4, 2), dtype=bool)}})
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ba_eval", "table", str(run)], stdout=writer, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
