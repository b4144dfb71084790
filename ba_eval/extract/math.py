r"""Takes the committed final answer of a mathematical response out of its text.

Four ways, in the order of `extract`: the last `\boxed`, an answer line ("Answer: ...", "the final answer is ...",
"#### ..."), bold text or display math in the closing lines, a response that is nothing but an answer. The last number
of the text is taken only where a benchmark asks for it. Every scan is linear in the length of the text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Method = Literal["boxed", "answer-line", "closing", "bare", "last-number"]

DEFAULT: tuple[Method, ...] = ("boxed", "answer-line", "closing", "bare")

_BOX = re.compile(
    r"(?:\\+(?:boxed|Boxed|fbox|framebox|bbox)|\x08oxed|(?<![A-Za-z])boxed(?=\s*\\?\{))\s*(?P<open>\\?\{|\(|\s?)"
)
_BOX_TOKENS = re.compile(r"<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|\Z)", re.S)
_SEPARATOR_NOISE = re.compile(
    r"\\(?:quad|qquad|text|textbf|mathrm|mbox|[()\[\],;:! ])|\\\\|[${}~*\s]|\\(?:left|right)(?![A-Za-z])"
)
_CONNECTIVE = re.compile(r"\b(?:and|or)\b|[,;&、]|\\(?:quad|qquad)\b|\\\\", re.I)
_CONCLUDING = re.compile(
    r"\b(?:so|thus|then|therefore|hence|final|finally|answer|is|are|get|wait|but|which|gives?|equals?|actually|not|no|"
    r"instead|rather|correct|should|be|becomes?|we|have|i)\b",
    re.I,
)
_BETWEEN_LIMIT = 80
_BOX_LIMIT = 200_000


@dataclass(frozen=True)
class Extraction:
    """`answer` is None where nothing was committed; `closed` is False where a box was opened and never closed."""

    answer: str | None
    method: str = ""
    closed: bool = True


def extract_answer(text: str, methods: Sequence[Method] = DEFAULT) -> Extraction:
    """Returns the final answer of a response whose thinking block is already cut off."""
    unclosed: Extraction | None = None
    for method in methods:
        found = _EXTRACTORS[method](text)
        if found is None:
            continue
        if found.closed:
            return found
        unclosed = unclosed or found
    return unclosed or Extraction(None)


def _boxed(text: str) -> Extraction | None:
    at = text.rfind("<|begin_of_box|>")
    if at >= 0 and (token := _BOX_TOKENS.match(text, at)):
        inner = _boxed(token[1])
        return (
            inner if inner and inner.answer else Extraction(token[1].strip(), "boxed", closed="end_of_box" in token[0])
        )
    starts = _last_boxes(text)
    if not starts:
        return None
    content, end, closed = _content(text, starts[-1])
    if not closed:
        # A box that was cut off commits to nothing; an earlier, closed one is not the final word either.
        return Extraction(content.strip() or None, "boxed", closed=False)
    contents = [content]
    begin = starts[-1].start()
    for match in reversed(starts[:-1]):
        previous, previous_end, previous_closed = _content(text, match, limit=begin)
        if not previous_closed or not _adjacent(text[previous_end:begin]):
            break
        contents.insert(0, _label(text, match.start()) + previous)
        if len(contents) == 2:
            contents[-1] = _label(text, begin) + content
        begin = match.start()
    unique = list(dict.fromkeys(" ".join(c.split()) for c in contents if c.strip()))
    if not unique:
        return None
    return Extraction(", ".join(unique) if len(unique) > 1 else unique[0].strip(), "boxed")


def _last_boxes(text: str, most: int = 64) -> list[re.Match[str]]:
    """Returns the last boxes' openings in order of the text, found from the end."""
    found: list[re.Match[str]] = []
    at = len(text)
    while len(found) < most:
        at = max(text.rfind("ox", 0, at), -1)
        if at < 0:
            break
        begin = at
        while begin > 0 and at - begin < 8 and text[begin - 1] in "\\bfBrame\x08":
            begin -= 1
        match = _BOX.search(text, begin, at + 16)
        if match and match.start() <= at and not (found and found[-1].start() == match.start()):
            found.append(match)
            at = match.start()
    found.reverse()
    return found


def _content(text: str, box: re.Match[str], limit: int | None = None) -> tuple[str, int, bool]:
    """Returns (content, end, closed) of a box; braces may nest, escaped ones count as text."""
    start = box.end()
    stop = min(len(text) if limit is None else limit, start + _BOX_LIMIT * (50 if limit is None else 1))
    opening = box["open"]
    if opening not in ("{", "\\{"):
        # `\boxed 5` and `\boxed(5)`: TeX would box one token; people mean the rest up to the end of the math.
        start = box.end() if opening != "(" else box.end() - 1
        match = re.compile(r"[^\n$]*").match(text, start, min(start + 200, stop))
        piece = match[0] if match else ""
        piece = re.split(r"\\[\])]|(?<=\S)\.(?:\s|$)", piece)[0]
        return piece, start + len(piece), bool(piece.strip())
    depth = 1
    for token in re.compile(r"\\.|[{}]", re.S).finditer(text, start, stop):
        mark = token[0]
        if mark == "{" or (opening == "\\{" and mark == "\\{"):
            depth += 1
        elif mark == "}" or (opening == "\\{" and mark == "\\}"):
            depth -= 1
            if depth == 0:
                return text[start : token.start()], token.end(), True
    return text[start : min(stop, start + 2000)], stop, False


def _adjacent(between: str) -> bool:
    """Tells whether two boxes are parts of one list: only a separator, labels or a few words stand between them."""
    if (
        len(between) > _BETWEEN_LIMIT
        or "\n\n" in between.strip()
        or re.search(r"[.!?]\s*\S", between.replace("...", ""))
    ):
        return False
    words = re.findall(r"[A-Za-z]{2,}|\bI\b", _SEPARATOR_NOISE.sub(" ", between))
    if _CONCLUDING.search(" ".join(words)):
        return False
    if not _CONNECTIVE.search(between):
        return not _SEPARATOR_NOISE.sub("", between)
    return sum(word.lower() not in ("and", "or") for word in words) <= 3


def _label(text: str, begin: int) -> str:
    """Returns `y_1 = ` where it stands before a box, so that parts of a list keep their names."""
    match = re.search(r"([A-Za-z](?:_\{?\w{1,3}\}?)?)\s*=\s*$", text[max(0, begin - 16) : begin])
    return f"{match[1]} = " if match else ""


_ANSWER_LINE = re.compile(
    r"(?:final\s+|correct\s+|my\s+)?\banswer(?:\s+(?:to|for|of)\s[^.:\n]{0,80}?)?(?P<heading>[*_\s]*)"
    r"(?:[*_]*\s*(?:\bis\b|\bas\b|=|:|：)[*_]*\s*(?:\bis\b|:)?|(?P<newline>[*_:#]*\s*\n))",
    re.I,
)
_SHORT_LINE = re.compile(r"(?:^|\n)[ \t>*_]*A\s*:\s*(?P<rest>[^\n]*)")


def _answer_line(text: str) -> Extraction | None:
    best: tuple[int, str] | None = None
    at = text.rfind("####")
    if at >= 0 and (line := text[at + 4 :].split("\n", 1)[0].strip(" #:*")) and re.match(r"\S", line):
        if not re.match(r"[A-Za-z ]{4,}", line):
            best = (at, line)
    lowered = text.lower() if len(text) < 4_000_000 else text
    at, tries = len(text), 0
    while tries < 40:
        tries += 1
        at = lowered.rfind("answer", 0, at)
        if at < 0 or (best and at < best[0]):
            break
        begin = max(0, at - 12)
        match = _ANSWER_LINE.search(text, begin, at + 200)
        if not match:
            continue
        rest = text[match.end() : match.end() + 4000]
        found = _first_answer(rest)
        if found:
            best = (at, found)
            break
    at = max(text.rfind("\nA:"), 0 if text.startswith("A:") else -1)
    if at >= 0 and (best is None or at > best[0]) and (match := _SHORT_LINE.match(text, at)):
        rest = match["rest"].strip()
        if rest:
            best = (at, _first_answer(rest) or rest)
    return Extraction(best[1], "answer-line") if best else None


_MATH_SPAN = re.compile(
    r"\$\$(?P<a>.+?)\$\$|\\\[(?P<b>.+?)\\\]|\\\((?P<c>.+?)\\\)|(?<!\\)\$(?P<d>(?:[^$\\\n]|\\.)+?)\$(?!\d)", re.S
)
_BOLD = re.compile(r"\*\*(?P<t>[^*\n]{1,200}?)\*\*")


def _first_answer(rest: str) -> str | None:
    """Returns the answer that follows an answer marker: a math span, bold text, or the line up to its end."""
    rest = rest.lstrip(" \t*_:：")
    rest = re.sub(r"^(?:\s*\n)+", "", rest)
    line = rest.split("\n", 1)[0].strip()
    if line in ("$$", "\\[", "$", "\\("):
        span = _MATH_SPAN.match(rest.lstrip())
        return _span_text(span) if span else None
    if not line:
        return None
    span = _MATH_SPAN.match(line)
    if span:
        tail = line[span.end() :]
        more = re.match(r"\s*(?:,|\band\b|\bor\b|;)", tail)
        if not more and not re.match(r"\s*[%°]|\s*(?:percent|pct)\b", tail):
            return _span_text(span)
    bold = _BOLD.match(line)
    if bold:
        return bold["t"].strip()
    return _to_sentence_end(line)


def _to_sentence_end(line: str) -> str | None:
    """Returns a line up to the end of its first sentence, without markup around it."""
    match = re.search(r"(?<=[\w})\]$%!])[.!](?=\s|\*|$)|\s[—–]\s|<\|", line)
    if match and not re.search(r"\d\s*$", line[: match.start()][-1:] if line[match.start()] == "!" else ""):
        line = line[: match.start()]
    line = line.strip().strip("*_` ").rstrip(".,;: ")
    return line or None


def _span_text(span: re.Match[str]) -> str:
    return next(g for g in span.groups() if g is not None).strip()


_LEAD = re.compile(
    r"^(?:[-*#>\s]*)(?:therefore|thus|hence|so|finally|in conclusion)?\b.*?(?:\bis\b|\bare\b|\bequals\b|=|:)\s*"
    r"(?:\bequal to\b|\babout\b|\bexactly\b)?\s*",
    re.I | re.S,
)


def _closing(text: str) -> Extraction | None:
    """Bold text, display math or the last inline math of the closing lines."""
    tail = text.rstrip()[-3000:]
    lines = [line for line in tail.split("\n") if line.strip(" -*_#")]
    if not lines:
        return None
    for line in reversed(lines[-3:]):
        bold = [b["t"].strip() for b in _BOLD.finditer(line)]
        bold = [b for b in bold if not b.endswith(":")]
        if bold and re.search(r"\d|^\W*\w{1,12}\W*$|\\", bold[-1]):
            return Extraction(_inner(bold[-1]), "closing")
    spans = list(_MATH_SPAN.finditer(tail))
    if spans and tail.count("\n", spans[-1].end()) <= 2:
        return Extraction(_last_math(tail, spans), "closing")
    return None


def _last_math(tail: str, spans: list[re.Match[str]]) -> str:
    """Returns the last math span, with the percent sign or unit word that follows it, or the list that it ends."""
    last = spans[-1]
    answer = _span_text(last)
    after = re.match(r"\s*(?:%|\\%|percent\b|pct\b|percentage\b)", tail[last.end() :])
    if after:
        answer += " \\%"
    for before, following in zip(reversed(spans[:-1]), reversed(spans), strict=False):
        if not re.fullmatch(r"\s*(?:,|;|,?\s*(?:and|or))\s*", tail[before.end() : following.start()]):
            break
        answer = _span_text(before) + ", " + answer
    return answer


def _inner(text: str) -> str:
    span = _MATH_SPAN.fullmatch(text.strip())
    return _span_text(span) if span else text


_PROSE = re.compile(r"[A-Za-z]{2,}[ ,]+[A-Za-z]{2,}[ ,]+[A-Za-z]{2,}")


def _bare(text: str) -> Extraction | None:
    """A response that is nothing but an answer."""
    line = text.strip()
    if not line or len(line) > 400 or "\n\n" in line or _PROSE.search(line):
        return None
    return Extraction(_to_sentence_end(_inner(line)) or None, "bare")


_NUMBER = re.compile(
    r"(?<![\w.])[-−+]?\s?[$€£]?\s?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,/]\d+)*|\.\d+)(?:\s*\\?%)?"
)


def _last_number(text: str) -> Extraction | None:
    """The last number of the text: only for benchmarks that are graded so."""
    for width in (400, 20_000, 5_000_000):
        found = None
        for found in _NUMBER.finditer(text, max(0, len(text) - width)):
            pass
        if found:
            return Extraction(found[0].strip(), "last-number")
        if width >= len(text):
            break
    return None


_EXTRACTORS = {
    "boxed": _boxed,
    "answer-line": _answer_line,
    "closing": _closing,
    "bare": _bare,
    "last-number": _last_number,
}
