"""Puts the process of one program behind the walls: namespaces and mounts, or Landlock; then uid, limits, seccomp."""

import os
import resource
from dataclasses import dataclass
from typing import Any

from sandbox import linux, seccomp

MB = 1 << 20


@dataclass
class Walls:
    """What holds for every program of this server. Made once, in the server."""

    level: int
    """1: namespaces. 2: Landlock, seccomp and, where there is one, a uid of its own. 0: limits only."""
    uid: int | None
    """The uid that programs run as at level 2, None where they keep the server's."""
    home: str
    """The folder that holds the programs' folder `work`. At level 1 `/tmp`, a new file system for each program."""
    readable: list[str]
    """Level 2: what programs may read and execute."""
    listable: list[str]
    """Level 2: folders whose entries programs may list."""

    def __post_init__(self) -> None:
        self.landlock: linux.Landlock | None = None
        self.scoped = False
        """Whether the server can signal no process but those below it."""
        if self.level == 2:
            self.scoped = linux.Landlock.supported() >= 6 and _stay_in()
            self.landlock = linux.Landlock()
            for path in self.readable:
                self.landlock.allow(path, linux.Landlock.READ | linux.Landlock.EXECUTE)
            for path in self.listable:
                self.landlock.allow(path, linux.Landlock.LIST)
            self.landlock.allow("/dev/null", linux.Landlock.READ | linux.Landlock.WRITE_FILE | 1 << 14)
            for path in ("/dev/zero", "/dev/urandom", "/dev/random"):
                self.landlock.allow(path, linux.Landlock.READ)
            self.landlock.allow(os.path.join(self.home, "work"), self.landlock.all)
        self.filter = seccomp.filter_program(self.level, self.uid is not None) if self.level else b""

    @property
    def signals_stay_in(self) -> bool:
        """Whether a program can signal no process but its own: it has a namespace, a uid, or a scoped domain."""
        return self.level == 1 or self.uid is not None or self.scoped


def _stay_in() -> bool:
    """Puts the server into a domain of its own for signals; the programs' domains lie within. Returns whether it
    holds."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    domain = linux.Landlock(files=False)
    domain.enforce()
    os.close(domain.fd)
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    return False


def enter_namespaces(disk_mb: int) -> None:
    """Level 1, in a process of a new pid namespace: its own /proc, /tmp and /dev/shm, empty and sized."""
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    flags = linux.MS_NOSUID | linux.MS_NODEV
    try:
        linux.mount("proc", "/proc", "proc", flags | linux.MS_NOEXEC, "hidepid=2")
    except OSError:
        linux.mount("proc", "/proc", "proc", flags | linux.MS_NOEXEC)
    # The settings of a namespace belong to its root, with or without capabilities.
    linux.mount("/proc/sys", "/proc/sys", None, linux.MS_BIND)
    linux.mount(None, "/proc/sys", None, linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | flags | linux.MS_NOEXEC)
    size = f"size={disk_mb}m,nr_inodes={most_files(disk_mb)},mode=1777"
    linux.mount("tmpfs", "/tmp", "tmpfs", flags, size)
    linux.mount("tmpfs", "/dev/shm", "tmpfs", flags, size)


def most_files(disk_mb: int) -> int:
    """How many files a program may make."""
    return max(4096, 64 * disk_mb)


def set_limits(limits: dict[str, Any], processes: int) -> None:
    """The kernel's own limits: walls behind the supervisor's, which counts the whole tree."""
    # Calls have a limit each; what they take together is for whoever makes them to bound.
    cpu = int(limits["cpu_seconds"]) + 2 if limits["mode"] == "script" else 3600
    memory = limits["memory_mb"] * MB
    walls = {
        resource.RLIMIT_CPU: cpu,
        # Untouched thread stacks and heaps count here, so it lies above the limit on what is really used.
        resource.RLIMIT_DATA: memory + 512 * MB,
        resource.RLIMIT_AS: 4 * memory + 4096 * MB,
        resource.RLIMIT_FSIZE: limits["disk_mb"] * MB,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 64 << 10,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 256,
    }
    for kind, value in walls.items():
        hard = value + 1 if kind == resource.RLIMIT_CPU else value  # SIGXCPU first, then SIGKILL
        try:
            resource.setrlimit(kind, (value, hard))
        except ValueError:  # it is lower already
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (min(value, hard), hard))
    # Contest programs raise it as far as it goes. What a stack really takes counts as memory.
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = 64 * MB if hard == resource.RLIM_INFINITY else min(64 * MB, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


def close_all_but(kept: tuple[int, ...]) -> None:
    """Closes every file descriptor but the given ones."""
    low = 0
    for fd in sorted(kept):
        if low < fd:  # an empty range would close them all
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 4096)


def drop_privileges(walls: Walls) -> None:
    """No capability, another uid at level 2, no way back; then the file rules and the system call filter."""
    if walls.uid is not None:
        os.setgroups([])
        os.setresgid(walls.uid, walls.uid, walls.uid)
        os.setresuid(walls.uid, walls.uid, walls.uid)
    if walls.level:
        linux.keep_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if walls.landlock is not None:
        walls.landlock.enforce()
        os.close(walls.landlock.fd)
    if walls.level:
        program = walls.filter
        if not walls.signals_stay_in:
            program = seccomp.filter_program(walls.level, False, own_signals_only=True, pid=os.getpid())
        seccomp.install(program)
