"""Verdicts that others published, replayed: what failed there fails here, what passed there is not contradicted."""

import ast
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from ba_eval.benchmark import load
from ba_eval.benchmark.problem import CallTest, CodeTask, Problem, StdinTest
from ba_eval.grade.code import CodeGrader, reference_failures
from ba_eval.grade.verdict import Verdict

# Real numbers that the statement accepts within 1e-6 (abc375_b) or gives with five decimals (3613), printed to full
# precision: the other judge compares digit by digit.
RIGHT_BY_STATEMENT = {"abc375_b", "3613"}

# Faults of the other judge: in 3438 the program changes its arguments, which it recorded after the call; in abc344_b
# its imitation of stdin gives `readlines()` an empty last line.
FAULTS_THERE = {"3438", "abc344_b"}

TIMED_OUT = -3
"""LiveCodeBench's error code."""

# Time limits of 1 s of wall time on another machine decided there.
NEAR_THE_TIME_LIMIT = {"HumanEval/94", "HumanEval/96", "HumanEval/138", "HumanEval/139", "HumanEval/147"} | {
    *("Mbpp/566", "Mbpp/583", "Mbpp/599"),
}


@pytest.fixture(scope="module")
def grader() -> Iterator[CodeGrader]:
    grader = CodeGrader()
    yield grader
    grader.close()


def livecodebench_rows(shared: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared / "verdicts/lcb_v6_1055_Qwen2.5-Ins-7B.jsonl").open()]


def replayed_failure(row: dict[str, Any], found: dict[str, Any]) -> Problem | None:
    """A problem of the one test that failed; None where the published test is cut short."""
    inputs, expected = found.get("inputs"), found.get("expected")
    if not isinstance(inputs, str) or "...(truncated)" in inputs + str(expected):
        return None
    if not row["starter_code"]:
        return Problem(row["question_id"], "", code=CodeTask([StdinTest(inputs, str(expected))]))
    name = row["starter_code"].split("def ")[1].split("(")[0].strip()
    try:
        test = CallTest(ast.literal_eval(inputs), json.loads(str(expected)))
    except (ValueError, SyntaxError):
        return None
    return Problem(row["question_id"], "", code=CodeTask([test], f"Solution.{name}"))


def livecodebench_failures(shared: Path) -> list[tuple[Problem, str]]:
    """All programs that failed, each with a problem of the one test that it failed."""
    found = []
    for row in livecodebench_rows(shared):
        for program, right, text in zip(row["code_list"], row["graded_list"], row["metadata"], strict=True):
            problem = None if right else replayed_failure(row, json.loads(text))
            if problem is not None:
                found.append((problem, program))
    return found


def check_livecodebench(grader: CodeGrader, shared: Path, keep: Callable[[int], bool]) -> tuple[int, int]:
    """Replays failures and public tests; returns how many of each."""
    rows = [row for number, row in enumerate(livecodebench_rows(shared)) if keep(number)]
    public = {problem.id: problem for problem in load("livecodebench", data_dir=shared / "data").problems}
    failures: list[tuple[str, Future[Verdict]]] = []
    timeouts: list[tuple[str, Future[Verdict]]] = []
    passes: list[tuple[str, Future[Verdict]]] = []
    for row in rows:
        for program, right, text in zip(row["code_list"], row["graded_list"], row["metadata"], strict=True):
            found = json.loads(text)
            problem = public.get(row["question_id"]) if right else replayed_failure(row, found)
            if problem is None:
                continue
            future = grader.submit(problem, f"```python\n{program}\n```", "stop")
            kind = passes if right else timeouts if found.get("error_code") == TIMED_OUT else failures
            kind.append((problem.id, future))
    right_here = {id for id, future in failures if future.result().outcome == "correct"}
    assert right_here <= RIGHT_BY_STATEMENT | FAULTS_THERE
    # On a faster machine than theirs a slow program may end within the limit, which is the same (6 s), but only just.
    quick = {id for id, future in timeouts if future.result().outcome == "correct" and future.result().seconds < 2}
    assert quick <= RIGHT_BY_STATEMENT | FAULTS_THERE
    contradicted = {id: future.result() for id, future in passes if future.result().outcome != "correct"}
    assert contradicted == {}
    return len(failures) + len(timeouts), len(passes)


def test_livecodebench_sample(grader: CodeGrader, shared: Path) -> None:
    failures, passes = check_livecodebench(grader, shared, lambda number: number % 83 == 7)
    assert failures + passes > 5


def check_evalplus(grader: CodeGrader, shared: Path, name: str, keep: Callable[[int], bool]) -> int:
    """Replays programs with published base and plus status; returns how many."""
    problems = {problem.id: problem for problem in load(f"{name}_plus", data_dir=shared / "data").problems}
    judged = []
    for path in sorted((shared / "verdicts").glob(f"evalplus_{name}_*.jsonl")):
        for number, row in enumerate(map(json.loads, path.open())):
            if keep(number) and row["task_id"] not in NEAR_THE_TIME_LIMIT:
                judged.append((row, grader.submit_program(problems[row["task_id"]], row["solution"])))
    split = []
    for row, future in judged:
        verdict = future.result()
        published = row["base_status"] == "pass", row["plus_status"] == "pass"
        if (verdict.details["base"] == "pass", verdict.details["plus"] == "pass") != published:
            split.append((row["task_id"], published, verdict.reason, verdict.details))
    assert split == []
    return len(judged)


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_evalplus_sample(grader: CodeGrader, shared: Path, name: str) -> None:
    assert check_evalplus(grader, shared, name, lambda number: number % 40 == 11) >= 8


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_evalplus(grader: CodeGrader, shared: Path, name: str) -> None:
    assert check_evalplus(grader, shared, name, lambda number: True) > 300


def with_references(name: str, shared: Path, folder: Path) -> list[Problem]:
    if name == "mbpp":  # the project ships no definition of it
        definition = {"title": "MBPP", "kind": "code-function", "prompt": "{problem}"}
        source = {"file": str(shared / "data/sanitized_mbpp.jsonl")}
        (folder / "mbpp.yaml").write_text(json.dumps({**definition, "source": source}))
        name = str(folder / "mbpp.yaml")
    return list(load(name, data_dir=shared / "data").problems)


@pytest.mark.parametrize(("name", "also"), [("humaneval", {"HumanEval/32", "HumanEval/38"}), ("mbpp", set())])
def test_references_sample(shared: Path, tmp_path: Path, name: str, also: set[str]) -> None:
    problems = with_references(name, shared, tmp_path)
    sample = [problem for number, problem in enumerate(problems) if number % 40 == 5 or problem.id in also]
    assert len(sample) > 5
    assert dict(reference_failures(sample)) == {}


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("name", "known"), [("humaneval", set()), ("mbpp", set()), ("humaneval_plus", set()), ("mbpp_plus", {"Mbpp/255"})]
)
def test_references(shared: Path, tmp_path: Path, name: str, known: set[str]) -> None:
    failures = dict(reference_failures(with_references(name, shared, tmp_path)))
    assert set(failures) <= known, failures


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_livecodebench(grader: CodeGrader, shared: Path) -> None:
    failures, passes = check_livecodebench(grader, shared, lambda number: True)
    assert failures > 600
    assert passes == 52
