"""Semaphores for multiprocessing where /dev/shm is closed (level 2): unnamed ones, in memory that forks share.

The interface is that of `_multiprocessing.SemLock`. They reach forked processes only; spawned ones would need a name.
"""

import ctypes
import errno
import time
from _thread import get_ident
from typing import Any, ClassVar

from sandbox.linux import libc

_RECURSIVE_MUTEX = 0
_SEM_BYTES = 64


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class SemLock:
    """A semaphore, or a recursive lock where `kind` says so."""

    SEM_VALUE_MAX: ClassVar[int] = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, name: str, unlink: bool) -> None:
        self.kind, self.maxvalue, self.name = kind, maxvalue, None if unlink else name
        import mmap  # only where it is wanted: what the zygote loads makes each fork dearer

        self._memory = mmap.mmap(-1, _SEM_BYTES)
        self._semaphore = (ctypes.c_char * _SEM_BYTES).from_buffer(self._memory)
        self.handle = ctypes.addressof(self._semaphore)
        self._held, self._owner = 0, 0
        self._call("sem_init", ctypes.c_int(1), ctypes.c_uint(value))

    def _call(self, function: str, *arguments: Any) -> bool:
        """Calls it until no signal interrupts it; returns False where it would have had to wait."""
        while libc[function](ctypes.c_void_p(self.handle), *arguments) == -1:
            code = ctypes.get_errno()
            if code in (errno.EAGAIN, errno.ETIMEDOUT):
                return False
            if code != errno.EINTR:
                raise OSError(code, function)
        return True

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        if self.kind == _RECURSIVE_MUTEX and self._is_mine():
            self._held += 1
            return True
        if not block:
            taken = self._call("sem_trywait")
        elif timeout is None:
            taken = self._call("sem_wait")
        else:
            end = time.time() + max(0.0, timeout)
            taken = self._call("sem_timedwait", ctypes.byref(_Timespec(int(end), int(end % 1 * 1e9))))
        if taken:
            self._held, self._owner = self._held + 1, get_ident()
        return taken

    def release(self) -> None:
        if self.kind == _RECURSIVE_MUTEX:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._held > 1:
                self._held -= 1
                return
        elif self._get_value() >= self.maxvalue:
            raise ValueError("semaphore or lock released too many times")
        self._held -= 1
        self._call("sem_post")

    def _get_value(self) -> int:
        value = ctypes.c_int()
        self._call("sem_getvalue", ctypes.byref(value))
        return value.value

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def _count(self) -> int:
        return self._held

    def _is_mine(self) -> bool:
        return self._held > 0 and self._owner == get_ident()

    def _after_fork(self) -> None:
        self._held = 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def use_for_multiprocessing() -> None:
    """Puts it in the place of the semaphores with a name; shared memory moves to the program's folder."""
    import _multiprocessing  # type: ignore[import-not-found]
    import multiprocessing.heap

    _multiprocessing.SemLock = SemLock
    multiprocessing.heap.Arena._dir_candidates = []  # type: ignore[attr-defined]
