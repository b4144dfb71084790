"""Runs things side by side, and alone what must not suffer from its neighbours."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Any number of runs at a time, or one alone. A run that waits to be alone goes before later ones."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._waiting_alone = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._running >= 0 and not self._waiting_alone)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._waiting_alone += 1
            self._changed.wait_for(lambda: self._running == 0)
            self._waiting_alone -= 1
            self._running = -1
        try:
            yield
        finally:
            with self._changed:
                self._running = 0
                self._changed.notify_all()

    def crowded(self) -> bool:
        """Whether more runs than there are cores, ours or anyone's."""
        cores = len(os.sched_getaffinity(0))
        return self._running > cores or os.getloadavg()[0] > cores + 1
