"""What the reference solutions of evalplus sets give: computed once in the sandbox, kept on disk, small."""

import hashlib
import json
import lzma
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ba_eval.benchmark.problem import CodeTask, EvalplusTest
from ba_eval.execution.wire import WireError, decode, encode

LARGEST_KEPT = 1024
"""Bytes of an encoded output; of a larger one only the digest is kept."""
_FORMAT = 3


@dataclass(frozen=True)
class Digest:
    """Stands for a large output: equal bytes mean an equal output; with others, only the output itself can tell."""

    sha256: str

    def matches(self, output: Any) -> bool:
        try:
            return _digest(encode(output)) == self.sha256
        except WireError:  # larger than anything that crosses the wall
            return False


class Expected(NamedTuple):
    """What the reference gave for one input."""

    kept: bytes | Digest | None
    """The output as it comes over the wire, or its digest."""
    cpu_seconds: float
    failure: str | None = None
    """Why there is no output: the reference itself failed on this input."""

    @property
    def output(self) -> Any:
        """Plain data, or its `Digest`."""
        return decode(self.kept) if isinstance(self.kept, bytes) else self.kept

    @property
    def passing(self) -> bytes | str | None:
        """What an equal output's bytes are, or their SHA-256; None where no output equals it (NaN within)."""
        if isinstance(self.kept, Digest):
            return self.kept.sha256
        # Never within a text, whose quotes are escaped.
        return None if self.kept is None or b'{"n":' in self.kept else self.kept


Compute = Callable[[CodeTask], Sequence[Expected]]
"""Runs the reference of an evalplus problem on all base inputs, then on all plus inputs."""


class ExpectedOutputs:
    """The expected outputs of evalplus problems by content: tests and Python version; computed where not on disk.

    Safe to use from several threads; no problem is computed twice.
    """

    def __init__(self, compute: Compute, folder: Path | None = None) -> None:
        self._compute = compute
        self._folder = folder or default_folder()
        self._known: dict[str, list[Expected]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def of(self, task: CodeTask) -> list[Expected]:
        """Expected outputs of all base inputs, then of all plus inputs."""
        with self._lock:
            lock = self._locks.setdefault(task.digest, threading.Lock())
        with lock:
            if task.digest not in self._known:
                path = self._path(task)
                kept = _read(path, task)
                if kept is None:
                    kept = [_small(expected) for expected in self._compute(task)]
                    _write(path, kept)
                self._known[task.digest] = kept
            return self._known[task.digest]

    def cpu_seconds(self, task: CodeTask) -> float:
        """What the reference takes for all inputs; 0 where that is not known yet."""
        if self._path(task).exists():
            return sum(expected.cpu_seconds for expected in self.of(task))
        return 0.0

    def _path(self, task: CodeTask) -> Path:
        version = f"{_FORMAT} {sys.version_info.major}.{sys.version_info.minor}"
        return self._folder / f"{hashlib.sha256(f'{version} {task.digest}'.encode()).hexdigest()[:32]}.json.xz"


def default_folder() -> Path:
    """`$XDG_CACHE_HOME/ba-eval/expected`."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "ba-eval" / "expected"


def _digest(encoded: bytes) -> str:
    return hashlib.sha256(encoded).hexdigest()


def _small(expected: Expected) -> Expected:
    if not isinstance(expected.kept, bytes) or len(expected.kept) <= LARGEST_KEPT:
        return expected
    return Expected(Digest(_digest(expected.kept)), expected.cpu_seconds)


def _read(path: Path, task: CodeTask) -> list[Expected] | None:
    assert isinstance(task.tests, EvalplusTest)
    try:
        rows = [_expected(*row) for row in json.loads(lzma.decompress(path.read_bytes()))]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, lzma.LZMAError):
        return None  # torn by a crash, or not ours: computed anew
    return rows if len(rows) == len(task.tests.base_input) + len(task.tests.plus_input) else None


def _expected(kind: str, text: str, seconds: float) -> Expected:
    if kind == "value":
        return Expected(text.encode(), seconds)
    return Expected(Digest(text), seconds) if kind == "digest" else Expected(None, seconds, failure=text)


def _write(path: Path, outputs: Sequence[Expected]) -> None:
    rows: list[tuple[str, str | None, float]] = []
    for expected in outputs:
        seconds = round(expected.cpu_seconds, 4)
        if isinstance(expected.kept, bytes):
            rows.append(("value", expected.kept.decode(), seconds))
        elif expected.kept is not None:
            rows.append(("digest", expected.kept.sha256, seconds))
        else:
            rows.append(("failure", expected.failure, seconds))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            file.write(lzma.compress(json.dumps(rows).encode()))
        Path(file.name).replace(path)
    except OSError:
        pass  # a cache that cannot be written costs time, nothing else
