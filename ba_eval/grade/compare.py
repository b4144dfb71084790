"""Tells whether what a program gave is what was expected: printed text, and values of plain built-in types."""

import math
import re
from collections.abc import Callable
from typing import Any

PRINTED_TOLERANCE = 1e-6
"""Absolute or relative: what contest sites state for real answers."""
RETURNED_TOLERANCE = 1e-6
LEETCODE_TOLERANCE = 1e-5
"""For methods of `class Solution`: LeetCode states it, and gives its expected values with five decimals."""

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d{1,4})?", re.ASCII)
_MAX_FLOAT_CHARACTERS = 400
_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, set, frozenset, range)

Leaf = Callable[[Any, Any], bool]


def output_difference(got: str, expected: str) -> str | None:
    """The first difference between what was printed and what was expected, for people; None where they agree.

    Lines are compared token by token; blank lines at either end, and space at the ends of lines and between tokens,
    do not count. Tokens are compared as text, save that two floats may differ by `PRINTED_TOLERANCE`, absolute or
    relative, and that an integer may stand for the float of exactly its value. Where an integer is expected it is
    compared digit by digit.
    """
    got_lines, expected_lines = got.strip().split("\n"), expected.strip().split("\n")
    for number, (line, wanted) in enumerate(zip(got_lines, expected_lines, strict=False), 1):
        if line.rstrip() == wanted.rstrip():
            continue
        tokens, wanted_tokens = line.split(), wanted.split()
        if len(tokens) != len(wanted_tokens):
            return f"line {number}: {len(tokens)} tokens instead of {len(wanted_tokens)}"
        for token, wanted_token in zip(tokens, wanted_tokens, strict=True):
            if token != wanted_token and not _same_number(token, wanted_token):
                return f"line {number}: {shorten(token, 60)} instead of {shorten(wanted_token, 60)}"
    if len(got_lines) != len(expected_lines):
        return f"{len(got_lines)} lines instead of {len(expected_lines)}"
    return None


def _same_number(got: str, expected: str) -> bool:
    if max(len(got), len(expected)) > _MAX_FLOAT_CHARACTERS or not _FLOAT.fullmatch(expected):
        return False
    if _FLOAT.fullmatch(got):
        return close(float(got), float(expected), PRINTED_TOLERANCE)
    return _INTEGER.fullmatch(got) is not None and int(got) == float(expected)


def close(got: float, expected: float, tolerance: float) -> bool:
    """Whether two floats differ by `tolerance` at most, absolute or relative; NaN is close to NaN."""
    if math.isnan(expected):
        return math.isnan(got)
    return math.isclose(got, expected, rel_tol=tolerance, abs_tol=tolerance)


def same_value(got: Any, expected: Any, tolerance: float) -> bool:
    """Whether a returned value equals one that came from JSON.

    Equal as Python's == has it on plain data (1 equals True and 1.0), and besides: a tuple equals a list, since JSON
    has none; two floats may differ by `tolerance`. Instances of any other class never equal anything.
    """

    def same_leaf(got: Any, expected: Any) -> bool:
        if type(got) is float and type(expected) is float:
            return close(got, expected, tolerance)
        return same_plain(got, expected)

    return same_structure(got, expected, same_leaf, strict_sequences=False)


def same_plain(got: Any, expected: Any) -> bool:
    """Python's == between two leaves, where `got` is of a plain built-in type."""
    return type(got) in _PLAIN and bool(got == expected)


def same_structure(got: Any, expected: Any, same_leaf: Leaf, *, strict_sequences: bool) -> bool:
    """Walks lists, tuples and dicts in step, however deep; everything else goes to `same_leaf`."""
    waiting = [(got, expected)]
    while waiting:
        got, expected = waiting.pop()
        kind = type(expected)
        if kind is list or kind is tuple:
            if type(got) is not kind and (strict_sequences or type(got) not in (list, tuple)):
                return False
            if len(got) != len(expected):
                return False
            waiting.extend(zip(got, expected, strict=True))
        elif kind is dict:
            if type(got) is not dict or len(got) != len(expected) or any(key not in got for key in expected):
                return False
            waiting.extend((got[key], value) for key, value in expected.items())
        elif not same_leaf(got, expected):
            return False
    return True


def shorten(text: str, limit: int = 300) -> str:
    """The text, or its two ends with the count of characters left out between them. Never holds lone surrogates."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} ... {len(text) - 2 * half} characters ... {text[-half:]}"
    return text.encode(errors="replace").decode()


def show(value: Any, limit: int = 300) -> str:
    """A plain value as Python writes it, shortened; the work is bounded too."""
    pieces: list[str] = []
    _show(value, pieces, [limit * 2], 0)
    return shorten("".join(pieces), limit)


_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    dict: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}


def _show(value: Any, pieces: list[str], left: list[int], depth: int) -> None:
    kind = type(value)
    if left[0] <= 0 or depth > 20:
        pieces.append("...")
        return
    if kind in (list, tuple, set, frozenset, dict):
        opening, closing = _BRACKETS[kind]
        pieces.append(opening if value or kind in (list, tuple, dict) else f"{kind.__name__}(")
        if not value and kind in (set, frozenset):
            closing = ")"
        for number, item in enumerate(value):
            if left[0] <= 0:
                pieces.append(", ...")
                break
            if number:
                pieces.append(", ")
            _show(item, pieces, left, depth + 1)
            if kind is dict:
                pieces.append(": ")
                _show(value[item], pieces, left, depth + 1)
            left[0] -= 2
        pieces.append(",)" if kind is tuple and len(value) == 1 else closing)
        return
    if kind in (str, bytes, bytearray):
        text = repr(value[: left[0] + 8]) + (f"... ({len(value)})" if len(value) > left[0] + 8 else "")
    elif kind is int and value.bit_length() > 4000:
        text = f"<integer of {value.bit_length()} bits>"
    else:
        text = repr(value)
    pieces.append(text)
    left[0] -= len(text)
