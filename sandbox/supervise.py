"""Watches one job from start to end: moves its bytes, counts what its process tree uses, ends it at a limit."""

import contextlib
import os
import select
import time
from collections import deque
from typing import Any

from sandbox import ended, usage, wire
from sandbox.child import NO_ROOM, Pipes
from sandbox.confine import most_files
from sandbox.disk import Disk
from sandbox.harness import Harness
from sandbox.program import NONCE
from sandbox.zygote import Zygote, ZygoteGone

_CHUNK = 1 << 16
_MAX_ANSWER = wire.MAX_BYTES + 1
_STALL_SECONDS = 1.0
_MOST_STARVED = 60.0
"""Seconds by which the wall limit may be passed for want of a CPU: the harness waits longer than this for an answer."""


class Job:
    """One program under way."""

    def __init__(
        self,
        job: dict[str, Any],
        stdin: bytes,
        zygote: Zygote,
        harness: Harness,
        uid: int | None,
        inherited_mb: float,
        disk: Disk | None,
    ) -> None:
        """`uid`: the program's own, where it has one at level 2. `inherited_mb`: memory that it shares with the zygote.
        `disk`: counts its files where they have no file system of their own."""
        self.job, self.zygote, self.harness = job, zygote, harness
        self.inherited_mb, self.disk = inherited_mb, disk
        self.limit: str | None = None
        """The limit that was met, as a status."""
        self.broken: str | None = None
        self.failed: str | None = None
        self.wait_status: int | None = None
        self.stalled = False
        self.cpu = self.peak_mb = self.waited = 0.0
        self.used: usage.Usage | None = None
        self.reaped_before = usage.reaped_seconds(zygote.pid)
        self.number: int | None = None
        """Of the process that took the job."""
        self.set_up = 0.0
        """CPU seconds between the fork and the program's first line."""
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.calling: bytes | None = None
        self.call_cpu = job["cpu_seconds"]
        self.more_calls: deque[float] = deque()
        """CPU seconds for the calls that come after the one under way, where several were passed on at once."""
        self.next_call = False
        """Whether a further call began since the limits were last looked at."""
        self.asking = False
        """Whether a test program waits for the answer to its question: that time is not its own."""
        self.answer = bytearray()
        self.status = b""
        self.watching = False
        """Whether what it prints is taken in as it comes."""
        self.to_program: dict[int, memoryview] = {}
        self.poll = select.poll()
        self.poll.register(harness.fd, select.POLLIN)
        script = job["mode"] == "script"
        in_r, self.stdin = os.pipe2(os.O_CLOEXEC)
        self.stdout, out_w = os.pipe2(os.O_CLOEXEC)
        self.stderr, err_w = os.pipe2(os.O_CLOEXEC)
        self.status_fd, status_w = os.pipe2(os.O_CLOEXEC)
        calls_r, self.calls = (-1, -1) if script else os.pipe2(os.O_CLOEXEC)
        self.answers, answers_w = (-1, -1) if script else os.pipe2(os.O_CLOEXEC)
        theirs = Pipes(in_r, out_w, err_w, status_w, calls_r, answers_w)
        self.open = {self.stdin, self.stdout, self.stderr, self.status_fd, *theirs[:4]}
        if not script:
            self.open |= {self.calls, self.answers, calls_r, answers_w}
            self.poll.register(self.answers, select.POLLIN)
        for fd in self.open.difference(theirs):
            os.set_blocking(fd, False)
        if uid is not None:  # so that the program can open /dev/stdin
            for fd in (in_r, out_w, err_w):
                os.fchown(fd, uid, uid)
        if script and stdin:
            self._send(self.stdin, stdin)
            self._flush(self.stdin)
        else:
            self._close(self.stdin)
        self.pids: list[int] = []
        self.started = self.looked = time.monotonic()
        self.call_started, self.calls_started = (0.0, self.started), 0.0
        zygote.start(job, theirs)
        self.poll.register(zygote.fd, select.POLLIN)
        self.poll.register(zygote.life, select.POLLIN)

    # Bytes in and out

    def _watch_output(self) -> None:
        """Takes in what is printed as it comes. Most programs end before that is worth it."""
        if not self.watching:
            self.watching = True
            for fd in (self.stdout, self.stderr, self.status_fd):
                self.poll.register(fd, select.POLLIN)

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
            if fd == self.stdin:
                self._close(fd)

    def _drain(self, name: str) -> bool:
        """Takes in what a pipe holds; returns whether there was something. Once only: a program that prints faster than
        it is read must not keep its answers from being read, which start the count of its output anew."""
        fd = self.stdout if name == "stdout" else self.stderr
        if fd not in self.open or self.limit == "output":
            return False
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            return False
        kept = self.output[name]
        room = (self.job["output_kb"] << 10) - len(kept)
        kept += data[:room]
        if len(data) > room:
            self.limit = self.limit or "output"
        return True

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
        *lines, self.status = (self.status + data).split(b"\n")
        for line in lines:
            word, number, rest = line.decode(errors="replace").split(" ", 2)
            self.number = int(number)
            if word == "ready":
                self.set_up = float(rest)
            else:
                self.failed = rest

    # Calls

    def _take_calls(self) -> bool:
        """Passes on what the harness sent; returns whether the job shall go on."""
        while (frame := self.harness.next()) is not None:
            header, body = frame
            if header.get("end"):
                return False
            self.call(bytes.fromhex(header["nonce"]), header["cpu_seconds"], header["sizes"], body)
        return True

    def call(self, nonce: bytes, cpu_seconds: list[float], sizes: list[int], body: bytes) -> None:
        """Passes calls, or the answer to the program's own question, to the program: all at once, so that it need not
        wait between them. `sizes`: how `body` is cut."""
        self.asking = False
        if self.calling is None:
            self.calling, self.call_cpu = nonce, cpu_seconds[0]
            self.more_calls.extend(cpu_seconds[1:])
            used = self._usage()
            self.calls_started = used.cpu_seconds
            self._call_starts(used)
            self.stalled = False
        else:
            self.call_started = (self.call_started[0], time.monotonic())
        if self.calls in self.open:
            messages, at = bytearray(), 0
            for size in sizes:
                messages += nonce + size.to_bytes(4, "big") + body[at : at + size]
                at += size
            self._send(self.calls, bytes(messages))

    def _call_starts(self, used: usage.Usage) -> None:
        self.call_started = (used.cpu_seconds, time.monotonic())
        self.waited = used.waited_seconds
        self.next_call = False

    def _read_answers(self) -> None:
        try:
            data = os.read(self.answers, _CHUNK)
        except BlockingIOError:
            return
        self.answer += data
        answers: list[bytes] = []
        head, at = NONCE + 4, 0
        while len(self.answer) >= at + head:
            size = int.from_bytes(self.answer[at + NONCE : at + head], "big")
            if self.answer[at : at + NONCE] != (self.calling or b"") or not 0 < size <= _MAX_ANSWER:
                self.broken = "an answer that no call asked for"
                break
            if len(self.answer) < at + head + size:
                break
            with memoryview(self.answer) as view:
                body = bytes(view[at + head : at + head + size])
            at += head + size
            question = body[:1] == b"c"
            if question and (self.asking or self.job["mode"] != "check"):
                self.broken = "a question that it may not ask"
                break
            answers.append(body)
            if question:
                self.asking = True
                continue
            self.next_call = bool(self.more_calls)
            if self.more_calls:
                self.call_cpu = self.more_calls.popleft()
            else:
                self.calling = None
        del self.answer[:at]
        if answers and self.limit is None:
            self._answer(answers)

    def _answer(self, answers: list[bytes]) -> None:
        if self.calling is None or len(answers) > 100:
            self.cpu = max(self.cpu, self._usage().cpu_seconds)
        output = self._take_output()
        header = {
            "id": self.job["id"],
            "answer": True,
            "cpu_seconds": max(0.0, self.cpu - self.calls_started),
            "stalled": self.stalled,
            "output": len(output),
            "sizes": [len(answer) for answer in answers],
        }
        if self.limit is None:
            self.harness.reply(header, output, *answers)

    # Limits

    def _usage(self) -> usage.Usage:
        reaped = 0.0
        if self.disk is None:
            self.pids = usage.in_namespace([self.zygote.pid, *self.zygote.children()[:1]])
        else:
            reaped = usage.reaped_seconds(self.zygote.pid) - self.reaped_before
            self.pids = usage.descendants(self.zygote.pid)
        used = self.used = usage.measure(self.pids, self.inherited_mb, self.used)
        used.cpu_seconds = max(self.cpu, used.cpu_seconds + reaped - self.set_up)
        return used

    def _check_limits(self, now: float) -> None:
        self._watch_output()
        self._read_status()
        used = self._usage()
        if used.memory_mb > self.job["memory_mb"]:  # pages that its processes share may have been counted for each
            used.memory_mb = usage.shared_memory_mb(self.pids, self.inherited_mb)
        self.cpu, self.peak_mb = used.cpu_seconds, max(self.peak_mb, used.memory_mb)
        if self.next_call:
            self._call_starts(used)
        base_cpu, base_time = self.call_started
        wall, most = now - base_time, self.job["wall_seconds"] + max(0.0, self.call_cpu - self.job["cpu_seconds"])
        # Time for which one thread was ready and others had the CPU is not the program's own.
        starved = min(_MOST_STARVED, used.waited_seconds - self.waited) if used.threads <= 1 else 0.0
        waits = self.asking or (self.calling is None and self.job["mode"] != "script")  # for the harness
        if self.limit is None:
            if self.cpu - base_cpu >= self.call_cpu or (wall - starved >= most and not waits):
                self.limit = "timeout"
            elif used.memory_mb > self.job["memory_mb"]:
                self.limit = "memory"
            elif used.threads > self.job["processes"]:
                self.limit = "process"
            elif self.disk is not None:
                size, files = self.disk.usage(self.pids)
                if size > self.job["disk_mb"] or files > most_files(self.job["disk_mb"]):
                    self.limit = "disk"
        if used.waited_seconds - self.waited > 0.25 * wall and wall > _STALL_SECONDS:
            self.stalled = True

    def watch(self) -> tuple[dict[str, Any], bytes]:
        """Runs the job to its end and returns the last frame for the harness."""
        pause = 0.01
        try:
            if self.job["mode"] != "script" and not self._take_calls():
                self.broken = "ended"
            while self.wait_status is None and not (self.limit or self.broken or self.failed):
                asked = time.monotonic()
                for fd, _ in self.poll.poll(pause * 1000):
                    self._serve(fd)
                now = time.monotonic()
                if now - asked > pause + _STALL_SECONDS:
                    self.stalled = True
                if now - self.looked >= pause and self.wait_status is None:
                    self._check_limits(now)
                    self.looked = time.monotonic()
                    # Looking costs time too: never more than a tenth of it.
                    pause = min(0.05, max(0.01, 10 * (self.looked - now)))
            if self.answers in self.open:  # what the program said just before it ended
                self._read_answers()
            return self._result()
        except BaseException:  # the harness is gone
            self._stop()
            raise
        finally:
            for fd in list(self.open):
                self._close(fd)

    def _serve(self, fd: int) -> None:
        if fd == self.harness.fd:
            self.harness.read()
            if not self._take_calls():
                self.broken = "ended"
        elif fd == self.zygote.fd or fd == self.zygote.life:
            self._reap()
        elif fd in self.to_program:
            self._flush(fd)
        elif fd in self.open:
            if fd == self.stdout or fd == self.stderr:
                self._drain("stdout" if fd == self.stdout else "stderr")
            elif fd == self.answers:
                self._read_answers()
            elif fd == self.status_fd:
                self._read_status()
            else:
                self._close(fd)

    def _reap(self) -> None:
        if self.wait_status is None:
            number, wait_status, cpu, peak_mb = self.zygote.wait()
            self._read_status()
            if self.number is None:  # it ended before it took the job, or as it did: nobody knows which
                raise ZygoteGone
            if number != self.number:  # one that waited for a job, before this one
                return
            self.wait_status = wait_status
            self.peak_mb = max(self.peak_mb, peak_mb)
            self.cpu = max(self.cpu, cpu - self.set_up)

    def _stop(self) -> None:
        """Ends the job's processes and waits until none is left."""
        while self.wait_status is None:
            self.zygote.kill_oldest()
            self._reap()

    def _result(self) -> tuple[dict[str, Any], bytes]:
        wall = time.monotonic() - self.started
        ended_by_itself = self.wait_status is not None
        self._stop()
        self._read_status()
        for name in self.output:
            while self._drain(name):
                pass
        body = self._take_output()
        code: int | None = None
        signal_number: int | None = None
        assert self.wait_status is not None
        if ended_by_itself:
            exit_code = os.waitstatus_to_exitcode(self.wait_status)
            code, signal_number = (exit_code, None) if exit_code >= 0 else (None, -exit_code)
        status, text = self.limit, ""
        if self.failed:
            status, text = "disk" if NO_ROOM in self.failed else "infra", self.failed
        elif status is None and ended_by_itself:
            late = self.cpu > self.job["cpu_seconds"] and self.job["mode"] == "script"
            status = "timeout" if late else ended.status(code, signal_number, body)
        elif status is None:
            status, text = "error", self.broken or ""
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
