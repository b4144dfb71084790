"""The process of one program, from the fork to the program's first line."""

import contextlib
import gc
import marshal
import os
import resource
import sys
import time
from typing import Any, NamedTuple, NoReturn

from sandbox import confine, linux, program
from sandbox.confine import Walls
from sandbox.linux import signal
from sandbox.namespace import Namespace


class Pipes(NamedTuple):
    """The program's ends of its pipes. A script has no `calls` and `answers`."""

    stdin: int
    stdout: int
    stderr: int
    status: int
    calls: int = -1
    answers: int = -1


def read_job(fd: int) -> Any:
    """What the server wrote to a file in memory."""
    return marshal.loads(os.pread(fd, os.fstat(fd).st_size, 0))


def become(fds: tuple[int, ...], walls: Walls, namespace: Namespace | None, parent: int) -> NoReturn:
    """Becomes the program. `fds`: a file with the job, then the pipes. `parent`: the pid of the process that forked.

    The status pipe carries one line: `ready CPU_SECONDS` (used up to the program's first line), or `failed TEXT`.
    """
    pipes = Pipes(*fds[1:])
    try:
        _become(read_job(fds[0]), pipes, walls, namespace, parent)
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        with contextlib.suppress(OSError):
            os.write(pipes.status, f"failed {text}\n".encode())
    os._exit(1)


def _become(job: dict[str, Any], pipes: Pipes, walls: Walls, namespace: Namespace | None, parent: int) -> None:
    folder = walls.home + "/work"
    os.setsid()
    if namespace is not None:
        namespace.enter(job["file_system_size"])
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
    if os.write(file, source) < len(source):
        raise OSError("no room for the program")
    os.close(file)
    for kind, pair in job["limits"]:
        resource.setrlimit(kind, pair)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    confine.drop_privileges(walls)
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of uid would have cleared it
    if walls.level != 1 and os.getppid() != parent:
        os._exit(1)
    gc.enable()
    sys.modules.pop("resource", None)  # wait4 imports it
    sys.path.insert(0, folder)
    sys.argv[:] = [path]
    os.write(pipes.status, f"ready {time.process_time():.6f}\n".encode())
    os.close(pipes.status)
    if script:
        program.run_script(source, path)
    calls = program.Calls(pipes.calls, pipes.answers)
    if job["mode"] == "check":
        program.run_check(source, path, job["entry_point"], calls)
    else:
        program.serve_calls(source, path, job["entry_point"], calls, job["for_test"])
