"""Decides what needs no parser: identical answers, whole numbers, decimals and fractions. Standard library only."""

import re
from fractions import Fraction

from ba_eval.grade.math.clean import clean

_INTEGER = re.compile(r"([-+]?)(\d+)(?:\.0*)?")
_RATIONAL = re.compile(
    r"(?P<sign>[-+]?)\s*(?:(?P<whole>\d+)(?:\.(?P<decimals>\d*))?|\.(?P<only>\d+)|"
    r"(?:\\frac\s*\{\s*(?P<a>[-+]?\d+)\s*\}\s*\{\s*(?P<b>\d+)\s*\}|\\frac\s*(?P<c>\d)\s*(?P<d>\d)(?!\d)|(?P<e>\d+)\s*/\s*(?P<f>\d+)))"
)
_LIMIT = 3000
_SPACED_DIGITS = re.compile(r"\d,?\s+\d")


def whole(text: str) -> str | None:
    """Returns the normal form of a whole number of any size, None for anything else."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    digits = match[2].lstrip("0") or "0"
    return "-" + digits if match[1] == "-" and digits != "0" else digits


def rational(text: str) -> Fraction | None:
    """Returns the value of a plain decimal or fraction, None for anything else."""
    if len(text) > _LIMIT:
        return None
    match = _RATIONAL.fullmatch(text)
    if match is None:
        return None
    if match["whole"] or match["only"]:
        fraction = match["decimals"] or match["only"] or ""
        value = Fraction(int((match["whole"] or "") + fraction or "0"), 10 ** len(fraction))
    else:
        above, below = (
            (match["a"], match["b"])
            if match["a"]
            else (match["c"], match["d"])
            if match["c"]
            else (match["e"], match["f"])
        )
        if int(below) == 0:
            return None
        value = Fraction(int(above), int(below))
    return -value if match["sign"] == "-" else value


def _packed(text: str) -> str:
    return "".join(text.split())


def decide(gold: str, answer: str) -> tuple[bool, str] | None:
    """Returns (equal, method) of two answers where that is plain to see, else None."""
    a, b = clean(gold), clean(answer)
    if a == b or (_packed(a) == _packed(b) and not _SPACED_DIGITS.search(a) and not _SPACED_DIGITS.search(b)):
        return (True, "identical") if b else None
    left, right = whole(a), whole(b)
    if left is not None and right is not None:
        return left == right, "integer"
    p, q = rational(a), rational(b)
    if p is None or q is None:
        return None
    if p == q:
        return True, "rational"
    # A long decimal may stand for a fraction: that is for the comparison of what it claims.
    return None if "." in a or "." in b else (False, "rational")
