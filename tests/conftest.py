"""Fixtures that several test modules share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real benchmark data, published verdicts and failure reports that lies beside the checkout."""
    folder = Path(os.environ.get("BA_EVAL_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"needs the shared test data, which is not at {folder} (set BA_EVAL_SHARED)")
    return folder
