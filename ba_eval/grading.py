"""Grades samples while the engine works, and records each verdict as it comes."""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from ba_eval.benchmark.problem import Problem
from ba_eval.grade.verdict import Grader, Verdict
from ba_eval.records import Sample, VerdictRecord

# Samples that may wait for their verdict; past that, generation waits, so that memory stays flat.
MAX_WAITING = 4096


@dataclass(frozen=True)
class Graded:
    """A verdict with the sample it belongs to."""

    model: str
    benchmark: str
    record: VerdictRecord


class Grading:
    """Hands samples to graders; one thread of its own passes the verdicts on to `record`, in any order.

    `record` gets lists of what came together. What it raises (a full disk) is raised again by the next `submit` or
    `drain`.
    """

    def __init__(self, record: Callable[[list[Graded]], None]) -> None:
        self._record = record
        self._done: queue.SimpleQueue[tuple[str, str, Sample, str, Future[Verdict]] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._writer = threading.Thread(target=self._write, name="verdicts", daemon=True)
        self._writer.start()

    def submit(self, model: str, benchmark: str, problem: Problem, sample: Sample, grader: Grader) -> None:
        """Starts grading one sample; waits where too many are under way."""
        with self._changed:
            while self._waiting >= MAX_WAITING and self._failure is None:
                self._changed.wait(1.0)
            self._raise_failure()
            self._waiting += 1
        future = grader.submit(problem, sample.text, sample.finish_reason)
        future.add_done_callback(lambda done: self._done.put((model, benchmark, sample, grader.version, done)))

    def drain(self, timeout: float | None = None) -> int:
        """Waits until all verdicts are recorded, or the time is over; returns how many are still missing."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self._waiting and self._failure is None:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                self._changed.wait(left if left is not None else 1.0)
        self._raise_failure()
        return self._waiting

    def close(self) -> None:
        """Ends the thread; verdicts that come later are not recorded."""
        self._done.put(None)
        self._writer.join()

    def _write(self) -> None:
        open = True
        while open:
            items = [self._done.get()]
            with suppress(queue.Empty):
                while True:
                    items.append(self._done.get_nowait())
            finished = [item for item in items if item is not None]
            open = len(finished) == len(items)  # until `close` puts None
            try:
                if finished and self._failure is None:
                    self._record(
                        [
                            Graded(model, benchmark, verdict_record(sample, version, future))
                            for model, benchmark, sample, version, future in finished
                        ]
                    )
            except BaseException as error:
                self._failure = error
            with self._changed:
                self._waiting -= len(finished)
                self._changed.notify_all()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def verdict_record(sample: Sample, version: str, future: Future[Verdict]) -> VerdictRecord:
    """Makes the record of a finished grading; a grader that broke gives the outcome `error`."""
    problem = future.exception()
    verdict = future.result() if problem is None else Verdict("error", f"grader failed: {problem!r}"[:500])
    return VerdictRecord(
        key=sample.key,
        problem_id=sample.problem_id,
        index=sample.index,
        outcome=verdict.outcome,
        reason=verdict.reason,
        grader=version,
        seconds=round(verdict.seconds, 6),
        extracted=verdict.extracted,
        method=verdict.method,
        details=dict(verdict.details),
    )
