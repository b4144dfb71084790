"""Calls of a function that lives in the sandbox, and test programs whose calls are relayed to such a function."""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from ba_eval.errors import MachineError
from ba_eval.execution.job import GRACE_SECONDS, read_result
from ba_eval.execution.result import CallResult, Limits, RunResult, idle
from ba_eval.execution.wire import WireError, decode, decode_call, encode, encode_call
from ba_eval.execution.worker import Worker, WorkerDied

if TYPE_CHECKING:
    from ba_eval.execution.pool import Slot

_NONCE_BYTES = 16
# Calls that are sent at once: few at first, since many programs fail early.
_FIRST, _MANY, _MANY_BYTES = 32, 512, 1 << 20
_AT_ONCE = 0.01
"""Seconds; a new process takes about as long to start."""


class Call(NamedTuple):
    """A call of the entry point."""

    body: bytes
    """What `encode_call` made of the arguments."""
    cpu_seconds: float
    expected: bytes | str | None = None
    """The encoded value that is expected, or its SHA-256: it is told whether the value is that, and not the value."""


class _Conversation:
    """A job that answers calls: one question, one answer, until it ends."""

    def __init__(self, slot: "Slot", role: str, job: dict[str, Any], limits: Limits) -> None:
        self._slot, self._role, self._job, self._limits = slot, role, job, limits
        self._worker: Worker | None = None
        self.ended: RunResult | None = None

    def open(self) -> None:
        try:
            self._worker = self._slot.worker(self._role)
            self._worker.send(self._job)
        except (WorkerDied, MachineError) as error:
            self._lost(error)

    def _lost(self, error: Exception) -> None:
        said = self._slot.drop(self._role)
        self.ended = RunResult("infra", level=self._slot.level, text=f"{error} {said}".strip())

    def close(self) -> None:
        """Ends the process, if it has not ended."""
        if self.ended is not None or self._worker is None:
            return
        try:
            self._worker.send({"end": True})
            while self.ended is None:
                self._receive(0.0)
        except WorkerDied as error:
            self._lost(error)

    def send(self, bodies: Sequence[bytes], cpu_seconds: Sequence[float]) -> None:
        """Sends calls, or the answer to a question that the program asked."""
        assert self._worker is not None
        if self.ended is None:
            header = {"nonce": os.urandom(_NONCE_BYTES).hex(), "cpu_seconds": cpu_seconds, "sizes": [*map(len, bodies)]}
            try:
                self._worker.send(header, b"".join(bodies))
            except WorkerDied as error:
                self._lost(error)

    def receive(self, cpu_seconds: float) -> tuple[list[bytes], CallResult] | None:
        """Waits for answers, at least one: each a kind (`v` value, `e` exception, `c` a question) and an encoded body;
        and what was printed. None: the process has ended, see `ended`."""
        if self.ended is not None:
            return None
        try:
            return self._receive(cpu_seconds)
        except WorkerDied as error:
            self._lost(error)
            return None

    def ready(self, seconds: float) -> bool:
        """Whether an answer comes within so many seconds."""
        return self._worker is not None and self._worker.ready(seconds)

    def _receive(self, cpu_seconds: float) -> tuple[list[bytes], CallResult] | None:
        assert self._worker is not None
        wall = self._limits.wall + max(0.0, cpu_seconds - self._limits.cpu_seconds)
        header, body = self._worker.receive(wall + GRACE_SECONDS)
        if header.get("answer"):
            if header.get("id") != self._job["id"]:
                raise WorkerDied("the fork server answered another question")
            at = int(header["output"])
            out = int.from_bytes(body[:4], "big")
            printed = CallResult(
                "ok",
                stdout=body[4 : 4 + out],
                stderr=body[4 + out : at],
                cpu_seconds=float(header["cpu_seconds"]),
                stalled=bool(header["stalled"]),
            )
            answers = []
            for size in header["sizes"]:
                answers.append(body[at : at + size])
                at += size
            return answers, printed
        self.ended = read_result(header, body, self._job["id"], self._worker.level)
        return None


class CallSession:
    """Many calls of one entry point, in one process. A context manager; used by one thread at a time."""

    def __init__(self, slot: "Slot", role: str, job: dict[str, Any], limits: Limits) -> None:
        self._conversation = _Conversation(slot, role, job, limits)
        self._limits = limits
        self._unanswered = 0
        self.loaded: CallResult
        """What became of loading the program; where it is not ok, every call gives the same."""

    def __enter__(self) -> "CallSession":
        self._conversation.open()
        [self.loaded] = self._exchange([Call(b"", self._limits.cpu_seconds)])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._conversation.close()

    @property
    def ended(self) -> RunResult | None:
        """How the process ended, None while it takes calls."""
        return self._conversation.ended

    def call(
        self, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, cpu_seconds: float | None = None
    ) -> CallResult:
        """Calls the entry point with plain data. After a call that met a limit or killed the process the session is
        over, and every further call gives that status. WireError: the arguments are too large to send."""
        return self.call_encoded(encode_call(args, dict(kwargs or {})), cpu_seconds)

    def call_encoded(self, body: bytes, cpu_seconds: float | None = None) -> CallResult:
        """Like `call`, with arguments as `encode_call` made them, so that they are encoded once for many
        programs."""
        [result] = self.call_many([Call(body, self._limits.cpu_seconds if cpu_seconds is None else cpu_seconds)])
        return result

    def call_many(self, calls: Iterable[Call]) -> Iterator[CallResult]:
        """Makes many calls, one after another without a pause between them; yields their results in order.

        `calls` is asked for as many as are sent at once. The last result is that of the call during which the process
        ended, if it did. CPU seconds and what was printed are told of several calls together, with the last of them.
        Whoever stops asking for results asks next whether the session is `settled`, or closes it.
        """
        if self.loaded.status != "ok":
            yield self.loaded
            return
        together: list[Call] = []
        most, size = _FIRST, 0
        for call in calls:
            if together and (len(together) == most or size + len(call.body) > _MANY_BYTES):
                yield from self._exchange(together)
                if self.ended is not None:
                    return
                together, most, size = [], _MANY, 0
            together.append(call)
            size += len(call.body)
        if together:
            yield from self._exchange(together)

    def settled(self) -> bool:
        """Whether the process can be given other calls: it lives, and has answered all earlier ones, or does so at
        once."""
        conversation = self._conversation
        while self._unanswered and conversation.ended is None and conversation.ready(_AT_ONCE):
            received = conversation.receive(self._limits.cpu_seconds)
            self._unanswered -= 0 if received is None else len(received[0])
        return conversation.ended is None and not self._unanswered

    def _exchange(self, calls: Sequence[Call]) -> Iterator[CallResult]:
        conversation = self._conversation
        if conversation.ended is None:
            conversation.send([call.body for call in calls], [call.cpu_seconds for call in calls])
        answered, told = iter(calls), 0.0
        self._unanswered, longest = len(calls), max(call.cpu_seconds for call in calls)
        while self._unanswered:
            received = conversation.receive(longest)
            if received is None:
                yield self._ending()
                return
            answers, printed = received
            self._unanswered -= len(answers)
            used, told = printed.cpu_seconds - told, printed.cpu_seconds
            for answer in answers[:-1]:
                yield _result(answer, printed.stalled, next(answered).expected)
            last = _result(answers[-1], printed.stalled, next(answered).expected)
            yield replace(last, stdout=printed.stdout, stderr=printed.stderr, cpu_seconds=max(0.0, used))

    def _ending(self) -> CallResult:
        ended = self.ended
        assert ended is not None
        # Leaving before the answer is a failure, whatever the exit code.
        status = "error" if ended.status == "ok" else ended.status
        how = f"exit code {ended.exit_code}" if ended.exit_code is not None else f"signal {ended.signal}"
        met = ended.exit_code is None and ended.signal is None
        text = ended.text or (f"the program met a limit: {status}" if met else f"the program ended with {how}")
        return CallResult(
            status,
            text=text,
            stdout=ended.stdout,
            stderr=ended.stderr,
            cpu_seconds=ended.cpu_seconds,
            stalled=ended.stalled,
            details=ended,
        )


# Making one costs more than the comparison.
_MATCHED = {stalled: CallResult("ok", matched=True, stalled=stalled) for stalled in (False, True)}


def _result(answer: bytes, stalled: bool, expected: bytes | str | None) -> CallResult:
    if expected is not None and answer[:1] == b"v" and _matches(memoryview(answer)[1:], expected):
        return _MATCHED[stalled]
    try:
        if answer[:1] == b"m":
            return CallResult("ok", changed=decode_call(answer[1:]), stalled=stalled)
        value = decode(answer[1:])
        if answer[:1] == b"v":
            return CallResult("ok", value, stalled=stalled)
        name, text = value
        return CallResult("error", exception=str(name)[:100], text=str(text)[:2000], stalled=stalled)
    except (WireError, ValueError, TypeError) as error:
        return CallResult("error", exception="WireError", text=str(error), stalled=stalled)


def _matches(encoded: memoryview, expected: bytes | str) -> bool:
    return hashlib.sha256(encoded).hexdigest() == expected if isinstance(expected, str) else encoded == expected


def run_check(slot: "Slot", test_job: dict[str, Any], candidate: CallSession, limits: Limits) -> RunResult:
    """Runs the test program and relays its calls to the candidate. See `Sandbox.check`."""
    if candidate.loaded.status != "ok":
        return _as_run(candidate.loaded, slot.level)
    test = _Conversation(slot, "main", test_job, limits)
    used, started = 0.0, time.monotonic()
    test.open()
    try:
        test.send([b""], [limits.cpu_seconds])
        while (answer := test.receive(limits.cpu_seconds)) is not None:
            [question], printed = answer  # one at a time: the fork server sees to it
            if question[:1] != b"c":
                passed = question[:1] == b"v"
                return RunResult(
                    "ok" if passed else "error",
                    exit_code=0 if passed else 1,
                    stdout=printed.stdout,
                    stderr=printed.stderr,
                    cpu_seconds=printed.cpu_seconds + used,
                    level=slot.level,
                    stalled=printed.stalled,
                )
            result = candidate.call_encoded(question[1:])
            used += result.cpu_seconds
            if candidate.ended is not None:
                return _as_run(result, slot.level)
            if idle(time.monotonic() - started, used):
                return RunResult("timeout", cpu_seconds=used, level=slot.level, stalled=result.stalled)
            test.send([_answer(result)], [limits.cpu_seconds])
        assert test.ended is not None
        return test.ended
    finally:
        test.close()


def _answer(result: CallResult) -> bytes:
    if result.status == "ok":
        try:
            return b"v" + encode(result.value) if result.changed is None else b"m" + encode_call(*result.changed)
        except WireError as error:
            return b"e" + encode(("ValueError", str(error)))
    return b"e" + encode((result.exception, result.text))


def _as_run(result: CallResult, level: int) -> RunResult:
    if result.details is not None:
        return result.details if result.details.status != "ok" else _failed(result, level)
    return _failed(result, level)


def _failed(result: CallResult, level: int) -> RunResult:
    text = f"{result.exception}: {result.text}" if result.exception else result.text
    return RunResult(
        "error",
        stdout=result.stdout,
        stderr=result.stderr,
        cpu_seconds=result.cpu_seconds,
        level=level,
        stalled=result.stalled,
        text=text,
    )
