"""JSON files whose errors name the file."""

import json
from pathlib import Path
from typing import Any

from ba_eval.errors import InputError


def read_object(file: Path) -> dict[str, Any]:
    """Reads a JSON object. Raises InputError where the file cannot be read or holds something else."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{file}: not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file}: must hold a JSON object")
    return data


def read_if_sound(file: Path) -> dict[str, Any]:
    """Reads a JSON object that its reader can do without: empty where there is none, or where it is damaged."""
    try:
        return read_object(file)
    except InputError:
        return {}
