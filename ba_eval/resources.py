"""Finds the data folders that ship with the package, in a checkout and in an installed wheel alike."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """Returns the folder `benchmarks` or `sandbox`.

    In a wheel they lie under `ba_eval/_data`; in a checkout (or an editable install) beside the package.
    """
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
