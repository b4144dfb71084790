"""What became of a program that ended before any limit that its supervisor watches."""

from sandbox.linux import signal

_NO_PROCESS = (b"BlockingIOError: [Errno 11]", b"RuntimeError: can't start new thread")


def status(exit_code: int | None, signal_number: int | None, output: bytes) -> str:
    """One of ok, error, timeout, memory, disk, process, killed. `output`: all that it printed, stderr last.

    An uncaught exception speaks of the limit that was met. A program can pretend it: it has failed either way.
    """
    if signal_number is not None:
        return "timeout" if signal_number == signal.SIGXCPU else "killed"
    if exit_code == 0:
        return "ok"
    last = output.rstrip().rpartition(b"\n")[2]
    if b"MemoryError" in last[:80]:
        return "memory"
    if last.startswith((b"OSError: [Errno 28]", b"OSError: [Errno 27]")):
        return "disk"
    # Several processes may have met this one, each with a traceback of its own among the others'.
    if any(line.startswith(_NO_PROCESS) for line in output[-8192:].splitlines()):
        return "process"
    return "error"
