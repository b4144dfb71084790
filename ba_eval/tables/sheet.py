"""A table before it has a format: cells of a few short lines, unescaped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ba_eval.stats import Estimate

Style = Literal["", "best", "second", "faint", "warn"]


@dataclass(frozen=True)
class Line:
    """One line of a cell."""

    text: str
    style: Style = ""


Cell = tuple[Line, ...]


@dataclass(frozen=True)
class Column:
    """A column's header; `label` columns stand on the left and are repeated where a table is split."""

    header: tuple[str, ...]
    label: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table with a title above and notes below."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


def cell(*lines: str | Line) -> Cell:
    """A cell of these lines."""
    return tuple(line if isinstance(line, Line) else Line(line) for line in lines)


def percent(share: float, digits: int = 1) -> str:
    """A share as percent without the sign; "-" for NaN."""
    return "-" if math.isnan(share) else f"{100 * share:.{digits}f}"


def interval(estimate: Estimate, digits: int = 1) -> str:
    """The interval in percent."""
    if math.isnan(estimate.low):
        return "-"
    return f"[{percent(estimate.low, digits)}, {percent(estimate.high, digits)}]"


def signed(value: float, digits: int) -> str:
    """A difference with its sign, none where it rounds to zero; "-" for NaN."""
    if math.isnan(value):
        return "-"
    text = f"{value:+,.{digits}f}"
    return text if text.strip("+-0.,") else text[1:]


def number(value: float) -> str:
    """A count or mean without decimals; "-" for NaN."""
    return "-" if math.isnan(value) else f"{value:,.0f}"
