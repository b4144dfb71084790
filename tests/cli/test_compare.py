"""`ba-eval compare` as a user runs it."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from ba_eval.cli import main
from tests.runs import make_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    shares = {"token": 0.3, "ba": 0.6, "sequence": 0.3}
    scores = {name: {b: generator.random((60, 4)) < share for b in ("x", "y")} for name, share in shares.items()}
    return make_run(tmp_path / "run", scores)


def test_text(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(run), "--baseline", "token"]) == 0
    text = capsys.readouterr().out
    findings = [line.split("finding")[1].split() for line in text.splitlines() if line.strip().startswith("finding ")]
    assert findings == [["better"] * 3, ["not", "separable"] * 3]
    assert "− token" in text


def test_all_formats_tell_the_same(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(run), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "ba-eval comparison 1"
    assert len(data["comparisons"]) == 3 * 3
    assert main(["compare", str(run), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    for row, one in zip(rows, data["comparisons"], strict=True):
        assert row["model"] == one["model"] and row["finding"] == one["finding"]
        assert float(row["difference"]) == pytest.approx(one["difference"]["value"], abs=1e-6)
    for format in ("markdown", "latex"):
        assert main(["compare", str(run), "--format", format]) == 0
        assert f"{100 * data['comparisons'][0]['difference']['value']:+.1f}" in capsys.readouterr().out


def test_an_incomplete_run_exits_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"a": {"x": [[1, 0], [1, 1]]}, "b": {"x": [[1, 0], [1, 1]]}}
    run = make_run(tmp_path / "run", scores, change=lambda m, b, r, i: None if (m, r, i) == ("a", 0, 0) else {})
    assert main(["compare", str(run)]) == 3
    captured = capsys.readouterr()
    assert "1 samples missing" in captured.err
    assert "INCOMPLETE" in captured.out


def test_an_unknown_baseline_is_bad_input(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(run), "--baseline", "tokens"]) == 2
    assert "did you mean 'token'?" in capsys.readouterr().err
