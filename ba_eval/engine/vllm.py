"""vLLM in a child process: when it exits, the operating system has the GPU memory back."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ba_eval.checkpoint import Checkpoint
from ba_eval.engine.child import Child
from ba_eval.engine.remote import RemoteEngine
from ba_eval.engine.vllm_args import model_args, needs_hub, parse_engine_args, vllm_folder

STALL_SECONDS = 600.0


def preload(
    engine_args: Mapping[str, Any], *, trust_remote_code: bool = False, environment: Mapping[str, str] | None = None
) -> Child:
    """Starts a process that imports vLLM while the run is still being prepared; for `VllmEngine(child=...)`.

    `environment`: variables of its own, as the devices that it may use.

    Raises InputError where vLLM is not installed.
    """
    vllm_folder()
    return Child(offline=not needs_hub(engine_args, trust_remote_code), environment=environment)


class VllmEngine(RemoteEngine):
    """An `Engine` (see engine/request.py) that generates with vLLM on this machine's devices."""

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
        given = engine_args or {}
        child = child or preload(given, trust_remote_code=checkpoint.trust_remote_code)
        try:
            args = model_args(checkpoint, parse_engine_args(given), max_model_len)
            child.load(checkpoint.name, args, checkpoint.adapter, Path(log_path))
        except BaseException:
            child.close()
            raise
        super().__init__(child, stall_seconds)
        backend = self.info.get("attention_backend") or _logged_backend(child.printed())
        self.info = {**self.info, "attention_backend": backend}


def _logged_backend(log: str) -> str | None:
    """Which attention backend vLLM chose, where its workers are processes of their own: the log alone tells."""
    found = re.search(r"Using (\S+) (?:attention )?backend", log)
    return found[1] if found else None
