"""A sheet on a terminal, through rich."""

import io
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ba_eval.tables.escape import plain
from ba_eval.tables.sheet import Cell, Line, Sheet

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from ba_eval.console import OutputConsole

_STYLES = {"": "", "best": "bold", "second": "underline", "faint": "dim", "warn": "yellow"}
# Where no style can be seen.
_SIGNS = {"best": "*", "second": "'"}
_WIDE = 100_000
NOTE = 2000  # the longest note, in characters


def print_sheet(sheet: Sheet) -> None:
    """Prints to standard output; wider than the terminal, the columns are split over several tables."""
    from ba_eval.console import OutputConsole

    console = OutputConsole(file=sys.stdout, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console = OutputConsole(file=sys.stdout, highlight=False, emoji=False, markup=False, width=_WIDE)
    _print(console, sheet)


def text(sheet: Sheet) -> str:
    """The sheet as plain text, as wide as it needs."""
    from ba_eval.console import OutputConsole

    file = io.StringIO()
    _print(OutputConsole(file=file, highlight=False, emoji=False, markup=False, width=_WIDE, color_system=None), sheet)
    return file.getvalue()


def _print(console: "OutputConsole", sheet: Sheet) -> None:
    from rich.text import Text

    console.print(Text(plain(sheet.title), style="bold"), soft_wrap=True)
    if console.color_system is None:
        sheet = replace(sheet, rows=[[tuple(map(_signed, cell)) for cell in row] for row in sheet.rows])
    for table in _split(console, sheet):
        console.print(table)
    for note in sheet.notes:
        console.print(Text(plain(note, limit=NOTE)), soft_wrap=not console.is_terminal)


def _signed(line: Line) -> Line:
    return replace(line, text=_SIGNS.get(line.style, "") + line.text) if line.text[:1].isdigit() else line


def _split(console: "OutputConsole", sheet: Sheet) -> list["Table"]:
    """Tables of as many columns as fit, the label columns on the left of each."""
    labels = [number for number, column in enumerate(sheet.columns) if column.label]
    rest = [number for number, column in enumerate(sheet.columns) if not column.label]
    tables = []
    while True:
        count = len(rest)
        while count > 1 and _width(console, _table(sheet, labels + rest[:count])) > console.width:
            count -= 1
        tables.append(_table(sheet, labels + rest[:count]))
        rest = rest[count:]
        if not rest:
            return tables


def _width(console: "OutputConsole", table: "Table") -> int:
    return console.measure(table, options=console.options.update(width=_WIDE)).maximum


def _table(sheet: Sheet, chosen: list[int]) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_lines=any(len(cell) > 1 for row in sheet.rows for cell in row))
    for column in (sheet.columns[number] for number in chosen):
        header = Text("\n".join(map(plain, column.header)))
        table.add_column(header, justify="left" if column.label else "right", no_wrap=not column.label)
    for row in sheet.rows:
        table.add_row(*(_cell(row[number]) for number in chosen))
    return table


def _cell(cell: Cell) -> "Text":
    from rich.text import Text

    return Text("\n").join(Text(plain(line.text), style=_STYLES[line.style]) for line in cell)
