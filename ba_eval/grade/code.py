"""Judges programs: takes them out of responses, runs their tests in the sandbox, says what became of them."""

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec

from ba_eval.benchmark.problem import CallTest, CheckTest, CodeTask, EvalplusTest, Problem, StdinTest
from ba_eval.execution import Limits, Sandbox
from ba_eval.extract.code import (
    MAX_PROGRAM_CHARACTERS,
    after_prelude,
    callable_name,
    code_before_entry_point,
    extract_program,
    imports,
    parse,
)
from ba_eval.grade.compare import LEETCODE_TOLERANCE, RETURNED_TOLERANCE, shorten
from ba_eval.grade.evalplus import EvalplusJudge
from ba_eval.grade.trial import Runner, SandboxFailed, Trial, try_calls, try_check, try_stdin
from ba_eval.grade.verdict import Verdict

LIMITS = Limits(cpu_seconds=6.0, memory_mb=1024)
"""For each test on stdin, each call, each check, where a reference does not show that more is needed."""

REFERENCE_FACTOR = 4.0
"""A program may take this many times the CPU time of the reference solution."""

LEETCODE_NAMES = """\
import bisect, collections, copy, datetime, functools, heapq, io, itertools, json, math, operator, random, re
import statistics, string, sys
from bisect import *
from collections import *
from copy import *
from functools import *
from heapq import *
from itertools import *
from math import *
from operator import *
from random import *
from statistics import *
from string import *
from typing import *
from builtins import *
sys.setrecursionlimit(50000)
"""
"""What LeetCode imports before a solution; its starter code names `List` and `Optional` without an import."""


_TOO_LONG = f"a program of more than {MAX_PROGRAM_CHARACTERS} characters"


class CodeGrader:
    """Judges responses in a pool of sandboxes; safe to use from several threads.

    The same program for the same problem is run once. `error` verdicts are the sandbox's own fault and nothing else.
    """

    version = "code-5"

    def __init__(self, workers: int | None = None, level: int | None = None, unsafe: bool = False) -> None:
        """`workers`: programs at a time, by default one a core. `level`: isolation level to hold; MachineError where
        it does not hold, and, without `unsafe`, where none does."""
        self._sandbox = Sandbox(workers, level, unsafe)
        self.level = self._sandbox.level
        self._runner = Runner(self._sandbox)
        self._evalplus = EvalplusJudge(self._runner)
        self._pool = ThreadPoolExecutor(self._sandbox.workers, "judge")
        self._lock = threading.Lock()
        self._judged: dict[tuple[int, bytes], tuple[Problem, Future[Verdict]]] = {}
        self._reference_cpu: dict[int, float] = {}
        self._reference_locks: dict[int, threading.Lock] = {}

    def submit(self, problem: Problem, response: str, finish_reason: str) -> Future[Verdict]:
        """Judges the program that a response holds. `finish_reason` is `length` where the response was cut off."""
        answer: Future[Verdict] = Future()
        self._pool.submit(self._take, answer, problem, response, finish_reason == "length")
        return answer

    def submit_program(self, problem: Problem, program: str) -> Future[Verdict]:
        """Judges a complete program as it stands."""
        answer: Future[Verdict] = Future()
        self._pool.submit(self._judge_once, answer, problem, program, program, False)
        return answer

    def weight(self, problem: Problem) -> tuple[float, int]:
        """Which of two problems takes longer, as far as that can be told before: zeros where it cannot."""
        task = _task(problem)
        return self._evalplus.weight(task) if isinstance(task.tests, EvalplusTest) else (0.0, 0)

    def close(self) -> None:
        """Waits for what was submitted, then ends the sandboxes."""
        self._pool.shutdown()
        self._sandbox.close()

    def _take(self, answer: Future[Verdict], problem: Problem, response: str, truncated: bool) -> None:
        try:
            task = _task(problem)
            found = extract_program(response, task.entry_point, task.prefix, truncated)
            if found.program is None:
                reason = "truncated" if truncated else "no code"
                answer.set_result(Verdict("wrong", reason, method="code", details={"passed": 0}))
                return
            program = found.program if found.continues else after_prelude(_prelude(task), found.program)
        except Exception as error:
            answer.set_result(_harness_error(error))
            return
        self._judge_once(answer, problem, program, found.program, not found.complete)

    def _judge_once(
        self, answer: Future[Verdict], problem: Problem, program: str, extracted: str, truncated: bool
    ) -> None:
        key = id(problem), hashlib.sha256(program.encode(errors="surrogatepass")).digest()
        with self._lock:
            known = self._judged.get(key)
            mine: Future[Verdict] = Future()
            if known is None:
                self._judged[key] = problem, mine  # holding the problem keeps its id from being given again
        judged = mine if known is None else known[1]
        judged.add_done_callback(lambda done: answer.set_result(_for_response(done.result(), extracted, truncated)))
        if known is None:
            try:
                mine.set_result(self._judge(problem, program))
            except Exception as error:
                mine.set_result(_harness_error(error))

    def _judge(self, problem: Problem, program: str) -> Verdict:
        if len(program) > MAX_PROGRAM_CHARACTERS:
            return Verdict("wrong", "no code", method="code", details={"passed": 0, "failed": {"error": _TOO_LONG}})
        started = time.monotonic()
        task = _task(problem)
        try:
            if isinstance(task.tests, EvalplusTest):
                trial, more = self._evalplus.judge(task, program)
            else:
                trial, more = self._try(problem, task, program, _resolved(task, program)), {}
        except SandboxFailed as error:
            seconds = time.monotonic() - started
            return Verdict("error", f"sandbox failed: {error}"[:300], method="code", seconds=seconds)
        details: dict[str, Any] = {"passed": trial.passed, "total": trial.total, **more}
        if trial.failed:
            details["failed"] = dict(trial.failed)
        return Verdict(
            "correct" if trial.reason is None else "wrong",
            trial.reason or "passed",
            method="code",
            seconds=time.monotonic() - started,
            details=details,
        )

    def _try(self, problem: Problem, task: CodeTask, program: str, entry_point: str | None) -> Trial:
        trial = self._try_within(problem, program, entry_point, LIMITS)
        if trial.reason == "timeout" and problem.reference is not None:
            # How long the tests take is worth knowing only now.
            allowed = REFERENCE_FACTOR * self._reference_seconds(problem, task, problem.reference)
            if allowed > LIMITS.cpu_seconds:
                trial = self._try_within(problem, program, entry_point, replace(LIMITS, cpu_seconds=allowed))
        return trial

    def _reference_seconds(self, problem: Problem, task: CodeTask, reference: str) -> float:
        """CPU seconds of the reference solution for its slowest test; 0 where it does not pass."""
        with self._lock:
            lock = self._reference_locks.setdefault(id(problem), threading.Lock())
        with lock:
            if id(problem) not in self._reference_cpu:
                program = after_prelude(_prelude(task), reference)
                limits = replace(LIMITS, cpu_seconds=10 * LIMITS.cpu_seconds)
                trial = self._try_within(problem, program, _resolved(task, program), limits)
                self._reference_cpu[id(problem)] = trial.slowest if trial.reason is None else 0.0
            return self._reference_cpu[id(problem)]

    def _try_within(self, problem: Problem, program: str, entry_point: str | None, limits: Limits) -> Trial:
        task = _task(problem)
        tests = task.tests
        if isinstance(tests, CheckTest):
            # Tests of some sets lean on what the reference solution imports.
            source = after_prelude(_prelude(task) + "\n" + imports(problem.reference or ""), tests.source)
            return try_check(self._runner, program, entry_point or "candidate", source, limits)
        assert not isinstance(tests, EvalplusTest)
        stdin_tests = [test for test in tests if isinstance(test, StdinTest)]
        call_tests = [test for test in tests if isinstance(test, CallTest)]
        if stdin_tests and not call_tests:
            return try_stdin(self._runner, program, stdin_tests, limits)
        if stdin_tests or entry_point is None:
            raise ValueError("tests are all on stdin, or all calls of an entry point")
        tolerance = LEETCODE_TOLERANCE if _is_leetcode(task) else RETURNED_TOLERANCE
        return try_calls(self._runner, program, entry_point, call_tests, limits, tolerance)


def reference_failures(
    problems: Sequence[Problem], workers: int | None = None, level: int | None = None, unsafe: bool = False
) -> Iterator[tuple[str, str]]:
    """Judges the reference solution of each problem that has one; yields the id and the fault of those that fail.

    The references of evalplus sets are judged against what they gave when the expected outputs were computed: one
    that changes its outputs shows, and inputs on which it fails or that give more than can be compared.
    """
    grader = CodeGrader(workers, level, unsafe)
    try:
        judged = [
            (problem, grader.submit_program(problem, after_prelude(_prelude(_task(problem)), problem.reference)))
            for problem in problems
            if problem.code is not None and problem.reference is not None
        ]
        for problem, future in judged:
            verdict = future.result()
            failed = verdict.details.get("failed", {})
            if verdict.outcome != "correct":
                told = (str(failed[name]) for name in ("error", "difference", "got") if name in failed)
                yield problem.id, shorten(f"{verdict.reason}: {next(told, '')}", 300)
            elif "unusable" in verdict.details:
                yield problem.id, f"{verdict.details['unusable']} inputs unusable: {verdict.details['why_unusable']}"
    finally:
        grader.close()


def _task(problem: Problem) -> CodeTask:
    if problem.code is None:
        raise ValueError(f"problem {problem.id} has no tests")
    return problem.code


def _is_leetcode(task: CodeTask) -> bool:
    return (task.entry_point or "").startswith("Solution.")


def _prelude(task: CodeTask) -> str:
    """What runs before a program: the prompt's own imports and helpers, and in LeetCode's style its imports."""
    given = code_before_entry_point(task.prefix, task.entry_point)
    return LEETCODE_NAMES + given if _is_leetcode(task) else given


def _resolved(task: CodeTask, program: str) -> str | None:
    """The name to call: a method where the program has it so, else as the task names it."""
    if task.entry_point is None:
        return None
    tree = parse(program)
    return (tree is not None and callable_name(tree, task.entry_point)) or task.entry_point


def _for_response(verdict: Verdict, extracted: str, truncated: bool) -> Verdict:
    if truncated:
        details = {**verdict.details, "truncated": True}
        reason = "truncated" if verdict.outcome == "wrong" else verdict.reason
        return msgspec.structs.replace(verdict, extracted=extracted, reason=reason, details=details)
    return msgspec.structs.replace(verdict, extracted=extracted)


def _harness_error(error: Exception) -> Verdict:
    return Verdict("error", shorten(f"judge failed: {type(error).__name__}: {error}", 300), method="code")
