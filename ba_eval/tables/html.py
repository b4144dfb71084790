"""Sheets as one self-contained HTML page: no script, no request, light and dark."""

from collections.abc import Sequence
from html import escape as escape_html

from ba_eval.tables.escape import plain
from ba_eval.tables.sheet import Cell, Column, Sheet

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0 0.5rem; }
caption { text-align: left; font-weight: 600; padding-bottom: 0.5rem; }
th, td { padding: 0.35rem 0.75rem; text-align: right; vertical-align: top; border-bottom: 1px solid #8885; }
th { font-weight: normal; } thead th { font-weight: 600; } .label { text-align: left; }
td span, th span { display: block; min-height: 1.45em; }
.best { font-weight: 700; } .second { text-decoration: underline; }
.faint { font-size: 0.8em; opacity: 0.75; } .warn { color: light-dark(#9a3412, #fdba74); }
ul { padding-left: 1.2rem; }
"""


def page(title: str, sheets: Sequence[Sheet]) -> str:
    """A page of tables."""
    body = "\n".join(map(table, sheets))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{text(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{text(title)}</h1>
{body}
</body>
</html>
"""


def table(sheet: Sheet, *, caption: bool = True, sortable: bool = False) -> str:
    """A sheet as a table in a box that scrolls sideways, its notes below.

    `sortable` marks the headers of columns by whose first lines a script may sort. Without `caption` the title is
    there for screen readers alone.
    """
    first = next((number for number, column in enumerate(sheet.columns) if column.label), None)
    header = "".join(
        _header(column, sortable and (number == first or not column.label))
        for number, column in enumerate(sheet.columns)
    )
    rows = []
    for row in sheet.rows:
        cells = [
            f'<th scope="row" class="label">{_lines(cell)}</th>'
            if number == first
            else f"<td{_label(column.label)}>{_lines(cell)}</td>"
            for number, (column, cell) in enumerate(zip(sheet.columns, row, strict=True))
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    notes = "".join(f"<li>{text(note, 2000)}</li>" for note in sheet.notes)
    return f"""<div class="wide" tabindex="0" role="group" aria-label="{text(sheet.title)}"><table>
<caption{"" if caption else ' class="unseen"'}>{text(sheet.title)}</caption>
<thead><tr>{header}</tr></thead>
<tbody>
{chr(10).join(rows)}
</tbody>
</table></div>
{f'<ul class="notes">{notes}</ul>' if notes else ""}"""


def _header(column: Column, sorts: bool) -> str:
    if not any(column.header):
        return f"<td{_label(column.label)}></td>"
    lines = "".join(f"<span>{text(part)}</span>" for part in column.header)
    return f'<th scope="col"{_label(column.label)}{" data-sort" if sorts else ""}>{lines}</th>'


def _lines(cell: Cell) -> str:
    return "".join(
        f'<span class="{line.style}">{text(line.text)}</span>' if line.style else f"<span>{text(line.text)}</span>"
        for line in cell
    )


def _label(label: bool) -> str:
    return ' class="label"' if label else ""


def text(content: str, limit: int = 200) -> str:
    """Text for HTML, in an element or an attribute: one line, without control characters, cut at `limit`."""
    return escape_html(plain(content, limit))
