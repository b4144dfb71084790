r"""Answers that stand in prose: answer lines, closing statements, a bare answer, the last number."""

import re
from collections import deque
from dataclasses import dataclass
from typing import Literal

Method = Literal["boxed", "answer-line", "closing", "bare", "last-number"]


@dataclass(frozen=True)
class Extraction:
    """`answer` is None where nothing was committed; `closed` is False where a box was opened and never closed."""

    answer: str | None
    method: str = ""
    closed: bool = True
    start: int = 0
    """Where in the text it was found."""


# -- answer lines

_ANSWER_MARK = re.compile(
    r"answers?(?:\s+(?:to|for|of)\s[^.:\n]{0,80}?)?[*_\s]{0,6}?"
    r"(?:[*_]*\s*(?:\b(?:is|are|as)\b|=|:|：|[-–—]\s)[*_]*\s*(?:\b(?:is|are)\b|:|：)?|[*_:#]*[ \t]*\n)",
    re.I,
)
_CHINESE_MARK = re.compile(r"答案\s*(?:应?[是为])?\s*[:：]?")
_TAG = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.S | re.I)
_SHORT_MARK = re.compile(r"[ \t>*_]*A\s*[:：]")
_LOOK = 4000
_MOST_TRIES = 40


def answer_line(text: str) -> Extraction | None:
    """The last "Answer: ...", "the final answer is ...", "A: ..." or "#### ..." that is followed by something."""
    best = _hashes(text)
    for mark, pattern in (("<answer>", _TAG), ("答案", _CHINESE_MARK)):
        at = text.rfind(mark)
        if at >= 0 and (best is None or at > best.start) and (match := pattern.match(text, at)):
            rest = match[1].strip() if pattern is _TAG else text[match.end() : match.end() + _LOOK]
            if found := _first_answer(rest.replace("。", ". ")):
                best = Extraction(found, "answer-line", start=at)
    at = len(text)
    for _ in range(_MOST_TRIES):
        at = max(text.rfind("nswer", 0, at), text.rfind("NSWER", 0, at))
        if at <= 0 or (best is not None and at < best.start):
            break
        if text[at - 1] not in "aA" or text[at - 2 : at - 1].isalpha():
            continue
        match = _ANSWER_MARK.match(text, at - 1, at + 200)
        if match and (found := _first_answer(text[match.end() : match.end() + _LOOK])):
            best = Extraction(found, "answer-line", start=at)
            break
    at = max(text.rfind("\nA:") + 1, 0 if text.startswith("A:") else -1)
    if (match := _SHORT_MARK.match(text, at)) and (best is None or at > best.start):
        rest = text[match.end() : match.end() + _LOOK].split("\n", 1)[0].strip()
        if rest:
            return Extraction(_first_answer(rest) or rest, "answer-line", start=at)
    return best


def _hashes(text: str) -> Extraction | None:
    """`#### 42`, the last line of a GSM8K solution; a Markdown heading of that depth is no answer."""
    at = text.rfind("####")
    if at < 0:
        return None
    line = text[at + 4 : at + _LOOK].split("\n", 1)[0].strip(" #:*")
    if not line or re.match(r"[A-Za-z ]{4,}", line) or re.match(r"\d+[.)]\s", line):
        return None
    return Extraction(line, "answer-line", start=at)


_MATH_SPAN = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(?<!\\)\$((?:[^$\\\n]|\\.)+?)(?<!\s)\$(?!\d)|"
    # Space before the closing dollar: mathematics, unless it holds words, as in "from $5 to $10".
    r"(?<!\\)\$((?:[^$\\\nA-Za-z]|\\[A-Za-z]+(?:\{[A-Za-z ]*\})*|\\.|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))+?)\$(?!\d)",
    re.S,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200}?)\*\*")


def _span(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


_FILLER = re.compile(r"^(?:(?:therefore|thus|hence|simply|just|indeed|then|given by|equal to)\b[\s,:]*)+", re.I)


def _first_answer(rest: str) -> str | None:
    """Returns the answer that follows an answer mark, on its line or, where that is empty, on the next one."""
    rest = _FILLER.sub("", rest.lstrip(" \t*_:：\n>}"))
    span = _MATH_SPAN.match(rest)
    if span:
        after = rest[span.end() :].split("\n", 1)[0]
        if not re.match(r"\s*(?:,?\s*(?:and|or)\b|[,;]\s*[-\d($\\]|\\?%|°|percent\b|pct\b|[=+*/<>^])", after):
            return _span(span)
    line = rest.split("\n", 1)[0].strip()
    bold = _BOLD.match(line)
    if bold and not re.match(r"\s*(?:,|and\b|or\b)", line[bold.end() :]):
        return _inner(bold[1])
    return stated(line) if line else None


# -- statements

_BOILERPLATE = re.compile(r"<\|[^|]{1,30}\|>.*|\bI hope (?:it|this) is correct\.?|Let me know if.*", re.S | re.I)
_SENTENCE_END = re.compile(
    r"(?<=[\w})\]%\x00!\"'])\s?[.](?=\s|\*|$)|(?<=[a-z)\x00])!(?=\s|$)|\n+|\s[—–]\s|(?<=\x00)\s+(?=(?:Therefore|Thus|Hence|So|The|Final|Answer)\b)"
)
_VERB = re.compile(r"\b(?:is|are|was|be|equals?|equal to|becomes?|yields?|gives?|get|obtain|have)\b|=(?![^\x00]*\x00)")
_WORD = re.compile(r"[A-Za-z]{2,}")
_NUMBER = re.compile(
    r"(?<![\w.,])(?:\\?\$|[€£])?\s?[-−]?\s?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,/]\d+)*|\.\d+)(?:\s*\\?%|\s*percent\b)?"
)
_CONCLUDING = re.compile(
    r"\b(?:therefore|thus|hence|so|consequently|finally|conclusion|summary|conclude|answer|follows|altogether|total)\b",
    re.I,
)


class _Masked:
    """Text whose math spans are replaced by a mark each, so that prose can be told from formulas."""

    def __init__(self, text: str) -> None:
        self.spans: list[re.Match[str]] = []
        self.text = _MATH_SPAN.sub(self._keep, text.replace("\x00", ""))

    def _keep(self, match: re.Match[str]) -> str:
        self.spans.append(match)
        return f"\x00{len(self.spans) - 1}\x00"

    def shown(self, masked: str) -> str:
        """Returns a piece of the masked text with its math in place; a lone span without its dollars."""
        whole = re.fullmatch(r"\x00(\d+)\x00", masked.strip())
        if whole:
            return _span(self.spans[int(whole[1])])
        return re.sub(r"\x00(\d+)\x00", lambda m: " " + _span(self.spans[int(m[1])]) + " ", masked).strip()


_REMARK = re.compile(r"(?<=\S),?\s+(?:because|since|where|which|as)\b|(?<=\S)\s+\((?=[a-z]{2})")


def stated(line: str) -> str | None:
    """Returns what a line states as an answer: all of it, or the value at the end of a sentence in prose."""
    masked = _Masked(_BOILERPLATE.sub("", line))
    sentence = _REMARK.split(_first_sentence(masked.text))[0].strip()
    if not sentence:
        return None
    return _value_of(sentence, masked) or masked.shown(_trim(sentence)) or None


def _first_sentence(masked: str) -> str:
    return next((s for s in _SENTENCE_END.split(masked) if s and s.strip(" *_")), "").strip()


def _trim(piece: str) -> str:
    return piece.replace('\\"', '"').strip().strip('*_`" ').rstrip(".,;: ").strip()


def _value_of(sentence: str, masked: _Masked, concluding: bool = False) -> str | None:
    """Returns the value that a sentence in prose ends with, None where it is no prose or states none."""
    if len(_WORD.findall(sentence)) < 3:
        lone = re.search(r"\x00\d+\x00[\s.]*$", sentence) if concluding else None
        return masked.shown(lone[0].strip(" .")) if lone else None
    sentence = re.sub(r"\s*\([^()]*\)\s*$", "", _trim(sentence))
    verbs = list(_VERB.finditer(sentence))
    last = verbs[-1] if verbs else None
    if last:
        rest = _trim(
            re.sub(
                r"^\s*(?:equal to|to|one of|exactly|about|approximately|simply|just|given by|therefore|thus|:)\s*",
                "",
                sentence[last.end() :],
            )
        )
        if rest and len(_WORD.findall(rest)) <= 2 and re.search(r"[\d\x00]", rest):
            return masked.shown(rest)
    if (end := re.search(r"\x00\d+\x00(?:\s*(?:,|and|or|,\s*and)\s*\x00\d+\x00)*$", sentence)) is not None:
        return masked.shown(end[0])
    numbers = [n[0] for n in _NUMBER.finditer(re.sub(r"\x00\d+\x00", "", sentence))]
    if len(numbers) == 1 and "\x00" not in sentence:
        return numbers[0].strip()
    if last and rest and (start := _NUMBER.match(rest)):
        return start[0].strip()
    if last and rest and (start := re.match(r"\x00\d+\x00", rest)):
        return masked.shown(start[0])
    return None


# -- closing lines


_STATEMENT = re.compile(r"\b(?:is|are|equals?)\s+([^\s.]*[\d\x00][^\s]*)[.\s]*$")


def closing(text: str) -> Extraction | None:
    """Bold text, a concluding sentence or display math in the last lines."""
    tail = _BOILERPLATE.sub("", text[-6000:]).rstrip()[-3000:]
    lines = [line for line in tail.split("\n") if line.strip(" -*_#")]
    for line in reversed(lines[-3:]):
        bold = [b for b in _BOLD.findall(line) if not b.rstrip().endswith(":")]
        if bold and (re.search(r"\d|\\", bold[-1]) or re.fullmatch(r"\W*\w{1,12}\W*", bold[-1])):
            return Extraction(_inner(bold[-1].strip()), "closing")
    masked = _Masked(tail)
    if (strong := _emphasised(masked)) is not None:
        return Extraction(strong, "closing")
    sentences = [s for s in _SENTENCE_END.split(masked.text) if s and s.strip(" *_")]
    for sentence in reversed(sentences[-2:]):
        if _CONCLUDING.search(sentence) and (found := _value_of(sentence, masked, True)):
            return Extraction(found, "closing")
    if len(sentences) == 1 and (match := _STATEMENT.search(sentences[0])):
        return Extraction(masked.shown(_trim(match[1])), "closing")
    if masked.spans and sentences and (last := re.findall(r"\x00\d+\x00", sentences[-1])):
        return Extraction(_with_neighbours(sentences[-1], last[-1], masked), "closing")
    return None


_STRONG = re.compile(r"\\(?:mathbf|boldsymbol|bm)\s*\{[^{}]*\d")


def _emphasised(masked: _Masked) -> str | None:
    """Returns the formula in bold digits that stands in the last three math spans."""
    for span in reversed(masked.spans[-3:]):
        text = _span(span)
        if _STRONG.search(text):
            pieces = [
                p for p in re.split(r",\s+(?![^{(]*[)}])|,?\s*\\text\s*\{\s*(?:and|or)\s*\}", text) if _STRONG.search(p)
            ]
            return ", ".join(pieces) if pieces else text
    return None


def _with_neighbours(sentence: str, span: str, masked: _Masked) -> str:
    """Returns the last math span of a sentence, the list that it ends and a percent sign behind it included."""
    end = sentence.rindex(span) + len(span)
    start = re.search(r"(?:\x00\d+\x00\s*(?:,|;|,?\s*(?:and|or))\s*)*$", sentence[: end - len(span)])
    after = re.match(r"\s*\\?%|\s*(?:percent|pct|percentage)\b", sentence[end:])
    return masked.shown((start[0] if start else "") + span) + (" \\%" if after else "")


def _inner(text: str) -> str:
    span = _MATH_SPAN.fullmatch(text.strip())
    return _span(span) if span else text.strip()


# -- bare answers and last numbers


_HEDGE = re.compile(
    r"about|approximately|approx|roughly|exactly|answer|around|option|choice|sin|cos|tan|ln|log|sqrt|pi|exp", re.I
)


def bare(text: str) -> Extraction | None:
    """A response that is nothing but an answer: a formula, a number with a unit, a word or two."""
    line = text.strip()
    if not line or len(line) > 400 or "\n" in line or "boxed" in line:
        return None
    span = _MATH_SPAN.fullmatch(line)
    if span:
        return Extraction(_span(span), "bare")
    plain = re.sub(r"\\[A-Za-z]+\*?|\{[A-Za-z]+\}", "", line)
    words = _WORD.findall(plain)
    number = re.search(r"\d", plain)
    before = _WORD.findall(plain[: number.start()]) if number else []
    if len(words) > 3 or not all(map(_HEDGE.fullmatch, before)):
        return None
    return Extraction(_trim(line), "bare") if _trim(line) else None


def last_number(text: str) -> Extraction | None:
    """The last number of the text: only for benchmarks that are graded so."""
    for width in (400, 20_000, 1_000_000):
        last = deque(_NUMBER.finditer(text, max(0, len(text) - width)), maxlen=1)
        if last:
            found = last[0]
            return Extraction(found[0].strip(), "last-number", start=found.start())
        if width >= len(text):
            break
    return None
