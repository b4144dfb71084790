"""An engine whose work is done in a child process."""

import itertools
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import msgspec

from ba_eval.engine.child import Child
from ba_eval.engine.request import Completion, Request
from ba_eval.engine.wire import Abort, Ask, Done, Note, Ready


class RemoteEngine:
    """An `Engine` (see engine/request.py): requests stream to a child and completions stream back as they finish.

    The child always has more requests than it can run at once, and never more than a small multiple of that.
    """

    def __init__(
        self, child: Child, stall_seconds: float | None = None, note: Callable[[str], None] = lambda text: None
    ) -> None:
        """Waits until the child, which was told what to load, is ready; it belongs to this engine from now on.

        `stall_seconds`: how long it may be silent while requests wait. `note` gets what the user should know of.
        Raises what the child reports.
        """
        self._child, self._stall_seconds, self._note = child, stall_seconds, note
        self._serial = itertools.count()
        try:
            while (ready := next((m for m in self._receive(None) if isinstance(m, Ready)), None)) is None:
                pass
        except BaseException:
            self.close()
            raise
        self.info: Mapping[str, Any] = ready.info
        self._window = 2 * ready.slots

    def generate(self, requests: Iterable[Request]) -> Generator[list[Completion], None, None]:
        """Yields completions as they finish, one per request, in lists of what came together.

        Raises MachineError when the engine dies, or makes no token for `stall_seconds`.
        """
        source = iter(requests)
        waiting: dict[str, str] = {}  # our id -> the caller's: unique even over calls that were given up
        try:
            while True:
                asked = []
                for request in itertools.islice(source, self._window - len(waiting)):
                    serial = str(next(self._serial))
                    waiting[serial] = request.id
                    asked.append(Ask(msgspec.structs.replace(request, id=serial)))
                if not waiting:
                    return
                self._child.send(*asked)
                finished = [
                    msgspec.structs.replace(message.completion, id=waiting.pop(message.completion.id))
                    for message in self._receive(self._stall_seconds)
                    if isinstance(message, Done) and message.completion.id in waiting
                ]
                if finished:
                    yield finished
        finally:
            if waiting:
                self._child.send(Abort())

    def _receive(self, timeout: float | None) -> list[Any]:
        """Returns the child's next messages; what it notes is passed on."""
        messages = self._child.receive(timeout)
        for message in messages:
            if isinstance(message, Note):
                self._note(message.text)
        return messages

    def close(self) -> None:
        """Ends the child and everything it started. Safe to call twice, and while a generation is under way."""
        self._child.close()
