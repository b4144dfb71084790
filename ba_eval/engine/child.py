"""The parent's end of an engine's child process: starts it, talks to it, explains its death, ends it."""

import contextlib
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ba_eval.engine.wire import Failed, FromChild, Start, receive, send
from ba_eval.errors import BaEvalError, InputError, MachineError

CLOSE_SECONDS = 5.0
_LAST_LINES = 8
_SHOWN_CHARACTERS = 300


WAITING = {"GOMP_SPINCOUNT": "1000"}
"""Idle OpenMP threads spin for microseconds, not milliseconds, before they sleep: graders and sandboxes need the cores
too, and a thread that waits for one that is not running stops the whole step. With OpenMP's own 300,000 a run beside
two busy processes takes ten times as long; on an idle machine it saves 4 %. Must be set before torch is loaded."""


class Child:
    """A process that runs an engine (`module`): it imports at once, and waits to be told what to load.

    Started early, it imports vLLM (many seconds) while the parent still reads benchmarks and renders prompts.
    """

    module = "ba_eval.engine.vllm_child"

    def __init__(self, *, offline: bool = True, environment: Mapping[str, str] | None = None) -> None:
        """`offline`: the model's files are all local, so that nothing waits for a hub (HF_HUB_OFFLINE, unless set).
        `environment`: variables that win over those of this process, as the devices that it may use.
        """
        self._name = "the engine"
        self._log_path: Path | None = None
        self._inbox: queue.SimpleQueue[list[Any] | Failed | None] = queue.SimpleQueue()
        # What it prints before it knows its log file.
        self._early = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the child)
        self._channel, theirs = socket.socketpair()
        variables = {**WAITING, **({"HF_HUB_OFFLINE": "1"} if offline else {}), **os.environ, **(environment or {})}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module, str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._early,
                stderr=subprocess.STDOUT,
                env=variables,
                # A group of its own: Ctrl-C in the terminal is the parent's to handle, and one signal ends them all.
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def load(self, name: str, args: dict[str, Any], adapter: str | None, log_path: Path) -> None:
        """Tells it what to load. `name` is what errors call it; all that it prints from now on goes to `log_path`."""
        self._name = name
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("ab") as log:
            self._log_start = log.tell()
            self._early.seek(0)
            shutil.copyfileobj(self._early, log)
        self._log_path = log_path
        self.send(Start(args=args, adapter=adapter, log_path=str(log_path)))

    def send(self, *messages: Any) -> None:
        """Sends messages. Where the child is dead, `receive` says so once all that it finished has been taken."""
        with contextlib.suppress(OSError):
            send(self._channel, *messages)

    def receive(self, timeout: float | None) -> list[Any]:
        """Returns its next messages, one at least.

        Raises what a failure, its death, or silence for `timeout` seconds means.
        """
        try:
            messages = self._inbox.get(timeout=timeout)
        except queue.Empty:
            raise MachineError(
                f"{self._name}: the engine made no token for {timeout:.0f} s and was given up{self._last_lines()}"
            ) from None
        if messages is None:
            raise self._death()
        if isinstance(messages, Failed):
            raise self._failure(messages)
        return messages

    def close(self) -> None:
        """Ends it and everything it started. Safe to call twice, and at any moment."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)  # it sees the end of its input
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(CLOSE_SECONDS if self._log_path else 0.0)  # one that loaded nothing has nothing to free
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(timeout=1.0)
        self._channel.close()
        self._early.close()

    def printed(self) -> str:
        """What it has printed so far, without colours."""
        try:
            if self._log_path is None:
                text = os.pread(self._early.fileno(), 4 * 2**20, 0)
            else:
                with self._log_path.open("rb") as stream:
                    stream.seek(self._log_start)
                    text = stream.read(4 * 2**20)
        except (OSError, ValueError):
            return ""
        return re.sub(r"\x1b\[[0-9;]*m", "", text.decode("utf-8", "replace"))

    def _read(self) -> None:
        """Always drains the channel, so that the engine never waits for a parent that is busy grading."""
        try:
            for messages in receive(self._channel, FromChild):
                failure = messages.pop() if isinstance(messages[-1], Failed) else None  # the last that a child says
                if messages:
                    self._inbox.put(messages)
                if failure is not None:
                    self._inbox.put(failure)
        finally:  # whatever ends this, nobody shall wait for more
            self._inbox.put(None)

    def _failure(self, message: Failed) -> BaEvalError:
        if message.kind == "input":
            return InputError(f"{self._name}: vLLM refuses: {message.message} (details: {self._log_path})")
        return MachineError(f"{self._name}: the engine failed: {message.message}{self._last_lines()}")

    def _death(self) -> MachineError:
        self._inbox.put(None)  # asked again, the answer is the same
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(CLOSE_SECONDS)
        how = f"exit code {code}"
        if code is not None and code < 0:
            how = f"killed by {signal.Signals(-code).name}"
            if code == -signal.SIGKILL:
                how += "; out of memory?"
        return MachineError(f"{self._name}: the engine died ({how}){self._last_lines()}")

    def _last_lines(self) -> str:
        """The end of what it printed, for an error message."""
        time.sleep(0.1)  # what it printed last may still be on its way
        lines = [line.rstrip() for line in self.printed().splitlines() if line.strip()]
        if not lines:
            return f"; log: {self._log_path}"
        shown = "".join(f"\n  | {line[:_SHOWN_CHARACTERS]}" for line in lines[-_LAST_LINES:])
        return f"; its last lines, all of them in {self._log_path}:{shown}"
