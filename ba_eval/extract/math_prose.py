r"""Answers that stand in prose: answer lines, closing statements, a bare answer, the last number."""

import re
from collections import deque
from typing import Literal

import msgspec

from ba_eval.extract.math_denials import CORRECTION, PLAIN_VALUE, UNCLAIMED_ANSWER, VALUE, VALUE_REFUTED, is_taken_back

Method = Literal["boxed", "answer-line", "closing", "bare", "last-number"]


class Extraction(msgspec.Struct, frozen=True, gc=False):
    """`answer` is None where nothing was committed; `closed` is False where a box was opened and never closed."""

    answer: str | None
    method: str = ""
    closed: bool = True
    start: int = 0
    """Where in the text it was found."""
    end: int = 0
    """Where a box ends."""


# -- answer lines

_ANSWER_MARK = re.compile(
    r"answers?(?:\s+(?:to|for|of)\s[^.:\n]{0,80}?)?(?:[ \t]\([^()\n]{1,40}\))?[*_\s]{0,6}?"
    r"(?:[*_]*\s*(?:\b(?:is|are|as)\b|=>?|:|：|->|[→⇒]|(?<!\n)[-–—]\s)[*_]*\s*(?:\b(?:is|are)\b|:|：)?|"
    r"[*_:#]*[ \t]*\n)",
    re.I,
)
_ANSWER_ELSEWHERE = (
    *("réponse", "reponse", "respuesta", "resposta", "risposta", "antwort", "antwoord", "odpowiedź", "svaret", "svar"),
    *(
        "ответ",
        "відповідь",
        "vastaus",
        "răspuns",
        "απάντηση",
        "cevap",
        "jawabannya",
        "jawaban",
        "đáp án",
        "đáp số",
        "उत्तर",
        "الجواب",
        "الإجابة",
    ),
)
_RESULT_ELSEWHERE = (
    *(
        "endergebnis",
        "ergebnis",
        "lösung",
        "résultat",
        "la solution",
        "resultado",
        "solución",
        "solução",
        "risultato",
        "soluzione",
    ),
    *("resultaat", "oplossing"),
)
"""Words that head whole solutions too; they introduce an answer with a verb only."""
_ANSWER_IN_CJK = ("答", "정답", "답")
_IS_ELSEWHERE = r"(?:es|est|ist|is|lautet|adalah|är|er|[éè])(?!\w)"
_OTHER_MARK = re.compile(
    rf"(?:(?<!\w)(?:(?:{'|'.join(_ANSWER_ELSEWHERE)})"
    rf"(?: (?:final[ea]?|correct[ae])(?!\w)| {_IS_ELSEWHERE}|\s*[:：=]|\s+[-–—]\s|"
    r"(?:(?<=ist die antwort)|(?<=is het antwoord))(?=\s[-+\d$\\(]))|"
    rf"(?:{'|'.join(_RESULT_ELSEWHERE)})(?: final[ea]?| correct[ao]?)? {_IS_ELSEWHERE})|"
    r"答案|答え|정답|(?<![回解])答(?=\s*[:：])|답(?=\s*[:：은이]))"
    rf"[*_\s】]{{0,6}}(?:{_IS_ELSEWHERE}|应?[是为]|は|[은는이])?[*_\s]{{0,6}}[:：]?"
    r"(?:\s*(?:donc|dus|also|daher|somit|entonces|quindi|dunque|portanto|então)(?!\w))?"
    r"(?:\s*(?:la |l['’]|a |die )?(?:opción|option|opção|opzione) )?",
    re.I,
)
"""The word for answer in other languages, with what links it to the value."""
_NOT_ELSEWHERE = r"(?:(?<!\w)(?:(?:ce )?n['’]est pas|(?:ist )?nicht|no es|non è|não é|(?:is )?niet|не)(?!\w)|不是|并非)"
_NOT_BUT_ELSEWHERE = re.compile(
    rf"{_NOT_ELSEWHERE}\s*[^\s,，]{{1,20}}\s?[,，]?\s?(?:mais|sondern|sino|ma|mas|maar|а|而是)(?=[\s\d$(])", re.I
)
"""Not 5 but: what stands before the answer, in these languages."""
_BUT_NOT_ELSEWHERE = re.compile(
    r"[,，]\s*(?:而?不是|(?:und )?nicht\s|et non\s|(?:y )?no\s|(?:e )?non\s|а? ?не\s)[^.\n]*", re.I
)
_DENIED_ELSEWHERE = re.compile(rf"\s*{_NOT_ELSEWHERE}", re.I)
_OTHER_ENDING = re.compile(r"(?:입니다|이다|です|である|になります|となります)(?=[.。\s]|$)")
AND_ELSEWHERE = "et|ou|und|oder|y|e|o|i|oraz|lub|и|или"
"""`and` and `or` in other languages, where both sides show that it is that."""
_OTHER_AND = re.compile(
    rf"(?<=[\d$)}}\]])(?:\s+(?:{AND_ELSEWHERE}|en|ve|veya)\s+|\s*(?:以及|或者|和|或|及|、|と|または|와|과|또는)\s*)"
    r"(?=[-+\d($\\]|[a-z]\s*=)"
)
"""`and` and `or` in these languages, between two values."""
_CHOSEN = re.compile(r"(?:故选|应选|选择?)\s*[:：]?\s*(?=[(（]?[A-J](?![A-Za-z]))")
_ANSWER_HEADING = re.compile(r"^([\W_]{0,6}Answer)\.(?=[*_]*\s+\S)", re.M)
"""`**Answer.** 4`, in front of a proof."""
PRAISE = re.compile(
    r"(?:indeed |also |thus |therefore )?(?:correct|verified|confirmed|unique|reasonable|consistent|valid|right|"
    r"plausible|in (?:simplest|lowest|the|its)|given in|exact|expressed|rounded|as expected|"
    r"an? (?:positive |whole )?(?:integer|number)$)",
    re.I,
)
"""What is said of an answer that stands elsewhere: the answer is correct, in simplest form."""
_TAG = re.compile(r"<((?:final_)?answer)>(.*?)(?:</\1>|\Z)", re.S | re.I)
_SHORT_MARK = re.compile(r"[ \t>*_]*A\s*[:：]")
_JSON = re.compile(
    r"""(["'])(?:final[_ ])?answer\1\s*:\s*(?:"((?:[^"\\\n]|\\.){1,400})"|'((?:[^'\\\n]|\\.){1,400})'|(-?\d[\d.]*))""",
    re.I,
)
_LOOK = 4000
_MOST_TRIES = 40
_WITHDRAWAL_WITHIN = 600
_CORRECTED_WITHIN = 1000


def answer_line(text: str) -> Extraction | None:
    """The last "Answer: ...", "the final answer is ...", "A: ..." or "#### ..." that is followed by something."""
    if CORRECTION.search(text, max(0, len(text) - _CORRECTED_WITHIN)):
        text = text[:-_CORRECTED_WITHIN] + CORRECTION.sub("answer:", text[-_CORRECTED_WITHIN:])
    if "nswer." in text:
        text = _ANSWER_HEADING.sub(r"\1:", text)
    best = _hashes(text)
    at = max(text.rfind("<answer>"), text.rfind("<final_answer>"))
    if (
        (best is None or at > best.start)
        and (tag := _TAG.match(text, max(at, 0)))
        and (found := _first_answer(tag[2].strip()))
    ):
        best = Extraction(found, "answer-line", start=at)
    if (last := deque(_JSON.finditer(text, max(0, len(text) - _LOOK)), maxlen=1)) and last[0].start() > (
        best.start if best else -1
    ):
        value = next(group for group in last[0].groups()[1:] if group is not None)
        best = Extraction(value.replace("\\\\", "\\"), "answer-line", start=last[0].start())
    best = _in_other_languages(text, best)
    at = limit = len(text)
    upper = text.rfind("NSWER")
    for _ in range(_MOST_TRIES):
        if upper >= at:
            upper = text.rfind("NSWER", 0, at)
        at = max(text.rfind("nswer", 0, at), upper)
        if at <= 0 or (best is not None and at < best.start):
            break
        if text[at - 1] not in "aA" or text[at - 2 : at - 1].isalpha():
            continue
        match = _ANSWER_MARK.match(text, at - 1, at + 200)
        if match is None:
            continue
        if unclaimed := _unclaimed(text, at):
            limit = unclaimed.start()
            continue
        rest = text[match.end() : min(match.end() + _LOOK, limit)].split("</answer>")[0]
        if (found := _first_answer(rest)) and not PRAISE.match(found):
            if _is_withdrawn(rest):
                return None
            best = Extraction(found, "answer-line", start=at)
            break
    at = max(text.rfind("\nA:") + 1, 0 if text.startswith("A:") else -1)
    if (match := _SHORT_MARK.match(text, at)) and (best is None or at > best.start):
        rest = text[match.end() : match.end() + _LOOK].split("\n", 1)[0].strip()
        if rest:
            return Extraction(_first_answer(rest) or rest, "answer-line", start=at)
    return best


_ASKED = re.compile(r"[^\s?]{1,20}\?")


def _unclaimed(text: str, at: int) -> re.Match[str] | None:
    """Returns the words that make an answer mark no claim, from their start on: `suppose that the answer`."""
    end = at + len("nswer") + (text[at + len("nswer") : at + len("nswers")] in ("s", "S"))
    for found in UNCLAIMED_ANSWER.finditer(text, max(0, at - 80), end):
        if found.end() == end:
            return found
    return None


def _is_withdrawn(rest: str) -> bool:
    """Tells whether the sentence behind an answer mark, or the next one, takes its value back."""
    masked = Masked(rest[:_WITHDRAWAL_WITHIN].lstrip(" \t*_:：\n")).text
    end = SENTENCE_END.search(masked)
    if (end and is_taken_back(masked[end.end() :])) or _ASKED.match(masked):
        return True
    return VALUE_REFUTED.match(masked, 0, end.start() if end else len(masked)) is not None


def _in_other_languages(text: str, best: Extraction | None) -> Extraction | None:
    """The last answer line in one of some other languages, near the end of the text."""
    start = max(0, len(text) - _LOOK)
    tail = text[start:]
    lower = tail.lower()
    if not any(word in lower for word in (*_ANSWER_ELSEWHERE, *_RESULT_ELSEWHERE, *_ANSWER_IN_CJK, "选")):
        return best
    tail = _NOT_BUT_ELSEWHERE.sub("is ", tail)
    for pattern in (_OTHER_MARK, _CHOSEN):
        last = deque(pattern.finditer(tail), maxlen=1)
        if last and (best is None or start + last[0].start() > best.start):
            rest = _OTHER_ENDING.sub("", tail[last[0].end() :]).replace("。", ". ").replace("，", ", ")
            rest = rest.replace("（", "(").replace("）", ")")
            rest = _OTHER_AND.sub(" and ", _BUT_NOT_ELSEWHERE.sub("", rest))
            if not _DENIED_ELSEWHERE.match(rest) and (found := _first_answer(rest)):
                best = Extraction(found, "answer-line", start=start + last[0].start())
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


MATH_SPAN = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(\\begin\{(?:align|aligned|equation|gather|alignat|eqnarray)\*?\}.+?\\end\{\w+\*?\})|"
    r"(?<!\\)\$((?:[^$\\\n]|\\.)+?)(?<!\s)\$(?!\d)|"
    # Space before the closing dollar: mathematics, unless it holds words, as in "from $5 to $10".
    r"(?<!\\)\$((?:[^$\\\nA-Za-z]|\\[A-Za-z]+(?:\{[A-Za-z ]*\})*|\\.|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))+?)\$(?!\d)",
    re.S,
)
BOLD = re.compile(r"\*\*([^*\n]{1,200}?)\*\*")


def span_text(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


_FENCE = re.compile(r"^```[a-z]*\n\s*")
_TAGS = re.compile(r"</?(?:b|strong|i|em|u|span|p|br)\b[^<>]{0,80}>", re.I)
_HEDGE = (
    r"(?:approximately|approx\.?|about|roughly|around|nearly|exactly|precisely|only|just|either|an?\s+total\s+of|in\s+total|[≈~])"
    r"\s*(?=[-−+]?[\d$\\(.])"
)
"""What says how exact a number is, and is no part of it."""
_FILLER = re.compile(
    rf"^(?:(?:therefore|thus|hence|simply|just|indeed|then|given by|equal to)\b[\s,:]*|{_HEDGE})+", re.I
)
_OF_THEM = re.compile(r"(?<=\w)\s+(?:of\s+(?:them|these|those)|in\s+(?:all|total)|altogether)\W*$", re.I)


DESCRIBED = re.compile(
    r"(?:(?:the\s+)?(?:remainder\s+(?:when|of|left|after)|(?:last|units?|ones|tens|rightmost)\s+(?:\w+\s+)?digits?\s+of|"
    r"(?:(?:square|cube)(?:\s+root)?|reciprocal|inverse|negative|factorial|sine|cosine|tangent|logarithm|half)\s+of|"
    r"number\s+(?:with|whose|that)|\d+\s+(?:times|(?:less|more|fewer|greater)\s+than)\s+the|"
    r"(?:sum|product|difference|quotient|number)\s+of\s+(?:the\s+)?(?:first\s+|all\s+)?\S+\s+[a-z]{3,}|"
    r"\d+(?:st|nd|rd|th)\s+[a-z]+)"
    r"|one\s+of\s+the|an?\s+(?:[\w-]+\s+){0,2}(?:number|integer|multiple|power|divisor|factor|prime|value)\s+"
    r"(?:ending|starting|beginning|divisible|between|less|greater|larger|smaller|of|with|that|which|whose|in|from))\b"
    r"(?:.*?(?:\bwhich\s+(?:is|equals)|\bnamely|\bi\.e\.,?|:|,(?=\s*[-\d$][^,]*$))\s*(?P<value>\S.*))?",
    re.I,
)
"""The answer is the remainder when ..., the square root of ...: what is yet to be worked out, or follows."""
_VERB_OF_VALUE = re.compile(r"\bis\s+(?!divided)|=|\bequals?\b")
DIVIDED = re.compile(r"\bremainder\s+(?:when|of|left|after)\b.*\bdivided by \S+\W*$", re.I | re.S)
"""A sentence that ends with what is divided, and by what."""


_ITEMS = r"(?:(?:[-*•]|\d{1,2}[.)])[ \t]+[^\n]+)"
_TUPLE = r"(?:\${0,2}\\?\([^()\n]{1,80},[^()\n]{1,80}\)\${0,2})"
_EQUATION = r"(?:\$?[A-Za-z]\s*=\s*[^\s$,;.]{1,40}\$?)"
_DISPLAYED = r"(?:\$\$[^$]{1,200}\$\$|\\\[[^\n]{1,200}\\\])"
_LISTED = re.compile(
    rf"{_ITEMS}(?:\n\s*{_ITEMS})+|{_TUPLE}(?:[ \t,]*\n\s*{_TUPLE}(?=[.\s]*$|[ \t,]*\n))+|"
    rf"{_EQUATION}(?:[ \t,]*\n\s*{_EQUATION}(?=[.\s]*$|[ \t,]*\n))+|{_DISPLAYED}(?:\s*(?:and|or),?\s*{_DISPLAYED})+"
)
"""A list over several lines, each of them an item, a tuple or an equation."""
_EXPLAINED = re.compile(r"(?:because|since|as|where|which|with|note|check|this|these)\b", re.I)
_INTRODUCTION = re.compile(r"[^\n]{1,80}:\s*\n\s*(?=[-•]\s|1[.)]\s|\$\$|\\\[)")
"""The values are: and a list."""
_STAR_BULLET = re.compile(r"^\*(?=[ \t])", re.M)
_LONE_ITEM = re.compile(r"^(?:[-*•]|1[.)])\s+(?=\$|\*\*)")


def _listed(lines: str) -> str | None:
    """Returns the values of a list over several lines; None where one of its items has none."""
    values: list[str] = []
    for line in re.split(r"\n\s*(?=\S)|(?<=\$)\s*(?:and|or)\b,?", lines):
        item = re.sub(
            r"^(?:[-*•]|\d{1,2}[.)])\s+(?:[A-Za-z][A-Za-z ]{0,40}:\s+|\*{0,2}\([a-h]\)\*{0,2}\s+)?",
            "",
            line.strip(" \t,"),
        )
        if item.strip("., ") in ("and", "or"):
            continue
        if values and _EXPLAINED.match(item):
            break
        value = inner(item) if MATH_SPAN.fullmatch(item.rstrip(" .,;")) else stated(item)
        if not value or not re.search(r"\d", value) or (len(WORD.findall(value)) > 3 and "\\" not in value):
            return None
        values.append(inner(value.rstrip(" .,;")))
    return ", ".join(values)


_EMPHASIS_END = re.compile(r"(?<=[^\s*_])(?:\*{1,3}|__)(?=[\s.,;:!?%\\]|$)")


def _first_answer(rest: str) -> str | None:
    """Returns the answer that follows an answer mark, on its line or, where that is empty, on the next one."""
    rest = _STAR_BULLET.sub("-", rest).lstrip(" \t*_:：\n>}")
    line, newline, more = rest.partition("\n")
    # Its opening stars are gone: `**24** cm`.
    rest = _EMPHASIS_END.sub("", line, count=1) + newline + more
    rest = _FILLER.sub("", _FENCE.sub("", rest))
    if (described := DESCRIBED.match(rest.split("\n", 1)[0])) and (
        described["value"] or not _VERB_OF_VALUE.search(_first_sentence(rest))
    ):
        return _first_answer(described["value"]) if described["value"] else None
    rest = _INTRODUCTION.sub("", rest, count=1) if _INTRODUCTION.match(rest) else rest
    if (lines := _LISTED.match(rest)) is not None:
        return _listed(lines[0])
    rest = _LONE_ITEM.sub("", rest)
    span = MATH_SPAN.match(rest)
    if span:
        after = rest[span.end() :].split("\n", 1)[0]
        if not re.match(
            r"\s*(?:,?\s*(?:and|or)\s+(?:(?:also|maybe|possibly|either|with)\s+)?[-+\d($\\]|[,;]\s*[-\d($\\]|\\?%|°|percent\b|pct\b|[=+*/<>^])",
            after,
        ):
            return span_text(span)
    line = rest.split("\n", 1)[0].strip()
    bold = BOLD.match(line)
    if bold and not re.match(r"\s*(?:,|and\b|or\b)", line[bold.end() :]):
        return inner(bold[1])
    return stated(line) if line else None


# -- statements

_PREPOSITION = re.compile(r"^(?:(?:[a-z]+(?:ed|ing)|found|taken)\s+)?(?:at|by|when|as)\s+(?=[-\d\x00(])")
_RELATION = r"\s*(?:=|[<>]=?|[≤≥])\s*"
_NAMED = re.compile(
    rf"\b[A-Za-z](?:_\w+)?{_RELATION}{VALUE}(?:(?:\s*[,;]\s*|\s+)(?:(?:and|or)\s+)?[A-Za-z](?:_\w+)?{_RELATION}{VALUE})+$"
)
"""x = 5 or x = -2, at the end of a sentence."""
_SOLVED = re.compile(
    r"(?<![\w$])(?!(?i:if|for|when|where|at|let|with|suppose|assume|assuming|taking|setting|than|not)\b)[A-Za-z]+[,:]?\s+"
    rf"(?P<equation>[A-Za-z](?:_\w+)?{_RELATION}[-−+]?{PLAIN_VALUE})$"
)
"""Therefore, x = 5."""
_SUPPOSED = re.compile(
    rf",?\s+(?:if|when|at|suppose|assume|assuming)\s+(?:[A-Za-z]\s*=\s*{VALUE}|\x00(?P<span>\d+)\x00)\W*$", re.I
)
"""... if x = 5, at the end of a sentence."""
_PLACE = re.compile(r"=|^\\?(?:left)?\(")
_ATTAINED = re.compile(
    r"(?<=[\d\x00)]),?\s+(?:and\s+)?(?:(?:it|this|that|which)\s+)?(?:(?:is|are)\s+)?(?:attained|achieved|reached|"
    r"occur(?:s|ring)|happens)\b[^\d\x00]*\b(?:at|when|for|if|by|with|where)\s"
    rf"(?:[^\x00\d,]{{0,40}}{VALUE}){{0,3}}\W*$",
    re.I,
)

_BOILERPLATE = re.compile(
    r"<\|[^|]{1,30}\|>.*|\bI hope (?:it|this) is correct\.?|Let me know if.*",
    re.S | re.I,
)
SENTENCE_END = re.compile(
    r"(?<=[\w})\]%\x00!\"'])\s?[.](?=\s|\*|$)|(?<=[a-z)\x00])!(?=\s|$)|\n+|\s[—–]\s|(?<=\x00)\s+(?=(?:Therefore|Thus|Hence|So|The|Final|Answer)\b)"
)
_VERB = re.compile(r"\b(?:is|are|was|be|equals?|equal to|becomes?|yields?|gives?|get|obtain|have)\b|=(?![^\x00]*\x00)")
WORD = re.compile(r"[A-Za-z]{2,}")
MONEY = r"\\?[$€£]\s?\d[\d,]*(?:\.\d+)?(?![\w.]*\d)"
NUMBER = re.compile(
    r"(?<![\w.,])(?!\d+(?:st|nd|rd|th)\b)(?:\\?\$|[€£])?\s?[-−]?\s?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,/]\d+)*|\.\d+)(?:\s*\\?%|\s*percent\b)?"
)


_NAMES = re.compile(r"\w|\\?[({]\s*\w(?:\s*,\s*\w)*\s*\\?[)}]")
_COMBINED = re.compile(r"\w(?:\^\S+)?\s*[-+*]\s*\w.*")
_SPAN_MARK = re.compile(r"\x00(\d+)\x00")


class Masked:
    """Text whose math spans are replaced by a mark each, so that prose can be told from formulas."""

    def __init__(self, text: str) -> None:
        self.spans: list[re.Match[str]] = []
        self.text = MATH_SPAN.sub(self._keep, text.replace("\x00", ""))

    def _keep(self, match: re.Match[str]) -> str:
        self.spans.append(match)
        return f"\x00{len(self.spans) - 1}\x00"

    def listed(self, sentence: str) -> str | None:
        """Returns the formulas that end a sentence: all of x = 5 or x = -2, the last of r = 1/2, and p + q = 3."""
        found = SPAN_LIST.search(sentence)
        if found is None:
            return None
        names = [span_text(self.spans[int(n)]).partition("=") for n in _SPAN_MARK.findall(found[0])]
        named = [name.strip() for name, equals, _ in names if equals]
        if len(named) == len(names) > 1 and re.fullmatch(r"[A-Za-z]", named[-1]) and _steps(names, named[-1]):
            # n - 2 = 9, and n = 11: steps towards the last.
            return "=".join((names[-1][0], names[-1][2])).strip()
        if (
            len(names) > 1
            and names[-1][1]
            and _COMBINED.fullmatch(named[-1])
            and all(map(_NAMES.fullmatch, named[:-1]))
        ):
            # r = 1/2 (or 1/2 alone), and p + q = 3.
            return "=".join(part for part in (names[-1][0], names[-1][2])).strip()
        return self.shown(found[0].strip(" ."))

    def shown(self, masked: str) -> str:
        """Returns a piece of the masked text with its math in place; a lone span without its dollars."""
        whole = re.fullmatch(r"\x00(\d+)\x00", masked.strip())
        if whole:
            return span_text(self.spans[int(whole[1])])
        return _SPAN_MARK.sub(lambda m: " " + span_text(self.spans[int(m[1])]) + " ", masked).strip()


def _steps(equations: list[tuple[str, str, str]], letter: str) -> bool:
    """Tells whether all equations but the last are about expressions in its letter, none about a name by itself."""
    return all(
        re.search(r"[-+\d^{(]", left) and re.search(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", left + right)
        for left, _, right in equations[:-1]
    )


SPAN_LIST = re.compile(r"\x00\d+\x00(?:\s*(?:[,;]\s*(?:and|or)?|and|or)\s*\x00\d+\x00)*[\s.]*$")
"""The formulas that end a sentence: x = 5 or x = -2."""
_AS_DESIRED = re.compile(
    r",?\s+as\s+(?:desired|required|claimed|expected|needed|wanted|stated|above|before)\b.*$", re.S
)
NEXT_STATEMENT = r";\s+(?:the|another|others?|however|but|note)\s(?!.*\b(?:so|thus|hence|therefore|answer)\b)"
"""The smallest is 7; the next one is 12."""
_REMARK = re.compile(
    rf"(?<=\S),?\s+(?:(?:because|since|where|which|as)\b|i\.\s?e\.)|(?<=\S)\s+\((?=[a-z]{{2}})|{NEXT_STATEMENT}"
)


def stated(line: str) -> str | None:
    """Returns what a line states as an answer: all of it, or the value at the end of a sentence in prose."""
    masked = Masked(without_boilerplate(line))
    sentence = _ATTAINED.sub("", _first_sentence(masked.text))
    sentence = without_where(corrected(_REMARK.split(sentence)[0].strip()), masked)
    if not sentence:
        return None
    return _OF_THEM.sub("", value_of(sentence, masked) or masked.shown(trim(sentence))) or None


def without_where(sentence: str, masked: Masked) -> str:
    """Cuts where a value is taken, at the end of a masked sentence: 15 when x = 3, attained at x = 3."""
    sentence = _ATTAINED.sub("", sentence)
    supposed = _SUPPOSED.search(sentence)
    if supposed and (supposed["span"] is None or _PLACE.search(span_text(masked.spans[int(supposed["span"])]))):
        before = sentence[: supposed.start()]
        return before if re.search(r"[\d\x00]", before) else sentence
    return sentence


_VALUE_OR_CHOICE = rf"(?:{VALUE}|\(?(?-i:[A-J])\)?(?!\w))"
_NOT_BUT = re.compile(
    rf"\bnot\s+{_VALUE_OR_CHOICE}(?:\s+[a-z]+)?\s*[,;]?\s+but\s+(?:(?:rather|instead|actually)\s+)?"
    rf"(?={_VALUE_OR_CHOICE})",
    re.I,
)
_BUT_NOT = re.compile(
    rf"(?:(?<=[\d\x00)%\]}}]),?|(?<=\w),|(?<=\b[A-J]))\s+(?:(?:and|but)\s+)?"
    rf"(?:not|rather than|instead of)\s+{_VALUE_OR_CHOICE}(?:\s+[a-z]+)*\W*$",
    re.I,
)


_WORD_NOT_WORD = re.compile(r"([A-Z]\w+)(?:,|\s+and)\s+not\s+[A-Z]\w+\W*")
"""Tuesday, not Monday."""


def corrected(sentence: str) -> str:
    """Cuts the value that a masked sentence takes back where it states another: `not 10, but 12`, `11, not 10`."""
    kept = _NOT_BUT.sub("", sentence)
    without = _BUT_NOT.sub("", kept)
    if word := _WORD_NOT_WORD.fullmatch(kept):
        return word[1]
    return without if re.search(r"[\d\x00]|\b[A-J]\b", without) else kept


def _first_sentence(masked: str) -> str:
    return next((s for s in SENTENCE_END.split(masked) if s and s.strip(" *_")), "").strip()


DECORATION = "".join(map(chr, range(0x1F300, 0x1FB00))) + "✅✔✓⭐✨\ufe0f"
"""Pictures that praise an answer."""


def trim(piece: str) -> str:
    piece = piece.replace('\\"', '"').strip().strip('*_`" ')
    return piece.rstrip(DECORATION + ".,;:。．！ ").strip()


_AT_TIME = re.compile(r"\bat (\d{1,2}:\d\d(?:\s*[ap]\.?m\b\.?)?)\W*$", re.I)
_STEP = re.compile(
    r".*[\s,](?:so|thus|hence|therefore|from which|which gives|which means|leading to|giving|yielding|i\.e\.)[\s,:]+",
    re.S,
)
DENIED = re.compile(
    r"(?:\b(?:not|cannot|never|neither|nor)|n't)\s+(?:\w+\s+){0,3}[-\d\x00\\$]|\b(?:false|not true)\s+that\b"
)
"""A value that a sentence takes away: it is not 5."""


def denies(sentence: str) -> bool:
    """Tells whether a masked sentence takes a value away: it is not 5, 5 is impossible."""
    return bool(DENIED.search(sentence) or VALUE_REFUTED.search(sentence))


def _last_step(masked: str) -> str:
    """Returns what follows the last `so`, `from which` or `leading to` of a piece of a masked sentence."""
    rest = _STEP.sub("", masked)
    return rest if "\x00" in rest or re.search(r"\d", rest) else masked


def value_of(sentence: str, masked: Masked, concluding: bool = False) -> str | None:
    """Returns the value that a sentence in prose ends with, None where it is no prose or states none."""
    if concluding and denies(sentence):
        step = _last_step(sentence)
        if step == sentence or denies(step):
            return None
        sentence = f"so {step}"
    if concluding:
        sentence = without_where(sentence, masked)
        if (supposed := _SUPPOSED.search(sentence)) and not supposed["span"]:
            return None
    if DIVIDED.search(sentence):
        before = re.search(rf"({VALUE})\s+(?:is|as|remains as)\s+(?:the|its|a)\s+remainder\b", sentence)
        return masked.shown(before[1]) if before else None
    if clock := _AT_TIME.search(sentence):
        return clock[1]
    if named := _NAMED.search(trim(sentence)):
        return masked.shown(named[0])
    if concluding and (solved := _SOLVED.search(trim(sentence))):
        return solved["equation"]
    if len(WORD.findall(sentence)) < 3:
        return masked.listed(sentence) if concluding else None
    sentence = re.sub(r"\s*\([^()]*\)\s*$", "", trim(_AS_DESIRED.sub("", sentence)))
    verbs = list(_VERB.finditer(sentence))
    last = verbs[-1] if verbs else None
    if last:
        rest = trim(
            re.sub(
                r"^\s*(?:(?:equal|equivalent) to|to|one of|also|then|either|exactly|about|approximately|"
                r"simply|just|given by|therefore|thus|:)\s*",
                "",
                sentence[last.end() :],
            )
        )
        rest = re.sub(r"^(?:an?|the)\s+(?:[a-z]+:?\s+){1,2}(?=\x00)", "", _PREPOSITION.sub("", rest))
        rest = re.sub(r"^(\x00\d+\x00)\s+(?!and\b|or\b)[a-z]{3,}(?:\s+[a-z]{3,})*\s+\x00\d+\x00$", r"\1", rest)
        rest = _last_step(rest)
        if (described := DESCRIBED.match(rest)) and not described["value"] and not _VERB_OF_VALUE.search(rest):
            return None
        if rest and len(WORD.findall(rest)) <= 2 and re.search(r"[\d\x00]", rest):
            return masked.listed(rest) if SPAN_LIST.fullmatch(rest) else masked.shown(rest)
    if (end := masked.listed(sentence)) is not None:
        return end
    numbers = [n[0] for n in NUMBER.finditer(re.sub(r"\x00\d+\x00", "", sentence))]
    if len(numbers) == 1 and "\x00" not in sentence:
        return numbers[0].strip()
    if last and rest and (start := NUMBER.match(rest)):
        return start[0].strip()
    if last and rest and (start := re.match(r"\x00\d+\x00", rest)):
        return masked.shown(start[0])
    return None


def inner(text: str) -> str:
    """Returns a formula without its delimiters, other text as it is."""
    span = MATH_SPAN.fullmatch(text.strip())
    return span_text(span) if span else text.strip()


def without_boilerplate(text: str) -> str:
    """Cuts what says nothing: special tokens, hopes, offers."""
    return _TAGS.sub("", _BOILERPLATE.sub("", text))
