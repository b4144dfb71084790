"""Finds folders: those that ship with the package, in a checkout and a wheel alike, and those that a user names."""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """Returns the folder `benchmarks` or `sandbox`.

    In a wheel they lie under `ba_eval/_data`; in a checkout (or an editable install) beside the package.
    """
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def user_path(text: str) -> Path:
    """Returns the path with `~` replaced by the home folder; as it is where there is no such user."""
    return Path(os.path.expanduser(text))  # noqa: PTH111  (Path.expanduser raises for an unknown user)
