"""What a process uses, read from the kernel's files."""

import io
import time
from typing import Any

import pytest

from sandbox import usage

TICKS = 50


def measured(
    monkeypatch: pytest.MonkeyPatch, at: float, state: str, ran: int, waited: int, before: usage.Usage | None
) -> usage.Usage:
    files = {
        "/proc/7/stat": f"7 (a) b) {state} 1 " + "0 " * 9 + f"{TICKS} 0 0 0 20 0 1 0",
        "/proc/7/schedstat": f"{ran} {waited} 5",
        "/proc/7/status": "RssAnon:\t  2048 kB\nRssShmem:\t 1024 kB\n",
    }

    def fake_open(path: str, *_: Any) -> io.BytesIO:
        return io.BytesIO(files[path].encode())

    monkeypatch.setattr(usage, "open", fake_open, raising=False)
    monkeypatch.setattr(time, "monotonic", lambda: at)
    return usage.measure([7], 1.0, before)


def test_a_wait_for_a_cpu_counts_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    second = 10**9
    used = measured(monkeypatch, 10.0, "R", second, 2 * second, None)
    assert (used.threads, used.memory_mb, used.ran_seconds, used.waited_seconds) == (1, 3.0, 1.0, 2.0)
    used = measured(monkeypatch, 13.0, "R", second, 2 * second, used)
    used = measured(monkeypatch, 14.0, "R", second, 2 * second, used)
    assert (used.waiting_seconds, used.waited_seconds) == (4.0, 6.0)
    used = measured(monkeypatch, 15.0, "R", second + 1, 7 * second, used)  # it ran: the kernel has counted it all
    assert (used.waiting_seconds, used.waited_seconds) == (0.0, 7.0)
    used = measured(monkeypatch, 20.0, "S", second + 1, 7 * second, used)  # asleep by its own will
    assert used.waited_seconds == 7.0
