"""The tables: one set of numbers (`summarise`), many formats."""

from pathlib import Path
from typing import TYPE_CHECKING

from ba_eval.errors import InputError
from ba_eval.results import Results
from ba_eval.tables.numbers import Summary, summarise

if TYPE_CHECKING:
    import pandas

FORMATS = ("text", "markdown", "csv", "latex", "json")

__all__ = ["FORMATS", "Summary", "frame", "print_table", "render", "summarise", "write_summary"]


def render(results: Results, format: str = "text", ks: tuple[int, ...] | None = None, maj: tuple[int, ...] = ()) -> str:
    """The table of a run in one of `FORMATS`. `ks` are the k of pass@k, by default those of the plan;
    `maj` those of maj@k, which needs results loaded with answers.

    Raises InputError for an unknown format.
    """
    from ba_eval.tables import export, formats, layout

    summary = summarise(results, ks, maj)
    if format == "csv":
        return export.csv(export.records(summary))
    if format == "json":
        return export.json(summary)
    if format not in formats.RENDERERS:
        raise InputError(f"unknown table format {format!r}; there are: {', '.join(FORMATS)}")
    return formats.RENDERERS[format](layout.sheet(summary))


def print_table(results: Results, ks: tuple[int, ...] | None = None, maj: tuple[int, ...] = ()) -> None:
    """Prints the table of a run on the terminal, split by columns where the terminal is too narrow."""
    from ba_eval.tables import layout
    from ba_eval.tables.terminal import print_sheet

    print_sheet(layout.sheet(summarise(results, ks, maj)))


def write_summary(run: Path, results: Results) -> None:
    """Writes `summary.json` of a run folder: the numbers of its table, as docs/statistics.md describes them."""
    from ba_eval.store import write_atomically
    from ba_eval.tables import export

    write_atomically(run / "summary.json", [export.json(summarise(results)).encode()])


def frame(results: Results, ks: tuple[int, ...] | None = None, maj: tuple[int, ...] = ()) -> "pandas.DataFrame":
    """The numbers as a pandas data frame, one row a model and benchmark, NaN what is undefined."""
    import pandas

    from ba_eval.tables import export

    return pandas.DataFrame(export.records(summarise(results, ks, maj)))
