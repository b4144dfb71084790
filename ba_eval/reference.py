"""Published numbers that a table shows beside measured ones, marked as someone else's."""

from pathlib import Path

import msgspec

from ba_eval.errors import InputError
from ba_eval.yaml_file import read_yaml


class ReferenceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published setting."""

    model: str
    data: str
    scores: dict[str, float]
    """Aggregation rule -> suite mean, a share."""


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file such as results/paper.yaml."""

    source: str
    measure: str
    rows: tuple[ReferenceRow, ...]


def read_reference(path: Path) -> Reference:
    """Reads published numbers. Raises InputError where the file is not such a file."""
    reference = read_yaml(path, Reference)
    for row in reference.rows:
        for rule, score in row.scores.items():
            if not 0 <= score <= 1:
                raise InputError(f"{path}: {row.model}, {row.data}, {rule}: {score:g} is not a share between 0 and 1")
    return reference
