"""Level 1: the namespaces of one program, made before it is forked and taken down after its end."""

import os

from sandbox import linux
from sandbox.linux import signal

_FLAGS = os.O_RDONLY | os.O_CLOEXEC
_FLAGS_OF_MOUNTS = linux.MS_NOSUID | linux.MS_NODEV


class Namespace:
    """A pid and a mount namespace. The server's network, host name and IPC namespaces are empty and serve for all."""

    def __init__(self, own_pids: int) -> None:
        """`own_pids`: an open file of this process's own pid namespace."""
        self._own_pids = own_pids
        self.init = linux.start_init()
        """The pid of the namespace's first process, as it is seen from outside."""
        self._pids = os.open(f"/proc/{self.init}/ns/pid", _FLAGS)
        self._mounts = os.open(f"/proc/{self.init}/ns/mnt", _FLAGS)

    def fork(self) -> int:
        """As `os.fork`; the child lives in there, but sees its parent's mounts yet."""
        linux.setns(self._pids, linux.CLONE_NEWPID)
        pid = os.fork()
        if pid:
            linux.setns(self._own_pids, linux.CLONE_NEWPID)
        return pid

    def enter(self) -> None:
        """In the child: its own /proc."""
        linux.setns(self._mounts, linux.CLONE_NEWNS)
        flags = _FLAGS_OF_MOUNTS | linux.MS_NOEXEC
        try:
            linux.mount(b"proc", b"/proc", b"proc", flags, b"hidepid=2")
        except OSError:
            linux.mount(b"proc", b"/proc", b"proc", flags)
        # The settings of a namespace belong to its root, with or without capabilities.
        linux.mount(b"/proc/sys", b"/proc/sys", None, linux.MS_BIND)
        linux.mount(None, b"/proc/sys", None, linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | flags)

    def add_files(self, size: bytes) -> None:
        """In the child: /tmp and /dev/shm, empty and sized. `size`: see `confine.file_system_size`."""
        linux.mount(b"tmpfs", b"/tmp", b"tmpfs", _FLAGS_OF_MOUNTS, size)
        linux.mount(b"tmpfs", b"/dev/shm", b"tmpfs", _FLAGS_OF_MOUNTS, size)

    def end(self) -> None:
        """Kills all that lives in there and waits until nothing does. Its child must have been waited for."""
        os.kill(self.init, signal.SIGKILL)
        os.waitpid(self.init, 0)

    def close(self) -> None:
        """Takes the mounts down, which takes the kernel a while."""
        os.close(self._pids)
        os.close(self._mounts)
