"""Which level of isolation holds on this machine: found out by trying it."""

import functools
from dataclasses import dataclass
from typing import Any

from ba_eval.errors import InputError, MachineError
from ba_eval.execution.runtime import find_bwrap
from ba_eval.execution.worker import Worker

LEVELS = {1: "namespaces through bubblewrap", 2: "Landlock, seccomp and limits"}


@dataclass(frozen=True)
class Layer:
    """One part of the sandbox, tried for real."""

    level: int
    name: str
    holds: bool
    text: str = ""


@functools.cache
def _starts(level: int) -> str | None:
    """Starts a worker of the level and stops it; returns what failed, None where nothing did."""
    if level == 1 and find_bwrap() is None:
        return "bubblewrap is not installed"
    try:
        Worker(level).close()
    except (MachineError, OSError) as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Report:
    """What was tried, and the best level that holds (None: none does)."""

    level: int | None
    layers: tuple[Layer, ...]

    def as_json(self) -> dict[str, Any]:
        return {"level": self.level, "layers": [vars(layer) for layer in self.layers]}

    def as_text(self) -> str:
        lines = [
            f"{'yes' if layer.holds else 'no ':3}  level {layer.level}  {layer.name}"
            + f": {layer.text}" * bool(layer.text)
            for layer in self.layers
        ]
        best = "no sandbox on this machine" if self.level is None else f"isolation level {self.level}"
        return "\n".join([*lines, best])


def check(level: int | None = None) -> Report:
    """Tries the layers of each level (or of one) and says which hold."""
    layers = []
    for number, name in LEVELS.items():
        if level in (None, number):
            failure = _starts(number)
            layers.append(Layer(number, name, failure is None, failure or ""))
    return Report(next((layer.level for layer in layers if layer.holds), None), tuple(layers))


def probe_level(level: int | None = None, unsafe: bool = False) -> int:
    """Returns the level that holds: the forced one, or the best. 0 where none holds and `unsafe` allows it.

    InputError: none holds, or not the one that was asked for.
    """
    if level is not None and level not in (0, *LEVELS):
        raise InputError(f"no sandbox level {level}: 1 or 2")
    failures = []
    for number in LEVELS if level is None else [level]:
        if number == 0:
            break
        failure = _starts(number)
        if failure is None:
            return number
        failures.append(f"level {number}: {failure}")
    if unsafe:
        return 0
    raise InputError("no sandbox on this machine: " + "; ".join(failures))
