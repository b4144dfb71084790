"""Names that try to be more than text."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ba_eval.tables import escape
from ba_eval.tables.export import csv as to_csv

HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07", "a\r\nb", "\u202eevil", "zero\u200bwidth", "\ud800",
    "| a | b |", "<script>alert(1)</script>", "[x](javascript:1)", "![x](http://h/x.png)", "`code`", "@someone",
    "&lt;b&gt;", "$x$", "\\input{/etc/passwd}", "\\write18{id}", "100% %", "^^5c", "~#&_{}",
    "=cmd|'/C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1+1", '=HYPERLINK("http://h")',
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_character_reaches_the_terminal(text: str) -> None:
    assert all(character.isprintable() for character in escape.plain(text))


@given(st.text())
def test_plain_text_is_one_printable_line_of_bounded_length(text: str) -> None:
    line = escape.plain(text, limit=50)
    assert "\n" not in line and "\x1b" not in line and "\u202e" not in line
    assert len(line) <= 50 * 10


def test_long_text_is_cut() -> None:
    assert escape.plain("x" * 1000, limit=10) == "x" * 9 + "…"


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_is_the_text_and_nothing_else(text: str) -> None:
    table = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = table.parse(f"| a | b |\n| --- | --- |\n| {escape.markdown(text)} | end |")
    cells = [token for token in tokens if token.type == "inline"]
    assert [cell.content for cell in cells[:2]] == ["a", "b"]
    assert len(cells) == 4
    assert cells[3].content == "end"
    parts = cells[2].children or []
    assert {part.type for part in parts} <= {"text", "text_special"}
    assert "".join(part.content for part in parts).strip() == escape.plain(text).strip()
    assert "://" not in escape.markdown(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_has_no_command_left_but_our_own(text: str) -> None:
    escaped = escape.latex(text)
    for ours in (*escape._LATEX.values(),):
        escaped = escaped.replace(ours, "")
    assert not set(escaped) & set("\\{}$&#%_^~")


def test_latex_by_example() -> None:
    assert escape.latex("50% of $x_1$ & \\input{y}") == r"50\% of \$x\_1\$ \& \textbackslash{}input\{y\}"


@pytest.mark.parametrize("text", HOSTILE)
def test_no_csv_cell_is_a_formula(text: str) -> None:
    rows = list(csv.reader(io.StringIO(to_csv([{"model": text, "avg": 0.5}]))))
    assert rows[0] == ["model", "avg"]
    assert not rows[1][0].strip().startswith(("=", "+", "-", "@"))
    assert rows[1][1] == "0.5"


def test_undefined_numbers_are_a_dash_in_csv() -> None:
    assert to_csv([{"a": float("nan"), "b": None, "c": -1.5}]) == "a,b,c\n-,,-1.5\n"
