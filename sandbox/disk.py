"""What a job's files take at level 2, where they lie on a file system of the machine that has no quota for them."""

import contextlib
import os
import time
from collections.abc import Iterable

from sandbox.usage import threads

_SOME_FILES = 200
_SECONDS = 1.0


class Disk:
    """Counts bytes and files of a program, as rarely as it can: when the file system as a whole fills up, and once in a
    while, since others may empty it meanwhile."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._free = os.statvfs(folder)
        self._counted = time.monotonic()

    def usage(self, pids: Iterable[int]) -> tuple[float, int]:
        """Returns MB and number of names, or zeros where they were not counted."""
        free = os.statvfs(self._folder)
        files = self._free.f_ffree - free.f_ffree
        size = (self._free.f_bavail - free.f_bavail) * free.f_frsize
        if files < _SOME_FILES and size < 1 << 20 and time.monotonic() < self._counted + _SECONDS:
            return 0.0, 0
        named = list(_tree(self._folder))
        seen = dict(named)
        count = len(named) - len(seen)  # further names of the same files
        for pid in pids:
            seen.update(_deleted(pid))
        self._counted = time.monotonic()
        return sum(seen.values()) / (1 << 20), count + len(seen)


def _tree(folder: str) -> Iterable[tuple[tuple[int, int], int]]:
    """(device, inode) and bytes of all below `folder`."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    state = entry.stat(follow_symlinks=False)
                    yield (state.st_dev, state.st_ino), state.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue


def _deleted(pid: int) -> Iterable[tuple[tuple[int, int], int]]:
    """(device, inode) and bytes of files that a process holds open or mapped and that have no name any more."""
    mapped: list[list[str]] = []
    names: list[str] = []
    for task in threads(pid):  # of a process whose first thread has ended another one knows
        with contextlib.suppress(OSError):
            with open(f"/proc/{task}/maps", errors="replace") as file:
                mapped = [line.split() for line in file if line.endswith(" (deleted)\n") and " /dev/zero " not in line]
            names = os.listdir(f"/proc/{task}/fd")
            pid = task
            if names:
                break
    for span, _, _, device, inode, *_ in mapped:
        start, end = (int(address, 16) for address in span.split("-"))
        major, minor = (int(part, 16) for part in device.split(":"))
        yield (os.makedev(major, minor), int(inode)), end - start
    for name in names:
        try:
            state = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if state.st_nlink == 0:
            yield (state.st_dev, state.st_ino), state.st_blocks * 512
