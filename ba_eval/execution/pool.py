"""The pool of warm workers: thread-safe, one program per worker at a time, dead workers replaced."""

import os
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from ba_eval.errors import MachineError
from ba_eval.execution.job import make_job, run_script
from ba_eval.execution.probe import probe_level
from ba_eval.execution.result import Limits, RunResult
from ba_eval.execution.session import CallSession, run_check
from ba_eval.execution.worker import Worker, WorkerDied


class Slot:
    """One place in the pool: a worker, and a second one for the candidate of a check, started when first needed."""

    def __init__(self, level: int) -> None:
        self.level = level
        self._workers: dict[str, Worker] = {}

    def worker(self, role: str = "main") -> Worker:
        """Returns a live worker, starting one where there is none."""
        worker = self._workers.get(role)
        if worker is not None and not worker.alive():
            self.drop(role)
            worker = None
        if worker is None:
            worker = self._workers[role] = Worker(self.level)
        return worker

    def drop(self, role: str = "main") -> str:
        """Ends a worker; returns the last line that it said on its standard error."""
        worker = self._workers.pop(role, None)
        return worker.close() if worker is not None else ""

    def close(self) -> None:
        for role in list(self._workers):
            self.drop(role)


class Sandbox:
    """Runs untrusted programs. Thread-safe; as many at once as there are workers."""

    def __init__(self, workers: int | None = None, level: int | None = None, unsafe: bool = False) -> None:
        """`workers`: None for the cores. `level`: 1 or 2 to force one, None for the best that holds here.
        `unsafe`: run without walls (level 0) where no level holds. MachineError: the level does not hold."""
        self.level = probe_level(level, unsafe)
        self.workers = workers or len(os.sched_getaffinity(0))
        self._slots: queue.LifoQueue[Slot] = queue.LifoQueue()
        self._all = [Slot(self.level) for _ in range(self.workers)]
        for slot in reversed(self._all):
            self._slots.put(slot)
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Waits for what runs, then ends all workers."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for _ in self._all:
            self._slots.get().close()

    @contextmanager
    def _slot(self) -> Iterator[Slot]:
        if self._closed:
            raise ValueError("the sandbox is closed")
        slot = self._slots.get()
        try:
            yield slot
        finally:
            self._slots.put(slot)

    def run(self, program: str, stdin: bytes = b"", limits: Limits = Limits()) -> RunResult:  # noqa: B008 (frozen)
        """Runs the program as a script, with `stdin` as its standard input."""
        with self._slot() as slot:
            try:
                return run_script(slot.worker(), program, stdin, limits)
            except (WorkerDied, MachineError) as error:
                said = slot.drop()
                return RunResult("infra", level=self.level, text=f"{error} {said}".strip())

    @contextmanager
    def session(self, program: str, entry_point: str, limits: Limits = Limits()) -> Iterator[CallSession]:  # noqa: B008
        """Loads the program once and answers calls of `entry_point` (a function, or `Class.method` on a new object for
        each call). `limits.cpu_seconds` holds for the loading, and for each call that names no other."""
        job = make_job("calls", program, limits, entry_point=entry_point, for_test=False)
        with self._slot() as slot, CallSession(slot, "main", job, limits) as session:
            yield session

    def check(self, test_source: str, program: str, entry_point: str, limits: Limits = Limits()) -> RunResult:  # noqa: B008
        """Runs a test program that calls `entry_point` (or defines `check(candidate)`) against `program`.

        They run in two processes; the calls are relayed as plain data, so the candidate never meets the test's source.
        An iterator arrives as one, used up beforehand; where the candidate returns None, changes of its arguments come
        back. `ok`: the test ran to its end, or left with exit code 0 after a call. Otherwise the candidate's status
        where it met a limit or died, else the test's.
        """
        test_job = make_job("check", test_source, limits, entry_point=entry_point)
        job = make_job("calls", program, limits, entry_point=entry_point, for_test=True)
        with self._slot() as slot, CallSession(slot, "candidate", job, limits) as candidate:
            return run_check(slot, test_job, candidate, limits)
