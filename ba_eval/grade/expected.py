"""What the reference solutions of evalplus sets give: computed once in the sandbox, kept on disk, small."""

import hashlib
import json
import lzma
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ba_eval.benchmark.problem import EvalplusTest
from ba_eval.execution.wire import decode, encode

LARGEST_KEPT = 1024
"""Bytes of an encoded output; of a larger one only the digest is kept."""
_FORMAT = 2


@dataclass(frozen=True)
class Digest:
    """Stands for a large output: equal bytes mean an equal output; with others, only the output itself can tell."""

    sha256: str

    def matches(self, output: Any) -> bool:
        return _digest(encode(output)) == self.sha256


@dataclass(frozen=True)
class Expected:
    """What the reference gave for one input."""

    output: Any
    """Plain data, or its `Digest`."""
    cpu_seconds: float
    failure: str | None = None
    """Why there is no output: the reference itself failed on this input."""
    encoded: bytes | None = field(default=None, compare=False, repr=False)
    """The output as it comes over the wire, where it is kept and equal to itself (no NaN within)."""


Compute = Callable[[EvalplusTest, str], Sequence[Expected]]


class ExpectedOutputs:
    """The expected outputs of problems by content: reference, inputs and Python version; computed where not on disk.

    Safe to use from several threads; no problem is computed twice.
    """

    def __init__(self, compute: Compute, folder: Path | None = None) -> None:
        self._compute = compute
        self._folder = folder or default_folder()
        self._known: dict[str, list[Expected]] = {}
        self._keys: dict[tuple[int, str], str] = {}
        self._bodies: dict[int, tuple[EvalplusTest, list[bytes]]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def of(self, test: EvalplusTest, entry_point: str) -> list[Expected]:
        """Expected outputs of all base inputs, then of all plus inputs."""
        with self._lock:
            if (id(test), entry_point) not in self._keys:
                self._keys[id(test), entry_point] = self._key(test, entry_point)
            key = self._keys[id(test), entry_point]
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._known:
                path = self._folder / f"{key}.json.xz"
                kept = _read(path)
                if kept is None or len(kept) != len(test.base_input) + len(test.plus_input):
                    kept = [_small(expected) for expected in self._compute(test, entry_point)]
                    _write(path, kept)
                self._known[key] = kept
            return self._known[key]

    def bodies(self, test: EvalplusTest) -> list[bytes]:
        """The calls of all base inputs, then of all plus inputs, encoded once for all programs."""
        if id(test) not in self._bodies:
            inputs = [*test.base_input, *test.plus_input]
            self._bodies[id(test)] = test, [encode((tuple(arguments), {})) for arguments in inputs]
        return self._bodies[id(test)][1]

    def _key(self, test: EvalplusTest, entry_point: str) -> str:
        version = f"{_FORMAT} {sys.version_info.major}.{sys.version_info.minor}"
        digest = hashlib.sha256(repr((version, test.dataset, test.reference, entry_point)).encode())
        for body in self.bodies(test):
            digest.update(body + b"\n")  # JSON without line ends
        return digest.hexdigest()[:32]


def default_folder() -> Path:
    """`$XDG_CACHE_HOME/ba-eval/expected`."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "ba-eval" / "expected"


def _digest(encoded: bytes) -> str:
    return hashlib.sha256(encoded).hexdigest()


def _small(expected: Expected) -> Expected:
    if expected.failure is not None:
        return expected
    encoded = encode(expected.output)
    if len(encoded) <= LARGEST_KEPT:
        return replace(expected, encoded=_equal_to_itself(encoded))
    return Expected(Digest(_digest(encoded)), expected.cpu_seconds)


def _read(path: Path) -> list[Expected] | None:
    try:
        rows = json.loads(lzma.decompress(path.read_bytes()))
        return [_expected(*row) for row in rows]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, lzma.LZMAError):
        return None  # torn by a crash, or not ours: computed anew


def _expected(kind: str, text: str, seconds: float) -> Expected:
    if kind == "value":
        encoded = text.encode()
        return Expected(decode(encoded), seconds, encoded=_equal_to_itself(encoded))
    return Expected(Digest(text), seconds) if kind == "digest" else Expected(None, seconds, failure=text)


def _equal_to_itself(encoded: bytes) -> bytes | None:
    return None if b'{"n":' in encoded else encoded  # never within a text, whose quotes are escaped


def _write(path: Path, outputs: Sequence[Expected]) -> None:
    rows = []
    for expected in outputs:
        seconds = round(expected.cpu_seconds, 4)
        if expected.failure is not None:
            rows.append(("failure", expected.failure, seconds))
        elif isinstance(expected.output, Digest):
            rows.append(("digest", expected.output.sha256, seconds))
        else:
            rows.append(("value", encode(expected.output).decode(), seconds))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            file.write(lzma.compress(json.dumps(rows).encode()))
        Path(file.name).replace(path)
    except OSError:
        pass  # a cache that cannot be written costs time, nothing else
