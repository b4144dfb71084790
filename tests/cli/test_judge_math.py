"""`ba-eval judge math`, end to end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ba_eval.cli import main

ROWS: list[dict[str, Any]] = [
    {"id": 1, "gold": "\\frac{1}{2}", "response": "so $\\boxed{0.5}$"},
    {"id": 2, "gold": "\\frac{1}{2}", "answer": "0.25"},
    {"id": "three", "gold": ["1", "2"], "answer": "2"},
    {"id": 4, "gold": 27.0, "response": "**Answer:** 27"},
    {"id": 5, "gold": "5", "response": "<think>\\boxed{5}", "finish_reason": "length"},
    {"id": 6, "gold": "5", "answer": "9^{9^{9^{9}}}"},
    {"id": 7, "gold": "4.2", "answer": "4.25", "tolerance": 0.1},
    {"id": 8, "gold": "5", "response": ""},
    {"id": 9, "gold": "\\sqrt{8}", "answer": "2\\sqrt{2}"},
]
EXPECTED = [
    ("correct", "equal", "0.5"),
    ("wrong", "not equal", "0.25"),
    ("correct", "equal", "2"),
    ("correct", "equal", "27"),
    ("wrong", "truncated", None),
    ("undecided", "too large: a power", "9^{9^{9^{9}}}"),
    ("correct", "equal", "4.25"),
    ("wrong", "no answer", None),
    ("correct", "equal", "2\\sqrt{2}"),
]


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_verdicts_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "verdicts.jsonl"
    assert main(["judge", "math", str(written(tmp_path, ROWS)), "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["id"] for line in lines] == [row["id"] for row in ROWS]
    assert [(line["outcome"], line["reason"], line["extracted"]) for line in lines] == EXPECTED
    assert all(set(line) == {"id", "outcome", "reason", "extracted", "method", "seconds"} for line in lines)
    assert "9 judged: 5 correct, 3 wrong, 1 undecided, 0 error" in capsys.readouterr().err


def test_stdout_and_hostile_bytes(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(
        b'{"id": 1, "gold": "5", "response": "\xff\xfe \\\\boxed{5}"}\n\n'
        b'{"id": 2, "gold": "5", "response": "\\ud800 \\u0000 \\\\boxed{6}"}\n'
        b'{"id": 3, "gold": "\\\\sqrt{2}", "answer": "\\ud800\\\\sqrt{2}"}\n'
    )
    command = [sys.executable, "-m", "ba_eval", "judge", "math", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["outcome"] for line in done.stdout.splitlines()] == ["correct", "wrong", "correct"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"id": 1, "gold": "5"}\n', ":1: a line needs"),
        ('{"id": 1, "gold": "5", "answer": "5"}\n{"gold": "5", "answer": "5"}\n', ":2: a line needs"),
        ('{"id": 1, "gold": "5", "answer": "5"\n', ":1: not JSON"),
        ("[1]\n", ":1: a line needs"),
    ],
)
def test_bad_lines_are_refused_by_place(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(content)
    command = [sys.executable, "-m", "ba_eval", "judge", "math", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert told in done.stderr and "Traceback" not in done.stderr


def test_missing_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ba_eval", "judge", "math", str(tmp_path / "none.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
