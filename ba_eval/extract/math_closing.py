r"""Answers that stand where nobody asked for one: closing statements, a bare answer, the last number."""

import re
from collections import deque

from ba_eval.extract.extraction import Extraction
from ba_eval.extract.math_answer_line import AND_ELSEWHERE
from ba_eval.extract.math_denials import (
    ANSWER_DESCRIBED,
    BOUNDED,
    REFERENCE,
    REFUTED,
    SUPPOSITION,
    TASK,
    TASK_DONE,
    UNCLAIMED_ANSWER,
    VALUE,
    VALUE_REFUTED,
    without_taken_back,
)
from ba_eval.extract.math_prose import (
    BOLD,
    DECORATION,
    DENIED,
    DIVIDED,
    MATH_SPAN,
    MONEY,
    NUMBER,
    SENTENCE_END,
    SPAN_LIST,
    WORD,
    Masked,
    corrected,
    denies,
    inner,
    span_text,
    trim,
    value_of,
    without_boilerplate,
    without_where,
)
from ba_eval.extract.math_statements import ASIDE, CONFIRMED, pointed_out, without_afterthought, without_extras

# -- closing lines

_CONCLUDING = re.compile(
    r"\b(?:therefore|thus|hence|so(?!\s+far\b)|consequently|finally|conclusion|summary|conclude|answer|follows|altogether|total|namely|"
    r"which is what (?:we|was|the))\b",
    re.I,
)
_SENTENCE = re.compile(rf"(?:{_CONCLUDING.pattern}|\b(?:is|are|equals?|there)\b).*\s", re.I)
"""Bold text that is a sentence."""
_ITEM = rf"(?:(?:[A-Za-z]\s*=\s*)?{VALUE}|[^\s.,]*\d[^\s,]*)"
_STATEMENT = re.compile(
    rf"\b(?:is|are|equals?)\s+({_ITEM}(?:(?:\s*[,;]\s*(?:and|or)?\s*|\s+(?:and|or)\s+){_ITEM})*)[.\s]*$"
)
_RESULT = re.compile(
    rf"[\d²³]\s*=\s*({NUMBER.pattern})(?:\s+[a-z-]+){{1,4}}\W*$|[\w)]\s*=\s*({MONEY})(?:\s+[a-z-]+){{0,4}}\W*$"
)
"""20 - 7 = 13 apples left; $20 + $15 = $35."""
_AMOUNT = re.compile(
    r"(?<!who\s)(?<!which\s)(?<!that\s)\b(?:earn(?:s|ed)?|pays?|paid|spends?|spent|costs?|makes?|made|has|have|had|gets?|got|saves?|saved|needs?|owes?|"
    r"raised?|charges?|is|are|was|so|thus|worth)\s+(?:(?:therefore|thus|now|then|about|exactly|only|a\s+total\s+of)\s+)?"
    rf"({MONEY})(?=[\s.!]*$|,\s+which\b|(?:\s+(?!per\b|each\b|and\b|or\b)[a-z]+)+(?:\s+\d+\s+[a-z]+)?[\s.!]*$)",
    re.I,
)
"""So she pays $14 for 2 tickets."""
_HAS_NO_SOLUTION = re.compile(
    r"(?:(?:since|as|because)\b[^,;]{1,80},\s*)?\W*(?:there\s+(?:is|are|exists?)|the\s+(?:\w+\s+){1,3}ha(?:s|ve))\s+no\s+"
    r"(?:(?:real|integer|integral|positive|valid|possible)\s+)?solutions?"
    r"(?:\s+exists?|\s+to\s+(?:this|the)\s+\w+)?[\s.!*]*",
    re.I,
)
"""A whole sentence: the equation has no solution."""
_NO_SOLUTION = re.compile(
    r"(?:^|[\s,.;])(?:so|thus|hence|therefore|consequently)\b(?!.{0,80}\b(?:if|when|case|for)\b)[^\x00\d]{0,80}\bno\s+"
    r"(?:(?:real|integer|integral|positive|valid|possible)\s+)?solutions?(?:\s+exists?)?[\s.!]*$",
    re.I,
)
_PROPER_NAME = re.compile(r"\bis\s+([A-Z][a-z]+)[\s.!]*$")
_SINCE = re.compile(
    rf"\W*(?:since|because|as)\s+[^,]{{1,120}},\s*(?P<rest>(?:we\s+\w+\s+)?(?:[A-Za-z]\s*=\s*)?{VALUE}\W*)", re.I
)
"""Since x > 0, x = 5."""
_REASON = re.compile(r"\W*(?:since|because|as)\s+(?P<reason>[^,]{1,120}),\s*(?P<rest>.*[\d\x00].*)", re.I | re.S)
_STRONG_WORD = re.compile(r"\\(?:textbf|emph)\{([A-Za-z -]{1,40})\}(?=[\s.!]*$)")
_PROVED = re.compile(
    r"(?:\$\s*\\(?:blacksquare|square|Box|qed)\s*\$|\\(?:blacksquare|square|qed)\b|\bQ\.?E\.?D\b\.?|[\s∎■□])+$"
)
"""The sign that ends a proof."""
_PROVED_WITHIN = 60
_SO_SIGN = re.compile(r"(?:=>|\\(?:therefore|implies|Rightarrow|Longrightarrow)(?![A-Za-z])|[∴⇒])\s*")
_PLAIN_STATEMENT = re.compile(r"\W*(?:the|this|it|its|there|so|which|x|y|n)\b", re.I)
_REMARK = re.compile(r"\s+\((?=[A-Za-z]{2})[^()]*\)(?=[.\s]*$)")
_LABEL = re.compile(r"[\W_]*(?:ans|answer|result|solution|output|value|total)\b[*_\s]{0,4}[.:=][*_\s]{0,4}(?=\S)", re.I)
_CHOICE = re.compile(
    r"\b(?i:option|choice|choose|select|pick)(?:\s+(?:is|option|choice))?\s*:?\s*[*_]{0,2}\(?([A-J])"
    rf"(?!{REFUTED.pattern})\)?[*_]{{0,2}}"
    r"(?=[*_.!\s]*$|[:)]|\s+is\s+(?:the\s+)?(?:correct|right|best|answer)\b)"
)
_CHOICE_SUBJECT = re.compile(
    r"\W*(?:(?i:so|thus|hence|therefore|then),?\s+)?(?:(?i:only)\s+)?(?:"
    r"[*_]{0,2}\(?([A-J])\)?[*_]{0,2}\s+is\s+(?:the\s+)?(?:(?:correct|right|best)(?:\s+(?:answer|choice|option|one))?|answer)|"
    r"(?:(?i:both|options|choices|statements|answers)\s+){0,2}(\(?[A-J]\)?(?:(?:,\s*(?:and\s+)?|\s+and\s+)\(?[A-J]\)?)+)\s+"
    r"are\s+(?:the\s+)?(?:correct|right|true|best)(?:\s+(?:answers|choices|options|ones))?)[\s.!]*"
)
"""C is correct; options A and C are correct."""
_REFUSED = re.compile(
    r"\b(?:need|needs|requires?|without|lacks?|not enough|insufficient)\s+(?:more|further|additional|any more)?\s*"
    r"(?:information|data|context)\b[^.!?\n]*\W*$",
    re.I,
)
"""A last sentence that gives no answer: more information is needed."""
_BLANKS = re.compile(r"(\s)\1{2,}")
_BOLD_LIST = re.compile(r"\*\*[^*\n]{1,40}\*\*(?:(?:,|,?\s+(?:and|or))\s+\*\*[^*\n]{1,40}\*\*)+[\s.]*$")
"""The numbers are **3** and **7**."""
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+(\S.*)")
_NAME = re.compile(r"([A-Za-z])\s*=[^=]*|[^=<>\\]*")
_ELSEWHERE_AND = re.compile(rf"(?<=\x00)(?:\s+(?:{AND_ELSEWHERE})\s+|\s*(?:或|和|及|또는|または|と)\s*)(?=\x00)")
_NO_VALUE = re.compile(rf"\b(?:is|are)\s+not\s+(?P<value>{VALUE})", re.I)
_PLAIN_LIMIT = re.compile(r"(?:at|no|not|more|fewer|less|greater)\s", re.I)
_SO_FAR = re.compile(r"\W*so far\b", re.I)
_UNFINISHED = re.compile(
    r"(?:(?-i:\b(?:[Ll]et|[Ll]et's|the|an|and|or|we|which|if|since|because|but|where|when|from|is|are|into|using|of|with|that|"
    r"(?:to|and)\s+(?:get|obtain|find|yield|give)|we\s+(?:get|have|obtain|find)|gives|yields|then))|"
    r"(?:^|[.!?]\s+|\n)\W*(?:next|let|let's|consider|wait)\b[^.!?\n]*[a-z]|"
    r"(?:^|[.!?]\s+|\n)\W*(?:now|then|substituting)\b[^.!?\n\d]*[a-z]|[a-z],|=)\s*\$?\s*$",
    re.I,
)
"""A sentence that breaks off: nothing before it was meant to be the end."""
_VERDICT = re.compile(
    r"\W*(?:yes|no|true|false)\s?[,.:;—–]\s+(?=\w)(?!(?:if|only|unless|provided|except|when)\b)"
    r"(?!.*\b(?:wait|actually|hmm|but|however|let|sorry|unless|perhaps|maybe|mistake)\b)[^.!?\n]+(?:[.!]\W*)?",
    re.I,
)
"""A sentence that answers with its first word: No, there is none."""
_NO = r"(?:pas|ne|n|ni|nicht|kein\w*|no|non|nie|não|nem|niet|geen|не|нет)"
_LIMIT = r"(?:plus|moins|más|menos|mehr|weniger|mindestens|höchstens|più|meno|mais|więcej|mniej|meer|minder|entre)"
_ELSEWHERE = re.compile(
    r"(?:(?:所以|因此|因而|故|综上(?:所述)?)[，,：\s]*|(?<!\w)(?:donc|ainsi|soit|daher|somit|folglich|deshalb|portanto|luego|entonces|"
    r"por (?:lo )?tanto|quindi|dunque|perciò|pertanto|więc|zatem|dus|значит|поэтому|итак|следовательно|jadi)[\s,:]+)"
    rf"(?:(?!(?:{_NO}|{_LIMIT})\b)[^\W\d_]+(?:['’]|\s+)){{0,4}}?"
    r"(?P<value>\x00\d+\x00|(?:[A-Za-z]\s*=\s*)?\d+(?:,\d{1,2})?(?![\d.,]\d))"
    r"(?P<unit>\s*[€%]|\s+[^\W\d_]+)?[\s.!。]*$",
    re.I,
)
"""The end of a concluding sentence in another language, with a decimal comma: donc 2,5 euros."""


_ASIAN = re.compile(
    r"(?:所以|因此|因而|故|综上(?:所述)?|答|よって|したがって|ゆえに|따라서|그러므로)[，,：:、\s]*(?P<words>[^\d\x00。!?！？=<>≤≥≠＞＜]{0,40}?)"
    r"(?P<value>\x00\d+\x00|[-−]?\d+(?:\.\d+)?)(?P<unit>[^\d\x00。!?！？A-Za-z=+*/^-]{0,12})[。.!！\s]*$"
)
"""The same without blanks between the words: 所以小明一共有42个苹果。"""
_ASIAN_LIMIT = re.compile(
    r"[不非没未]|超过|以上|以下|至少|至多|最多|最少|少于|多于|大于|小于|余数|除以|ない|より|미만|이상|이하|초과|않|아니|보다"
)


def closing(text: str) -> Extraction | None:
    """Bold text, a concluding sentence or display math in the last lines."""
    found = _closing(text)
    if found and found.answer and (sign := _SO_SIGN.match(found.answer)):
        return Extraction(found.answer[sign.end() :] or None, "closing")
    return found


def _closing(text: str) -> Extraction | None:
    tail = _BLANKS.sub(r"\1\1", without_boilerplate(_BLANKS.sub(r"\1\1", text[-20_000:])[-6000:]).rstrip()[-3000:])
    tail = without_afterthought(tail)
    if _UNFINISHED.search(tail[-300:]) or _REFUSED.search(tail[-300:]):
        return None
    tail = without_taken_back(tail).rstrip(DECORATION)
    tail = tail[:-_PROVED_WITHIN] + _PROVED.sub("", tail[-_PROVED_WITHIN:])
    lines = [line for line in tail.split("\n") if line.strip(" -*_#")]
    for line in reversed(lines[-3:]):
        bold = [b for b in BOLD.findall(_STRONG_WORD.sub(r"**\1**", line)) if not b.rstrip().endswith(":")]
        if len(bold) > 1 and (several := _BOLD_LIST.search(line)):
            return Extraction(", ".join(map(inner, BOLD.findall(several[0]))), "closing")
        if bold and (re.search(r"\d|\\", bold[-1]) or re.fullmatch(r"\W*\w{1,12}\W*", bold[-1])):
            strong = bold[-1].strip()
            said = closing(strong) if _SENTENCE.search(strong) else None
            return said or Extraction(inner(strong), "closing")
    if lines and (label := _LABEL.match(lines[-1])) and (found := bare(lines[-1][label.end() :])):
        return Extraction(found.answer, "closing")
    if (listed := _bullets(lines)) is not None:
        return Extraction(listed, "closing")
    masked = Masked(tail)
    masked.text = _ELSEWHERE_AND.sub(" and ", masked.text)
    if (strong := _emphasised(masked)) is not None:
        return Extraction(strong, "closing")
    sentences = [_REMARK.sub("", s) for s in SENTENCE_END.split(masked.text) if s and s.strip(" *_")]
    while len(sentences) > 1 and (aside := _aside(sentences)):
        del sentences[-aside:]
    refuted = {
        _right_side(masked.shown(found["value"]))
        for pattern in (VALUE_REFUTED, _NO_VALUE)
        for found in pattern.finditer(sentences[-1] if sentences else "")
    }
    for sentence in reversed(sentences[-2:]):
        final = sentence is sentences[-1]
        concluding = bool(_CONCLUDING.search(sentence))
        if _SO_FAR.match(sentence):
            continue
        if _claims_nothing(sentence):
            if final:
                return None
            break
        if (task := TASK.search(sentence)) and not TASK_DONE.search(sentence, task.end()):
            if task["task"] or task["next"]:
                return None
            continue
        whole = sentence = REFERENCE.sub("", sentence)
        bounded = BOUNDED.search(sentence)
        sentence = BOUNDED.sub(r"\g<words> …", sentence)
        if final and (found := _elsewhere(sentence, masked)):
            return found
        if final and (_NO_SOLUTION.search(sentence) or _HAS_NO_SOLUTION.fullmatch(sentence)):
            return Extraction("no solution", "closing")
        if final and (since := _SINCE.fullmatch(sentence)):
            sentence, concluding = f"so {since['rest']}", True
        if (reason := _REASON.fullmatch(sentence)) and denies(reason["reason"]):
            sentence, concluding = f"so {reason['rest']}", True
        if (final or concluding) and (value := pointed_out(sentence, masked)):
            return Extraction(value, "closing")
        sentence = without_where(without_extras(corrected(sentence)), masked)
        if (concluding or (final and SPAN_LIST.search(sentence))) and (found := _stated(sentence, masked)):
            return None if _right_side(found.answer or "") in refuted else found
        if final and (found := _plainly(sentence, masked, len(sentences) == 1)):
            return found
        if final and concluding and (name := _PROPER_NAME.search(sentence)):
            return Extraction(name[1], "closing")
        if final and bounded and concluding and "\x00" not in sentence:
            limit = bounded["open"] or f"{bounded['words']} {masked.shown(bounded['value'])}"
            claimed = (bounded["open"] or _PLAIN_LIMIT.match(limit)) and not DENIED.search(whole)
            return Extraction(limit, "closing") if claimed else None
    if lines and _VERDICT.fullmatch(lines[-1]):
        return Extraction(lines[-1].strip(), "closing")
    if (
        sentences
        and masked.spans
        and not (
            denies(sentences[-1])
            or TASK.search(sentences[-1])
            or DIVIDED.search(sentences[-1])
            or _SO_FAR.match(sentences[-1])
        )
    ):
        last = BOUNDED.sub("", sentences[-1])
        spans = re.findall(r"\x00\d+\x00", last)
        if spans:
            return Extraction(_with_neighbours(last, spans[-1], masked), "closing")
    return None


def _claims_nothing(sentence: str) -> bool:
    """Tells whether a masked sentence names a value that is none of the text's own: asked, supposed, others' answer."""
    asked = sentence.rstrip().endswith("?") and re.search(r"[\d\x00]", sentence)
    described = UNCLAIMED_ANSWER.search(sentence) or ANSWER_DESCRIBED.search(sentence)
    return bool(asked or described or SUPPOSITION.fullmatch(sentence))


def _right_side(equation: str) -> str:
    return equation.rpartition("=")[2].strip()


def _aside(sentences: list[str]) -> int:
    """Returns how many of the last sentences say nothing of the answer: a check, an example, and its formula."""
    for count in (1, 2):
        first, *rest = sentences[-count:]
        # What follows the heading of a check is its formula.
        formula = all(re.fullmatch(r"[\s\x00\d.,✓]*", sentence) for sentence in rest) and (count == 1 or ":" in first)
        if (
            len(sentences) > count
            and formula
            and ASIDE.match(first)
            and not _CONCLUDING.search(CONFIRMED.sub("", first))
        ):
            return count
    return 0


def _bullets(lines: list[str]) -> str | None:
    """Returns the values of one name, or without one, that are the bullets at the end of a text."""
    values: list[str] = []
    plain = introduced = False
    for line in reversed(lines):
        bullet = _BULLET.fullmatch(line)
        value = bullet[1].rstrip(" .,;") if bullet else ""
        if not MATH_SPAN.fullmatch(value) and not re.fullmatch(VALUE, value):
            if line.rstrip().endswith(":"):
                introduced = True
            break
        plain = plain or not MATH_SPAN.fullmatch(value)
        values.insert(0, inner(value))
    named = [_NAME.fullmatch(value) for value in values]
    names = [match[1] for match in named if match]
    if len(values) < 2 or None in named or len(set(names)) not in (1, len(names)) or (None in names and any(names)):
        return None
    if (plain or len(set(names)) > 1) and not introduced:
        return None
    return ", ".join(values)


def _elsewhere(sentence: str, masked: Masked) -> Extraction | None:
    """Returns the value, with a unit that is one word, that ends a concluding sentence in another language."""
    found = _ELSEWHERE.search(sentence)
    if found is None:
        asian = _ASIAN.search(sentence)
        if asian is None or _ASIAN_LIMIT.search(asian["words"] + asian["unit"]):
            return None
        return Extraction(masked.shown(asian["value"]), "closing")
    unit = (found["unit"] or "").strip()
    value = masked.shown(found["value"])
    # Of 2,5 alone nobody can tell whether it is a list.
    value = value.replace(",", ".") if unit and "\x00" not in found["value"] else value
    return Extraction(f"{value} {unit}" if unit.isascii() and unit else value, "closing")


def _plainly(sentence: str, masked: Masked, alone: bool) -> Extraction | None:
    """Returns what the last sentence says without a concluding word: its choice, the value behind its verb."""
    if (choice := _choice(sentence)) is not None:
        return Extraction(choice, "closing")
    if denies(sentence):
        return None
    if result := _RESULT.search(sentence):
        return Extraction(result[1] or result[2], "closing")
    if (amount := _AMOUNT.search(sentence)) and len(re.findall(MONEY, sentence)) == 1:
        return Extraction(amount[1], "closing")
    plain = alone or bool(masked.spans) or _PLAIN_STATEMENT.match(sentence)
    if plain and (match := _STATEMENT.search(sentence)):
        return Extraction(masked.shown(trim(match[1])), "closing")
    return None


def _stated(sentence: str, masked: Masked) -> Extraction | None:
    if (choice := _choice(sentence)) is not None:
        return Extraction(choice, "closing")
    if not denies(sentence) and (amount := _AMOUNT.search(sentence)):
        return Extraction(amount[1], "closing")
    found = value_of(sentence, masked, True)
    return Extraction(found, "closing") if found else None


def _choice(sentence: str) -> str | None:
    """Returns the letters of the choices that a sentence calls right."""
    if subject := _CHOICE_SUBJECT.fullmatch(sentence):
        return ", ".join(re.findall(r"[A-J]", subject[1] or subject[2]))
    choice = _CHOICE.search(sentence)
    return choice[1] if choice else None


_STRONG = re.compile(r"\\(?:mathbf|boldsymbol|bm)\s*\{[^{}]*\d")
_RELATION = re.compile(r"=|\\(?:leq?|geq?|leqslant|geqslant|approx)(?![A-Za-z])")


def _emphasised(masked: Masked) -> str | None:
    """Returns the formula in bold digits that stands in the last math spans."""
    for span in reversed(masked.spans[-6:]):
        text = span_text(span)
        if _STRONG.search(text):
            if (last := _last_side(text)) is not None:
                return last
            pieces = [
                p for p in re.split(r",\s+(?![^{(]*[)}])|,?\s*\\text\s*\{\s*(?:and|or)\s*\}", text) if _STRONG.search(p)
            ]
            return ", ".join(pieces) if pieces else text
    return None


def _last_side(text: str) -> str | None:
    """Returns what stands behind the last relation of a chain, where all of its bold digits are there."""
    relations = list(_RELATION.finditer(text))
    if not relations or _STRONG.search(text[: relations[-1].start()]):
        return None
    side = re.sub(r"\\end\{\w+\*?\}", "", text[relations[-1].end() :]).strip(" .\n")
    return side if side.count("{") == side.count("}") and "&" not in side else None


def _with_neighbours(sentence: str, span: str, masked: Masked) -> str:
    """Returns the last math span of a sentence, the list that it ends and a percent sign behind it included."""
    end = sentence.rindex(span) + len(span)
    start = re.search(r"(?:\x00\d+\x00\s*(?:,|;|,?\s*(?:and|or))\s*)*$", sentence[: end - len(span)])
    after = re.match(r"\s*\\?%|\s*(?:percent|pct|percentage)\b", sentence[end:])
    return masked.shown((start[0] if start else "") + span) + (" \\%" if after else "")


# -- bare answers and last numbers


_FENCED = re.compile(r"^```[a-z]*\n\s*([^\n]*?)\s*\n```$")
_HEDGE = re.compile(
    r"about|approximately|approx|roughly|exactly|answer|around|option|choice|sin|cos|tan|ln|log|sqrt|pi|exp", re.I
)


def bare(text: str) -> Extraction | None:
    """A response that is nothing but an answer: a formula, a number with a unit, a word or two."""
    line = _FENCED.sub(r"\1", text.strip())
    line = line[sign.end() :] if (sign := _SO_SIGN.match(line)) else line
    if not line or len(line) > 400 or "\n" in line or "boxed" in line:
        return None
    span = MATH_SPAN.fullmatch(line)
    if span:
        return Extraction(span_text(span), "bare")
    plain = re.sub(r"\\[A-Za-z]+\*?|\{[A-Za-z]+\}", "", line)
    words = WORD.findall(plain)
    number = re.search(r"\d", plain)
    before = WORD.findall(plain[: number.start()]) if number else []
    if len(words) > 3 or REFUTED.search(plain) or VALUE_REFUTED.search(plain) or not all(map(_HEDGE.fullmatch, before)):
        return None
    return Extraction(trim(line), "bare") if trim(line) else None


def last_number(text: str) -> Extraction | None:
    """The last number of the text: only for benchmarks that are graded so."""
    for width in (400, 20_000, 1_000_000):
        last = deque(NUMBER.finditer(text, max(0, len(text) - width)), maxlen=1)
        if last:
            found = last[0]
            return Extraction(found[0].strip(), "last-number", start=found.start())
        if width >= len(text):
            break
    return None
