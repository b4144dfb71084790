"""Verdicts do not depend on how many programs run at once."""

# ruff: noqa: E501 (whole programs on a line)

import os
from pathlib import Path

import pytest

from ba_eval.benchmark import load
from ba_eval.benchmark.problem import CodeTask, Problem, StdinTest
from ba_eval.grade.code import CodeGrader
from tests.grade.test_published import livecodebench_failures

BUSY = "import time\nwhile time.process_time() < {}: pass\nprint(input())"

# Well within and beyond the limits of 6 s of CPU time and 1 GB.
NEAR_THE_LIMITS = {
    "half the time": BUSY.format(3),
    "too long": BUSY.format(9),
    "in children": "import os\nif os.fork() == 0:\n    " + BUSY.format(2).replace("\n", "\n    ") + "\nelse: os.wait()",
    "sleeps": "import time\ntime.sleep(3)\nprint(input())",
    "half the memory": "x = bytearray(500 << 20)\nx[::4096] = b'1' * len(x[::4096])\nprint(input())",
    "too much memory": "x = []\nwhile True: x.append(bytearray(8 << 20))",
    "threads": "import threading\nfor _ in range(20): threading.Thread(target=sum, args=(range(10**6),)).start()\nprint(input())",
}  # fmt: skip


def verdicts(pairs: list[tuple[Problem, str]], workers: int) -> list[tuple[str, str, object]]:
    grader = CodeGrader(workers)
    try:
        futures = [grader.submit_program(problem, program) for problem, program in pairs]
        return [(v.outcome, v.reason, v.details.get("passed")) for v in (future.result() for future in futures)]
    finally:
        grader.close()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_four_times_as_many_workers_as_cores(shared: Path) -> None:
    humaneval = load("humaneval", data_dir=shared / "data").problems
    pairs = [(problem, str(problem.reference)) for problem in humaneval]
    # the solution of another problem under this one's name
    pairs += [
        (one, f"{other.reference}\n{one.code.entry_point} = {other.code.entry_point}\n")
        for one, other in zip(humaneval, [*humaneval[1:], humaneval[0]], strict=True)
        if one.code is not None and other.code is not None
    ]
    pairs += livecodebench_failures(shared)[::7]
    same = Problem("same", "", code=CodeTask([StdinTest("7\n", "7\n")]))
    pairs += [(same, program) for program in NEAR_THE_LIMITS.values()]
    cores = len(os.sched_getaffinity(0))
    alone, crowded = verdicts(pairs, cores), verdicts(pairs, 4 * cores)
    assert [(pair[0].id, *both) for pair, *both in zip(pairs, alone, crowded, strict=True) if both[0] != both[1]] == []
    assert [outcome for outcome, _, _ in alone[-len(NEAR_THE_LIMITS) :]] == [
        "wrong" if name.startswith("too") else "correct" for name in NEAR_THE_LIMITS
    ]
    assert len(pairs) > 400
