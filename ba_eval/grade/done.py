"""A future for a verdict that is at hand at once."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")
_making = threading.Lock()


class Done(Future[_T], Generic[_T]):
    """A future with its result from the start.

    An ordinary one has a lock and a queue, which cost more to make than most verdicts. Here they are made when
    something looks at them, as `concurrent.futures.wait` and `as_completed` do.
    """

    def __init__(self, result: _T) -> None:
        self._at_hand = result

    def __getattr__(self, name: str) -> Any:
        if name not in ("_condition", "_state", "_result", "_exception", "_waiters", "_done_callbacks"):
            raise AttributeError(name)
        with _making:
            if name not in vars(self):
                made: Future[_T] = Future()
                made.set_result(self._at_hand)
                vars(self).update(vars(made))
        return vars(self)[name]

    def result(self, timeout: float | None = None) -> _T:
        return self._at_hand

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return None

    def done(self) -> bool:
        return True

    def running(self) -> bool:
        return False

    def cancel(self) -> bool:
        return False

    def cancelled(self) -> bool:
        return False

    def add_done_callback(self, fn: Callable[[Future[_T]], object]) -> None:
        try:
            fn(self)
        except Exception:  # as an ordinary future does
            logging.getLogger("concurrent.futures").exception("exception calling callback for %r", self)
