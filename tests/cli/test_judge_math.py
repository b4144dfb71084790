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
        (b'{"id": 1, "gold": "5"}\n', ":1: `answer` or `response` is missing"),
        (b'{"id": 1, "gold": "5", "answer": "5"}\n\n{"gold": "5", "answer": "5"}\n', ":3: `id` is missing"),
        (b'{"id": 1, "answer": "5"}\n', ":1: `gold` is missing"),
        (b'{"id": 1, "gold": "5", "answer": "5"\n', ":1: not JSON"),
        (b"\x00\x00\n", ":1: not JSON"),
        (b"\x1f\x8b\x08", ":1: not JSON"),
        (b"[1]\n", ":1: a line must be an object"),
        (b"5\n", ":1: a line must be an object"),
        (b'{"id": 1, "gold": null, "answer": "5"}\n', ":1: `gold` is empty"),
        (b'{"id": 1, "gold": [], "answer": "5"}\n', ":1: `gold` is empty"),
        (b'{"id": 1, "gold": ["5", " "], "answer": "5"}\n', ":1: `gold` is empty"),
        (b'{"id": 1, "gold": {"a": 1}, "answer": "5"}\n', ":1: `gold` must be text or a number, not {'a': 1}"),
        (b'{"id": 1, "gold": [["5"]], "answer": "5"}\n', ":1: `gold` must be text or a number, not ['5']"),
        (b'{"id": 1, "gold": 1e999, "answer": "5"}\n', ":1: `gold` must be text or a number, not inf"),
        (b'{"id": 1, "gold": NaN, "answer": "5"}\n', ":1: not JSON (NaN is no JSON)"),
        (b'{"id": 1, "gold": "5", "answer": ["5"]}\n', ":1: `answer` must be text or a number, not ['5']"),
        (b'{"id": 1, "gold": "5", "response": {"a": 1}}\n', ":1: `response` must be text or a number"),
        (b'{"id": 1, "gold": "5", "answer": "5", "tolerance": "x"}\n', ":1: `tolerance` must be a number, 0 or more"),
        (b'{"id": 1, "gold": "5", "answer": "5", "tolerance": -1}\n', ":1: `tolerance` must be a number, 0 or more"),
        (b'{"id": 1, "gold": "5", "answer": "5", "tolerance": "nan"}\n', ":1: `tolerance` must be a number, 0 or more"),
        (b'{"id": 1, "gold": "5", "answer": "5", "unit": 7}\n', ":1: `unit` must be text, not 7"),
        (b'{"id": 1, "gold": "5", "response": "5", "finish_reason": 7}\n', ":1: `finish_reason` must be text, not 7"),
        (b'{"id": 1, "gold": "5", "answer": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", ":1: nested too deeply"),
        (b"", ": holds no lines to judge"),
        (b" \n\n", ": holds no lines to judge"),
    ],
)
def test_bad_lines_are_refused_by_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(content)
    out = tmp_path / "verdicts.jsonl"
    assert main(["judge", "math", str(path), "--out", str(out)]) == 2
    assert f"{path}{told}" in capsys.readouterr().err
    assert not out.exists()


def test_what_is_odd_but_clear_is_graded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        b'\xef\xbb\xbf{"id": {"a": 1}, "gold": 5, "answer": 5}\r\n',
        b'{"id": 2, "gold": [0.5, "1"], "answer": "1/2"}\n',
        b'{"id": 3, "gold": 12345678901234567890123, "answer": "12345678901234567890123"}\n',
        b'{"id": 4, "gold": "5", "answer": null, "response": "\\\\boxed{5}"}\n',
        b'{"id": 5, "gold": "5", "response": 5, "unit": null, "tolerance": ""}\n',
        b'{"id": 6, "gold": "5", "answer": "5\x00", "more": [1]}\n',
        b'{"id": 7, "gold": true, "answer": "True"}',
    ]
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b"".join(rows))
    assert main(["judge", "math", str(path)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["outcome"] for line in lines] == ["correct"] * 7
    assert lines[0]["id"] == {"a": 1}


def test_integers_of_any_length(tmp_path: Path) -> None:
    long = "7" * 6000
    path, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    path.write_text(
        f'{{"id": 1, "gold": {long}, "answer": "{long}"}}\n{{"id": 2, "gold": {long}, "answer": {long}8}}\n'
    )
    assert main(["judge", "math", str(path), "--out", str(out)]) == 0
    assert [json.loads(line)["outcome"] for line in out.read_text().splitlines()] == ["correct", "wrong"]


def test_a_pipe_is_read(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ba_eval", "judge", "math", "/dev/stdin"]
    line = '{"id": 1, "gold": "5", "answer": "5"}\n'
    done = subprocess.run(command, input=line, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "correct"), done.stderr


def test_the_file_itself_is_no_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, ROWS)
    before = path.read_bytes()
    assert main(["judge", "math", str(path), "--out", str(path)]) == 2
    assert "is the file to judge" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_missing_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ba_eval", "judge", "math", str(tmp_path / "none.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
