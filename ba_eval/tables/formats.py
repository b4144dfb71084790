"""A sheet as plain text, Markdown or LaTeX."""

from collections.abc import Callable, Sequence

from ba_eval.tables import escape
from ba_eval.tables.sheet import Cell, Line, Sheet
from ba_eval.tables.terminal import text


def markdown(sheet: Sheet) -> str:
    """A Markdown table, lines of a cell parted by <br>."""
    styles = {"": "{}", "best": "**{}**", "second": "<u>{}</u>", "faint": "<sub>{}</sub>", "warn": "*{}*"}

    def line(line: Line) -> str:
        return styles[line.style].format(escape.markdown(line.text)) if line.text else ""

    header = ["<br>".join([escape.markdown(part) for part in column.header]) for column in sheet.columns]
    rule = [":---" if column.label else "---:" for column in sheet.columns]
    rows = [["<br>".join([line(part) for part in cell]) for cell in row] for row in sheet.rows]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])
    notes = "\n".join(f"- {escape.markdown(note)}" for note in sheet.notes)
    return "\n\n".join(part for part in (f"**{escape.markdown(sheet.title)}**", table, notes) if part) + "\n"


def latex(sheet: Sheet) -> str:
    """A LaTeX table for the booktabs package, intervals in small print."""
    styles = {
        "": "{}",
        "best": r"\textbf{{{}}}",
        "second": r"\underline{{{}}}",
        "faint": r"{{\scriptsize {}}}",
        "warn": r"\textit{{{}}}",
    }

    def lines(parts: Sequence[str], label: bool) -> str:
        stack = " \\\\ ".join(parts)
        return stack if len(parts) < 2 else rf"\shortstack[{'l' if label else 'r'}]{{{stack}}}"

    def cell(cell: Cell, label: bool) -> str:
        return lines([styles[line.style].format(escape.latex(line.text)) for line in cell], label)

    labels = [column.label for column in sheet.columns]
    header = [lines([escape.latex(part) for part in column.header], column.label) for column in sheet.columns]
    rows = [[cell(c, label) for c, label in zip(row, labels, strict=True)] for row in sheet.rows]
    body = " \\\\\n\\addlinespace\n".join(" & ".join(row) for row in rows)
    notes = " ".join(escape.latex(note) for note in sheet.notes)
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape.latex(sheet.title)}}}",
            rf"\begin{{tabular}}{{{''.join('l' if label else 'r' for label in labels)}}}",
            r"\toprule",
            " & ".join(header) + r" \\",
            r"\midrule",
            body + r" \\",
            r"\bottomrule",
            r"\end{tabular}",
            *([rf"\par\smallskip\footnotesize {notes}"] if notes else []),
            r"\end{table}",
            "",
        ]
    )


RENDERERS: dict[str, Callable[[Sheet], str]] = {"text": text, "markdown": markdown, "latex": latex}
