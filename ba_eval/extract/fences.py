"""Finds the fenced code blocks of a response, as people and models write them rather than as Markdown has it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

PYTHON = frozenset({"", "python", "python3", "py", "py3", "python2"})
"""Info strings of blocks that may hold Python; an untagged block may."""

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?=```|~~~)")
_TICKS = re.compile(r"(`{3,})[ \t]*(python3?|py)?[ \t]*", re.IGNORECASE)
_LANGUAGE = re.compile(r"[ \t{.]*([\w+#-]*)(.*)")
_TRIPLE_QUOTE = re.compile(r"\"\"\"|'''")
_LANGUAGES = PYTHON | {
    *("bash", "c", "c#", "c++", "console", "cpp", "cs", "csharp", "css", "go", "haskell", "html", "ini", "java"),
    *("javascript", "js", "json", "julia", "kotlin", "latex", "lua", "markdown", "math", "md", "none", "output"),
    *("perl", "php", "plain", "plaintext", "pseudocode", "pycon", "r", "ruby", "rust", "scala", "sh", "shell", "sql"),
    *("swift", "tex", "text", "toml", "ts", "txt", "typescript", "xml", "yaml"),
}
_MAX_QUOTED_FENCES = 8


@dataclass(frozen=True)
class Block:
    """The inside of a fence. `closed` is False where the response ended before the closing fence."""

    text: str
    language: str
    closed: bool


@dataclass(frozen=True)
class _Opening:
    indent: int
    fence: str
    language: str


def fenced_blocks(text: str, parses: Callable[[str], bool]) -> tuple[str, list[Block]]:
    """Returns the text before the first fence, and the blocks in order.

    Beyond Markdown's rules: any indentation; an opening fence that names Python may end a line of prose, or name it on
    the line below; an opening fence with a language ends a block that was never closed; a closing fence may follow code
    on its line. A fence inside a triple-quoted string of Python belongs to the string where `parses` accepts the whole.
    Blocks inside a Markdown block are found too.
    """
    lines = text.split("\n")
    blocks: list[Block] = []
    first: int | None = None
    quoted_left = _MAX_QUOTED_FENCES
    position = 0
    carried: _Opening | None = None
    while position < len(lines) or carried:
        opening = carried
        if opening is None:
            opening = _opening(lines[position])
            position += 1
            if opening is None:
                continue
            first = position - 1 if first is None else first
        block, after, carried, quoted = _read(lines, position, opening, aware=quoted_left > 0)
        if quoted:
            quoted_left -= 1
            if not parses(block.text):
                block, after, carried, _ = _read(lines, position, opening, aware=False)
        position = after
        if block.language in ("markdown", "md"):
            blocks += fenced_blocks(block.text, parses)[1]
        else:
            blocks.append(block)
    return "\n".join(lines if first is None else lines[:first]), blocks


def _opening(line: str) -> _Opening | None:
    item = _LIST_ITEM.match(line)
    if match := _FENCE.fullmatch(line.rstrip("\r"), item.end() if item else 0):
        _, fence, info = match.groups()
        if fence[0] == "~" or "`" not in info:
            return _Opening(match.end(1), fence, _language(info)[0])
    elif (ticks := _ticks_after_text(line)) and ticks[2]:
        return _Opening(0, ticks[1], ticks[2].lower())
    return None


def _ticks_after_text(line: str) -> "re.Match[str] | None":
    """A fence that ends a line of text without any other backtick."""
    at = line.find("`")
    return _TICKS.fullmatch(line.rstrip("\r"), at) if at > 0 and line[:at].strip() else None


def _language(info: str) -> tuple[str, bool]:
    """The language an info string names, and whether it is one (rather than a word of prose)."""
    match = _LANGUAGE.fullmatch(info)
    word = match[1].lower() if match else ""
    return word, bool(word) and word in _LANGUAGES


def _read(lines: list[str], start: int, opening: _Opening, aware: bool) -> tuple[Block, int, _Opening | None, bool]:
    """Reads one block from line `start`.

    Returns it, the line after it, the opening of the next block where that one ended this, and whether a fence inside
    a string was passed over.
    """
    content: list[str] = []
    aware = aware and opening.language in PYTHON
    quote: str | None = None
    quoted = False
    for number in range(start, len(lines)):
        line = lines[number].rstrip("\r")
        match = _FENCE.fullmatch(line)
        if match and match[2].startswith(opening.fence):
            if quote is None:
                language, known = _language(match[3])
                following = _Opening(len(match[1]), match[2], language) if known else None
                return _block(content, opening, closed=True), number + 1, following, quoted
            quoted = True
        elif quote is None and (ticks := _ticks_after_text(line)) and ticks[1] == opening.fence and not ticks[2]:
            content.append(line[: ticks.start()])
            return _block(content, opening, closed=True), number + 1, None, quoted
        content.append(line)
        if aware:
            for token in _TRIPLE_QUOTE.findall(line):
                quote = token if quote is None else None if quote == token else quote
    return _block(content, opening, closed=False), len(lines), None, quoted


def _block(content: list[str], opening: _Opening, closed: bool) -> Block:
    if opening.indent:
        content = [line[min(opening.indent, len(line) - len(line.lstrip(" \t"))) :] for line in content]
    language = opening.language
    if not language and content and content[0].strip().lower() in PYTHON - {""}:
        language = content.pop(0).strip().lower()
    return Block("\n".join(content), language, closed)
