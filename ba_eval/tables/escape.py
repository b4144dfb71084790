"""Makes names that others chose (models, problems, answers) harmless in each format."""

import re

# Control characters, and those that reorder or hide text: C0, C1, zero-width, direction marks, line separators.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]|[\U000e0000-\U000e007f]"
)
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|~$&!]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "{''}",
    "`": r"\textasciigrave{}",
    "[": "{[}",
    "]": "{]}",
    "−": "$-$",
    "×": r"$\times$",
}
_LATEX_PATTERN = re.compile("|".join(map(re.escape, _LATEX)))
LIMIT = 200


def plain(text: str, limit: int = LIMIT) -> str:
    """One line for a terminal: what controls it is written as an escape such as `\\x1b`, what is long is cut."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def markdown(text: str, limit: int = LIMIT) -> str:
    """Text for a cell or a line of Markdown: no markup, no HTML, no link, no mention."""
    text = _MARKDOWN.sub(r"\\\g<0>", plain(text, limit)).replace("://", ":\\//")
    return re.sub(r"(?<!\w)@(?=\w)", "&#64;", text)


def latex(text: str, limit: int = LIMIT) -> str:
    """Text for LaTeX: no command, no argument, no comment."""
    return _LATEX_PATTERN.sub(lambda found: _LATEX[found[0]], plain(text, limit))


def csv_text(text: str) -> str:
    """Text for a CSV cell that no spreadsheet takes for a formula; quoting is the writer's work."""
    text = plain(text, limit=32_000)
    return "'" + text if text.lstrip().startswith(tuple("=+-@＝＋－＠")) else text
