"""The process that programs are forked from. It forks and waits, and nothing else: what it holds, each program holds.

No job ever enters its memory: a job lies in a file that only the program's own process reads. And each page that it
writes to between two forks would have to be copied, so what goes on meanwhile is for the server, whose child it is.
"""

import _socket  # `socket` makes enumerations, which is dear to load
import gc
import marshal
import os
import struct
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from sandbox import child, linux, semaphore, usage
from sandbox.confine import Walls
from sandbox.linux import signal
from sandbox.namespace import Namespace
from sandbox.warm import Warm

_ENDED = struct.Struct("idd")
"""Wait status; CPU seconds of the program and of what it left; its peak memory in MB."""
_MOST_FDS = 7


class ZygoteGone(Exception):
    """It ended. What it had to say stands on the standard error."""


class Ended(NamedTuple):
    """What became of the program's process. Nothing of its tree is left."""

    wait_status: int
    cpu_seconds: float
    peak_mb: float


class Zygote:
    """The server's end of it."""

    def __init__(self, config: dict[str, Any], warm: Warm, close: Callable[[], None]) -> None:
        """Forks it. `config`: what `Walls` takes. `close`: called in it, closes what is the server's own."""
        self._control, theirs = _socket.socketpair()
        self.fd = self._control.fileno()
        server = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._control.close()
                close()
                _serve(theirs, Walls(**config), warm, server)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        theirs.close()

    def load(self, names: list[str]) -> None:
        """Has it import modules."""
        self._send(b"l", names, ())
        self._receive(1)

    def start(self, job: dict[str, Any], pipes: "child.Pipes") -> None:
        """Has it fork a process for a job."""
        self._send(b"s", job, [fd for fd in pipes if fd >= 0])

    def children(self) -> list[int]:
        """Its children, the oldest first: the init of the program's namespace, if it has one, and the program."""
        return usage.children(self.pid)

    def wait(self) -> Ended:
        """Waits for the end of the program that was started, and of all that it left."""
        return Ended(*_ENDED.unpack(self._receive(_ENDED.size)))

    def close(self) -> None:
        """Ends it."""
        self._control.close()
        os.waitpid(self.pid, 0)

    def _send(self, word: bytes, what: Any, fds: Any) -> None:
        file = os.memfd_create("job", os.MFD_CLOEXEC)
        try:
            data = memoryview(marshal.dumps(what))
            while data:
                data = data[os.write(file, data) :]
            carried = struct.pack(f"{1 + len(fds)}i", file, *fds)
            self._control.sendmsg([word], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, carried)])
        except OSError as error:
            raise ZygoteGone from error
        finally:
            os.close(file)

    def _receive(self, size: int) -> bytes:
        try:
            data: bytes = self._control.recv(size, _socket.MSG_WAITALL)
        except OSError as error:
            raise ZygoteGone from error
        if len(data) < size:
            raise ZygoteGone
        return data


def _serve(control: _socket.socket, walls: Walls, warm: Warm, server: int) -> None:
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
    space, own_pid = _socket.CMSG_SPACE(4 * _MOST_FDS), os.getpid()
    gc.disable()
    while True:
        word, carried, _, _ = control.recvmsg(1, space, _socket.MSG_CMSG_CLOEXEC)
        if not word:
            os._exit(0)
        fds = struct.unpack(f"{len(carried[0][2]) // 4}i", carried[0][2])
        if word == b"l":
            _load(warm, child.read_job(fds[0]), walls.level)
            os.close(fds[0])
            control.sendall(word)
            continue
        namespace = Namespace(own_pids) if walls.level == 1 else None
        pid = os.fork() if namespace is None else namespace.fork()
        if pid == 0:
            child.become(fds, walls, namespace, own_pid)
        for fd in fds:
            os.close(fd)
        control.sendall(_ENDED.pack(*_wait(pid, namespace, walls)))
        if namespace is not None:
            namespace.close()


def _load(warm: Warm, names: list[str], level: int) -> None:
    gc.unfreeze()
    own_semaphores = level == 2 and "multiprocessing.heap" in names
    warm.load(names, semaphore.use_for_multiprocessing if own_semaphores else None)
    gc.collect()
    gc.freeze()


def _wait(pid: int, namespace: Namespace | None, walls: Walls) -> Ended:
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
    return Ended(status, cpu, used.ru_maxrss / 1024)
