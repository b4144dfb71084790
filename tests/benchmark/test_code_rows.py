"""Code rows: HumanEval, evalplus, and plain tests in their forms."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ba_eval.benchmark.code_rows import code_problem, evalplus_rows
from ba_eval.benchmark.definition import Definition
from ba_eval.benchmark.problem import CallTest, CheckTest, CodeTask, EvalplusTest, StdinTest
from ba_eval.benchmark.source import Row
from ba_eval.environment import install_line
from ba_eval.errors import InputError

CODE = Definition(title="Mine", kind="code-function", prompt="{problem}")


def task(**data: Any) -> CodeTask:
    code = code_problem(Row({"problem": "Do it.", **data}, "mine.jsonl:1"), CODE).code
    assert code is not None
    return code


def test_humaneval() -> None:
    data = {
        "task_id": "HumanEval/0", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x\n",
        "test": "def check(candidate):\n    assert candidate(1) == 1\n",
    }  # fmt: skip
    made = code_problem(Row(data, "x:1"), CODE)
    assert made.id == "HumanEval/0" and made.prompt == "def f(x):\n"
    assert made.reference == "def f(x):\n    return x\n"
    assert made.code == CodeTask(tests=CheckTest(data["test"]), entry_point="f", prefix="def f(x):\n")
    del data["entry_point"]
    with pytest.raises(InputError, match="x:1: needs a text column 'entry_point'"):
        code_problem(Row(data, "x:1"), CODE)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"tests": [{"stdin": "1\n", "stdout": "2\n"}]}, CodeTask([StdinTest("1\n", "2\n")])),
        ({"tests": [{"input": "1\n", "output": "2\n"}]}, CodeTask([StdinTest("1\n", "2\n")])),
        ({"tests": {"inputs": ["1\n"], "outputs": ["2\n"]}}, CodeTask([StdinTest("1\n", "2\n")])),
        ({"input_output": '{"inputs": [["1", "2"]], "outputs": ["3"]}'}, CodeTask([StdinTest("1\n2", "3")])),
        (
            {"tests": {"inputs": [[1, [2]]], "outputs": [3], "fn_name": "f"}},
            CodeTask([CallTest([1, [2]], 3)], entry_point="f"),
        ),
        (
            {"tests": [{"args": [1], "kwargs": {"k": 2}, "expected": None}], "entry_point": "f"},
            CodeTask([CallTest([1], None, {"k": 2})], entry_point="f"),
        ),
        (
            {"test_list": ["assert f(1) == 2", "assert g(f(2)) == 3"], "test_imports": ["import math"],
             "code": "def f(x): 0"},
            CodeTask(CheckTest("import math\nassert f(1) == 2\nassert g(f(2)) == 3"), entry_point="f"),
        ),
        (
            {"test_list": ["assert set(f(1)) == {2}"], "code": "def f(x):\n  return 0"},
            CodeTask(CheckTest("assert set(f(1)) == {2}"), entry_point="f"),
        ),
        (
            {"tests": {"functional": "def check(c):\n    assert c(1)\ncheck(Solution().go)"}},
            CodeTask(CheckTest("def check(c):\n    assert c(1)\ncheck(Solution().go)"), entry_point="Solution.go"),
        ),
    ],
)  # fmt: skip
def test_forms_of_tests(data: dict[str, Any], expected: CodeTask) -> None:
    assert task(**data) == expected


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "mine.jsonl:1: no tests that are understood"),
        ({"tests": []}, "no tests that are understood"),
        ({"tests": "   "}, "no tests that are understood"),
        ({"tests": [{"args": [1], "expected": 2}]}, "need a column 'entry_point'"),
        ({"tests": {"inputs": ["1", "2"], "outputs": ["3"]}}, "2 inputs but 1 outputs"),
        ({"tests": [{"stdin": 1, "stdout": "2"}]}, "must be text"),
        ({"tests": "assert f(1"}, "its tests are not Python"),
        ({"tests": "x = 1"}, "give a column 'entry_point'"),
        ({"tests": "[1,"}, "not valid JSON"),
    ],
)
def test_tests_that_cannot_be_read(data: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        task(**data)


def test_missing_evalplus_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("evalplus", "evalplus.data", "evalplus.data.humaneval", "evalplus.data.mbpp"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=re.escape(install_line("evalplus"))):
        list(evalplus_rows("humaneval_plus", "humaneval", None))


def test_evalplus_reads_a_local_file_with_its_own_deserialiser(tmp_path: Path) -> None:
    pytest.importorskip("evalplus")
    path = tmp_path / "mbpp_plus.jsonl"
    path.write_text(
        '{"task_id": "Mbpp/2", "prompt": "p\\n", "entry_point": "f", "canonical_solution": "def f(a, b): ...", '
        '"base_input": [[[1, 2], [3]]], "plus_input": [], "atol": 0, "contract": "", "assertion": ""}\n'
    )
    import evalplus.data.mbpp

    before = evalplus.data.mbpp.MBPP_OVERRIDE_PATH
    (made,) = [code_problem(row, CODE) for row in evalplus_rows("mbpp_plus", "mbpp", path)]
    assert before == evalplus.data.mbpp.MBPP_OVERRIDE_PATH
    assert made.code is not None and isinstance(made.code.tests, EvalplusTest)
    assert made.code.tests.base_input == [[(1, 2), (3,)]]  # tuples again
    assert made.code.prefix == "" and made.reference == "p\ndef f(a, b): ..."
    path.write_text('{"task_id": "Mbpp/2"}\n')
    with pytest.raises(InputError, match=r"mbpp_plus.jsonl: evalplus cannot read it"):
        list(evalplus_rows("mbpp_plus", "mbpp", path))


@pytest.mark.parametrize("before", ["", "import datasets; "])
def test_evalplus_is_read_without_the_package_datasets(before: str, tmp_path: Path) -> None:
    pytest.importorskip("evalplus")
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n')
    program = before + (
        "import sys; from pathlib import Path; from ba_eval.benchmark.code_rows import evalplus_rows\n"
        f"rows = Path({str(tmp_path)!r}) / 'humaneval_plus.jsonl'; rows.write_text('')\n"
        "assert list(evalplus_rows('humaneval_plus', 'humaneval', rows)) == []\n"
        f"assert ('datasets' in sys.modules) is {bool(before)}\n"
        "import datasets, evalplus.data\n"
        "read = evalplus.data.load_dataset('json', data_files=str(rows.with_name('rows.jsonl')), split='train')\n"
        "assert type(read) is datasets.Dataset and read.to_list() == [{'a': 1}]\n"
    )
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub")}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_evalplus_without_its_download_names_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    humaneval = pytest.importorskip("evalplus.data.humaneval")

    def fails(*args: object, **kwargs: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(humaneval, "make_cache", fails)
    monkeypatch.setattr(humaneval, "HUMANEVAL_OVERRIDE_PATH", None)
    with pytest.raises(InputError, match=r"no route to host.*--data-dir"):
        list(evalplus_rows("humaneval_plus", "humaneval", None))
