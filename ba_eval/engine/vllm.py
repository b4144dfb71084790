"""vLLM in a child process: when it exits, the operating system has the GPU memory back."""

import contextlib
import itertools
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from ba_eval.checkpoint import Checkpoint
from ba_eval.engine.request import Completion, Request
from ba_eval.engine.vllm_args import model_args, parse_engine_args, vllm_folder
from ba_eval.engine.wire import Abort, Ask, Done, Failed, FromChild, Ready, Start, receive, send
from ba_eval.errors import InputError, MachineError

STALL_SECONDS = 600.0
CLOSE_SECONDS = 5.0
_LAST_LINES = 8


class VllmEngine:
    """An `Engine` (see engine/request.py) that generates with vLLM on this machine's devices.

    One child process holds the model. Requests stream to it and completions stream back as they finish; it always has
    more requests than it can run at once, and never more than a small multiple of that.
    """

    child_module = "ba_eval.engine.vllm_child"

    def __init__(
        self,
        checkpoint: Checkpoint,
        engine_args: Mapping[str, Any] | None = None,
        max_model_len: int | None = None,
        *,
        log_path: Path,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        """Starts the child and waits until the model is loaded.

        `max_model_len`: the longest prompt + response of the run in tokens; capped by what the model can.
        `engine_args` win over everything. `log_path` receives all that vLLM prints.
        Raises InputError where vLLM is not installed, or refuses an argument or the model; MachineError where the
        engine fails to start (out of memory, a device in use).
        """
        vllm_folder()  # raises where there is none
        args = model_args(checkpoint, parse_engine_args(engine_args or {}), max_model_len)
        self._name, self._log_path, self._stall_seconds = checkpoint.name, Path(log_path), stall_seconds
        self._serial = itertools.count()
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._spawn()
        try:
            self._send(Start(args=args, adapter=checkpoint.adapter))
            ready = self._next(timeout=None)
            assert isinstance(ready, Ready)
        except BaseException:
            self.close()
            raise
        self.info: Mapping[str, Any] = ready.info
        if self.info.get("attention_backend") is None:
            self.info = ready.info | {"attention_backend": self._logged_backend()}
        self._window = 2 * ready.slots

    def generate(self, requests: Iterable[Request]) -> Generator[Completion, None, None]:
        """Yields one completion per request as it finishes.

        Raises MachineError when the engine dies, or makes no token for `stall_seconds`.
        """
        source = iter(requests)
        waiting: dict[str, str] = {}  # our id -> the caller's: unique even over calls that were given up
        try:
            while True:
                for request in itertools.islice(source, self._window - len(waiting)):
                    serial = str(next(self._serial))
                    waiting[serial] = request.id
                    self._send(Ask(msgspec.structs.replace(request, id=serial)))
                if not waiting:
                    return
                message = self._next(timeout=self._stall_seconds)
                if isinstance(message, Done) and message.completion.id in waiting:
                    caller_id = waiting.pop(message.completion.id)
                    yield msgspec.structs.replace(message.completion, id=caller_id)
        finally:
            if waiting:
                self._send(Abort())

    def close(self) -> None:
        """Ends the child and everything it started. Safe to call twice, and while a generation is under way."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)  # the child sees the end of its input
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(timeout=1.0)
        self._channel.close()
        self._log.close()

    # The child

    def _spawn(self) -> None:
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        self._log: IO[bytes] = self._log_path.open("ab")
        self._log_start = self._log.tell()
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.child_module, str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                # A group of its own: Ctrl-C in the terminal is the parent's to handle, and one signal ends them all.
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Always drains the channel, so that the engine never waits for a parent that is busy grading."""
        for message in receive(self._channel, FromChild):
            self._inbox.put(message)
        self._inbox.put(None)

    def _send(self, message: Any) -> None:
        # Where the child is dead, `_next` says so once all that it finished before has been taken.
        with contextlib.suppress(OSError):
            send(self._channel, message)

    def _next(self, timeout: float | None) -> Any:
        """The child's next message. Raises what a failure, the child's death or its silence means."""
        try:
            message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            raise MachineError(
                f"{self._name}: the engine made no token for {timeout:.0f} s and was given up{self._last_lines()}"
            ) from None
        if message is None:
            raise self._death()
        if isinstance(message, Failed):
            if message.kind == "input":
                raise InputError(f"{self._name}: vLLM refuses: {message.message} (details: {self._log_path})")
            raise MachineError(f"{self._name}: the engine failed: {message.message}{self._last_lines()}")
        return message

    def _death(self) -> MachineError:
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(CLOSE_SECONDS)
        how = f"exit code {code}"
        if code is not None and code < 0:
            how = f"killed by {signal.Signals(-code).name}"
            if code == -signal.SIGKILL:
                how += "; out of memory?"
        return MachineError(f"{self._name}: the engine died ({how}){self._last_lines()}")

    def _last_lines(self) -> str:
        """The end of what this child printed, for an error message."""
        time.sleep(0.1)  # what it printed last may still be on its way
        lines = [line.rstrip() for line in self._printed().splitlines() if line.strip()]
        shown = "".join(f"\n  | {line[:300]}" for line in lines[-_LAST_LINES:])
        return f"; its last lines, all of them in {self._log_path}:{shown}" if shown else f"; log: {self._log_path}"

    def _printed(self) -> str:
        try:
            with self._log_path.open("rb") as stream:
                stream.seek(self._log_start)
                return re.sub(r"\x1b\[[0-9;]*m", "", stream.read(4 * 2**20).decode("utf-8", "replace"))
        except OSError:
            return ""

    def _logged_backend(self) -> str | None:
        """Which attention backend vLLM chose, where its workers are processes of their own."""
        found = re.search(r"Using (\S+) (?:attention )?backend", self._printed())
        return found[1] if found else None
