"""Which of these checkpoints is better at reasoning and code, and is the difference real?"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ba_eval.results import Results

__version__ = "0.1.0"


def load(run: str | Path, *, answers: bool = False) -> "Results":
    """Reads a run folder; `load(run).table()` is its table as a data frame. See `ba_eval.results.load`."""
    from ba_eval import results

    return results.load(run, answers=answers)
