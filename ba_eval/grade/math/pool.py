"""Worker processes that compare answers, started when first needed, killed and replaced when one overruns."""

import contextlib
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

_ROOT = str(Path(__file__).resolve().parents[3])
_START = f"import sys; sys.path[0] = {_ROOT!r}; from ba_eval.grade.math.worker import main; main()"
_START_SECONDS = 120.0


class _Worker:
    """One process. It ends with its parent: its stdin closes, or it finds itself with another parent."""

    def __init__(self, seconds: float, memory: int) -> None:
        self.seconds = seconds
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHONSTARTUP", "COV_", "COVERAGE"))}
        environment |= {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, str(seconds), str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        self.buffer = b""
        if self._read(_START_SECONDS) is None:
            self.close()
            raise RuntimeError(f"the math grader's worker did not start ({sys.executable})")

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the reply; an overrun or a crash is an `undecided` reply with `leaving` set.

        `died` is set as well where the process ended for no limit of ours: somebody killed it, or it crashed.
        """
        assert self.process.stdin
        try:
            self.process.stdin.write(msgspec.json.encode(request) + b"\n")
            self.process.stdin.flush()
            # The kernel counts CPU seconds; the wall clock only catches a worker that does not run at all.
            reply = self._read(60 + 20 * self.seconds)
        except BrokenPipeError:
            reply = None
        if reply is not None:
            return reply
        overran = self.process.poll() is None and not self._ended()
        self.close()
        code = self.process.returncode
        died = not overran and code != -signal.SIGPROF
        reason = f"worker died ({code})" if died else "time limit"
        return {"outcome": "undecided", "reason": reason, "method": "", "leaving": True, "died": died}

    def _ended(self) -> bool:
        """Tells whether the process has closed its end, as one does that is just dying."""
        assert self.process.stdout
        readable = select.select([self.process.stdout.fileno()], [], [], 0)[0]
        return bool(readable) and os.read(self.process.stdout.fileno(), 1) == b""

    def _read(self, seconds: float) -> dict[str, Any] | None:
        assert self.process.stdout
        descriptor = self.process.stdout.fileno()
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            block = os.read(descriptor, 1 << 16)
            if not block:
                return None
            self.buffer += block
        line, _, self.buffer = self.buffer.partition(b"\n")
        return msgspec.json.decode(line)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Ends the process and reaps it."""
        assert self.process.stdin and self.process.stdout
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Pool:
    """At most `workers` processes; `submit` may be called from any thread."""

    def __init__(self, workers: int, seconds: float, memory: int) -> None:
        self.seconds, self.memory = seconds, memory
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._threads = ThreadPoolExecutor(max(1, workers), thread_name_prefix="math-grader")
        self._closed = threading.Event()

    def submit(self, request: dict[str, Any]) -> "Future[dict[str, Any]]":
        """Starts a request; `seconds` of its reply is what it took, the wait for a worker left out."""
        return self._threads.submit(self._run, request)

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker(self.seconds, self.memory)
        start = time.perf_counter()
        reply = worker.call(request)
        if reply.get("died"):
            # Killed from outside (out of memory, a person): no fault of the answer's, unless it happens again.
            worker = _Worker(self.seconds, self.memory)
            reply = worker.call(request)
        reply.pop("died", None)
        leaving = reply.pop("leaving", False)
        if reply.pop("ask", False) and not leaving:
            opinion = worker.call({**request, "opinion": True})
            leaving = opinion.get("leaving", False)
            if opinion.get("agrees"):
                reply["flags"] = ["second method disagrees"]
        reply["seconds"] = time.perf_counter() - start
        if leaving or self._closed.is_set():
            worker.close()
        else:
            self._idle.put(worker)
        return reply

    def close(self) -> None:
        """Waits for what is running and ends all processes; what was still waiting is cancelled."""
        self._closed.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return
