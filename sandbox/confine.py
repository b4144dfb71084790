"""Puts the process of one program behind the walls that do not depend on namespaces: limits, uid, Landlock, seccomp."""

import os
import resource
from typing import Any

from sandbox import linux, seccomp

MB = 1 << 20


class Walls:
    """What holds for every program of a server. Made once, in the zygote."""

    def __init__(
        self, level: int, uid: int | None, home: str, readable: list[str], listable: list[str], cpus: set[int]
    ) -> None:
        """
        `level`: 1 namespaces; 2 Landlock, seccomp and, where there is one, a uid of its own; 0 limits only.
        `uid`: that programs run as at level 2, None where they keep the server's.
        `home`: the folder that holds the programs' folder `work`. At level 1 `/tmp`, new for each program.
        `readable`: level 2, what programs may read and execute.
        `listable`: level 2, folders whose entries programs may list.
        `cpus`: that programs may run on.
        """
        self.level, self.uid, self.home, self.cpus = level, uid, home, cpus
        self.landlock: linux.Landlock | None = None
        self.scoped = False
        """Whether the zygote can signal no process but those below it."""
        if level == 2:
            self.scoped = linux.Landlock.supported() >= 6 and _stay_in()
            self.landlock = linux.Landlock()
            for path in readable:
                self.landlock.allow(path, linux.Landlock.READ | linux.Landlock.EXECUTE)
            for path in listable:
                self.landlock.allow(path, linux.Landlock.LIST)
            self.landlock.allow("/dev/null", linux.Landlock.READ | linux.Landlock.WRITE_FILE | 1 << 14)
            for path in ("/dev/zero", "/dev/urandom", "/dev/random"):
                self.landlock.allow(path, linux.Landlock.READ)
            self.landlock.allow(os.path.join(home, "work"), self.landlock.all)
        self.filter = seccomp.packed(seccomp.filter_program(level, uid is not None)) if level else None

    @property
    def signals_stay_in(self) -> bool:
        """Whether a program can signal no process but its own: it has a namespace, a uid, or a scoped domain."""
        return self.level == 1 or self.uid is not None or self.scoped


def _stay_in() -> bool:
    """Puts the zygote into a domain of its own for signals; the programs' domains lie within. Returns whether it
    holds."""
    domain = linux.Landlock(files=False)
    domain.enforce()
    os.close(domain.fd)
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    return False


def file_system_size(disk_mb: int) -> bytes:
    """The options of a file system of that size."""
    return b"size=%dm,nr_inodes=%d,mode=1777" % (disk_mb, most_files(disk_mb))


def most_files(disk_mb: int) -> int:
    """How many files a program may make."""
    return max(4096, 64 * disk_mb)


def limits(job: dict[str, Any], processes: int) -> list[tuple[int, tuple[int, int]]]:
    """The kernel's own limits for a job, as `setrlimit` takes them: walls behind the supervisor's, which counts the
    whole tree."""
    # Calls have a limit each; what they take together is for whoever makes them to bound.
    cpu = int(job["cpu_seconds"]) + 2 if job["mode"] == "script" else 3600
    memory = job["memory_mb"] * MB
    return _lowered(
        {
            resource.RLIMIT_CPU: (cpu, cpu + 1),  # SIGXCPU first, then SIGKILL
            # Untouched thread stacks and heaps count here, so it lies above the limit on what is really used.
            resource.RLIMIT_DATA: (memory + 512 * MB,) * 2,
            resource.RLIMIT_AS: (4 * memory + 4096 * MB,) * 2,
            resource.RLIMIT_FSIZE: (job["disk_mb"] * MB,) * 2,
            resource.RLIMIT_NPROC: (processes,) * 2,
        }
    )


def set_own_limits() -> None:
    """Those that are the same for all programs: they have them from the server."""
    infinite = resource.RLIM_INFINITY
    fixed = {
        resource.RLIMIT_NOFILE: (256, 256),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_MEMLOCK: (64 << 10,) * 2,
        resource.RLIMIT_MSGQUEUE: (0, 0),
        resource.RLIMIT_SIGPENDING: (256, 256),
        # Contest programs raise it as far as it goes. What a stack really takes counts as memory.
        resource.RLIMIT_STACK: (64 * MB, infinite),
    }
    for kind, pair in _lowered(fixed):
        resource.setrlimit(kind, pair)


def _lowered(wanted: dict[int, tuple[int, int]]) -> list[tuple[int, tuple[int, int]]]:
    """No limit above the one that this process has already."""
    infinite = resource.RLIM_INFINITY

    def lower(one: int, other: int) -> int:
        return one if other == infinite else other if one == infinite else min(one, other)

    hards = {kind: resource.getrlimit(kind)[1] for kind in wanted}
    return [(kind, (lower(soft, hards[kind]), lower(hard, hards[kind]))) for kind, (soft, hard) in wanted.items()]


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
        os.setresuid(walls.uid, walls.uid, walls.uid)
    if walls.level:
        linux.keep_capabilities()
    if walls.landlock is not None:
        walls.landlock.enforce()
        os.close(walls.landlock.fd)
    if walls.filter is not None:
        program = walls.filter
        if not walls.signals_stay_in:
            program = seccomp.packed(seccomp.filter_program(walls.level, False, own_signals_of=os.getpid()))
        seccomp.install(program)
