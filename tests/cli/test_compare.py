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


def test_several_runs_are_one_where_they_were_measured_in_the_same_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(0)
    cells = {name: generator.random((60, 4)) < share for name, share in {"token": 0.3, "ba": 0.6, "seq": 0.3}.items()}
    whole = make_run(tmp_path / "whole", {name: {"x": cell} for name, cell in cells.items()})
    parts = [str(make_run(tmp_path / f"part-{name}", {name: {"x": cell}})) for name, cell in cells.items()]
    assert main(["compare", str(whole), "--format", "csv"]) == 0
    wanted = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main(["compare", *parts, "--format", "csv"]) == 0
    assert list(csv.DictReader(io.StringIO(capsys.readouterr().out))) == wanted

    again = str(make_run(tmp_path / "again", {"ba": {"x": cells["ba"]}}))
    assert main(["compare", parts[1], again]) == 0
    assert "part-ba/ba" in capsys.readouterr().out
    namesake = str(make_run(tmp_path / "deeper" / "part-ba", {"ba": {"x": cells["seq"]}}))
    assert main(["compare", parts[1], namesake, "--format", "csv"]) == 0
    [row] = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert {row["model"], row["baseline"]} == {f"{parts[1]}/ba", f"{namesake}/ba"}
    assert float(row["difference"]) != 0
    assert main(["compare", parts[1], str(Path(parts[1]) / ".")]) == 2
    assert "given twice" in capsys.readouterr().err
    other = make_run(tmp_path / "other", {"ba": {"x": cells["ba"]}}, benchmarks={"x": {"max_tokens": 64}})
    assert main(["compare", parts[0], str(other)]) == 2
    assert "x: max_tokens 64, not 3072" in capsys.readouterr().err
