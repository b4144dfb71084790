"""The math grader: a response and its golds in, a verdict out."""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any
from weakref import WeakSet

from ba_eval.benchmark.problem import Problem
from ba_eval.extract.extraction import Extraction
from ba_eval.extract.math import extract_answer
from ba_eval.extract.thinking import split_thinking
from ba_eval.grade.done import Done
from ba_eval.grade.math import fast, suspicion
from ba_eval.grade.math.clean import MAX_LENGTH, clean
from ba_eval.grade.math.fingerprint import Fingerprint, of_number
from ba_eval.grade.math.options import MathOptions
from ba_eval.grade.math.pool import Pool
from ba_eval.grade.math.units import is_money
from ba_eval.grade.verdict import Outcome, Verdict

VERSION = "math 6"
"""Raised whenever a verdict may change, so that `eval` and `regrade` know verdicts of other rules."""
_REMEMBERED = 20_000
_SHOWN = 2000
_UNASKED = ("open box", "closing", "bare", "last-number")
"""Places of an answer that no prompt asks for."""
Reply = dict[str, Any]


class MathGrader:
    """Grades responses in limited worker processes; safe to use from several threads, and on in a forked child.

    The same answer to the same golds is decided once; identical strings and plain numbers need no worker.
    """

    version = VERSION

    def __init__(self, options: MathOptions | None = None, workers: int = 1) -> None:
        self.options = options or MathOptions()
        self._workers = workers
        self._start()
        _graders.add(self)

    def _start(self) -> None:
        self._pool = Pool(self._workers, self.options.seconds, self.options.memory)
        self._known: OrderedDict[tuple[Any, ...], Reply | Future[Reply]] = OrderedDict()
        self._lock = threading.Lock()

    def submit(self, problem: Problem, response: str, finish_reason: str = "stop") -> "Future[Verdict]":
        """Starts the grading of a response; the future holds a verdict and never raises for what the response says."""
        start = time.perf_counter()
        extraction, missing = self._extract(response, finish_reason)
        if missing is not None:
            reason, more = missing
            seen = suspicion.flags("wrong", reason, problem.golds, response, expected_place=True, more=more)
            details = suspicion.details(seen, problem.golds)
            return Done(Verdict("wrong", reason, seconds=time.perf_counter() - start, details=details))
        meta = problem.meta
        unit, tolerance = (str(meta.get("unit") or ""), _number(meta.get("tolerance"))) if meta else ("", None)
        return self._verdict(tuple(problem.golds), extraction, response, unit, tolerance, start)

    def submit_answer(
        self, golds: Sequence[str], answer: str, unit: str = "", tolerance: float | None = None
    ) -> "Future[Verdict]":
        """Starts the grading of an answer that is already extracted."""
        return self._verdict(tuple(golds), Extraction(answer, "given"), "", unit, tolerance, time.perf_counter())

    def fingerprints(self, answers: Sequence[str]) -> list[Fingerprint | None]:
        """Returns what tells most unequal answers apart without a comparison; one request an answer at most."""
        if self.options.absolute_tolerance is not None or self.options.relative_tolerance is not None:
            return [None] * len(answers)
        plain = [of_number(answer) for answer in answers]
        asked = {
            answer: self._pool.submit({"fingerprint": _encodable(answer)})
            for answer, known in zip(answers, plain, strict=True)
            if known is None and len(answer) <= MAX_LENGTH
        }
        replies: dict[str, Fingerprint | None] = {a: future.result().get("shapes") for a, future in asked.items()}
        return [known or replies.get(answer) for answer, known in zip(answers, plain, strict=True)]

    def close(self) -> None:
        """Ends the worker processes; verdicts that were still waiting are cancelled."""
        self._pool.close()

    def __enter__(self) -> "MathGrader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _extract(self, response: str, finish_reason: str) -> tuple[Extraction, tuple[str, list[str]] | None]:
        """Returns the extraction and, where it commits to nothing, (reason, flags)."""
        _, text, closed = split_thinking(response)
        cut = finish_reason == "length"
        if not closed:
            return Extraction(None), ("truncated" if cut else "no answer", [])
        methods = self.options.extract
        if cut:
            # What stands last in a text that was cut is no closing line.
            methods = tuple(m for m in methods if m in ("boxed", "answer-line"))
        found = extract_answer(text, methods)
        if found.answer is None or not found.closed or (cut and found.method == "open box"):
            flags = [] if found.closed else ["cut inside the box"]
            return Extraction(None, found.method, found.closed), ("truncated" if cut else "no answer", flags)
        return found, None

    def _verdict(
        self, golds: tuple[str, ...], found: Extraction, response: str, unit: str, tolerance: float | None, start: float
    ) -> "Future[Verdict]":
        answer = found.answer or ""
        seconds = time.perf_counter() - start
        absolute = tolerance if tolerance is not None else self.options.absolute_tolerance
        reply = self._decide(golds, answer, unit, absolute, self.options.relative_tolerance)
        tail = (response or answer)[-2000:]
        shown = _encodable(answer[:_SHOWN])
        place, expected = found.method, found.method not in _UNASKED

        def verdict(value: Reply) -> Verdict:
            outcome: Outcome = value["outcome"]
            reason = value["reason"]
            more = value.get("flags", ())
            seen = suspicion.flags(outcome, reason, golds, tail, expected_place=expected, more=more)
            details = suspicion.details(seen, golds, found=place)
            return Verdict(outcome, reason, shown, value["method"], seconds + value.get("seconds", 0.0), details)

        if not isinstance(reply, Future):
            return Done(verdict(reply))
        result: Future[Verdict] = Future()

        def finish(done: "Future[Reply]") -> None:
            if done.cancelled():
                result.cancel()
            elif (trouble := done.exception()) is not None:
                result.set_result(Verdict("error", "grader failed", shown, "", seconds, {"message": str(trouble)}))
            else:
                result.set_result(verdict(done.result()))

        reply.add_done_callback(finish)
        return result

    def _decide(
        self, golds: tuple[str, ...], answer: str, unit: str, absolute: float | None, relative: float | None
    ) -> "Reply | Future[Reply]":
        """Returns the reply where it is plain or known, else the future that will hold it."""
        if not golds:
            return _reply("error", "problem without a gold", "")
        exact = absolute is None and relative is None
        plain = [fast.decide(gold, answer) for gold in golds]
        for decision in plain:
            if decision is not None and decision[0]:
                return _reply("correct", "equal", decision[1])
        if exact and all(decision is not None for decision in plain):
            return _reply("wrong", "not equal", plain[0][1] if plain[0] else "")
        if len(answer) > MAX_LENGTH and len(clean(answer)) > MAX_LENGTH:
            return _reply("undecided", "too long to compare", "")
        key = (golds, clean(answer), is_money(answer), unit, absolute, relative)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
            request = {
                "golds": golds,
                "answer": _encodable(answer),
                "unit": unit,
                "absolute": absolute,
                "relative": relative,
            }
            future = self._known[key] = self._pool.submit(request)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        future.add_done_callback(lambda done: self._remember(key, done))
        return future

    def _remember(self, key: tuple[Any, ...], done: "Future[Reply]") -> None:
        """Keeps the bare reply: a future holds on to its callbacks, and these to whole responses."""
        with self._lock:
            if done.cancelled() or done.exception() is not None:
                self._known.pop(key, None)
            elif key in self._known:
                self._known[key] = {name: value for name, value in done.result().items() if name != "seconds"}


def _reply(outcome: str, reason: str, method: str) -> Reply:
    return {"outcome": outcome, "reason": reason, "method": method}


def _number(value: Any) -> float | None:
    return None if value in (None, "") else float(value)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_graders: "WeakSet[MathGrader]" = WeakSet()
_shared: MathGrader | None = None
_shared_lock = threading.Lock()


def shared_grader() -> MathGrader:
    """Returns this process's grader for the plain functions; made when first used, anew after a fork."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = MathGrader()
        return _shared


def _forget() -> None:
    """In a forked child: the threads and workers are the parent's, and the lock may be held by one of them."""
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()
    for grader in _graders:
        grader._start()


os.register_at_fork(after_in_child=_forget)
