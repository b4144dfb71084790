"""Tries one program on its tests in the sandbox. Expected outputs stay on this side of the wall."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ba_eval.benchmark.problem import CallTest, StdinTest
from ba_eval.execution import Call, CallResult, CallSession, Limits, RunResult, Sandbox, idle
from ba_eval.execution.wire import WireError, encode_call
from ba_eval.grade.compare import output_difference, same_value, shorten, show
from ba_eval.grade.turns import Turns

REASONS = {
    "error": "crash",
    "killed": "crash",
    "timeout": "timeout",
    "memory": "memory",
    "output": "output limit",
    "disk": "disk limit",
    "process": "process limit",
}
"""Reasons of verdicts, by what became of the program."""

_TEXT_LIMIT = 600
_SLEPT = "the tests together took too long, most of it asleep"


class SandboxFailed(Exception):
    """The sandbox itself failed, twice: nothing is known about the program."""


@dataclass(frozen=True)
class Trial:
    """What became of a program's tests. `reason` is None where all passed."""

    passed: int
    total: int
    reason: str | None = None
    failed: Mapping[str, Any] = field(default_factory=dict)
    """The first failed test, shortened for people."""
    stalled: bool = False
    slowest: float = 0.0
    """CPU seconds of the slowest test."""


Result = TypeVar("Result", RunResult, list[Trial])


class Runner:
    """Runs programs side by side, and once more, alone, where the outcome says nothing about the program: a fault of
    the sandbox, or a timeout while the machine stood still or had more to do than it has cores."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._turns = Turns()

    def fairly(self, attempt: Callable[[], Result]) -> Result:
        """The result of `attempt`, or of a second one alone. Raises SandboxFailed."""
        with self._turns.together():
            result = attempt()
            crowded = self._turns.crowded()
        if any(e.reason == "infra" or (e.reason == "timeout" and (e.stalled or crowded)) for e in _endings(result)):
            with self._turns.alone():
                result = attempt()
        for ending in _endings(result):
            if ending.reason == "infra":
                raise SandboxFailed(str(ending.failed.get("error")))
        return result


def _endings(result: RunResult | list[Trial]) -> list[Trial]:
    if isinstance(result, list):
        return result
    return [Trial(0, 1, result.status, {"error": result.text}, result.stalled)]


def try_stdin(runner: Runner, program: str, tests: Sequence[StdinTest], limits: Limits) -> Trial:
    """Runs the program once for each test, up to the first that fails."""
    slowest = used = wall = 0.0
    for number, test in enumerate(tests):
        stdin = test.stdin.encode(errors="surrogateescape")
        room = with_room(limits, len(test.stdout))
        result = runner.fairly(lambda stdin=stdin, room=room: runner.sandbox.run(program, stdin, room))  # type: ignore[misc]
        slowest = max(slowest, result.cpu_seconds)
        used, wall = used + result.cpu_seconds, wall + result.wall_seconds
        printed = result.stdout.decode(errors="replace")
        failed = {
            "test": number,
            "input": shorten(test.stdin, _TEXT_LIMIT),
            "expected": shorten(test.stdout, _TEXT_LIMIT),
            "got": shorten(printed, _TEXT_LIMIT),
        }
        if result.status != "ok":
            failed["error"] = shorten(result.text, _TEXT_LIMIT) or last_lines(result.stderr) or result.status
            return Trial(number, len(tests), REASONS[result.status], failed)
        difference = output_difference(printed, test.stdout)
        if difference is not None:
            return Trial(number, len(tests), "failed test", {**failed, "difference": difference})
        if idle(wall, used):
            return Trial(number, len(tests), "timeout", {**failed, "error": _SLEPT})
    return Trial(len(tests), len(tests), slowest=slowest)


def try_calls(
    runner: Runner, program: str, entry_point: str, tests: Sequence[CallTest], limits: Limits, tolerance: float
) -> Trial:
    """Loads the program and calls it with each test's arguments, up to the first that fails."""
    calls = [Call(checked_call(test.args, test.kwargs), limits.cpu_seconds) for test in tests]

    def judge(number: int, value: Any) -> Mapping[str, Any] | None:
        if same_value(value, tests[number].expected, tolerance):
            return None
        return {"expected": show(tests[number].expected, _TEXT_LIMIT)}

    def describe(number: int) -> str:
        return show_call(tests[number].args, tests[number].kwargs)

    part = Part(lambda: calls, len(calls), judge, describe)
    [trial] = runner.fairly(lambda: call_all(runner.sandbox, program, entry_point, [part], limits))
    return trial


@dataclass(frozen=True)
class Part:
    """Calls that count together, and how their results are judged."""

    calls: Callable[[], Iterable[Call]]
    total: int
    judge: Callable[[int, Any], Mapping[str, Any] | None]
    """Given the number and value of a call whose value is not the expected bytes: None where it passes all the same,
    else what is told of the failure."""
    describe: Callable[[int], str]
    """Shows a call's arguments."""
    cpu_budget: float = float("inf")
    """For all calls together, in seconds."""


def call_all(sandbox: Sandbox, program: str, entry_point: str, parts: Sequence[Part], limits: Limits) -> list[Trial]:
    """Makes the calls of each part, up to its first that fails: in one process while that takes calls, else the next
    part has a new one."""
    trials: list[Trial] = []
    while len(trials) < len(parts):
        with sandbox.session(program, entry_point, limits) as session:
            loaded = session.loaded
            if loaded.status != "ok":
                failed = {"test": 0, "error": _error(loaded)}
                trials += [Trial(0, p.total, _reason(loaded), failed, loaded.stalled) for p in parts[len(trials) :]]
            while len(trials) < len(parts) and session.settled():
                trials.append(_call_part(session, parts[len(trials)]))
    return trials


def _call_part(session: CallSession, part: Part) -> Trial:
    used = slowest = 0.0
    started = time.monotonic()
    for number, result in enumerate(session.call_many(part.calls())):
        used += result.cpu_seconds
        slowest = max(slowest, result.cpu_seconds)
        if result.status != "ok":
            failed = {"test": number, "input": part.describe(number), "error": _error(result)}
            return Trial(number, part.total, _reason(result), failed, result.stalled)
        told = None if result.matched else part.judge(number, result.value)
        if told is not None:
            failed = {"test": number, "input": part.describe(number), "got": show(result.value, _TEXT_LIMIT), **told}
            return Trial(number, part.total, "failed test", failed)
        if idle(time.monotonic() - started, used):
            return Trial(number, part.total, "timeout", {"test": number, "error": _SLEPT}, result.stalled)
        if used > part.cpu_budget:
            error = f"all calls together took more than {part.cpu_budget:.0f} s of CPU time"
            return Trial(number, part.total, "timeout", {"test": number, "error": error}, result.stalled)
    return Trial(part.total, part.total, slowest=slowest)


def try_check(runner: Runner, program: str, entry_point: str, test_source: str, limits: Limits) -> Trial:
    """Runs a test program against the program; it counts as one test."""
    result = runner.fairly(lambda: runner.sandbox.check(test_source, program, entry_point, limits))
    if result.status == "ok":
        return Trial(1, 1, slowest=result.cpu_seconds)
    error = shorten(result.text, _TEXT_LIMIT) or last_lines(result.stderr) or result.status
    failed_assert = result.status == "error" and "AssertionError" in error.split("\n")[-1]
    return Trial(0, 1, "failed test" if failed_assert else REASONS[result.status], {"test": 0, "error": error})


def checked_call(args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> bytes:
    """The arguments as they go into the sandbox. ValueError: more, or nested deeper, than can be sent."""
    try:
        body = encode_call(args, dict(kwargs or {}))
    except WireError as error:
        raise ValueError(f"more than can be sent into the sandbox ({error})") from None
    if b'{"o":' in body:  # never within a text, whose quotes are escaped
        raise ValueError("not plain data, or nested too deep")
    return body


def show_call(args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> str:
    """Arguments as they stand between the brackets of a call, shortened."""
    parts = [show(arg, _TEXT_LIMIT) for arg in args[:20]]
    parts += [f"{name}={show(value, _TEXT_LIMIT)}" for name, value in list((kwargs or {}).items())[:20]]
    return shorten(", ".join(parts), _TEXT_LIMIT)


def with_room(limits: Limits, expected_characters: int) -> Limits:
    """Limits with room for an output twice as long as the expected one."""
    return replace(limits, output_kb=max(limits.output_kb, expected_characters // 512))


def last_lines(stderr: bytes) -> str:
    """The end of a traceback."""
    lines = stderr[-4000:].decode(errors="replace").strip().splitlines()
    return shorten("\n".join(lines[-4:]), _TEXT_LIMIT)


def _error(result: CallResult) -> str:
    if result.exception is not None:
        return shorten(f"{result.exception}: {result.text}", _TEXT_LIMIT)
    return shorten(result.text, _TEXT_LIMIT) or last_lines(result.stderr) or result.status


def _reason(result: CallResult) -> str:
    if result.status == "infra":
        return "infra"
    return REASONS["memory" if result.exception == "MemoryError" else result.status]
