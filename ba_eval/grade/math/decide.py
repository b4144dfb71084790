"""Decides one pair of gold and answer: text, choices and times first, then trees. Runs in the limited worker."""

import itertools
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ba_eval.grade.math import families, fast, units
from ba_eval.grade.math.clean import MAX_LENGTH, clean
from ba_eval.grade.math.compare import Comparison
from ba_eval.grade.math.opinion import math_verify_agrees
from ba_eval.grade.math.syntax import CHANGED, OverLimit, Unreadable, read
from ba_eval.grade.math.tree import Node
from ba_eval.grade.math.words import (
    decide_words,
    in_symbols,
    is_wordy,
    labelled,
    own_choice,
    plain_words,
    says_opposite,
    without_choice,
)

Decision = tuple[str, str, str]
"""(outcome, reason, method)"""


def decide(
    gold: str, answer: str, unit: str = "", absolute: float | None = None, relative: float | None = None
) -> Decision:
    """Returns the decision on one pair; never raises for what an answer says."""
    if (known := fast.decide(gold, answer)) is not None and (known[0] or (absolute is None and relative is None)):
        return ("correct", "equal", known[1]) if known[0] else ("wrong", "not equal", known[1])
    a, b = in_symbols(clean(gold)), in_symbols(clean(answer))
    if not b:
        return "wrong", "no answer", ""
    if max(len(a), len(b)) > MAX_LENGTH:
        return "undecided", "too long to compare", ""
    if says_opposite(a, b):
        return "wrong", "not equal", "text"
    if (both := labelled(a)) is not None:
        if (own := labelled(b) or own_choice(b)) is not None and own[0] != both[0]:
            return "wrong", "not equal", "choice"
        letter = decide_words(both[0], b)
        if letter is not None and letter[0] and without_choice(b) == b:
            return "correct", "equal", letter[1]
        a = clean(both[1])
    if (words := decide_words(a, b)) is not None:
        return ("correct", "equal", words[1]) if words[0] else ("wrong", "not equal", words[1])
    money = units.is_money(gold), units.is_money(answer)
    return _trees(a, b, clean(unit), money, _fraction(absolute), _fraction(relative))


def _fraction(value: float | None) -> Fraction | None:
    return None if value is None else Fraction(str(value))


def _trees(
    gold: str,
    answer: str,
    unit: str,
    money: tuple[bool, bool],
    absolute: Fraction | None,
    relative: Fraction | None,
) -> Decision:
    whole_gold = gold
    gold, answer = (units.in_dollars(text) if sign else text for text, sign in zip((gold, answer), money, strict=True))
    (gold, gold_condition), (answer, condition) = families.members(parted(gold), parted(answer))
    if families.other_numbers(gold_condition, condition):
        return "wrong", "other range", "text"
    constant = families.constant(gold_condition)
    gold, gold_unit = units.split_unit(gold)
    bare, answer_unit = units.split_unit(answer, letters=not re.search("[A-Za-z]", gold))
    gold_unit = gold_unit or units.split_unit("1 " + _as_text(unit))[1] or ("dollar" if money[0] else "")
    answer_unit = answer_unit or ("dollar" if money[1] else "")
    (gold, gold_unit, radians), (bare, answer_unit, others) = (
        units.angles(gold, gold_unit),
        units.angles(bare, answer_unit),
    )
    factor = units.ratio(gold_unit, answer_unit)
    if factor is None:
        return "wrong", "other unit", "unit"
    if factor != 1:
        bare = f"({bare})*({factor.numerator})/({factor.denominator})"
    golds, gold_trouble = readings_of(gold)
    decimal = "," not in gold and (bool(re.search(r"\d\.\d", gold)) or is_decimal_comma(bare, answer_unit))
    candidates, trouble = readings_of(without_choice(bare), decimal, True)
    if not candidates and not trouble.startswith((_OVER, CHANGED)) and (value := _value_of_chain(bare)):
        candidates, _ = readings_of(value, decimal, True)
    if not golds:
        if is_wordy(whole_gold) and is_wordy(answer):
            same = plain_words(whole_gold) == plain_words(answer)
            return ("correct", "equal", "text") if same else ("wrong", "not equal", "text")
        return "undecided", f"gold not read: {gold_trouble}", ""
    if not candidates:
        return ("undecided", trouble, "") if trouble.startswith(_OVER) else ("wrong", "answer not read", "")
    unknown: list[str] = []
    methods: set[str] = set()
    alternatives = _OR.search(answer) and not _OR.search(whole_gold)
    for left, right in itertools.product(golds, candidates):
        if alternatives and _holds_together(left) and right[0] == "list":
            continue
        right = families.same_constant(left, right, constant, condition)
        left, right = families.as_residue(left, right, gold_condition), families.as_residue(right, left, condition)
        comparison = Comparison(absolute=absolute, relative=relative, marks=radians or others)
        try:
            result = comparison.equal(left, right)
            if result is False:
                variants = families.same_family(left, right, gold_condition, condition)
                found = [comparison.equal(left, variant) for variant in variants]
                result = True if True in found else None if None in found else False
            if result is False and left[0] != "rel" and right[:2] == ("rel", "=") and len(right) == 4:
                # x^2 - 1 = (x - 1)(x + 1) says the value twice.
                said_twice = comparison.equal(right[2], right[3])
                result = comparison.equal(left, right[3]) if said_twice else False
            if result is False and (growth := families.antiderivatives(left, right)):
                result = comparison.equal(*growth)
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


_OR = re.compile(r"\bor\b|\\(?:lor|vee)(?![A-Za-z])")


def _holds_together(gold: Node) -> bool:
    """Tells whether all of a gold holds at once: a point, the values of several letters."""
    names = [item[2] for item in gold[1:] if item[0] == "rel"] if gold[0] == "list" else []
    return gold[0] == "tuple" or (len(names) == len(gold) - 1 and len(set(names)) == len(names))


_CONDITION = re.compile(
    r"(?:[,;:\s(]|\\text\s*\{[^{}]*\})+(?:\\forall\s*)?(?!([a-z])\s*,\s*\1\s*\\in)[a-z](?:\s*,\s*[a-z])*\s*\\in\s*"
    r"\\mathbb\s*\{?\s*[ZNRQC]\s*\}?(?:[_^]\{?[^{}]{1,6}\}?)*\s*\)?$"
)
_CONDITION_WORDS = re.compile(
    r"[,;\s]*(?:\\text\s*\{\s*,?\s*(?:where|for (?:all|any|some|every|each)|with)\b|"
    r"(?<=[\s,])(?:where|for (?:all|any|some|every)) ).*$"
)


_BECAUSE = r"(?:at|when|if|for|since|because|given|as|with)"
_RELATED = r"\\?[A-Za-z]+(?:_\w)?\s*(?:[=<>]|\\(?:[gl]eq?|[gl]t|neq?|[gl]eqslant)(?![A-Za-z]))"
_AT_POINT = re.compile(
    rf"(?:[,;\s]*\\text\s*\{{[\s,]*(?:(?:is\s+)?(?:attained|achieved|reached)\s+)?{_BECAUSE}\b[^{{}}]*\}}|"
    rf"(?<=[\w)}}])[\s,]+{_BECAUSE}\s)\s*{_RELATED}[^,;=]*$|"
    rf"(?<=[\w)}}])\s*(?:\\text\s*\{{\s*\(\s*{_BECAUSE}\b[^{{}}]*\}}\s*|\((?:\s*{_BECAUSE}\s|(?=\s*[A-Za-z]\s*[=<>]|\s*=)))[^()]*\)$"
)
"""The point at which a value is taken, or why it is the one: `15 at x = 3`, `5 (since x > 0)`, `16 (= 4^2)`."""
_KIND_OF_NUMBER = re.compile(r"(?<=[\d}])\s*\\in\s*\\mathbb\s*\{?\s*[ZNRQC]\s*\}?\s*$")
_PIECEWISE = re.compile(r"\b(?:if|when|for|otherwise|else)\b|\\begin\b")


def parted(text: str) -> tuple[str, str]:
    """Returns (answer, what only says of which kind its letters are): `k in Z`, `where n is an integer`."""
    answer = text
    for pattern in (_AT_POINT, _KIND_OF_NUMBER, _CONDITION, _CONDITION_WORDS):
        match = pattern.search(answer)
        before = answer[: match.start()].strip() if match else ""
        if pattern is _AT_POINT and _PIECEWISE.search(before):  # each piece has its own
            continue
        if before and not before.endswith(("\\", "(", "=", "{")) and before.count("{") == before.count("}"):
            answer = before
    return answer, text[len(answer) :]


def is_decimal_comma(value: str, unit: str) -> bool:
    """Tells whether the comma of 2,5 euros is a decimal one: no list, as a unit stands behind it, and no thousands."""
    return bool(unit and re.fullmatch(r"[-+]?\d+,\d{1,2}", value))


def _as_text(unit: str) -> str:
    return (
        unit if "\\" in unit or not unit else "\\text{" + unit + "}" if unit[0].isalpha() and "^" not in unit else unit
    )


def _value_of_chain(text: str) -> str:
    """Returns what stands behind the last equality sign outside all brackets: the value, where the rest is not read."""
    depth, cut = 0, 0
    for at, char in enumerate(text):
        depth += (char in "{([") - (char in "})]")
        if char == "=" and depth == 0 and text[at - 1 : at] not in ("<", ">", "!", ":"):
            cut = at + 1
        elif depth == 0 and char in ",;":
            return ""
    return text[cut:].strip() if cut and not _ORDER.search(text) else ""


_ORDER = re.compile(r"[<>]|\\(?:[lg]e(?:q|qslant)?|[lg]t|ne|neq|in|approx|equiv)(?![A-Za-z])")
_OVER = "over the limit: "
_LIST_OF_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_DECIMAL_COMMA = re.compile(r"([-+]?)(\d+),(\d{2,}|\d(?=\s*$))")
_DOTTED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:\.\d{3}){2,}")
_INDIAN_THOUSANDS = re.compile(r"[-+]?\d{1,2}(?:,\d{2})+,\d{3}")
_PERIOD = re.compile(r"([-+]?\d+\.\d*)\((\d+)\)")
_OPEN_INEQUALITY = re.compile(r"(?:[<>]|\\(?:le|ge|lt|gt|leq|geq|leqslant|geqslant)(?![A-Za-z]))")
_SPACED_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")


@lru_cache(maxsize=4096)
def readings_of(text: str, decimal: bool = False, loose: bool = False) -> tuple[tuple[Node, ...], str]:
    """Returns the trees that a text may mean: 1,234 is one number or two, 1,22 a decimal or two numbers.

    With `decimal` (the gold is a decimal) 1,5 may be one as well; with `loose` (an answer) 1,00,000 may be a number.
    """
    trees: list[Node] = []
    trouble = ""
    if _OPEN_INEQUALITY.match(text):
        text = f"x {text}"
    for spelling in dict.fromkeys(_spellings(text, decimal, loose)):
        try:
            trees.append(read(spelling))
        except OverLimit as error:
            trouble = f"{_OVER}{error}"
        except Unreadable as error:
            trouble = trouble or str(error)
        except RecursionError:
            trouble = f"{_OVER}nested too deeply"
    return tuple(trees), trouble


def _spellings(text: str, decimal: bool, loose: bool) -> Iterator[str]:
    if _SPACED_THOUSANDS.fullmatch(text):
        yield text.replace(" ", "")
        return
    if _DOTTED_THOUSANDS.fullmatch(text):
        yield text.replace(".", "")
        return
    # In brackets 100,200 are two numbers unless the list itself is spaced: (1,000, 2,000).
    packed = text[:1] in ("(", "[") and ", " not in text
    if _LIST_OF_THOUSANDS.search(text) and not packed and not re.search(r"(?<![\d,])0,", text):
        yield _LIST_OF_THOUSANDS.sub(lambda m: m[0].replace(",", ""), text)
    yield text
    if loose and _INDIAN_THOUSANDS.fullmatch(text):
        yield text.replace(",", "")
    if match := _PERIOD.fullmatch(text):
        yield f"{match[1]}\\overline{{{match[2]}}}"
    match = _DECIMAL_COMMA.fullmatch(text)
    thousands = match and len(match[3]) == 3 and match[2] != "0"
    if (
        match
        and not thousands
        and (decimal or ((len(match[3]) > 1 or len(match[2]) > 1) and match[2].lstrip("0") != ""))
    ):
        yield f"{match[1]}{match[2]}.{match[3]}"
    elif match and match[2] == "0" and len(match[3]) > 1:
        yield f"{match[1]}0.{match[3]}"


_NUMERAL = re.compile(r"\d+")


def as_json(request: dict[str, Any]) -> dict[str, Any]:
    """Answers one request of the worker protocol: a decision on the golds, a second opinion on it, a fingerprint."""
    if "fingerprint" in request:
        from ba_eval.grade.math.shapes import fingerprint

        return {"shapes": fingerprint(request["fingerprint"])}
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
