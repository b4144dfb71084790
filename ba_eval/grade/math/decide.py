"""Decides one pair of gold and answer: text, choices and times first, then trees. Runs in the limited worker."""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ba_eval.grade.math import fast, units
from ba_eval.grade.math.clean import MAX_LENGTH, clean
from ba_eval.grade.math.compare import Comparison
from ba_eval.grade.math.opinion import math_verify_agrees
from ba_eval.grade.math.syntax import OverLimit, Unreadable, read
from ba_eval.grade.math.tree import Node

Decision = tuple[str, str, str]
"""(outcome, reason, method)"""


def decide(
    gold: str, answer: str, unit: str = "", absolute: float | None = None, relative: float | None = None
) -> Decision:
    """Returns the decision on one pair; never raises for what an answer says."""
    if (known := fast.decide(gold, answer)) is not None and (known[0] or (absolute is None and relative is None)):
        return ("correct", "equal", known[1]) if known[0] else ("wrong", "not equal", known[1])
    a, b = _in_symbols(clean(gold)), _in_symbols(clean(answer))
    if not b:
        return "wrong", "no answer", ""
    if max(len(a), len(b)) > MAX_LENGTH:
        return "undecided", "too long to compare", ""
    if (words := _words(a, b)) is not None:
        return ("correct", "equal", words[1]) if words[0] else ("wrong", "not equal", words[1])
    return _trees(a, b, clean(unit), _fraction(absolute), _fraction(relative))


def _fraction(value: float | None) -> Fraction | None:
    return None if value is None else Fraction(str(value))


def _trees(gold: str, answer: str, unit: str, absolute: Fraction | None, relative: Fraction | None) -> Decision:
    gold, answer = _without_condition(gold), _without_condition(answer)
    gold, gold_unit = units.split_unit(gold)
    bare, answer_unit = units.split_unit(answer, letters=not re.search("[A-Za-z]", gold))
    gold_unit = gold_unit or units.split_unit("1 " + _as_text(unit))[1]
    factor = units.ratio(gold_unit, answer_unit)
    if factor is None:
        return "wrong", "other unit", "unit"
    if factor != 1:
        bare = f"({bare})*({factor.numerator})/({factor.denominator})"
    golds, gold_trouble = _readings(gold)
    decimal = bool(re.search(r"\d\.\d", gold)) and "," not in gold
    candidates, trouble = _readings(_without_choice(bare), decimal)
    if not golds:
        return "undecided", f"gold not read: {gold_trouble}", ""
    if not candidates:
        return ("undecided", trouble, "") if trouble.startswith(_OVER) else ("wrong", "answer not read", "")
    unknown: list[str] = []
    methods: set[str] = set()
    for left in golds:
        for right in candidates:
            comparison = Comparison(absolute=absolute, relative=relative)
            try:
                result = comparison.equal(left, right)
            except RecursionError:
                result = None
                comparison.troubles.append("nested too deeply")
            method = "+".join(sorted(comparison.methods)) or "type"
            if result:
                return "correct", "equal", method
            methods |= comparison.methods
            if result is None:
                unknown += comparison.troubles or ["cannot be told"]
    method = "+".join(sorted(methods)) or "type"
    return ("undecided", unknown[0], method) if unknown else ("wrong", "not equal", method)


_CONDITION = re.compile(
    r"(?:[,;:\s(]|\\text\s*\{[^{}]*\})+(?:\\forall\s*)?[a-z](?:\s*,\s*[a-z])*\s*\\in\s*"
    r"\\mathbb\s*\{?\s*[ZNRQC]\s*\}?(?:[_^]\{?[^{}]{1,6}\}?)*\s*\)?$"
)
_CONDITION_WORDS = re.compile(
    r"[,;\s]*(?:\\text\s*\{\s*,?\s*(?:where|for (?:all|any|some|every|each)|with)\b|"
    r"(?<=[\s,])(?:where|for (?:all|any|some|every)) ).*$"
)


def _without_condition(text: str) -> str:
    """Cuts what only says of which kind the letters are: `k in Z`, `where n is an integer`."""
    for pattern in (_CONDITION, _CONDITION_WORDS):
        match = pattern.search(text)
        if (
            match
            and text[: match.start()].strip()
            and not text[: match.start()].rstrip().endswith(("\\", "(", "=", "{"))
        ):
            text = text[: match.start()].strip()
    return text


def _as_text(unit: str) -> str:
    return (
        unit if "\\" in unit or not unit else "\\text{" + unit + "}" if unit[0].isalpha() and "^" not in unit else unit
    )


_OVER = "over the limit: "
_LIST_OF_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_DECIMAL_COMMA = re.compile(r"([-+]?)(\d+),(\d{2,}|\d(?=\s*$))")
_SPACED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")


@lru_cache(maxsize=4096)
def _readings(text: str, decimal: bool = False) -> tuple[tuple[Node, ...], str]:
    """Returns the trees that a text may mean: 1,234 is one number or two, 1,22 a decimal or two numbers.

    With `decimal` (the gold is a decimal) 1,5 may be one as well.
    """
    trees: list[Node] = []
    trouble = ""
    for spelling in dict.fromkeys(_spellings(text, decimal)):
        try:
            trees.append(read(spelling))
        except OverLimit as error:
            trouble = f"{_OVER}{error}"
        except Unreadable as error:
            trouble = trouble or str(error)
        except RecursionError:
            trouble = f"{_OVER}nested too deeply"
    return tuple(trees), trouble


def _spellings(text: str, decimal: bool) -> Iterator[str]:
    if _SPACED_THOUSANDS.fullmatch(text):
        yield text.replace(" ", "")
        return
    # In brackets 100,200 are two numbers unless the list itself is spaced: (1,000, 2,000).
    packed = text[:1] in ("(", "[") and ", " not in text
    if _LIST_OF_THOUSANDS.search(text) and not packed and not re.search(r"(?<![\d,])0,", text):
        yield _LIST_OF_THOUSANDS.sub(lambda m: m[0].replace(",", ""), text)
    yield text
    match = _DECIMAL_COMMA.fullmatch(text)
    if (match and decimal) or (
        match
        and (len(match[3]) != 3 or match[2] == "0")
        and (len(match[3]) > 1 or len(match[2]) > 1)
        and match[2].lstrip("0") != ""
    ):
        yield f"{match[1]}{match[2]}.{match[3]}"
    elif match and match[2] == "0" and len(match[3]) > 1:
        yield f"{match[1]}0.{match[3]}"


# -- words, choices, times

_NOTHING = re.compile(
    r"(?:there (?:is|are) )?no (?:real |integer |positive |such )?(?:solutions?|values?|numbers?)|none|dne|"
    r"empty(?: set)?|emptyset|varnothing|does not exist|no such \w+"
)
_TEXT_COMMAND = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sc|sf)?|mathrm|mathbf|mathit|mbox|operatorname|emph)(?![A-Za-z])\s*"
)
_CHOICE = re.compile(r"\(?([A-Ja-j])\)?")
_CHOICE_PREFIX = re.compile(
    r"(?:(?:option|choice|answer)\s*(?=.\b))?(?:\(([A-J])\)|([A-J])(?=[).:]|\s*[\d\\$]|\s*$))[).:\s]*(.*)", re.S | re.I
)
_TIME = re.compile(r"(\d{1,2}):(\d{2})\s*((?:[ap]\.?\s?m\.?)?)|(\d{1,2})()\s*([ap]\.?\s?m\.?)", re.I)
_BASE = re.compile(r"\(?([0-9A-F]+)\)?\s*_\s*(?:base\s*)?(\d+|[a-z]+)", re.I)
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}
_WORDY = re.compile(r"[A-Za-z]{3,}")
_MATH_WORDS = re.compile(
    r"(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|cbrt|abs|floor|ceil|pi|inf|infinity|oo|max|min|gcd|lcm|mod|arcsin|arccos|arctan|asin|"
    r"acos|atan|sinh|cosh|tanh|theta|alpha|beta|gamma|lambda|omega|sigma|delta|phi|rho|mu|tau|and|or|percent|percentage|pct)+"
)


def _in_symbols(text: str) -> str:
    """Writes numbers and sets that stand in words: five, all real numbers."""
    if len(text) > 40:
        return text
    words = plain_words(text)
    if re.fullmatch(r"(?:the )?(?:set of )?(?:all )?real(?:s| numbers)|all reals", words):
        return "\\mathbb{R}"
    return _NUMBER_WORDS.get(words, text)


def plain_words(text: str) -> str:
    """Returns the words of a text answer in lower case, without LaTeX and punctuation."""
    text = _TEXT_COMMAND.sub("", text)
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def _words(gold: str, answer: str) -> tuple[bool, str] | None:
    """Decides golds that are words, a choice letter or a time of day; None where the gold is mathematics."""
    inner = _TEXT_COMMAND.sub("", gold).replace("{", "").replace("}", "").strip()
    given = _TEXT_COMMAND.sub("", answer).replace("{", "").replace("}", "").strip()
    match = _CHOICE.fullmatch(inner)
    if match and (match[1].isupper() or inner[0] == "("):
        return _choice(match[1].upper(), given, strict="(" not in inner)
    clock, other = _TIME.fullmatch(inner), _TIME.fullmatch(given)
    if clock and other and max(int(c[2] or 0) for c in (clock, other)) < 60:
        (hour, minute, half), (other_hour, other_minute, other_half) = (_time(c) for c in (clock, other))
        same_half = half == other_half or not half or not other_half
        return (hour, minute) == (other_hour, other_minute) and same_half, "time"
    base, other_base = _BASE.fullmatch(inner), _BASE.fullmatch(given)
    if base and other_base:
        return _base(base) == _base(other_base), "base"
    if _is_nothing(gold) and _is_nothing(answer):
        return True, "text"
    if not _is_text(gold, inner):
        return None
    left, right = plain_words(gold), plain_words(answer)
    if left == right or left.replace(" ", "") == right.replace(" ", ""):
        return True, "text"
    return _members(left) == _members(right), "text"


def _time(match: re.Match[str]) -> tuple[int, int, str]:
    hour, minute, half = match[1] or match[4], match[2] or "0", match[3] or match[6] or ""
    return int(hour), int(minute), re.sub(r"[^ap]", "", half.lower())


def _base(match: re.Match[str]) -> tuple[str, str]:
    return match[1].lstrip("0").upper(), _NUMBER_WORDS.get(match[2].lower(), match[2])


def _is_nothing(text: str) -> bool:
    return text in ("\\{\\}", "{}", "()") or bool(_NOTHING.fullmatch(plain_words(text)))


def _members(words: str) -> list[str]:
    """Returns the names of a list in words, in one order and without articles."""
    return sorted(
        re.sub(r"^(?:it is |it s |this is )?(?:the |a |an )?", "", part.strip())
        for part in re.split(r"\b(?:and|or)\b", words)
    )


def _choice(letter: str, given: str, strict: bool) -> tuple[bool, str] | None:
    match = _CHOICE_PREFIX.fullmatch(given)
    if match:
        return (match[1] or match[2]).upper() == letter, "choice"
    if _CHOICE.fullmatch(given):
        return given.strip("()").upper() == letter, "choice"
    return None if strict else (False, "choice")


def _is_text(gold: str, inner: str) -> bool:
    letters = re.sub(r"[^A-Za-z ]", "", inner).strip()
    if not letters:
        return False
    if (
        re.fullmatch(r"\\(?:text|textbf|textit|textrm|mathrm|mbox)\s*\{[^{}]*\}", gold)
        and len(letters) > 1
        and not re.search(r"\d", inner)
    ):
        return not _MATH_WORDS.fullmatch(letters)
    if re.search(r"[\\=<>^_+*/|]", inner) or re.match(r"[\d(\[{.-]", inner):
        return False
    words = _WORDY.findall(inner)
    return bool(words) and any(not _MATH_WORDS.fullmatch(w.lower()) for w in words) and not re.search(r"\d", inner)


def _without_choice(answer: str) -> str:
    """Cuts a choice label before a value: `(C) 12`, `\\textbf{(C)} 12`."""
    return re.sub(
        r"^(?:\\(?:text|textbf|mathrm|mathbf)\s*\{\s*\(?[A-J]\)?[.:]?\s*\}|\(?[A-J]\)[.:]?|[A-J][.:](?=\s))\s*(?=\S)",
        "",
        answer,
    )


_NUMERAL = re.compile(r"\d+")


def as_json(request: dict[str, Any]) -> dict[str, Any]:
    """Answers one request of the worker protocol: a decision on the golds, or a second opinion on it."""
    golds, answer = request["golds"], request["answer"]
    if request.get("opinion"):
        return {"agrees": any(math_verify_agrees(gold, answer) for gold in golds)}
    best: Decision | None = None
    for gold in golds:
        try:
            decision = decide(gold, answer, request.get("unit", ""), request.get("absolute"), request.get("relative"))
        except (ArithmeticError, LookupError, TypeError, ValueError, AssertionError, RecursionError) as fault:
            # Not known to happen; an answer that finds such a fault must not pass for a wrong one.
            decision = ("undecided", f"fault in the grader: {type(fault).__name__}: {fault}"[:200], "")
        if decision[0] == "correct":
            best = decision
            break
        if best is None or (decision[0] == "undecided" and best[0] == "wrong"):
            best = decision
    outcome, reason, method = best or ("undecided", "no gold", "")
    ask = outcome != "correct" and "large" not in reason and any(_close_call(gold, answer) for gold in golds)
    return {"outcome": outcome, "reason": reason, "method": method, "ask": ask}


def _close_call(gold: str, answer: str) -> bool:
    """Tells whether a second opinion is worth its time: both sides name the same numbers."""
    numerals = sorted(_NUMERAL.findall(gold)), sorted(_NUMERAL.findall(answer))
    return numerals[0] == numerals[1] != [] and not fast.rational(clean(answer)) and answer.count("{") < 30
