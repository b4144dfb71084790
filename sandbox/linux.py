"""System calls that the standard library has no function for, through ctypes."""

import _signal  # type: ignore[import-not-found]
import ctypes
import os
from typing import Any

signal = _signal
"""The module `signal` makes an enumeration of each number, which is dear to load and to use."""
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
# Looked up here, once: in each program's process it would have to be done anew. Numbers are passed as they are, which
# is cheapest: they all fit a C int, which widens to the long that some of these take.
_syscall, _clone, _mount, _prctl, _setns = (
    libc.syscall,
    libc.clone,
    libc.mount,
    libc.prctl,
    libc.setns,
)

_CLONE_VM, _CLONE_FILES, CLONE_NEWNS, CLONE_NEWPID = 0x100, 0x400, 0x20000, 0x20000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    0x4000,
    0x40000,
)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 0, 1, 3, 5, 6, 7, 19
_CAPSET = {"x86_64": 126, "aarch64": 91}[os.uname().machine]
_CAPABILITIES_HEAD, _NO_CAPABILITIES = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
_init_stack = ctypes.create_string_buffer(16384)
_init_stack_top = ctypes.c_void_p((ctypes.addressof(_init_stack) + len(_init_stack)) & ~0xF)
_INIT_FLAGS = _CLONE_VM | _CLONE_FILES | CLONE_NEWPID | CLONE_NEWNS | signal.SIGCHLD
_ALL_SIGNALS = frozenset(map(int, signal.valid_signals()))
_pause = ctypes.cast(libc.pause, ctypes.c_void_p)
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446


def check(result: int, what: str) -> int:
    """Raises OSError where a C call returned -1."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def prctl(option: int, argument: int, pointer: Any = None) -> None:
    """`pointer`: what `ctypes.byref` gives."""
    check(_prctl(option, argument, pointer, None, None), "prctl")


def setns(fd: int, kind: int) -> None:
    check(_setns(fd, kind), "setns")


def start_init() -> int:
    """Starts the init of a new pid and mount namespace; returns its pid. When it is killed, so is all that lives there.

    It shares this process's memory and open files and does nothing but wait, so it costs next to nothing. All signals
    are blocked in it: none runs a handler of this process. It reaps nobody: a namespace lives as long as one program.
    """
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, _ALL_SIGNALS)
    try:
        return check(_clone(_pause, _init_stack_top, _INIT_FLAGS, None), "clone")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def mount(source: bytes | None, target: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    check(_mount(source, target, kind, flags, options), "mount")


def empty_bounding_set() -> None:
    """Nothing that this process or its children execute can gain a capability from now on."""
    capability = 0
    while _prctl(PR_CAPBSET_DROP, capability, None, None, None) == 0:
        capability += 1


def keep_capabilities(kept: tuple[int, ...] = ()) -> None:
    """Drops every capability but `kept`, ambient ones too."""
    wanted = _NO_CAPABILITIES
    if kept:
        mask = sum(1 << bit for bit in kept)
        wanted = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    check(_syscall(_CAPSET, _CAPABILITIES_HEAD, wanted), "capset")


class Landlock:
    """A set of file access rules. Everything under no rule is refused; so are TCP, and signals and abstract sockets
    across the domain's border where the kernel knows how (`scoped`)."""

    READ = 1 << 2 | 1 << 3
    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    LIST = 1 << 3
    REFER = 1 << 13

    def __init__(self, files: bool = True) -> None:
        """`files`: False for a domain that keeps in signals and refuses no file, which takes ABI 6."""
        self.abi = self.supported()
        if self.abi < 1:
            raise OSError("Landlock is not available")
        # Rights grew with the ABI: 1 has bits 0 to 12, then refer (2), truncate (3), device ioctl (5).
        bits = 13 + (self.abi >= 2) + (self.abi >= 3) + (self.abi >= 5)
        self.all = (1 << bits) - 1
        self.scoped = self.abi >= 6
        if not files and not self.scoped:
            return
        # A domain that names no right would refuse moves between folders to every domain within it.
        rights = self.all if files else self.REFER
        fields = (ctypes.c_uint64 * 3)(rights, 3 * files * (self.abi >= 4), 3 * self.scoped)
        size = 24 if self.scoped else 16 if self.abi >= 4 else 8
        self.fd = check(_syscall(_LANDLOCK_CREATE, fields, ctypes.c_size_t(size), 0), "landlock_create_ruleset")
        if not files:
            self.allow("/", self.REFER)

    @staticmethod
    def supported() -> int:
        """Returns the kernel's Landlock ABI, 0 where there is none."""
        return max(0, int(_syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)))

    def allow(self, path: str, rights: int) -> bool:
        """Allows `rights` at and below `path`; returns False where there is no such path."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if not os.path.isdir(path):
                rights &= 1 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
            rule = ctypes.create_string_buffer((rights & self.all).to_bytes(8, "little") + fd.to_bytes(4, "little"))
            check(_syscall(_LANDLOCK_ADD, self.fd, 1, rule, 0), f"landlock_add_rule {path}")
        finally:
            os.close(fd)
        return True

    def enforce(self) -> None:
        """Binds this process and all that it starts. Needs no_new_privs."""
        check(_syscall(_LANDLOCK_RESTRICT, self.fd, 0), "landlock_restrict_self")
