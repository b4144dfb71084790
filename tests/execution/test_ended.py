"""How the end of a program is read."""

import pytest

from sandbox import ended

NO_PROCESS = b"BlockingIOError: [Errno 11] Resource temporarily unavailable\n"


@pytest.mark.parametrize(
    ("code", "signal_number", "output", "status"),
    [
        (0, None, NO_PROCESS, "ok"),
        (1, None, b"Traceback (most recent call last):\nMemoryError\n", "memory"),
        (1, None, b"OSError: [Errno 28] No space left on device\n", "disk"),
        (1, None, b"Traceback (most recent call last):\n" + NO_PROCESS, "process"),
        # two processes of one fork bomb wrote their tracebacks at the same time
        (1, None, NO_PROCESS + b'Traceback (most recent call last):\n  File "program.py", line 2\n', "process"),
        (1, None, b"got BlockingIOError: [Errno 11]\nValueError: x\n", "error"),
        (None, 24, b"", "timeout"),
        (None, 9, b"", "killed"),
    ],
)
def test_status(code: int | None, signal_number: int | None, output: bytes, status: str) -> None:
    assert ended.status(code, signal_number, output) == status
