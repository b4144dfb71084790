"""Rules of HumanEval+ and MBPP+, and the references' outputs kept on disk."""

# ruff: noqa: E501 (whole programs on a line)

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_eval.benchmark.problem import CodeTask, EvalplusTest, Problem
from ba_eval.execution.wire import encode
from ba_eval.grade.code import CodeGrader, reference_failures
from ba_eval.grade.evalplus import _measured_together, agrees
from ba_eval.grade.expected import Digest, Expected, ExpectedOutputs


def task(
    reference: str, base: list[Any], plus: list[Any], atol: float = 0.0, dataset: Any = "humaneval"
) -> EvalplusTest:
    return EvalplusTest(dataset, "Test/0", base, plus, reference, atol)


HUMANEVAL = task("", [], [])
MBPP = task("", [], [], dataset="mbpp")


# Right values: what evalplus 0.3.1 says of these outputs.
@pytest.mark.parametrize(
    ("test", "entry_point", "arguments", "got", "expected", "equal"),
    [
        (HUMANEVAL, "f", [], [1, 2], [1, 2], True),
        (HUMANEVAL, "f", [], (1, 2), [1, 2], False),
        (HUMANEVAL, "f", [], 1, True, True),
        (HUMANEVAL, "f", [], 0.1 + 0.2, 0.3, True),
        (HUMANEVAL, "f", [], [0.1 + 0.2, 1.0], [0.3, 1.0], True),
        (HUMANEVAL, "f", [], (0.1 + 0.2,), [0.3], False),
        (HUMANEVAL, "f", [], 0.30001, 0.3, False),
        (task("", [], [], atol=0.01), "f", [], 0.309, 0.3, True),
        (task("", [], [], atol=0.01), "f", [], 3, 3.001, False),
        (HUMANEVAL, "f", [], 10**17 + 1, 10**17, False),
        (HUMANEVAL, "f", [], math.nan, math.nan, False),
        (HUMANEVAL, "f", [], None, None, True),
        (HUMANEVAL, "f", [], 10**400, 1.5, False),
        (task("", [], [], atol=1e-4), "find_zero", [[-6, 11, -6, 1]], 1.00001, 3.0, True),
        (task("", [], [], atol=1e-4), "find_zero", [[-6, 11, -6, 1]], 1.5, 3.0, False),
        (task("", [], [], atol=1e-4), "find_zero", [[-6, 11, -6, 1]], "1", 3.0, False),
        (task("", [], [], atol=1e-4), "find_zero", [[0.0] * 3 + [1e300]], 1e300, 0.0, False),
        (MBPP, "similar_elements", [(1, 2), (2, 3)], [2, 2], (2,), True),
        (MBPP, "similar_elements", [(1, 2), (2, 3)], 2, (2,), False),
        (MBPP, "similar_elements", [(1, 2), (2, 3)], [[2]], (2,), False),
        (MBPP, "check_str", ["a"], "a match", True, True),
        (MBPP, "check_str", ["a"], None, True, False),
        (MBPP, "check_str", ["a"], False, False, True),
        (MBPP, "check_str", ["a"], False, True, False),
        (MBPP, "are_equivalent", [1, 2], False, True, True),
        (MBPP, "sum_div", [1], 0, 1, True),
        (MBPP, "sum_div", [7], 2, 1, False),
        (MBPP, "surface_Area", [3, 4], 33, 33, True),
        (MBPP, "surface_Area", [3, 4], 35, 33, True),
        (MBPP, "surface_Area", [3, 4], 34, 33, False),
        (MBPP, "digit_distance_nums", [123, 2], 4, 5, True),
        (MBPP, "digit_distance_nums", [123, 2], 3, 5, False),
    ],
)
def test_agrees(test: EvalplusTest, entry_point: str, arguments: Any, got: Any, expected: Any, equal: bool) -> None:
    assert agrees(test, entry_point, arguments, got, expected) is equal


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    def __sub__(self, other: object) -> int:
        return 0

    __hash__ = object.__hash__


def test_sets_of_colliding_numbers_take_no_time() -> None:
    colliding = [(2**61 - 1) * n for n in range(5, 60_005)]
    started = time.process_time()
    assert not agrees(MBPP, "similar_elements", [], colliding, (2,))
    assert time.process_time() - started < 1


@pytest.mark.parametrize("entry_point", ["f", "find_zero", "similar_elements", "sum_div", "surface_Area"])
@pytest.mark.parametrize("dataset", ["humaneval", "mbpp"])
def test_other_classes_never_agree(dataset: str, entry_point: str) -> None:
    arguments = [3, 4] if entry_point == "surface_Area" else [[1, 2], 3]
    assert not agrees(task("", [], [], 0.01, dataset), entry_point, arguments, AlwaysEqual(), [2])


LONG = "def f(n):\n    return 'ab' * n"
SAME = "def f(n):\n    return ''.join('ab' for _ in range(n))"
OTHER = "def f(n):\n    return 'ab' * n if n < 5000 else 'ab' * (n - 1) + 'ba'"


@pytest.fixture
def grader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodeGrader]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    grader = CodeGrader(workers=2)
    yield grader
    grader.close()


def test_base_and_plus_status(grader: CodeGrader) -> None:
    problem = Problem("T/0", "", code=CodeTask(task(LONG, [[1], [2]], [[3], [9000]]), "f"))
    verdict = grader.submit_program(problem, SAME).result()
    assert verdict.outcome == "correct"
    assert dict(verdict.details) == {"passed": 4, "total": 4, "base": "pass", "plus": "pass"}
    verdict = grader.submit_program(problem, OTHER).result()
    assert (verdict.outcome, verdict.reason) == ("wrong", "failed test")
    assert (verdict.details["base"], verdict.details["plus"], verdict.details["passed"]) == ("pass", "fail", 3)
    assert verdict.details["failed"]["test"] == 3
    assert verdict.details["failed"]["expected"].startswith("'abab")
    verdict = grader.submit_program(problem, "def f(n):\n    return 1 / (n - 1)").result()
    assert (verdict.details["base"], verdict.details["plus"], verdict.reason) == ("fail", "fail", "crash")


@pytest.mark.parametrize(
    ("program", "base", "plus", "reason"),
    [
        # base inputs are 1 to 40, plus inputs 41 to 45; one process takes both, and its state stays
        ("started = []\ndef f(n):\n    started.append(n)\n    return n if n == len(started) else -1", "pass", "pass", "passed"),
        ("def f(n):\n    return n if n > 40 else -1", "fail", "pass", "failed test"),
        ("def f(n):\n    return n if n > 40 else 1 / 0", "fail", "pass", "crash"),
        ("def f(n):\n    return n if n <= 40 else -1", "pass", "fail", "failed test"),
        # what follows a failure of a base input must not be taken for an answer to a plus input
        ("def f(n):\n    return n if n != 3 else 41", "fail", "pass", "failed test"),
        # processes that end, or do not answer at once: the plus inputs have a new one
        ("import os\ndef f(n):\n    return n if n > 40 else os._exit(1)", "fail", "pass", "crash"),
        ("import os\ndef f(n):\n    return n if n > 40 else -1 if n < 3 else os._exit(1)", "fail", "pass", "failed test"),
        ("def f(n):\n    while n == 2: pass\n    return n", "timeout", "pass", "timeout"),
        ("import time\ndef f(n):\n    if n == 5: time.sleep(100)\n    return n if n > 40 else -1", "fail", "pass", "failed test"),
        ("import os\ndef f(n):\n    return n if n <= 40 else os._exit(0)", "pass", "fail", "crash"),
        ("def g(n):\n    return n", "fail", "fail", "crash"),
    ],
)  # fmt: skip
def test_plus_inputs_are_tried_whatever_became_of_base(
    grader: CodeGrader, program: str, base: str, plus: str, reason: str
) -> None:
    test = task("def f(n): return n", [[n] for n in range(1, 41)], [[n] for n in range(41, 46)])
    started = time.monotonic()
    verdict = grader.submit_program(Problem("T/9", "", code=CodeTask(test, "f")), program).result()
    assert (verdict.details["base"], verdict.details["plus"], verdict.reason) == (base, plus, reason)
    assert time.monotonic() - started < 60  # of a hundred that the sleeping one asks for


def test_time_of_a_slow_call_is_its_own(grader: CodeGrader) -> None:
    reference = "import time\ndef f(n):\n    end = time.process_time() + n\n    while time.process_time() < end: pass\n"
    # under load the answers of these come together
    test = task(reference, [[0.0]] * 50 + [[0.6]] + [[0.0]] * 50, [])
    expected = grader._evalplus._expected.of(CodeTask(test, "f"))
    slow = [number for number, output in enumerate(expected) if output.cpu_seconds > 0.3]
    assert slow == [50]
    slower = reference.replace("+ n", "+ 3 * n")
    problem = Problem("T/4", "", code=CodeTask(test, "f"))
    assert grader.submit_program(problem, slower).result(timeout=200).outcome == "correct"


def test_calls_measured_together() -> None:
    seconds = [0.0, 0.0, 0.1, 0.0, 1.0, 5.0, 0.0, 0.0, 2.0, 0.0]
    assert _measured_together([Expected(None, s) for s in seconds]) == [3, 4, 6, 7, 8]


def test_large_floats_are_compared_with_tolerance(grader: CodeGrader) -> None:
    reference = "def f(n):\n    return [k / 7 for k in range(n)]"
    problem = Problem("T/1", "", code=CodeTask(task(reference, [[3000]], []), "f"))
    near = "def f(n):\n    return [k / 7 + 1e-9 for k in range(n)]"
    far = "def f(n):\n    return [k / 7 + 1e-3 for k in range(n)]"
    assert grader.submit_program(problem, near).result().outcome == "correct"
    assert grader.submit_program(problem, far).result().outcome == "wrong"


def test_equal_outputs_in_other_bytes_cost_a_few_runs_of_the_reference(
    grader: CodeGrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = task("def f(n): return [n / 2] * n", [[n] for n in range(400, 440)], [[n] for n in range(440, 500)])
    problem = Problem("T/8", "", code=CodeTask(test, "f"))
    assert grader.submit_program(problem, test.reference).result().outcome == "correct"
    runs = []
    compute = grader._evalplus._outputs_of

    def counted(task: CodeTask, bodies: Sequence[bytes]) -> list[Expected]:
        runs.append(len(bodies))
        return compute(task, bodies)

    monkeypatch.setattr(grader._evalplus, "_outputs_of", counted)
    for sample in range(3):
        program = f"# {sample}\ndef f(n): return [n // 2 if n % 2 == 0 else n / 2] * n"
        assert grader.submit_program(problem, program).result().outcome == "correct"
    assert len(runs) < 25
    program = "def f(n): return [n // 2 if n % 2 == 0 else n / 2] * (n if n < 490 else n - 1)"
    verdict = grader.submit_program(problem, program).result()
    assert (verdict.details["base"], verdict.details["plus"], verdict.details["passed"]) == ("pass", "fail", 90)


def test_an_output_larger_than_what_crosses_the_wall_is_wrong(grader: CodeGrader) -> None:
    problem = Problem("T/9", "", code=CodeTask(task("def f(n): return 'a' * n", [[5000]], [[5001]]), "f"))
    # 16 MB as the program sends it, 48 MB as it would be encoded
    program = """
import sys
def f(n):
    frame = sys._getframe()
    while "calls" not in frame.f_locals: frame = frame.f_back
    frame.f_globals["wire"].encode = lambda value: ('"' + chr(233) * 8_000_000 + '"').encode()
    return 1
"""
    verdict = grader.submit_program(problem, program).result()
    assert (verdict.outcome, verdict.reason) == ("wrong", "failed test")


def test_running_out_of_memory_in_a_call_is_told_as_that(grader: CodeGrader) -> None:
    problem = Problem("T/10", "", code=CodeTask(task("def f(n): return n", [[1]], [[2]]), "f"))
    program = "def f(n):\n    raise MemoryError"
    assert grader.submit_program(problem, program).result().reason == "memory"


def test_inputs_that_the_reference_cannot_take_are_left_out(grader: CodeGrader) -> None:
    reference = "def f(n):\n    return {0: lambda: 0, 1: lambda: 1 / 0, 2: lambda: object()}.get(n, lambda: n)()"
    problem = Problem("T/2", "", code=CodeTask(task(reference, [[0], [1]], [[2], [3]]), "f"), reference=reference)
    verdict = grader.submit_program(problem, "def f(n):\n    return n").result()
    assert verdict.outcome == "correct"
    assert (verdict.details["total"], verdict.details["unusable"]) == (2, 2)
    assert dict(reference_failures([problem], workers=1)) == {
        "T/2": "2 inputs unusable: ZeroDivisionError: division by zero"
    }


def test_candidates_do_not_change_inputs_for_others(grader: CodeGrader) -> None:
    problem = Problem("T/3", "", code=CodeTask(task("def f(xs):\n    return sum(xs)", [[[1, 2]]], [[[1, 2]]]), "f"))
    assert grader.submit_program(problem, "def f(xs):\n    xs.pop()\n    return 3").result().outcome == "correct"
    assert grader.submit_program(problem, "def f(xs):\n    return sum(xs)").result().outcome == "correct"


def test_a_method_is_no_function_of_that_name(grader: CodeGrader) -> None:
    """As in evalplus; the reference is no method either, and must not fail for it."""
    tests = task("def f(n):\n    return n + 1", [[0]], [[1]])
    problem = Problem("T/4", "", code=CodeTask(tests, "f"))
    verdict = grader.submit_program(problem, "class Solution:\n    def f(self, n):\n        return 'x'").result()
    assert (verdict.outcome, verdict.details["base"], verdict.details["plus"]) == ("wrong", "fail", "fail")


def test_a_reference_that_fails_on_all_inputs_shows_nothing(grader: CodeGrader) -> None:
    problem = Problem("T/5", "", code=CodeTask(task("def g(n):\n    return n", [[0]], [[1]]), "f"))
    verdict = grader.submit_program(problem, "def f(n):\n    return n").result()
    assert verdict.outcome == "error"
    assert "the reference solution fails on every input" in verdict.reason


def test_outputs_are_computed_once_and_kept(tmp_path: Path) -> None:
    values = [1, 2.5, "x", None, [(1,), {2}], {"k": 1j}]
    outputs = [Expected(encode(value), 0.25) for value in values]
    outputs += [Expected(encode("y" * 10**6), 1.5), Expected(None, 0.0, failure="ValueError: no")]
    computed: list[str | None] = []

    def compute(task: CodeTask) -> list[Expected]:
        computed.append(task.entry_point)
        return outputs

    inputs = [[1]] * 5, [[2]] * 3
    asked = CodeTask(task("reference", *inputs), "f")
    assert ExpectedOutputs(compute, tmp_path).cpu_seconds(asked) == 0.0
    first = ExpectedOutputs(compute, tmp_path).of(asked)
    again = ExpectedOutputs(compute, tmp_path)
    assert again.cpu_seconds(asked) == 3.0
    assert again.of(asked) == first == again.of(asked)
    assert computed == ["f"]
    assert [expected.output for expected in first[:6]] == values
    assert isinstance(first[6].output, Digest)
    assert first[6].output.matches("y" * 10**6)
    assert not first[6].output.matches("y" * (10**6 - 1) + "z")
    assert first[7].failure == "ValueError: no"
    [file] = tmp_path.iterdir()
    assert file.stat().st_size < 2000

    ExpectedOutputs(compute, tmp_path).of(CodeTask(task("another reference", *inputs), "f"))
    ExpectedOutputs(compute, tmp_path).of(CodeTask(task("reference", *inputs), "g"))
    assert computed == ["f", "f", "g"]

    for torn in (file.read_bytes()[:-20], b"", b"\xfd7zXZ\x00", b"[]"):
        file.write_bytes(torn)
        assert ExpectedOutputs(compute, tmp_path).of(asked) == first
    assert computed == ["f", "f", "g", "f", "f", "f", "f"]


def test_cache_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    outputs = ExpectedOutputs(lambda _: [Expected(b"1", 0.0)], tmp_path / "file" / "below")
    assert outputs.of(CodeTask(task("r", [[1]], []), "f")) == [Expected(b"1", 0.0)]
