"""The process in which answers are compared: one request and one reply a line, under a CPU and a memory limit.

The kernel enforces both, so that nothing inside one long call into C can outlive them: a CPU timer whose signal ends
the process, and a limit on the address space.
"""

import contextlib
import os
import select
import signal
import sys
from typing import Any

import msgspec

_PARENT_POLL = 5.0


def main() -> None:
    """Serves requests on stdin until it closes or the parent is gone."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = sys.stdin.buffer.fileno(), os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.setrecursionlimit(3000)

    from ba_eval.grade.math.decide import as_json

    _limit_memory(memory)
    _reply(replies, {"ready": True})
    pending = b""
    while True:
        while b"\n" not in pending:
            while not select.select([requests], [], [], _PARENT_POLL)[0]:
                if os.getppid() != parent:
                    return
            block = os.read(requests, 1 << 16)
            if not block:
                return
            pending += block
        line, _, pending = pending.partition(b"\n")
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            answer = as_json(msgspec.json.decode(line))
        except MemoryError:
            answer = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        if answer is None:
            _reply(replies, {"outcome": "undecided", "reason": "memory limit", "method": "", "leaving": True})
            return
        _reply(replies, answer)


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _reply(descriptor: int, message: dict[str, Any]) -> None:
    data = msgspec.json.encode(message) + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]
