"""Programs judged end to end: in the sandbox, on tests of every kind."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from ba_eval.benchmark.problem import CallTest, CheckTest, CodeTask, Problem, StdinTest
from ba_eval.execution import Limits, RunResult
from ba_eval.grade import code
from ba_eval.grade.code import CodeGrader, reference_failures
from ba_eval.grade.trial import Runner, SandboxFailed
from ba_eval.grade.verdict import Verdict

DOUBLE = Problem("double", "", code=CodeTask([StdinTest("4\n", "8\n"), StdinTest("-1\n", "-2\n")]))
ADD = Problem("add", "", code=CodeTask([CallTest([1, 2], 3), CallTest([10, 5], 15)], "add"))
SUMS = Problem(
    "sums",
    "",
    code=CodeTask(
        CheckTest("def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n"),
        "total",
        'from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    """ Sum. """\n',
    ),
)
METHOD = Problem("method", "", code=CodeTask([CallTest([[3, 1]], [1, 3])], "Solution.ordered"))


@pytest.fixture(scope="module")
def grader() -> Iterator[CodeGrader]:
    grader = CodeGrader(workers=2)
    yield grader
    grader.close()


def fenced(program: str) -> str:
    return f"```python\n{program}\n```"


@pytest.mark.parametrize(
    ("problem", "program"),
    [
        (DOUBLE, "print(int(input()) * 2)"),
        (DOUBLE, "import sys\nfor line in sys.stdin:\n    print(2 * int(line))\n    quit()"),
        (DOUBLE, "if __name__ == '__main__':\n    n = int(open(0).read())\n    print(n + n, end=' \\n\\n')"),
        (ADD, "def add(a, b):\n    return a + b"),
        (ADD, "class Solution:\n    def add(self, a, b):\n        return a + b"),
        (ADD, "add = lambda a, b: a + b\nprint(add(1, 2))"),
        (ADD, "def add(a, b):\n    return a + b\nif __name__ == '__main__':\n    add(int(input()), 0)"),
        (SUMS, "def total(xs: List[int]) -> int:\n    return sum(xs)"),  # the prompt imported List
        (SUMS, "    return sum(xs)"),
        (SUMS, "from __future__ import annotations\ndef total(xs: Unknown) -> int:\n    return sum(xs)"),
        (METHOD, "class Solution:\n    def ordered(self, xs: List[int]) -> List[int]:\n        return sorted(xs)"),
        (METHOD, "def ordered(xs):\n    heapify(xs)\n    return heappop(xs), xs[0]"),
    ],
)
def test_correct(grader: CodeGrader, problem: Problem, program: str) -> None:
    response = program if program.startswith(" ") else fenced(program)
    verdict = grader.submit(problem, response, "stop").result(timeout=120)
    assert (verdict.outcome, verdict.reason) == ("correct", "passed"), verdict
    assert verdict.details["passed"] == verdict.details["total"]


@pytest.mark.parametrize(
    ("problem", "program", "reason", "passed"),
    [
        (DOUBLE, "print(8); input()", "failed test", 1),
        (DOUBLE, "print(int(input()) * 2); 1 / 0", "crash", 0),
        (DOUBLE, "print(int(input()) * 2); exit(1)", "crash", 0),
        (DOUBLE, "print(int(input()", "crash", 0),
        (DOUBLE, "print(input())\nwhile True:\n    print('x' * 10**6)", "output limit", 0),
        (DOUBLE, "input()\nx = [0]\nwhile True:\n    x += x\nprint(1)", "memory", 0),
        (ADD, "def add(a, b):\n    return 3", "failed test", 1),
        (ADD, "def add(a, b):\n    raise ValueError('no')", "crash", 0),
        (ADD, "import os\ndef add(a, b):\n    os._exit(0)", "crash", 0),
        (ADD, "def add(a):\n    return a", "crash", 0),
        (ADD, "def other(a, b):\n    return a + b", "crash", 0),
        (ADD, "import not_there\ndef add(a, b):\n    return a + b", "crash", 0),
        (ADD, "class I(int):\n    __eq__ = lambda s, o: True\ndef add(a, b):\n    return I(0)", "failed test", 0),
        (ADD, "def add(a, b):\n    yield a + b", "failed test", 0),
        (SUMS, "def total(xs):\n    return 3", "failed test", 0),
        (SUMS, "def total(xs):\n    return xs[0] + xs[1]", "crash", 0),
        (SUMS, "class A:\n    __eq__ = lambda s, o: True\ndef total(xs):\n    return A()", "failed test", 0),
        (METHOD, "class Solution:\n    def ordered(self, xs):\n        return xs", "failed test", 0),
    ],
)
def test_wrong(grader: CodeGrader, problem: Problem, program: str, reason: str, passed: int) -> None:
    verdict = grader.submit(problem, fenced(program), "stop").result(timeout=120)
    assert (verdict.outcome, verdict.reason) == ("wrong", reason), verdict
    assert verdict.details["passed"] == passed
    assert verdict.extracted == program


@pytest.mark.parametrize("make", ["dict", "Counter", "OrderedDict", "lambda d: defaultdict(int, d)"])
def test_dicts_of_the_standard_library_equal_a_dict(grader: CodeGrader, make: str) -> None:
    problem = Problem("count", "", code=CodeTask([CallTest([], {"a": 2, "b": 1})], "f"))
    program = f"from collections import *\ndef f():\n    return ({make})(dict(b=1, a=2))"
    assert grader.submit_program(problem, program).result(timeout=120).outcome == "correct"
    lying = "class D(dict):\n    __eq__ = lambda s, o: True\ndef f():\n    return D(a=2, b=1)"
    assert grader.submit_program(problem, lying).result(timeout=120).outcome == "wrong"


def test_failed_test_is_told(grader: CodeGrader) -> None:
    verdict = grader.submit_program(DOUBLE, "print(int(input()) * 2 if 1 else 0, 5)").result()
    assert verdict.details["failed"] == {
        "test": 0,
        "input": "4\n",
        "expected": "8\n",
        "got": "8 5\n",
        "difference": "line 1: 2 tokens instead of 1",
    }
    verdict = grader.submit_program(ADD, "def add(a, b):\n    return a * b + 1").result()
    assert verdict.details["failed"] == {"test": 1, "input": "10, 5", "expected": "15", "got": "51"}
    verdict = grader.submit_program(ADD, "def add(a, b):\n    return [a, b][7]").result()
    assert verdict.details["failed"]["error"] == "IndexError: list index out of range"


def test_hostile_text_can_be_recorded(grader: CodeGrader) -> None:
    for body in ("raise ValueError('\\ud800')", "return '\\ud800'", "return {'\\ud800': 1}"):
        verdict = grader.submit_program(ADD, f"def add(a, b):\n    {body}").result()
        assert verdict.outcome == "wrong"
        json.dumps(dict(verdict.details), ensure_ascii=False).encode()


def test_long_values_are_shortened(grader: CodeGrader) -> None:
    verdict = grader.submit_program(ADD, "def add(a, b):\n    return list(range(10**5))").result()
    assert verdict.reason == "failed test"
    assert len(json.dumps(dict(verdict.details))) < 3000


@pytest.mark.parametrize(
    ("response", "finish_reason", "reason"),
    [
        ("I do not know.", "stop", "no code"),
        ("<think>```python\nprint(1)\n```", "stop", "no code"),
        ("<think>```python\nprint(int(input()) * 2)\n```", "length", "truncated"),
        ("Let me think about", "length", "truncated"),
        ("```python\nprint(int(input())", "length", "truncated"),
    ],
)
def test_nothing_to_run(grader: CodeGrader, response: str, finish_reason: str, reason: str) -> None:
    verdict = grader.submit(DOUBLE, response, finish_reason).result()
    assert (verdict.outcome, verdict.reason) == ("wrong", reason)


def test_cut_off_after_the_program(grader: CodeGrader) -> None:
    verdict = grader.submit(DOUBLE, "```python\nprint(int(input()) * 2)\n```\nThis works bec", "length").result()
    assert (verdict.outcome, verdict.reason) == ("correct", "passed")
    assert "truncated" not in verdict.details


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.2 s of CPU time, and no second run because of other work on this machine."""
    monkeypatch.setattr(code, "LIMITS", Limits(cpu_seconds=0.2))
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        "import re; return re.match('(a+)+$', 'a' * 64 + 'b')",
    ],
)
def test_endless_loop_times_out(grader: CodeGrader, short_limits: None, body: str) -> None:
    verdict = grader.submit_program(ADD, f"def add(a, b):\n    {body}").result(timeout=120)
    assert (verdict.outcome, verdict.reason) == ("wrong", "timeout")


SLOW = """import time
def add(a, b):
    while time.process_time() < {}: pass
    return a + b"""


def test_limit_is_for_each_call(grader: CodeGrader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "LIMITS", Limits(cpu_seconds=1.0))
    spin = "import time\ndef f(n):\n    end = time.process_time() + 0.35\n    while time.process_time() < end: pass\n"
    many = Problem("many", "", code=CodeTask([CallTest([n], None) for n in range(12)], "f"))
    assert grader.submit_program(many, spin).result(timeout=200).outcome == "correct"


def test_slow_reference_raises_the_limit(grader: CodeGrader, short_limits: None) -> None:
    task = CodeTask([CallTest([1, 2], 3)], "add")
    lenient = Problem("slow", "", code=task, reference=SLOW.format(0.3))
    assert grader.submit_program(lenient, SLOW.format(0.5)).result(timeout=120).outcome == "correct"
    assert grader.submit_program(lenient, SLOW.format(30)).result(timeout=120).reason == "timeout"
    strict = Problem("fast", "", code=task, reference="def add(a, b):\n    return a + b")
    assert grader.submit_program(strict, SLOW.format(0.5)).result(timeout=120).reason == "timeout"


def test_same_program_runs_once(grader: CodeGrader, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    judge = grader._judge

    def counting(problem: Problem, program: str) -> Verdict:
        calls.append(program)
        return judge(problem, program)

    monkeypatch.setattr(grader, "_judge", counting)
    futures = [grader.submit(DOUBLE, fenced(f"print({n % 2} + int(input()) * 2)"), "stop") for n in range(20)]
    outcomes = [future.result(timeout=120).outcome for future in futures]
    assert outcomes == ["correct", "wrong"] * 10
    assert len(calls) == 2


def test_check_programs_of_every_kind(grader: CodeGrader) -> None:
    named = Problem(
        "named", "", code=CodeTask(CheckTest("assert check(70) == False\nassert check(2) == True"), "check")
    )
    assert grader.submit_program(named, "def check(n):\n    return n == 2").result().outcome == "correct"
    assert grader.submit_program(named, "def check(n):\n    return True").result().reason == "failed test"
    reference = "import sys\ndef size(x):\n    return sys.getsizeof(x)"
    leaning = CodeTask(CheckTest("assert size('a') == sys.getsizeof('a')"), "size")
    problem = Problem("leaning", "", code=leaning, reference=reference)
    assert grader.submit_program(problem, "def size(x):\n    return x.__sizeof__()").result().outcome == "correct"


def test_prints_and_state_do_not_leak_between_programs(grader: CodeGrader) -> None:
    dirty = "import builtins, os\nbuiltins.int = lambda *a: 0\nopen('left', 'w').write('x')\nprint(int(input()) * 2)"
    clean = "import os\nassert not os.path.exists('left')\nprint(int(input()) * 2)"
    assert grader.submit_program(DOUBLE, dirty).result().outcome == "wrong"
    assert grader.submit_program(DOUBLE, clean).result().outcome == "correct"


def test_fault_of_the_sandbox_is_an_error(grader: CodeGrader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grader._sandbox, "run", lambda *_: RunResult("infra", text="the fork server ended"))
    verdict = grader.submit_program(DOUBLE, "print(1)").result()
    assert (verdict.outcome, verdict.reason) == ("error", "sandbox failed: the fork server ended")


def test_fault_of_the_judge_is_an_error(grader: CodeGrader) -> None:
    mixed = Problem("mixed", "", code=CodeTask([StdinTest("", ""), CallTest([], None)], "f"))  # type: ignore[arg-type]
    verdict = grader.submit_program(mixed, "print(1)").result()
    assert verdict.outcome == "error"
    assert verdict.reason.startswith("judge failed: ValueError")


class Scripted:
    """A sandbox whose results are given."""

    def __init__(self, *results: RunResult) -> None:
        self.results = list(results)

    def run(self, *_: Any) -> RunResult:
        return self.results.pop(0)


def fairly(*results: RunResult) -> RunResult:
    sandbox = Scripted(*results)
    return Runner(sandbox).fairly(sandbox.run)  # type: ignore[arg-type]


def test_timeout_in_a_stall_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    good = RunResult("ok")
    assert fairly(RunResult("timeout", stalled=True), good) is good
    assert fairly(RunResult("timeout"), good).status == "timeout"
    assert fairly(RunResult("infra"), good) is good
    assert fairly(RunResult("memory", stalled=True), good).status == "memory"
    with pytest.raises(SandboxFailed, match="gone"):
        fairly(RunResult("infra"), RunResult("infra", text="gone"))
    monkeypatch.setattr("os.getloadavg", lambda: (1000.0, 0.0, 0.0))
    assert fairly(RunResult("timeout"), good) is good


def test_alone_means_alone() -> None:
    from ba_eval.grade.turns import Turns

    turns, seen, running = Turns(), [], []

    def together(number: int) -> None:
        with turns.together():
            running.append(number)
            seen.append(len(running))
            threading.Event().wait(0.01)
            running.remove(number)

    def alone() -> None:
        with turns.alone():
            seen.append(-len(running))
            threading.Event().wait(0.01)
            assert not running

    threads = [
        threading.Thread(target=alone if n % 5 == 2 else together, args=() if n % 5 == 2 else (n,)) for n in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(seen) == 40
    assert sum(count == 0 for count in seen) == 8
    assert max(seen) > 1


def test_references() -> None:
    problems = [
        Problem("good", "", code=ADD.code, reference="def add(a, b):\n    return a + b"),
        Problem("bad", "", code=ADD.code, reference="def add(a, b):\n    return a - b"),
        Problem("none", "", code=ADD.code),
        Problem("math", "", golds=("1",), reference="1"),
    ]
    assert dict(reference_failures(problems, workers=2)) == {"bad": "failed test: -1"}


def test_close_waits(shared: Path) -> None:
    grader = CodeGrader(workers=1)
    futures: list[Future[Verdict]] = [grader.submit_program(DOUBLE, f"print(int(input()) * 2) # {n}") for n in range(5)]
    grader.close()
    assert all(future.done() and future.result().outcome == "correct" for future in futures)


@pytest.mark.parametrize(
    ("problem", "program"),
    [
        (
            Problem("echo", "", code=CodeTask([StdinTest("1", "1")] * 40)),
            "import time\ntime.sleep(0.2)\nprint(input())",
        ),
        (
            Problem("same", "", code=CodeTask([CallTest([1], 1)] * 40, "f")),
            "import time\ndef f(x):\n    time.sleep(0.2)\n    return x",
        ),
        (
            Problem("check", "", code=CodeTask(CheckTest("for _ in range(40): assert f(1) == 1"), "f")),
            "import time\ndef f(x):\n    time.sleep(0.2)\n    return x",
        ),
    ],
)
def test_sleeping_in_every_test_does_not_pay(
    grader: CodeGrader, monkeypatch: pytest.MonkeyPatch, problem: Problem, program: str
) -> None:
    for module in ("grade.trial", "execution.session"):
        monkeypatch.setattr(f"ba_eval.{module}.idle", lambda wall, cpu: wall > 1 + 20 * cpu)
    verdict = grader.submit_program(problem, program).result(timeout=100)
    assert (verdict.outcome, verdict.reason) == ("wrong", "timeout")
    assert verdict.seconds < 40 * 0.2 * 2
