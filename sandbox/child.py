"""The process of one program, from the fork to the program's first line."""

import _socket
import contextlib
import errno
import gc
import marshal
import os
import resource
import struct
import sys
import time
from typing import Any, NamedTuple, NoReturn

from sandbox import confine, linux, program
from sandbox.confine import Walls
from sandbox.linux import signal
from sandbox.namespace import Namespace

_MOST_FDS = 7
NO_ROOM = "no room for the program"
NO_JOB = b"n"
"""Sent in a job's place: the process is to end."""


class Pipes(NamedTuple):
    """The program's ends of its pipes. A script has no `calls` and `answers`."""

    stdin: int
    stdout: int
    stderr: int
    status: int
    calls: int = -1
    answers: int = -1


def receive(control: _socket.socket, flags: int = 0) -> tuple[int, ...] | None:
    """Waits for files that come over a socket, the first of them with data; ends the process where none will come.

    None: `flags` say not to wait, and nothing has come.
    """
    try:
        word, carried, _, _ = control.recvmsg(1, _socket.CMSG_SPACE(4 * _MOST_FDS), _socket.MSG_CMSG_CLOEXEC | flags)
    except BlockingIOError:
        return None
    if word in (b"", NO_JOB):
        os._exit(0)
    return struct.unpack(f"{len(carried[0][2]) // 4}i", carried[0][2])


def read_job(fd: int) -> Any:
    """What the server wrote to a file in memory."""
    return marshal.loads(os.pread(fd, os.fstat(fd).st_size, 0))


def become(jobs: _socket.socket, walls: Walls, namespace: Namespace | None, parent: int, number: int) -> NoReturn:
    """Waits for a job and becomes its program. `parent`: the pid of the process that forked; `number`: see `Ended`.

    The status pipe carries one line: `ready NUMBER CPU_SECONDS` (used up to the program's first line), or
    `failed NUMBER TEXT`.
    """
    trouble: BaseException | None = None
    try:
        os.setsid()
        if namespace is not None:
            namespace.enter()
        _die_with(walls, parent)
    except BaseException as error:
        trouble = error
    files = receive(jobs)
    assert files is not None
    pipes = Pipes(*files[1:])
    try:
        if trouble is not None:
            raise trouble
        _become(read_job(files[0]), pipes, walls, namespace, parent, number)
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        with contextlib.suppress(OSError):
            os.write(pipes.status, f"failed {number} {text}\n".encode())
    os._exit(1)


def _die_with(walls: Walls, parent: int) -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if walls.level != 1 and os.getppid() != parent:
        os._exit(1)


def _become(
    job: dict[str, Any], pipes: Pipes, walls: Walls, namespace: Namespace | None, parent: int, number: int
) -> None:
    folder = walls.home + "/work"
    if namespace is not None:
        namespace.add_files(job["file_system_size"])
        os.mkdir(folder, 0o700)
    for fd, target in ((pipes.stdin, 0), (pipes.stdout, 1), (pipes.stderr, 2)):
        os.dup2(fd, target)
    script = pipes.calls < 0
    kept = (0, 1, 2, pipes.status) if script else (0, 1, 2, pipes.status, pipes.calls, pipes.answers)
    confine.close_all_but(kept if walls.landlock is None else (*kept, walls.landlock.fd))
    os.chdir(folder)
    path = folder + "/program.py"
    source = job["program"]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        written = os.write(file, source)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        written = 0
    if written < len(source):
        raise OSError(NO_ROOM)
    os.close(file)
    for kind, pair in job["limits"]:
        resource.setrlimit(kind, pair)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, walls.cpus)
    confine.drop_privileges(walls)
    _die_with(walls, parent)  # a change of uid has cleared it
    gc.enable()
    sys.modules.pop("resource", None)  # wait4 imports it
    sys.path.insert(0, folder)
    sys.argv[:] = [path]
    os.write(pipes.status, f"ready {number} {time.process_time():.6f}\n".encode())
    os.close(pipes.status)
    if script:
        program.run_script(source, path)
    calls = program.Calls(pipes.calls, pipes.answers)
    if job["mode"] == "check":
        program.run_check(source, path, job["entry_point"], calls)
    else:
        program.serve_calls(source, path, job["entry_point"], calls, job["for_test"])
