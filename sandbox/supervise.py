"""Watches one job from start to end: moves its bytes, counts what its process tree uses, ends it at a limit."""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from sandbox import child, wire
from sandbox.confine import Walls
from sandbox.program import NONCE

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_CHUNK = 1 << 16
_MAX_ANSWER = wire.MAX_BYTES + 1
_STALL_SECONDS = 1.0


class HarnessGone(Exception):
    """The control connection closed."""


def tree_usage(root: int, whole_namespace: bool) -> tuple[float, float, float, int]:
    """CPU seconds (below `root`), memory in MB, seconds waited for a CPU, and number of threads of a job's processes."""
    if whole_namespace:
        skipped = (1, os.getpid(), root)
        pids = [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) not in skipped]
    else:
        pids = child.descendants(root)
    ticks, memory_kb, waited, threads = 0, 0, 0, 0
    for pid in (root, *pids):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            ticks += int(fields[13]) + int(fields[14])
            if pid == root:
                continue
            ticks += int(fields[11]) + int(fields[12])
            threads += int(fields[17])
            with open(f"/proc/{pid}/status", "rb") as file:
                for line in file:
                    if line.startswith((b"RssAnon:", b"RssShmem:")):
                        memory_kb += int(line.split()[1])
            with open(f"/proc/{pid}/schedstat", "rb") as file:
                waited += int(file.read().split()[1])
        except (OSError, IndexError):
            continue
    return ticks * _TICK, memory_kb / 1024, waited / 1e9, threads


class Job:
    """One program under way."""

    def __init__(
        self,
        job: dict[str, Any],
        stdin: bytes,
        folder: str,
        walls: Walls,
        control: socket.socket,
        frames: wire.FrameBuffer,
        before_program: Callable[[], None],
    ) -> None:
        self.job, self.walls, self.control, self.frames = job, walls, control, frames
        self.limit: str | None = None
        """The limit that was met, as a status."""
        self.broken: str | None = None
        self.failed: str | None = None
        self.exit: list[str] | None = None
        self.stalled = False
        self.cpu = self.peak_mb = self.waited = 0.0
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.calling: bytes | None = None
        self.call_cpu = job["cpu_seconds"]
        self.answer = bytearray()
        self.status = b""
        self.to_program: dict[int, memoryview] = {}
        self.poll = select.poll()
        script = job["mode"] == "script"
        in_r, self.stdin = os.pipe2(os.O_CLOEXEC)
        self.stdout, out_w = os.pipe2(os.O_CLOEXEC)
        self.stderr, err_w = os.pipe2(os.O_CLOEXEC)
        self.status_fd, status_w = os.pipe2(os.O_CLOEXEC)
        calls_r, self.calls = (-1, -1) if script else os.pipe2(os.O_CLOEXEC)
        self.answers, answers_w = (-1, -1) if script else os.pipe2(os.O_CLOEXEC)
        self.started = self.looked = time.monotonic()
        self.call_started = (0.0, self.started)
        theirs = child.Pipes(in_r, out_w, err_w, status_w, calls_r, answers_w)
        try:
            self.pid = child.start(job, folder, walls, theirs, before_program)
        finally:
            for fd in vars(theirs).values():
                if fd >= 0:
                    os.close(fd)
        self.open = {fd for fd in (self.stdin, self.stdout, self.stderr, self.status_fd, self.calls, self.answers) if fd >= 0}
        for fd in self.open:
            os.set_blocking(fd, False)
        for fd in (self.stdout, self.stderr, self.status_fd, *([] if script else [self.answers])):
            self.poll.register(fd, select.POLLIN)
        self.poll.register(control, select.POLLIN)
        self._send(self.stdin, stdin)
        if script:
            self._maybe_close_stdin()
        else:
            self._close(self.stdin)

    # Bytes in and out

    def _close(self, fd: int) -> None:
        if fd in self.open:
            self.open.discard(fd)
            self.to_program.pop(fd, None)
            with contextlib.suppress(KeyError):
                self.poll.unregister(fd)
            os.close(fd)

    def _send(self, fd: int, data: bytes) -> None:
        if data:
            self.to_program[fd] = memoryview(bytes(self.to_program.get(fd, b"")) + data)
            self.poll.register(fd, select.POLLOUT)

    def _flush(self, fd: int) -> None:
        try:
            data = self.to_program[fd]
            self.to_program[fd] = data = data[os.write(fd, data[: 1 << 20]) :]
        except BlockingIOError:
            return
        except OSError:  # the program does not read it
            self._close(fd)
            return
        if not data:
            del self.to_program[fd]
            self.poll.unregister(fd)
            self._maybe_close_stdin()

    def _maybe_close_stdin(self) -> None:
        if self.stdin not in self.to_program:
            self._close(self.stdin)

    def _drain(self, name: str) -> None:
        fd = self.stdout if name == "stdout" else self.stderr
        kept, most = self.output[name], self.job["output_kb"] << 10
        while fd in self.open:
            try:
                data = os.read(fd, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._close(fd)
                return
            room = most - len(kept)
            kept += data[:room]
            if len(data) > room:
                self.limit = self.limit or "output"
                return

    def _take_output(self) -> bytes:
        """What was printed since the last time: lengths and bytes of stdout and stderr."""
        for name in self.output:
            self._drain(name)
        out, err = bytes(self.output["stdout"]), bytes(self.output["stderr"])
        for kept in self.output.values():
            kept.clear()
        return len(out).to_bytes(4, "big") + out + err

    def _read_status(self) -> None:
        try:
            data = os.read(self.status_fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._close(self.status_fd)
        *lines, self.status = (self.status + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "failed":
                self.failed = rest
            elif word == "exit":
                self.exit = rest.split()
                self.status = b""
                self._close(self.status_fd)
                return

    # Calls

    def _from_harness(self) -> bool:
        """Reads the control connection; returns whether the job shall go on."""
        data = self.control.recv(1 << 20)
        if not data:
            raise HarnessGone
        self.frames.feed(data)
        return self._take_frames()

    def _take_frames(self) -> bool:
        while (frame := self.frames.next()) is not None:
            header, body = frame
            if header.get("end"):
                return False
            self.call(bytes.fromhex(header["nonce"]), header["cpu_seconds"], body)
        return True

    def call(self, nonce: bytes, cpu_seconds: float, body: bytes) -> None:
        """Passes a call, or the answer to the program's own question, to the program."""
        if self.calling is None:
            self.calling, self.call_cpu = nonce, cpu_seconds
            self.call_started = (self._cpu_now(), time.monotonic())
            self.waited = self._usage()[2]
            self.stalled = False
        if self.calls in self.open:
            self._send(self.calls, nonce + len(body).to_bytes(4, "big") + body)

    def _read_answer(self) -> None:
        try:
            data = os.read(self.answers, 1 << 20)
        except BlockingIOError:
            return
        if not data:
            self._close(self.answers)
            return
        self.answer += data
        head = NONCE + 4
        while len(self.answer) >= head and self.broken is None:
            size = int.from_bytes(self.answer[NONCE:head], "big")
            if self.answer[:NONCE] != (self.calling or b"") or not 0 < size <= _MAX_ANSWER:
                self.broken = "an answer that no call asked for"
                return
            if len(self.answer) < head + size:
                return
            body = bytes(self.answer[head : head + size])
            del self.answer[: head + size]
            if body[:1] != b"c":
                self.calling = None
            cpu = max(0.0, self._cpu_now() - self.call_started[0])
            output = self._take_output()
            if self.limit is None:
                header = {"id": self.job["id"], "answer": True, "cpu_seconds": cpu, "stalled": self.stalled}
                self._reply({**header, "output": len(output)}, output + body)

    def _reply(self, header: dict[str, Any], body: bytes) -> None:
        self.control.setblocking(True)
        self.control.sendall(wire.pack_frame(header, body))
        self.control.setblocking(False)

    # Limits

    def _usage(self) -> tuple[float, float, float, int]:
        return tree_usage(self.pid, self.walls.level == 1)

    def _cpu_now(self) -> float:
        return self._usage()[0]

    def _check_limits(self, now: float) -> None:
        self.cpu, memory, waited, threads = self._usage()
        self.peak_mb = max(self.peak_mb, memory)
        base_cpu, base_time = self.call_started
        wall = now - base_time
        if self.cpu - base_cpu >= self.call_cpu:
            self.limit = self.limit or "timeout"
        elif wall >= self.job["wall_seconds"] + (self.call_cpu - self.job["cpu_seconds"]):
            self.limit = self.limit or "timeout"
        if memory > self.job["memory_mb"]:
            self.limit = self.limit or "memory"
        if threads > self.job["processes"]:
            self.limit = self.limit or "process"
        if waited - self.waited > 0.25 * wall and wall > _STALL_SECONDS:
            self.stalled = True

    def watch(self) -> tuple[dict[str, Any], bytes]:
        """Runs the job to its end and returns the last frame for the harness."""
        pause = 0.01
        try:
            if not self._take_frames():
                self.broken = "ended"
            while self.status_fd in self.open and self.limit is None and self.broken is None and self.failed is None:
                asked = time.monotonic()
                for fd, event in self.poll.poll(pause * 1000):
                    if fd == self.control.fileno():
                        if not self._from_harness():
                            self.broken = "ended"
                    elif fd in self.to_program:
                        self._flush(fd)
                    elif fd == self.stdout or fd == self.stderr:
                        self._drain("stdout" if fd == self.stdout else "stderr")
                    elif fd == self.answers:
                        self._read_answer()
                    elif fd == self.status_fd:
                        self._read_status()
                    elif event:
                        self._close(fd)
                now = time.monotonic()
                if now - asked > pause + _STALL_SECONDS:
                    self.stalled = True
                if now - self.looked >= pause and self.status_fd in self.open:
                    self._check_limits(now)
                    self.looked = time.monotonic()
                    # Looking costs time too: never more than a tenth of it.
                    pause = min(0.05, max(0.01, 10 * (self.looked - now)))
            return self._result()
        except HarnessGone:
            self._stop()
            raise
        finally:
            for fd in list(self.open):
                self._close(fd)

    def _stop(self) -> None:
        """Ends the job's processes and waits until none is left."""
        if self.exit is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL if self.walls.level == 1 else signal.SIGTERM)
        _, _, usage = os.wait4(self.pid, 0)
        self.peak_mb = max(self.peak_mb, usage.ru_maxrss / 1024 if self.exit is None else 0.0)

    def _result(self) -> tuple[dict[str, Any], bytes]:
        wall = time.monotonic() - self.started
        self._stop()
        while self.status_fd in self.open and self.exit is None:
            self._read_status()
        body = self._take_output()
        code = signal_number = None
        status = self.limit
        if self.exit is not None:
            wait_status = int(self.exit[0])
            self.cpu = max(self.cpu, float(self.exit[1]))
            self.peak_mb = max(self.peak_mb, int(self.exit[2]) / 1024)
            if wait_status >= 0:
                code = os.waitstatus_to_exitcode(wait_status)
                if code < 0:
                    code, signal_number = None, -code
            if status is None:
                status = self._status_at_exit(code, signal_number, body)
        text = self.failed
        if self.failed is not None or (status is None and self.broken is None):
            status, text = "infra", self.failed or "the init of the program died"
        elif status is None:
            status, text = "error", self.broken
        header = {
            "id": self.job["id"],
            "done": True,
            "status": status,
            "text": text,
            "exit_code": code,
            "signal": signal_number,
            "cpu_seconds": round(self.cpu, 6),
            "wall_seconds": round(wall, 6),
            "peak_memory_mb": round(self.peak_mb, 1),
            "stalled": self.stalled,
        }
        return {**header, "output": len(body)}, body

    def _status_at_exit(self, code: int | None, signal_number: int | None, output: bytes) -> str:
        if self.cpu > self.job["cpu_seconds"] and self.job["mode"] == "script":
            return "timeout"
        if signal_number is not None:
            return "timeout" if signal_number == signal.SIGXCPU else "killed"
        if code == 0:
            return "ok"
        # Which limit an uncaught exception speaks of. A program can pretend it: it has failed either way.
        last = output.rstrip().rpartition(b"\n")[2]
        if b"MemoryError" in last[:80]:
            return "memory"
        if last.startswith(b"OSError: [Errno 28]") or last.startswith(b"OSError: [Errno 27]"):
            return "disk"
        if last.startswith((b"BlockingIOError: [Errno 11]", b"RuntimeError: can't start new thread")):
            return "process"
        return "error"
