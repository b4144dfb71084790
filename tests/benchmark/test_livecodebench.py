"""LiveCodeBench: hidden tests without unpickling, both kinds of tests, releases and windows."""

import base64
import json
import os
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.benchmark.definition import Source, find
from ba_eval.benchmark.livecodebench import problem, unpack
from ba_eval.benchmark.problem import CallTest, Problem, StdinTest
from ba_eval.benchmark.releases import select, wanted_releases, window
from ba_eval.benchmark.source import Row, jsonl_rows
from ba_eval.errors import InputError

FILES = Source(hub="a/b", files={f"v{i}": f"test{i}.jsonl" for i in range(1, 7)})


def pack(value: Any, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol=protocol))).decode()


def row(**changes: Any) -> dict[str, Any]:
    tests = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
    data = {
        "question_title": "Sum", "question_content": "Add.", "platform": "atcoder", "question_id": "abc_a",
        "contest_id": "abc", "contest_date": "2024-08-15T00:00:00", "starter_code": "", "difficulty": "easy",
        "public_test_cases": json.dumps(tests), "metadata": "{}",
    }  # fmt: skip
    return data | changes


def read(**changes: Any) -> Problem:
    return problem(Row(row(**changes), "lcb.jsonl:1"))


@given(st.text(max_size=200), st.integers(min_value=0, max_value=5))
def test_unpack_gives_the_pickled_string_of_every_protocol(text: str, protocol: int) -> None:
    try:
        packed = pack(text, protocol)
    except UnicodeEncodeError:
        return
    assert unpack(packed) == text


class _Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch pwned",)


@pytest.mark.parametrize(
    "value", [_Hostile(), [_Hostile()], ["text"], ("a", "b"), 5, None, b"bytes", {"a": "b"}, os.system, Path("x")]
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_unpack_refuses_all_but_a_string_and_runs_nothing(
    value: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="refused"):
        unpack(pack(value, protocol))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("packed", "says"),
    [
        ("%%%", "."),
        (base64.b64encode(b"not zlib").decode(), "cannot be unpacked"),
        (base64.b64encode(zlib.compress(b"not a pickle")).decode(), "."),
        (base64.b64encode(zlib.compress(pickle.dumps("x" * 1000))[:20]).decode(), "cut short"),
        (base64.b64encode(zlib.compress(pickle.dumps("x")[:-1])).decode(), "."),
    ],
)
def test_unpack_refuses_broken_data(packed: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        unpack(packed)


def test_unpack_stops_at_the_limit() -> None:
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        unpack(pack("x" * 10_000_000), limit=1000)


def test_a_stdin_row() -> None:
    hidden = json.dumps([{"input": "4 5\n", "output": "9\n", "testtype": "stdin"}])
    made = read(private_test_cases=pack(hidden))
    assert made.code is not None and isinstance(made.code.tests, list)
    assert list(made.code.tests) == [StdinTest("1 2\n", "3\n"), StdinTest("4 5\n", "9\n")]
    assert made.code.entry_point is None
    assert made.prompt == "Add."
    assert made.meta["hidden"] is True


def test_a_function_row() -> None:
    starter = "class Solution:\n    def add(self, a: int, b: int) -> int:\n        "
    tests = [{"input": '1\n[2, "x"]', "output": "null", "testtype": "functional"}]
    made = read(starter_code=starter, metadata='{"func_name": "add"}', public_test_cases=json.dumps(tests))
    assert made.code is not None and isinstance(made.code.tests, list)
    assert list(made.code.tests) == [CallTest([1, [2, "x"]], None)]
    assert made.code.entry_point == "Solution.add"
    assert "Starter code:\n```python\nclass Solution:" in made.prompt
    plain = read(starter_code="def add(a):\n", metadata='{"func_name": "add"}', public_test_cases=json.dumps(tests))
    assert plain.code is not None and plain.code.entry_point == "add"


def test_large_hidden_tests_stay_in_the_file(tmp_path: Path) -> None:
    cases = [{"input": os.urandom(20_000).hex(), "output": "y", "testtype": "stdin"}]
    path = tmp_path / "livecodebench.jsonl"
    lines = [json.dumps(row(question_id=id, private_test_cases=pack(json.dumps(cases)))) for id in ("a", "b")]
    path.write_text("\n".join(lines) + "\n")
    first, second = (problem(r) for r in jsonl_rows(path))
    assert first.code is not None and second.code is not None
    tests = pickle.loads(pickle.dumps(second.code.tests))  # goes to another process as it is
    assert len(pickle.dumps(tests)) < 1000
    assert list(tests) == [StdinTest("1 2\n", "3\n"), StdinTest(cases[0]["input"], "y")]
    assert len(tests) == 2 and tests[1:] == [StdinTest(cases[0]["input"], "y")]
    assert tests == first.code.tests  # the same tests, of another row


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"private_test_cases": pack(_Hostile())}, r"lcb.jsonl:1: is not a row of LiveCodeBench: .*refused"),
        ({"public_test_cases": "[{"}, "lcb.jsonl:1"),
        ({"public_test_cases": '[{"input": "", "output": "", "testtype": "odd"}]'}, "unknown kind 'odd'"),
        ({"contest_date": "yesterday"}, "lcb.jsonl:1"),
        ({"metadata": "[]"}, "lcb.jsonl:1"),
    ],
)
def test_broken_rows(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(**changes)


@pytest.mark.parametrize(
    ("spec", "releases"),
    [
        ("livecodebench", ["v1", "v2", "v3", "v4", "v5", "v6"]),
        ("livecodebench@release_v6", ["v1", "v2", "v3", "v4", "v5", "v6"]),
        ("livecodebench@release_v2", ["v1", "v2"]),
        ("livecodebench@v5", ["v5"]),
        ("livecodebench@2024-08..2025-02", ["v1", "v2", "v3", "v4", "v5", "v6"]),
        ("livecodebench@release_v1@2024-08..2025-02", ["v1"]),
    ],
)
def test_releases(spec: str, releases: list[str]) -> None:
    assert wanted_releases(find(spec), FILES) == releases


@pytest.mark.parametrize("selector", ["v7", "release_v0", "release", "v5@v6", "latest"])
def test_unknown_releases(selector: str) -> None:
    with pytest.raises(InputError, match="release_v1 to release_v6"):
        wanted_releases(find(f"livecodebench@{selector}"), FILES)


@pytest.mark.parametrize(
    ("selector", "days"),
    [
        ("2024-08..2025-02", ("2024-08-01", "2025-02-28")),
        ("2024-02..2024-02", ("2024-02-01", "2024-02-29")),
        ("2024-08-05..2025-02-01", ("2024-08-05", "2025-02-01")),
    ],
)
def test_windows(selector: str, days: tuple[str, str]) -> None:
    assert window(find(f"livecodebench@{selector}")) == days


@pytest.mark.parametrize("selector", ["2024-13..2025-01", "2024..2025", "2025-02..2024-08", "2024-08..", "..", "a..b"])
def test_malformed_windows(selector: str) -> None:
    with pytest.raises(InputError, match="window"):
        window(find(f"livecodebench@{selector}"))


def test_select_by_window_and_release_says_what_is_missing() -> None:
    problems = [
        read(question_id="a", contest_date="2024-08-01T00:00:00", _version="v5"),
        read(question_id="b", contest_date="2024-08-31T23:30:00", _version="v6", private_test_cases=pack("[]")),
        read(question_id="c", contest_date="2024-09-01T00:00:00", _version="v6"),
    ]

    def chosen(spec: str) -> tuple[list[str], list[str]]:
        found, marks = select(problems, find(spec), FILES)
        return [p.id for p in found], marks

    assert chosen("livecodebench@2024-08..2024-08")[0] == ["a", "b"]
    assert chosen("livecodebench@v6") == (["b", "c"], ["public tests only for 1 problems"])
    assert chosen("livecodebench@release_v5") == (["a"], ["without v1, v2, v3, v4", "public tests only"])
    with pytest.raises(InputError, match="no problem is left by 2030"):
        chosen("livecodebench@2030-01..2030-02")
    with pytest.raises(InputError, match="no column '_version'"):
        select([read()], find("livecodebench@v6"), FILES)
