"""One fork server seen from the harness: frames to and fro, and its end."""

import contextlib
import select
import shutil
import socket
import subprocess
import time
from typing import Any

from ba_eval.errors import MachineError
from ba_eval.execution import launch
from ba_eval.execution.wire import FrameBuffer, WireError, pack_frame

_START_SECONDS = 120.0


class WorkerDied(Exception):
    """The fork server ended or stopped answering; it must be replaced."""


class Worker:
    """A fork server that takes one job at a time. Not thread-safe."""

    def __init__(self, level: int) -> None:
        """Starts it and waits until it is ready. MachineError: it did not come up."""
        self.level = level
        self._server = launch.start(level)
        self._frames = FrameBuffer()
        try:
            self.send(self._server.config)
            self.receive(_START_SECONDS)
        except WorkerDied as error:
            said = self.close()
            raise MachineError(f"the sandbox of level {level} did not start: {said or error}") from None

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Sends a frame. WorkerDied: nobody reads it."""
        control = self._server.control
        control.settimeout(60)
        try:
            control.sendall(pack_frame(header, body))
        except OSError as error:
            raise WorkerDied(str(error)) from error

    def receive(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """Waits for a frame. WorkerDied: none came in time, or no frame at all."""
        control, deadline = self._server.control, time.monotonic() + seconds
        try:
            while (frame := self._frames.next()) is None:
                control.settimeout(max(0.001, deadline - time.monotonic()))
                data = control.recv(1 << 16)
                if not data:
                    raise WorkerDied("the fork server ended")
                self._frames.feed(data)
        except (OSError, WireError) as error:
            raise WorkerDied(str(error) or type(error).__name__) from error
        return frame

    def ready(self, seconds: float) -> bool:
        """Whether a frame, or the end, comes within so many seconds; `receive` then need not wait."""
        waiting = select.poll()
        waiting.register(self._server.control, select.POLLIN)
        return self._frames.begun or bool(waiting.poll(seconds * 1000))

    def alive(self) -> bool:
        """Whether it waits for a job: not ended, nothing unread."""
        self._server.control.setblocking(False)
        try:
            self._server.control.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return self._server.process.poll() is None
        except OSError:
            return False
        return False

    def close(self) -> str:
        """Ends it with all that runs in it; returns what it said on its standard error."""
        server = self._server
        server.control.close()  # the server ends its job and itself
        said = b""
        try:
            _, said = server.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            server.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, said = server.process.communicate(timeout=10)
        except ValueError:  # closed before
            pass
        if server.home is not None:
            shutil.rmtree(server.home, ignore_errors=True)
        lines = said.decode(errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else ""
