"""vLLM in a child process: when it exits, the operating system has the GPU memory back."""

import itertools
import re
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.checkpoint import Checkpoint
from ba_eval.engine.child import Child
from ba_eval.engine.request import Completion, Request
from ba_eval.engine.vllm_args import model_args, needs_hub, parse_engine_args, vllm_folder
from ba_eval.engine.wire import Abort, Ask, Done, Ready

STALL_SECONDS = 600.0


def preload(
    engine_args: Mapping[str, Any], *, trust_remote_code: bool = False, environment: Mapping[str, str] | None = None
) -> Child:
    """Starts a process that imports vLLM while the run is still being prepared; for `VllmEngine(child=...)`.

    `environment`: variables of its own, as the devices that it may use.

    Raises InputError where vLLM is not installed.
    """
    return Child(offline=not needs_hub(engine_args, trust_remote_code), environment=environment)


class VllmEngine:
    """An `Engine` (see engine/request.py) that generates with vLLM on this machine's devices.

    One child process holds the model. Requests stream to it and completions stream back as they finish; it always has
    more requests than it can run at once, and never more than a small multiple of that.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        engine_args: Mapping[str, Any] | None = None,
        max_model_len: int | None = None,
        *,
        log_path: Path,
        stall_seconds: float = STALL_SECONDS,
        child: Child | None = None,
    ) -> None:
        """Starts the child and waits until the model is loaded.

        `max_model_len`: the longest prompt + response of the run in tokens; capped by what the model can.
        `engine_args` win over everything. `log_path` receives all that vLLM prints. `child`: one from `preload`, which
        belongs to this engine from now on.
        Raises InputError where vLLM is not installed, or refuses an argument or the model; MachineError where the
        engine fails to start (out of memory, a device in use).
        """
        vllm_folder()  # raises where there is none
        self._stall_seconds = stall_seconds
        self._serial = itertools.count()
        given = engine_args or {}
        self._child = child or preload(given, trust_remote_code=checkpoint.trust_remote_code)
        try:
            args = model_args(checkpoint, parse_engine_args(given), max_model_len)
            self._child.load(checkpoint.name, args, checkpoint.adapter, Path(log_path))
            ready = self._child.receive(timeout=None)
            assert isinstance(ready, Ready)
        except BaseException:
            self.close()
            raise
        backend = ready.info.get("attention_backend") or self._logged_backend()
        self.info: Mapping[str, Any] = ready.info | {"attention_backend": backend}
        self._window = 2 * ready.slots

    def generate(self, requests: Iterable[Request]) -> Generator[Completion, None, None]:
        """Yields one completion per request as it finishes.

        Raises MachineError when the engine dies, or makes no token for `stall_seconds`.
        """
        source = iter(requests)
        waiting: dict[str, str] = {}  # our id -> the caller's: unique even over calls that were given up
        try:
            while True:
                for request in itertools.islice(source, self._window - len(waiting)):
                    serial = str(next(self._serial))
                    waiting[serial] = request.id
                    self._child.send(Ask(msgspec.structs.replace(request, id=serial)))
                if not waiting:
                    return
                message = self._child.receive(timeout=self._stall_seconds)
                if isinstance(message, Done) and message.completion.id in waiting:
                    caller_id = waiting.pop(message.completion.id)
                    yield msgspec.structs.replace(message.completion, id=caller_id)
        finally:
            if waiting:
                self._child.send(Abort())

    def close(self) -> None:
        """Ends the child and everything it started. Safe to call twice, and while a generation is under way."""
        self._child.close()

    def _logged_backend(self) -> str | None:
        """Which attention backend vLLM chose, where its workers are processes of their own: the log alone tells."""
        found = re.search(r"Using (\S+) (?:attention )?backend", self._child.printed())
        return found[1] if found else None
