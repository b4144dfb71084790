"""The whole checkpoints of a training run's folder."""

from pathlib import Path

RECORD = "training.json"
"""Written last into a checkpoint, so that it marks a whole one."""


def checkpoints(out: Path) -> dict[int, Path]:
    """Returns the whole checkpoints of a run folder by step, in order."""
    found = {int(file.parent.name.partition("-")[2]): file.parent for file in out.glob(f"checkpoint-*/{RECORD}")}
    return dict(sorted(found.items()))
