"""Fetches checkpoints from the hub while others are evaluated."""

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ba_eval.errors import BaEvalError, InputError, MachineError


@dataclass(frozen=True)
class Fetched:
    """A model is in the hub's cache, or could not be fetched."""

    error: BaEvalError | None


class Prefetch:
    """Fetches one model after the other, each in a process of its own, so that Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def start(self, models: Sequence[tuple[str, str]], done: Callable[[str, Fetched], None]) -> None:
        """Fetches each (name, hub id) in the background; `done(name, ...)` is told of each."""
        if models:
            threading.Thread(target=self._run, args=(models, done), name="prefetch", daemon=True).start()

    def close(self) -> None:
        """Ends what is under way."""
        self._closed = True
        if self._process is not None:
            self._process.kill()

    def _run(self, models: Sequence[tuple[str, str]], done: Callable[[str, Fetched], None]) -> None:
        for name, path in models:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ba_eval.prefetch", name, path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C in the terminal is the parent's to handle
            )
            if self._closed:
                self._process.kill()
            _, errors = self._process.communicate()
            if self._closed:
                return
            code = self._process.returncode
            text = (errors.strip().splitlines() or [f"{path}: fetching it ended with exit code {code}"])[-1]
            done(name, Fetched(None if code == 0 else InputError(text) if code == 2 else MachineError(text)))


def main(name: str, path: str) -> int:
    from ba_eval.checkpoint import resolve

    try:
        resolve(name, path)
    except BaEvalError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
