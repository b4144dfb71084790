"""Parquet export, read back through `datasets`."""

import json
from pathlib import Path

import pytest

from ba_eval.cli import main
from ba_eval.export import export_parquet
from tests.runs import append_records, make_run
from tests.test_results import sample, verdict


def test_rows_are_samples_with_their_last_verdicts(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    changes = {
        (0, 1): {"verdict": None, "thinking_tokens": 12},
        (1, 0): None,
        (1, 1): {"finish_reason": "error", "error": "lost", "details": {"tests": [1, 2]}},
    }
    run = make_run(
        tmp_path / "run",
        {"m": {"b": [[1, 0], [1, 0]]}},
        models={"m": {"aggregation": "token", "step": 300}},
        benchmarks={"b": {"excluded": {"p1": "interactive"}}},
        change=lambda m, b, row, index: changes.get((row, index), {}),
    )
    append_records(run, "m", "b", [sample(text="again \u0000 ünï"), sample(key="older", text="old"), sample(index=7)])
    append_records(run, "m", "b", [verdict(outcome="wrong", reason="not equal")])
    output = tmp_path / "out.parquet"
    assert export_parquet(run, output) == 3
    data = datasets.load_dataset("parquet", data_files=str(output), cache_dir=str(tmp_path / "cache"), split="train")
    rows = {(row["problem_id"], row["index"]): row for row in data}
    assert rows["p0", 0]["text"] == "again \u0000 ünï"
    assert rows["p0", 0]["outcome"] == "wrong"
    assert rows["p0", 0]["aggregation"] == "token" and rows["p0", 0]["step"] == 300
    assert rows["p0", 1]["outcome"] is None and rows["p0", 1]["thinking_tokens"] == 12
    assert rows["p1", 1]["error"] == "lost" and rows["p1", 1]["apart"] == "interactive"
    assert json.loads(rows["p1", 1]["details"]) == {"tests": [1, 2]}


def test_an_empty_run_is_an_empty_file(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run = make_run(tmp_path / "run", {"m": {"b": [[1]]}}, change=lambda m, b, row, index: None)
    assert export_parquet(run, tmp_path / "out.parquet") == 0
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"m": {"b": [[1, 0]]}})
    assert main(["export", str(run), "-o", str(tmp_path / "out.parquet")]) == 0
    assert "2 samples in" in capsys.readouterr().out
    assert main(["export", str(run), "-o", str(tmp_path / "no" / "out.parquet")]) == 2
    assert main(["export", str(tmp_path), "-o", str(tmp_path / "out.parquet")]) == 2
    assert not list(tmp_path.glob("*.tmp"))
