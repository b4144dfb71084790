"""`ba-eval judge code` and `ba-eval judge --benchmark`, end to end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ba_eval.cli import main

DOUBLE = {"tests": [{"stdin": "4\n", "stdout": "8\n"}]}
ADD = {
    "entry_point": "add",
    "tests": [{"args": [1, 2], "expected": 3}, {"args": [2], "kwargs": {"b": 2}, "expected": 4}],
}


NESTED: Any = 1
for _ in range(250):
    NESTED = [NESTED]


def write(path: Path, rows: list[Any]) -> Path:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.open()]


def test_code_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": "a", "response": "```python\nprint(2 * int(input()))\n```", **DOUBLE},
        {"id": "b", "solution": "print(2)", **DOUBLE},
        {"id": 3, "response": "I give up \ud800", **DOUBLE},
        "",
        {"id": "d", "response": "```python\nprint(2 *", "finish_reason": "length", **DOUBLE},
        {"id": "e", "solution": "def add(a, b):\n    return a + b", **ADD},
        {"id": "f", "response": "    return a + b", "prefix": "def add(a, b):\n", **ADD},
        {
            "id": "g",
            "solution": "def add(a, b):\n    return a + b",
            "entry_point": "add",
            "tests": "assert add(1, 1) == 3",
        },
    ]
    out = tmp_path / "out.jsonl"
    assert main(["judge", "code", str(write(tmp_path / "in.jsonl", rows)), "--out", str(out), "--workers", "2"]) == 0
    verdicts = read(out)
    assert [(v["id"], v["outcome"], v["reason"]) for v in verdicts] == [
        ("a", "correct", "passed"),
        ("b", "wrong", "failed test"),
        (3, "wrong", "no code"),
        ("d", "wrong", "truncated"),
        ("e", "correct", "passed"),
        ("f", "correct", "passed"),
        ("g", "wrong", "failed test"),
    ]
    assert verdicts[1]["failed"] == {
        **{"test": 0, "input": "4\n", "expected": "8\n", "got": "2\n"},
        "difference": "line 1: 2 instead of 8",
    }
    assert (verdicts[4]["passed"], verdicts[4]["total"]) == (2, 2)
    assert "7 judged: 3 correct, 4 wrong" in capsys.readouterr().err


def test_odd_lines_are_judged(tmp_path: Path) -> None:
    """Integers longer than Python converts by itself; half a surrogate pair in a program; a program without end."""
    long = "9" * 6000
    same = {"solution": "def f(x):\n    return x", "entry_point": "f"}
    rows = [
        f'{{"id": "a", "tests": [{{"args": [{long}], "expected": {long}}}], {json.dumps(same)[1:]}',
        f'{{"id": "b", "tests": [{{"args": [{long}], "expected": {long}0}}], {json.dumps(same)[1:]}',
        {"id": "c", "solution": "print('\ud800')", **DOUBLE},
        {"id": "d", "response": "```python\nprint('\ud800', input())\n```", **DOUBLE},
        {"id": "e", "solution": "print(2 * int(input()))\n#" + "x" * 5_000_000, **DOUBLE},
        {"id": "f", **same, "tests": [{"args": ["\ud800"], "expected": "\ud800"}]},
    ]
    out = tmp_path / "out.jsonl"
    assert main(["judge", "code", str(write(tmp_path / "in.jsonl", rows)), "--out", str(out)]) == 0
    assert [(v["id"], v["outcome"], v["reason"]) for v in read(out)] == [
        ("a", "correct", "passed"),
        ("b", "wrong", "failed test"),
        ("c", "wrong", "crash"),
        ("d", "wrong", "crash"),
        ("e", "wrong", "no code"),
        ("f", "correct", "passed"),
    ]


def test_asserts_name_their_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "def sq(x): return x * x"
    tests: list[Any] = [
        ["assert sq(3) == 9", "assert sq(0) == 0"],
        "assert len([sq(3)]) == 1 and sq(3) == 9",
        "from math import isclose\nassert isclose(sq(0.5), 0.25)",
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"id": n, "solution": program, "tests": t}) + "\n" for n, t in enumerate(tests)))
    assert main(["judge", "code", str(path)]) == 0
    outcomes = [json.loads(line)["outcome"] for line in capsys.readouterr().out.splitlines()]
    assert outcomes == ["correct"] * len(tests)
    for test in (
        "def check(candidate):\n    assert candidate(3) == 9",
        "def check(f):\n    assert f(3) == 9\ncheck(sq)",
    ):
        path.write_text(json.dumps({"id": 1, "solution": program, "tests": test}))
        assert main(["judge", "code", str(path)]) == 2
        assert "give `entry_point`" in capsys.readouterr().err


def test_the_judged_file_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "in.jsonl", [{"id": "a", "solution": "print(8)", **DOUBLE}])
    before = path.read_bytes()
    assert main(["judge", "code", str(path), "--out", str(tmp_path / "." / "in.jsonl")]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_verdicts_go_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "in.jsonl", [{"id": "a", "solution": "print(8)", **DOUBLE}])
    assert main(["judge", "code", str(path), "--level", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "correct"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object"),
        ("[" * 100_000, "not JSON"),
        ({"solution": "", **DOUBLE}, "needs `id`"),
        ({"id": "a", **DOUBLE}, "needs either `response`"),
        ({"id": "a", "solution": "", "response": "", **DOUBLE}, "needs either `response`"),
        ({"id": "a", "solution": 3, **DOUBLE}, "needs either `response`"),
        ({"id": "a", "solution": ""}, "needs `tests`"),
        ({"id": "a", "solution": "", "tests": []}, "needs `tests`"),
        ({"id": "a", "solution": "", "tests": [{"stdin": ""}]}, "each test must have"),
        ({"id": "a", "solution": "", "tests": [{"stdin": 1, "stdout": ""}]}, "must be texts"),
        ({"id": "a", "solution": "", "tests": [{"args": [], "expected": 1}]}, "need `entry_point`"),
        ({"id": "a", "solution": "", "entry_point": "f", "tests": [{"args": 1, "expected": 1}]}, "must be a list"),
        (
            {"id": "a", "solution": "", "entry_point": "f(", "tests": ADD["tests"]},
            "name of a function",
        ),
        ({"id": "a", "solution": "", "prefix": 1, **DOUBLE}, "`prefix` must be a text"),
        ({"id": True, "solution": "", **DOUBLE}, "needs `id`"),
        ({"id": 10**30, "solution": "", **DOUBLE}, "needs `id`"),
        ('{"id": "a", "solution": "\udcff"}', "not UTF-8 (byte 26 of the line)"),
        ({"id": "a", "solution": "", "tests": [{"stdin": "\ud800", "stdout": ""}]}, "`stdin` holds half a surrogate"),
        ({"id": "a", "solution": "", "entry_point": "f", "tests": "f() # \ud800"}, "`tests` holds half a surrogate"),
        (
            {"id": "a", "solution": "", "entry_point": "f", "tests": [{"args": ["x" * (33 << 20)], "expected": 1}]},
            "a test cannot be used: more than can be sent",
        ),
        (
            {"id": "a", "solution": "", "entry_point": "f", "tests": [{"args": [], "expected": NESTED}]},
            "a test cannot be used: not plain data, or nested too deep",
        ),
    ],
)
def test_bad_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], row: Any, message: str) -> None:
    path = write(tmp_path / "in.jsonl", [{"id": "ok", "solution": "print(8)", **DOUBLE}, "", row])
    out = tmp_path / "out.jsonl"
    assert main(["judge", "code", str(path), "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert "in.jsonl:3: " in told
    assert message in told
    assert told.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["judge", "code", "absent.jsonl"], "absent.jsonl: cannot be read (No such file"),
        (["judge", "code", "."], ".: cannot be read (Is a directory)"),
        (["judge", "code", "empty.jsonl"], "empty.jsonl: holds no lines"),
        (["judge", "code", "good.jsonl", "--out", "no/such/folder"], "no/such/folder: cannot be written"),
        (["judge", "--benchmark", "no_such", "good.jsonl"], "unknown benchmark"),
        (["judge", "--benchmark", "smoke_math", "program.jsonl"], "program.jsonl:1: needs `response`, a text"),
        (["judge", "--benchmark", "humaneval", "good.jsonl"], "good.jsonl:1: needs `problem_id` or `task_id`"),
        (["judge", "--benchmark", "humaneval", "other.jsonl"], "other.jsonl:1: humaneval has no problem 'x'"),
    ],
)
def test_bad_input(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shared: Path,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BA_EVAL_DATA_DIR", str(shared / "data"))
    write(Path("good.jsonl"), [{"id": "a", "solution": "print(8)", **DOUBLE}])
    write(Path("other.jsonl"), [{"task_id": "x", "solution": "print(8)"}])
    write(Path("program.jsonl"), [{"problem_id": "sum", "solution": "print(12)"}])
    Path("empty.jsonl").write_text("\n\n")
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["judge"],
        ["judge", "code"],
        ["judge", "prose", "file"],
        ["judge", "--benchmark", "humaneval", "code", "file"],
        ["judge", "code", "file", "--workers", "0"],
        ["judge", "code", "file", "--workers", "many"],
        ["judge", "code", "file", "--level", "3"],
    ],
)
def test_bad_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def humaneval(shared: Path) -> list[dict[str, Any]]:
    return read(shared / "data/humaneval.jsonl")


def test_benchmark_file(tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = humaneval(shared)[:2]
    rows = [
        {"task_id": first["task_id"], "solution": first["prompt"] + first["canonical_solution"]},
        {"task_id": first["task_id"], "response": f"```python\n{first['prompt']}    return True\n```"},
        {"problem_id": second["task_id"], "completion": second["canonical_solution"]},
        {"problem_id": second["task_id"], "response": "no"},
    ]
    path = write(tmp_path / "samples.jsonl", rows)
    assert main(["judge", "--benchmark", "humaneval", str(path), "--data-dir", str(shared / "data")]) == 0
    told = capsys.readouterr().out
    assert "humaneval: pass@1 0.5000\n" in told
    assert "4 samples of 2 problems" in told
    assert "162 problems have no sample" in told
    verdicts = read(tmp_path / "samples.verdicts.jsonl")
    assert [(v["problem_id"], v["index"], v["outcome"], v["reason"]) for v in verdicts] == [
        ("HumanEval/0", 0, "correct", "passed"),
        ("HumanEval/0", 1, "wrong", "failed test"),
        ("HumanEval/1", 0, "correct", "passed"),
        ("HumanEval/1", 1, "wrong", "no code"),
    ]


def test_math_benchmark_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    responses = [("sum", "7 + 5 = \\boxed{12}."), ("sum", "\\boxed{13}"), ("difference", "The answer is 12.")]
    rows = [{"problem_id": id, "response": response} for id, response in [*responses, ("difference", "Hard to say.")]]
    path = write(tmp_path / "samples.jsonl", rows)
    assert main(["judge", "--benchmark", "smoke_math", str(path)]) == 0
    told = capsys.readouterr().out
    assert "smoke_math: pass@1 0.5000\n" in told
    assert "18 problems have no sample: the score is of the other 2 alone" in told
    verdicts = read(tmp_path / "samples.verdicts.jsonl")
    assert [(v["problem_id"], v["index"], v["outcome"], v["extracted"]) for v in verdicts] == [
        ("sum", 0, "correct", "12"),
        ("sum", 1, "wrong", "13"),
        ("difference", 0, "correct", "12"),
        ("difference", 1, "wrong", None),
    ]


def test_evalplus_file(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # programs that another judge found to fail on the added inputs alone, and one that passes all
    published = read(shared / "verdicts/evalplus_humaneval_meta-llama--Meta-Llama-3-8B-Instruct.jsonl")
    rows = [row for row in published if row["task_id"] in ("HumanEval/2", "HumanEval/22", "HumanEval/90")]
    path = write(tmp_path / "s.jsonl", [{"task_id": r["task_id"], "solution": r["solution"]} for r in rows])
    arguments = ["judge", "--benchmark", "humaneval_plus", str(path), "--data-dir", str(shared / "data")]
    assert main([*arguments, "--out", str(tmp_path / "o.jsonl")]) == 0
    told = capsys.readouterr().out
    assert "humaneval_plus (base tests only): pass@1 1.0000\n" in told
    assert "humaneval_plus: pass@1 0.3333\n" in told
    assert [(v["base"], v["plus"]) for v in read(tmp_path / "o.jsonl")] == [
        (row["base_status"], row["plus_status"]) for row in rows
    ]
    assert sorted(row["plus_status"] for row in rows) == ["fail", "fail", "pass"]


def test_cases(shared: Path, tmp_path: Path) -> None:
    """Failure reports of other judges. One difference of policy: a function's body alone, without its prompt."""
    rows = [row for row in read(shared / "cases/code.jsonl") if row["expected"] is not None]
    hidden = ("expected", "why", "source", "observed", "kind")
    path = write(tmp_path / "c.jsonl", [{k: v for k, v in row.items() if k not in hidden} for row in rows])
    assert main(["judge", "code", str(path), "--out", str(tmp_path / "o.jsonl")]) == 0
    outcome = {verdict["id"]: verdict["outcome"] for verdict in read(tmp_path / "o.jsonl")}
    assert [row["id"] for row in rows if (outcome[row["id"]] == "correct") != row["expected"]] == ["x-body-only"]


def test_runs_as_a_command(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [{"id": "a", "solution": "print(8)", **DOUBLE}])
    done = subprocess.run([sys.executable, "-m", "ba_eval", "judge", "code", str(path)], capture_output=True, text=True)
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "correct")
    assert done.stderr == "1 judged: 1 correct, 0 wrong, 0 undecided, 0 error\n"
