"""The system calls that a program may make: an allowlist as a BPF program, installed with prctl.

What is not listed fails with EPERM, so a program sees an ordinary error; another instruction set kills it.
"""

import ctypes
import errno
import os
import struct

from sandbox import linux
from sandbox.syscalls import numbers

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _GREATER_EQUAL, _SET, _AND, _RETURN, _JUMP = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06, 0x05
_NEW_NAMESPACES = 0x7E020080 | 0x8000  # CLONE_NEW*, and CLONE_PARENT
_IOCTLS = (0x5401, 0x5413, 0x540F, 0x541B, 0x5421, 0x5450, 0x5451)  # terminal queries, FIONREAD, FIONBIO, close-on-exec
_FCNTLS = (8, 10, 15, 1024, 1026, 1031)  # owner and signal of a file, leases, notification, pipe size
_AF_UNIX, _AF_INET, _AF_INET6, _SOCK_STREAM = 1, 2, 10, 1
# At level 2 a program's files lie in a folder of the machine and Landlock does not cover these.
_ONLY_IN_NAMESPACES = (
    "chown fchown lchown fchownat utime utimes futimesat utimensat inotify_init inotify_init1 "
    "inotify_add_watch inotify_rm_watch socket connect bind listen sendmmsg"
).split()
_ONLY_WITH_OWN_UID = "chmod", "fchmod", "fchmodat"


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _argument(index: int, high: bool = False) -> bytes:
    return _step(_LOAD, 16 + 8 * index + 4 * high)


def _deny(code: int = errno.EPERM) -> bytes:
    return _step(_RETURN, _ERRNO | code)


_PASS = _step(_RETURN, _ALLOW)


def _only(index: int, values: tuple[int, ...], code: int = errno.EPERM) -> bytes:
    """Allows the call where argument `index` is one of `values`."""
    return _argument(index) + b"".join(_step(_EQUAL, v, 0, 1) + _PASS for v in values) + _deny(code)


def _but(index: int, values: tuple[int, ...]) -> bytes:
    """Allows the call unless argument `index` is one of `values`."""
    return _argument(index) + b"".join(_step(_EQUAL, v, 0, 1) + _deny() for v in values) + _PASS


def _conditions(level: int, own_signals_of: int) -> dict[str, bytes]:
    """What a call's arguments must be, by name: BPF that ends in a return."""
    zero = (0,)
    rules = {
        "clone3": _deny(errno.ENOSYS),  # its flags lie in memory; the C library falls back to clone
        "clone": _argument(0) + _step(_SET, _NEW_NAMESPACES, 0, 1) + _deny() + _PASS,
        "prlimit64": _only(0, zero),
        "setpriority": _argument(1) + _step(_EQUAL, 0, 1, 0) + _deny() + _only(0, zero),
        "ioctl": _only(1, _IOCTLS, errno.ENOTTY),
        "fcntl": _but(1, _FCNTLS),
        # Never the init of the program's namespace, which shares its uid.
        "kill": _only(0, (0, own_signals_of)) if own_signals_of else _but(0, (1,)),
        "tgkill": _only(0, (own_signals_of,)) if own_signals_of else _but(0, (1,)),
        "tkill": _deny() if own_signals_of else _but(0, (1,)),
    }
    for name in ("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_getattr", "sched_setattr"):
        rules[name] = _only(0, zero)
    if level == 1:
        rules["socket"] = _only(0, (_AF_UNIX, _AF_INET, _AF_INET6))
        rules["socketpair"] = _only(0, (_AF_UNIX,))
    else:
        # Pairs only, and of streams: a datagram could be sent to any other socket's address.
        kind = _argument(1) + _step(_AND, 0xF) + _step(_EQUAL, _SOCK_STREAM, 1, 0) + _deny()
        rules["socketpair"] = kind + _only(0, (_AF_UNIX,))
        no_address = _argument(4) + _step(_EQUAL, 0, 1, 0) + _deny()
        rules["sendto"] = no_address + _argument(4, high=True) + _step(_EQUAL, 0, 1, 0) + _deny() + _PASS
    return rules


def filter_program(level: int, own_uid: bool, own_signals_of: int = 0) -> bytes:
    """Returns the filter of `level` as BPF instructions.

    `own_uid`: the programs' uid owns no files but theirs. `own_signals_of`: no signals but to this process, for where
    neither a namespace, nor a uid, nor Landlock keeps them in.
    """
    machine = os.uname().machine
    calls = numbers(machine)
    if level != 1:
        for name in (*_ONLY_IN_NAMESPACES, *(() if own_uid else _ONLY_WITH_OWN_UID)):
            calls.pop(name, None)
    program = _step(_LOAD, 4) + _step(_EQUAL, _ARCH[machine], 1, 0) + _step(_RETURN, _KILL) + _step(_LOAD, 0)
    if machine == "x86_64":  # the x32 calls
        program += _step(_GREATER_EQUAL, 0x40000000, 0, 1) + _deny(errno.ENOSYS)
    conditions = _conditions(level, own_signals_of)
    rules = {number: conditions.get(name, _PASS) for name, number in calls.items()}
    return program + _search(_spans(rules))


def _spans(rules: dict[int, bytes]) -> list[tuple[int, bytes]]:
    """Where a rule begins to hold, from number 0 on, for the rule of each number; others are denied."""
    spans: list[tuple[int, bytes]] = []
    for number in range(max(rules) + 2):
        rule = rules.get(number, _deny())
        if not spans or spans[-1][1] != rule:
            spans.append((number, rule))
    return spans


def _search(spans: list[tuple[int, bytes]]) -> bytes:
    """Finds the rule of a number by halves: the kernel runs the filter once for every call that there is when a program
    installs it, and then for each call."""
    if len(spans) == 1:
        return spans[0][1]
    half = len(spans) // 2
    below, above = _search(spans[:half]), _search(spans[half:])
    skipped = len(below) // 8
    far = skipped > 255  # the most that a comparison can skip
    skip = _step(_GREATER_EQUAL, spans[half][0], 0, 1) + _step(_JUMP, skipped)
    return (skip if far else _step(_GREATER_EQUAL, spans[half][0], skipped, 0)) + below + above


class Filter(ctypes.Structure):
    """A program as the kernel takes it."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def packed(program: bytes) -> Filter:
    """BPF instructions, ready to be installed."""
    return Filter(len(program) // 8, program)


def install(program: Filter) -> None:
    """Binds this process and all that it starts to the filter. Needs no_new_privs."""
    mode_filter = 2
    linux.prctl(linux.PR_SET_SECCOMP, mode_filter, ctypes.byref(program))
