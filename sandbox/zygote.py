"""The process that programs are forked from. It forks and waits, and nothing else: what it holds, each program holds.

No job ever enters its memory: the program's own process takes the job from the server. And each page that it writes to
between two forks would have to be copied, so what goes on meanwhile is for the server, its parent. The process
of the next program is forked when the one before has ended, and waits for its job.
"""

import _socket  # `socket` makes enumerations, which is dear to load
import contextlib
import gc
import itertools
import marshal
import os
import select
import struct
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from sandbox import child, linux, semaphore, usage
from sandbox.confine import Walls
from sandbox.linux import signal
from sandbox.namespace import Namespace
from sandbox.warm import Warm

_ENDED = struct.Struct("iidd")
"""Which of the processes it was; wait status; CPU seconds of the program and of what it left; its peak memory in MB."""


class ZygoteGone(Exception):
    """It ended. What it had to say stands on the standard error."""


class Ended(NamedTuple):
    """What became of the program's process. Nothing of its tree is left."""

    number: int
    """Of the process. One that waited for a job may be killed from outside: its end is no job's."""
    wait_status: int
    cpu_seconds: float
    peak_mb: float


class Zygote:
    """The server's end of it."""

    def __init__(self, config: dict[str, Any], warm: Warm, close: Callable[[], None]) -> None:
        """Forks it. `config`: what `Walls` takes. `close`: called in it, closes what is the server's own."""
        self._control, control = _socket.socketpair()
        self._jobs, jobs = _socket.socketpair()
        self.fd = self._control.fileno()
        server = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._control.close()
                self._jobs.close()
                close()
                _serve(control, jobs, Walls(**config), warm, server)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        control.close()
        jobs.close()
        self.life = os.pidfd_open(self.pid)
        """Readable once it has ended, which its socket need not tell: a namespace's init shares its files."""
        self._waiting = select.poll()
        self._waiting.register(self.fd, select.POLLIN)
        self._waiting.register(self.life, select.POLLIN)

    def load(self, names: list[str]) -> None:
        """Has it import modules. The process that waits for a job has not got them, and ends."""
        self._forget()
        _send(self._control, names)
        self._jobs.send(child.NO_JOB)
        self.wait()

    def start(self, job: dict[str, Any], pipes: child.Pipes) -> None:
        """Gives a job to the process that waits for one."""
        self._forget()
        _send(self._jobs, job, *(fd for fd in pipes if fd >= 0))

    def children(self) -> list[int]:
        """Its children, the oldest first: the init of the program's namespace, if it has one, and the program."""
        return usage.children(self.pid)

    def kill_oldest(self) -> None:
        """Kills the init of the program's namespace and so all of it; without one the program itself, the zygote ends
        the rest. Not where its end is told already."""
        while not (oldest := self.children()[:1]) and not self._told(1):
            pass
        with contextlib.suppress(ProcessLookupError):
            for pid in oldest:
                os.kill(pid, signal.SIGKILL)

    def _forget(self) -> None:
        """Takes in the ends of processes that waited for a job and were killed from outside."""
        while self._told(0):
            self.wait()

    def _told(self, milliseconds: int | None) -> bool:
        """Whether an end is told within that time. ZygoteGone: it can tell no more."""
        ready = [fd for fd, _ in self._waiting.poll(milliseconds)]
        if ready == [self.life]:
            raise ZygoteGone
        return bool(ready)

    def wait(self) -> Ended:
        """Waits for the end of a program's process, and of all that it left."""
        self._told(None)
        try:
            data = self._control.recv(_ENDED.size, _socket.MSG_WAITALL)
        except OSError as error:
            raise ZygoteGone from error
        if len(data) < _ENDED.size:
            raise ZygoteGone
        return Ended(*_ENDED.unpack(data))

    def close(self) -> None:
        """Ends it."""
        self._jobs.close()
        self._control.close()
        os.waitpid(self.pid, 0)


def _send(to: _socket.socket, what: Any, *fds: int) -> None:
    """Sends data as a file in memory, and further files."""
    file = os.memfd_create("job", os.MFD_CLOEXEC)
    try:
        data = memoryview(marshal.dumps(what))
        while data:
            data = data[os.write(file, data) :]
        carried = struct.pack(f"{1 + len(fds)}i", file, *fds)
        to.sendmsg([b"j"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, carried)])
    except OSError as error:
        raise ZygoteGone from error
    finally:
        os.close(file)


def _serve(control: _socket.socket, jobs: _socket.socket, walls: Walls, warm: Warm, server: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server ends it
    own_pids = -1
    if walls.level == 1:
        own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    else:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        if os.getppid() != server:
            return
    compile("", "", "exec")  # the first time makes some hundred types
    own_pid = os.getpid()
    gc.disable()
    for number in itertools.count():
        namespace = Namespace(own_pids) if walls.level == 1 else None
        pid = os.fork() if namespace is None else namespace.fork()
        if pid == 0:
            child.become(jobs, walls, namespace, own_pid, number)
        ended = _wait(pid, namespace, walls, number)
        names = child.receive(control, _socket.MSG_DONTWAIT)
        if names is not None:  # it had no job
            _load(warm, child.read_job(names[0]), walls.level)
            os.close(names[0])
        control.sendall(_ENDED.pack(*ended))
        if namespace is not None:
            namespace.close()


def _load(warm: Warm, names: list[str], level: int) -> None:
    gc.unfreeze()
    own_semaphores = level == 2 and "multiprocessing.heap" in names
    warm.load(names, semaphore.use_for_multiprocessing if own_semaphores else None)
    gc.collect()
    gc.freeze()


def _wait(pid: int, namespace: Namespace | None, walls: Walls, number: int) -> Ended:
    """Waits for the program's process, then ends what it left. Orphans come here too where there is no namespace."""
    cpu = 0.0
    while True:
        ended, status, used = os.wait4(-1 if namespace is None else pid, 0)
        cpu += used.ru_utime + used.ru_stime
        if ended == pid:
            break
    if namespace is not None:
        namespace.end()
    else:
        usage.end_all(walls.uid, walls.scoped)
    return Ended(number, status, cpu, used.ru_maxrss / 1024)
