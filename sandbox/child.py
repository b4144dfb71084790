"""The two processes of a job: an init that outlives the program and ends all that it started, and the program itself."""

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox import confine, linux, program
from sandbox.confine import Walls


@dataclass
class Pipes:
    """The program's ends of its pipes. `calls` and `answers` are -1 for a script."""

    stdin: int
    stdout: int
    stderr: int
    status: int
    calls: int
    answers: int


def start(job: dict[str, Any], folder: str, walls: Walls, pipes: Pipes, before_program: Callable[[], None]) -> int:
    """Forks the job's init and returns its pid in the server's namespace.

    The status pipe then carries lines: `ready`, `failed TEXT` (the sandbox could not be set up), and
    `exit WAITSTATUS CPU_SECONDS PEAK_KB FREE_BYTES FREE_FILES`.
    """
    server = os.getpid()
    if walls.level == 1:
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            linux.unshare(linux.CLONE_NEWPID)
            pid = os.fork()
            if pid:
                linux.setns(own, linux.CLONE_NEWPID)
        finally:
            os.close(own)
    else:
        pid = os.fork()
    if pid:
        return pid
    try:
        _init(job, folder, walls, pipes, before_program, server)
    except BaseException as error:
        _fail(pipes.status, error)
    os._exit(1)


def _fail(status: int, error: BaseException) -> None:
    text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
    with contextlib.suppress(OSError):
        os.write(status, f"failed {text}\n".encode())


def _init(
    job: dict[str, Any], folder: str, walls: Walls, pipes: Pipes, before_program: Callable[[], None], server: int
) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, signal.SIGTERM))
    scoped = False
    if walls.level == 1:
        confine.enter_namespaces(job["disk_mb"])
    else:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGTERM)
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        if os.getppid() != server:
            os._exit(1)
        if walls.domain is not None and walls.domain.scoped:
            linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
            walls.domain.enforce()
            scoped = _cannot_signal(server)
    pid = os.fork()
    if pid == 0:
        try:
            _program(job, folder, walls, pipes, before_program)
        except BaseException as error:
            _fail(pipes.status, error)
        os._exit(1)
    confine.close_all_but((pipes.status,))
    code = -1
    while code == -1:
        if walls.level != 1 and signal.sigwait((signal.SIGCHLD, signal.SIGTERM)) == signal.SIGTERM:
            break
        with contextlib.suppress(ChildProcessError):
            while code == -1:
                done, wait_status = os.waitpid(-1, 0 if walls.level == 1 else os.WNOHANG)
                if done == pid:
                    code = wait_status
                elif done == 0:
                    break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    files = os.statvfs("/tmp" if walls.level == 1 else folder)
    line = f"exit {code} {used.ru_utime + used.ru_stime:.6f} {used.ru_maxrss} {files.f_bavail} {files.f_ffree}\n"
    os.write(pipes.status, line.encode())
    if walls.level != 1:
        _end_all(walls, scoped)
    os._exit(0)  # in a namespace of its own the kernel ends the rest


def _cannot_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    return False


def _end_all(walls: Walls, scoped: bool) -> None:
    """Kills and reaps all descendants, those too that left the process group or their parents."""
    while True:
        if walls.uid is not None:
            helper = os.fork()
            if helper == 0:
                try:
                    os.setresuid(walls.uid, walls.uid, walls.uid)
                    os.kill(-1, signal.SIGKILL)
                finally:
                    os._exit(0)
        elif scoped:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
        else:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
            for pid in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        signal.sigtimedwait((signal.SIGCHLD,), 0.01)


def descendants(root: int) -> list[int]:
    """Returns the pids of all processes below `root`."""
    found: list[int] = []
    queue = [root]
    while queue:
        pid = queue.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as file:
                    queue += [int(child) for child in file.read().split()]
        except OSError:
            continue
        if pid != root:
            found.append(pid)
    return found


def _program(
    job: dict[str, Any], folder: str, walls: Walls, pipes: Pipes, before_program: Callable[[], None]
) -> None:
    os.setsid()
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    for fd, target in ((pipes.stdin, 0), (pipes.stdout, 1), (pipes.stderr, 2)):
        os.dup2(fd, target)
    script = pipes.calls < 0
    kept = (0, 1, 2, pipes.status) if script else (0, 1, 2, pipes.status, pipes.calls, pipes.answers)
    confine.close_all_but(kept if walls.landlock is None else (*kept, walls.landlock.fd))
    os.umask(0o022)
    if walls.level == 1:
        os.mkdir(folder, 0o700)
    os.chdir(folder)
    path = os.path.join(folder, "program.py")
    source = job["program"].encode("utf-8", "surrogateescape")
    with open(path, "xb") as file:
        file.write(source)
    confine.set_limits(job, job["nproc"])
    confine.default_signals()
    confine.drop_privileges(walls)
    before_program()
    sys.path.insert(0, folder)
    sys.argv[:] = [path]
    os.write(pipes.status, b"ready\n")
    os.close(pipes.status)
    if script:
        program.run_script(source, path)
    calls = program.Calls(pipes.calls, pipes.answers)
    if job["mode"] == "check":
        program.run_check(source, path, job["entry_point"], calls)
    else:
        program.serve_calls(source, path, job["entry_point"], calls)
