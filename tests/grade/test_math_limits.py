"""The math grader: hostile answers, workers that overrun, die or are forked away."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ba_eval.grade.math import MathGrader, MathOptions
from tests.grade.math_answers import problem

HOSTILE = {
    "tower": "9^{9^{9^{9^{9}}}}",
    "difference of towers": "2^{2^{2^{49}}}-2^{2^{2^{48}}}",
    "factorials": "(((9!)!)!)!",
    "nested braces": "{" * 10_000 + "5" + "}" * 10_000 + "+0",
    "nested roots": "\\sqrt{" * 500 + "2" + "}" * 500,
    "five megabytes": "7" * 5_000_000,
    "a million terms": "+".join(["1"] * 1_000_000),
    "long list": ",".join(f"\\sqrt{{{k}}}" for k in range(2, 140)),
    "binomial": "\\binom{99999999}{44444444}",
    "sine": "\\sin(10^{10^{10}})",
    "sum": "\\sum_{k=1}^{10^{12}} \\frac{1}{k}",
    "exponent": "1e999999999",
    "signs": "1" + "\\pm 1" * 200,
    "minus": "-" * 3900 + "5",
    "bars": "|" * 3900,
    "carets": "2^" * 1900 + "2",
    "text": "\\text{" * 700,
    "units": "5 " + "ab " * 1200 + "1",
    "spaces": "6" + " " * 3900 + "x",
    "commas": "1," * 1900,
    "thousands": "1,111" * 700,
    "code": '__import__("os").system("touch pwned")',
    "surrogates": "\ud800\udfff6",
    "NULs": "\x006\x00",
    "rational power": "(\\frac{10^{5000}+1}{10^{5000}})^{10^{5000}}",
    "unknown functions": "f(" * 40 + "x" + ")" * 40,
    "nested fractions": "\\frac{1}{" * 10_000 + "2" + "}" * 10_000,
    "continued fraction": "1+\\frac{1}{" * 60 + "x" + "}" * 60,
    "large determinant": "\\begin{vmatrix}" + "\\\\".join(["&".join(["7"] * 30)] * 30) + "\\end{vmatrix}",
    "matrix power": "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}^{10^9}",
    "empty sum": "\\sum_{k=1}^{10^9} 0",
    "underbraces": "\\underbrace{" * 500 + "1" + "}_{2}" * 500,
    "negative tower": "10^{-10^{10}}",
    "exponential tower": "e^{e^{e^{e^e}}}",
    "gamma": "\\Gamma(10^9)",
    "remainder": "7^{7^{7^{7}}} \\bmod 13",
    "long remainder": "3^{10^{17}} \\pmod{10^{17}}",
    "least common multiple": "\\operatorname{lcm}(" + ",".join(map(str, range(1, 900))) + ")",
    "set of sets": "\\{" * 150 + "1" + "\\}" * 150,
    "chain": "<".join(["x"] * 900),
    "high degree": "x^{200}+x<1000",
    "bases": "1 base" * 600,
    "combinations": "^C_" * 1300,
    "months": "January " * 490,
    "choices": "(A)" * 1300 + "!",
    "grouped decimals": "1.234" + "\\,5 " * 700 + "x",
    "compound units": "1 hour " * 14 + "?",
    "quotes": "'" * 3900,
    "backslashes": "\\" * 3900,
    "direction marks": "\u202e6\u202c",
    "zero width": "\u200b".join("6" * 1000),
    "combining": "6" + "\u0301" * 3000,
    "expanding": "\ufdfa" * 222,
    "superscripts": "2" + "\u2079" * 3000,
    "control characters": "".join(map(chr, range(32))) + "6",
    "TeX": "\\input{/etc/passwd}\\def\\a{\\a\\a}\\a",
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_answers_are_bounded(answer: str, math_grader: MathGrader) -> None:
    start = time.process_time()
    verdict = math_grader.submit(problem("5"), "\\boxed{" + answer + "}", "stop").result()
    assert verdict.outcome in ("wrong", "undecided"), verdict
    assert len(verdict.extracted or "") <= 2000
    assert time.process_time() - start < 3
    assert math_grader.submit(problem("\\sqrt{8}"), "\\boxed{2\\sqrt{2}}", "stop").result().outcome == "correct"
    assert not Path("pwned").exists()


def test_an_overrun_is_cut_off_and_the_next_answer_graded() -> None:
    slow = "\\sum_{a=1}^{2999}\\sum_{b=1}^{2999}\\sum_{c=1}^{2999} \\sin(abc)"
    with MathGrader(MathOptions(seconds=0.5)) as made:
        verdict = made.submit(problem("5"), f"\\boxed{{{slow}}}", "stop").result()
        assert (verdict.outcome, verdict.reason) == ("undecided", "time limit")
        assert made.submit(problem("\\sqrt{8}"), "\\boxed{2\\sqrt{2}}", "stop").result().outcome == "correct"


def test_the_memory_limit_holds() -> None:
    """Too little memory for the limit's library: undecided, and a fresh worker for the next answer."""
    with MathGrader(MathOptions(memory=48 * 1024**2)) as made:
        verdict = made.submit(problem("\\frac{1}{3}"), "\\boxed{\\lim_{x\\to 0}\\frac{\\sin x}{3x}}", "stop").result()
        assert (verdict.outcome, verdict.reason) == ("undecided", "memory limit")
        assert made.submit(problem("\\sqrt{8}"), "\\boxed{2\\sqrt{2}}", "stop").result().outcome == "correct"


def test_the_same_pair_is_decided_once(math_grader: MathGrader, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    submit = math_grader._pool.submit

    def counted(request: dict[str, Any]) -> Any:
        asked.append(request)
        return submit(request)

    monkeypatch.setattr(math_grader._pool, "submit", counted)
    for _ in range(5):
        response = "\\boxed{\\sqrt{1234321}+\\sqrt{7}}"
        assert math_grader.submit(problem("1111+\\sqrt{7}"), response, "stop").result().outcome == "correct"
    assert len(asked) == 1


def test_plain_numbers_start_no_worker_and_import_no_sympy() -> None:
    code = (
        "import sys, time; from ba_eval.grade.math import grade; "
        "assert grade('25', r'\\boxed{025}').outcome == 'correct'; "
        "assert grade('25', r'\\boxed{26}').outcome == 'wrong'; "
        "bad = {'sympy', 'mpmath', 'math_verify', 'torch'} & set(sys.modules); assert not bad, bad; "
        "import os, pytest; pytest.raises(ChildProcessError, os.waitpid, -1, os.WNOHANG)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_workers_die_with_the_parent() -> None:
    code = (
        "import os, sys; from ba_eval.grade.math import grade; import ba_eval.grade.math.grader as g; "
        "grade('\\\\sqrt{8}', r'\\boxed{2\\sqrt{2}}'); "
        "print(g._shared._pool._idle.queue[0].process.pid, flush=True); "
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    worker = int(done.stdout)
    for _ in range(200):
        if not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split(")")[1]:
            return
        time.sleep(0.1)
    os.kill(worker, 9)
    pytest.fail("the worker outlived its parent")


def test_a_killed_worker_is_replaced() -> None:
    with MathGrader() as made:
        assert made.submit(problem("\\sqrt{8}"), "\\boxed{2\\sqrt{2}}", "stop").result().outcome == "correct"
        made._pool._idle.queue[0].process.kill()
        verdicts = [made.submit(problem("\\sqrt{8}"), f"\\boxed{{{k}\\sqrt{{2}}}}", "stop").result() for k in (3, 4)]
    assert [v.outcome for v in verdicts] == ["wrong", "wrong"]


def test_an_answer_is_tried_again_where_its_worker_was_killed() -> None:
    """Somebody's kill is no fault of the answer's."""
    with MathGrader() as made:
        verdicts = []
        for k in range(6):
            future = made.submit(problem(f"\\sqrt{{8}}+{k}"), f"\\boxed{{2\\sqrt{{2}}+{k}}}", "stop")
            if k % 2 and not made._pool._idle.empty():
                made._pool._idle.queue[0].process.kill()
            verdicts.append(future.result())
        assert {v.outcome for v in verdicts} == {"correct"}


def test_a_forked_child_grades_on() -> None:
    """With the plain function, and with a grader of the parent's, while a thread of the parent's is grading."""
    code = """
import os, threading
from ba_eval.benchmark.problem import Problem
from ba_eval.grade.math import MathGrader, grade

made = MathGrader()
over = threading.Event()

def fine(k):
    gold, response = f"\\\\sqrt{{8}}+{k}", f"\\\\boxed{{2\\\\sqrt{{2}}+{k}}}"
    mine = made.submit(Problem("p", "", golds=(gold,)), response).result(60)
    return grade(gold, response).outcome == mine.outcome == "correct"

def busy():
    k = 0
    while not over.is_set():
        k += 1
        assert fine(k)

thread = threading.Thread(target=busy)
thread.start()
for k in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if fine(10_000 + k) else 1)
    assert os.waitpid(child, 0)[1] == 0
over.set()
thread.join()
assert fine(0)
made.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
