r"""Answer lines: "Answer: 5", "the final answer is 5", "#### 5", in several languages."""

import re
from collections import deque

from ba_eval.extract.extraction import Extraction
from ba_eval.extract.math_denials import CORRECTION, UNCLAIMED_ANSWER, VALUE, VALUE_REFUTED, is_taken_back
from ba_eval.extract.math_prose import (
    BOLD,
    DESCRIBED,
    MATH_SPAN,
    SENTENCE_END,
    VERB_OF_VALUE,
    WORD,
    Masked,
    first_sentence,
    inner,
    span_text,
    stated,
)
from ba_eval.extract.math_statements import REMARK_PARAGRAPH

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
_CHOSEN = re.compile(r"(?<!不)(?:故选|应选|选择?)\s*[:：]?\s*(?=[(（]?[A-J](?![A-Za-z]))")
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
    no_answer: set[str] = set()
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
        if remark := REMARK_PARAGRAPH.match(text, max(text.rfind("\n\n", 0, at), 0), at):
            limit = remark.start()
            continue
        rest = text[match.end() : min(match.end() + _LOOK, limit)].split("</answer>")[0]
        if _FITTING.match(rest):
            continue
        if (denied := _DENIED_VALUE.match(rest)) and "but" not in rest.split("\n", 1)[0]:
            no_answer.add(denied[1].strip("$ ."))
            continue
        if (found := _first_answer(rest)) and not PRAISE.match(found):
            if found.strip("$ ") in no_answer:
                return None
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


_FITTING = re.compile(r"[\s*_]*(?:consistent|compatible|in\s+line|reasonable|plausible)\b", re.I)
_DENIED_VALUE = re.compile(rf"\W{{0,4}}not\s+(\$?{VALUE}\$?)", re.I)
"""The answer is not 10: an earlier mark may have said what it is."""
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


_FENCE = re.compile(r"^```[a-z]*\n\s*")
_HEDGE = (
    r"(?:approximately|approx\.?|about|roughly|around|nearly|exactly|precisely|only|just|either|an?\s+total\s+of|in\s+total|[≈~])"
    r"\s*(?=[-−+]?[\d$\\(.])"
)
"""What says how exact a number is, and is no part of it."""
_FILLER = re.compile(
    rf"^(?:(?:therefore|thus|hence|simply|just|indeed|then|given by|equal to)\b[\s,:]*|{_HEDGE})+", re.I
)


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
        described["value"] or not VERB_OF_VALUE.search(first_sentence(rest))
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
