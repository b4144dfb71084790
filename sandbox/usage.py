"""What a job's process tree uses, and its end."""

import contextlib
import os
import time
from collections.abc import Iterator

from sandbox.linux import signal

_TICK = 1 / os.sysconf("SC_CLK_TCK")


class Usage:
    """Sums over the processes of a job."""

    def __init__(self, memory_mb: float, at: float) -> None:
        self.cpu_seconds = self.ran_seconds = self.waited_seconds = self.waiting_seconds = 0.0
        """`ran_seconds`: the CPU time to the nanosecond. `waited_seconds`: for which they were ready to run and had no
        CPU; `waiting_seconds`: the part of it that goes on, since the kernel counts a wait when it is over."""
        self.memory_mb, self.threads, self.at = memory_mb, 0, at


def in_namespace(own: list[int]) -> list[int]:
    """The pids of a job in a pid namespace: all that this process sees but the sandbox's own, `own` beside two."""
    skipped = (1, os.getpid(), *own)
    return [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) not in skipped]


def children(pid: int) -> list[int]:
    """The pids of a process's children, the oldest of each thread first."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in threads(pid):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def descendants(root: int) -> list[int]:
    """The pids of all processes below `root`."""
    found: list[int] = []
    queue = [root]
    while queue:
        below = children(queue.pop())
        queue += below
        found += below
    return found


def own_memory_mb(pid: int) -> float:
    """Memory of a process that no file backs: private pages and shared ones."""
    return _of_a_thread(pid, "status", (b"RssAnon:", b"RssShmem:"))


def share_mb(pid: int) -> float:
    """The same, but of pages that several processes share this one's part."""
    return _of_a_thread(pid, "smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:"))


def _of_a_thread(pid: int, name: str, fields: tuple[bytes, ...]) -> float:
    """MB in fields of a file of a process. Of one whose first thread has ended another thread knows."""
    for task in threads(pid):
        kb, found = 0, False
        try:
            with open(f"/proc/{task}/{name}", "rb") as file:
                for line in file:
                    if line.startswith(fields):
                        kb, found = kb + int(line.split()[1]), True
        except OSError:
            continue
        if found:
            return kb / 1024
    return 0.0


def threads(pid: int) -> Iterator[int]:
    """The ids of a process's threads, the first one first; the others are looked up where they are asked for."""
    yield pid
    with contextlib.suppress(OSError):
        yield from (other for name in os.listdir(f"/proc/{pid}/task") if (other := int(name)) != pid)


def measure(pids: list[int], inherited_mb: float, before: Usage | None = None) -> Usage:
    """Adds up what `pids` use, children that they have waited for included.

    `inherited_mb`: memory that a fork shares with the zygote, counted once and not for each process. `before`: what was
    measured last.
    """
    total = Usage(inherited_mb, time.monotonic())
    ready = False
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            total.cpu_seconds += sum(map(int, fields[11:15])) * _TICK
            total.threads += int(fields[17])
            with open(f"/proc/{pid}/schedstat", "rb") as file:
                ran, waited, _ = file.read().split()
            total.ran_seconds += int(ran) / 1e9
            total.waited_seconds += int(waited) / 1e9
            ready |= fields[0] == b"R"
            total.memory_mb += max(0.0, own_memory_mb(pid) - inherited_mb)
        except (OSError, IndexError, ValueError):
            continue
    if before is not None and ready and total.ran_seconds == before.ran_seconds:
        total.waiting_seconds = before.waiting_seconds + total.at - before.at
        total.waited_seconds += total.waiting_seconds
    return total


def shared_memory_mb(pids: list[int], inherited_mb: float) -> float:
    """What `pids` use together, pages that they share counted once. Dearer to find out than `measure`'s sum."""
    return inherited_mb + sum(share_mb(pid) or max(0.0, own_memory_mb(pid) - inherited_mb) for pid in pids)


def reaped_seconds(pid: int) -> float:
    """CPU seconds of the children of a process that have ended and been waited for, and of theirs."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return sum(map(int, fields[13:15])) * _TICK


def end_all(uid: int | None, scoped: bool) -> None:
    """Kills and reaps everything below this process, which must be a subreaper: orphans become its children.

    `uid`: the programs' own uid, if they have one. `scoped`: this process can signal only what is below it.
    """
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if uid is not None:
            helper = os.fork()
            if helper == 0:
                try:
                    os.setresuid(uid, uid, uid)
                    os.kill(-1, signal.SIGKILL)
                finally:
                    os._exit(0)
            os.waitpid(helper, 0)
        elif scoped:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
        else:
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in descendants(os.getpid()):
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)
        time.sleep(0.002)
