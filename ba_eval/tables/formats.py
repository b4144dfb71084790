"""A sheet as plain text, Markdown or LaTeX."""

from collections.abc import Callable, Sequence
from itertools import zip_longest

from ba_eval.tables import escape
from ba_eval.tables.sheet import Cell, Line, Sheet
from ba_eval.tables.terminal import NOTE, text


def markdown(sheet: Sheet) -> str:
    """A Markdown table, lines of a cell parted by <br>."""
    styles = {"": "{}", "best": "**{}**", "second": "<u>{}</u>", "faint": "<sub>{}</sub>", "warn": "*{}*"}

    def line(line: Line) -> str:
        return styles[line.style].format(escape.markdown(line.text)) if line.text else ""

    header = ["<br>".join([escape.markdown(part) for part in column.header]) for column in sheet.columns]
    rule = [":---" if column.label else "---:" for column in sheet.columns]
    rows = [["<br>".join([line(part) for part in cell]) for cell in row] for row in sheet.rows]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])
    notes = "\n".join(f"- {escape.markdown(note, NOTE)}" for note in sheet.notes)
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

    def rows(cells: Sequence[Cell]) -> str:
        """A row of the table for each line, so that lines stand beside each other."""
        padded = zip_longest(*cells, fillvalue=Line(""))
        return " \\\\\n".join(
            " & ".join(styles[line.style].format(escape.latex(line.text)) if line.text else "" for line in lines)
            for lines in padded
        )

    labels = "".join("l" if column.label else "r" for column in sheet.columns)
    header = rows([tuple(map(Line, column.header)) for column in sheet.columns])
    body = " \\\\\n\\addlinespace\n".join(map(rows, sheet.rows))
    notes = " ".join(escape.latex(note, NOTE) for note in sheet.notes)
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}; names in other scripts than Latin need LuaLaTeX or XeLaTeX",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape.latex(sheet.title)}}}",
            rf"\begin{{tabular}}{{{labels}}}",
            r"\toprule",
            header + r" \\",
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
