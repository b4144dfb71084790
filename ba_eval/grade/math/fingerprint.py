"""Cheap values that equal answers share, so that maj@k compares only answers that may be equal.

Fingerprints may agree for answers that differ; they must not differ for answers that the grader calls equal. They are
taken in the worker (see `shapes`), those of plain numbers in place.
"""

import math
from fractions import Fraction

from ba_eval.grade.math import fast
from ba_eval.grade.math.clean import clean

Value = tuple[float, float, float, float]
"""Real and imaginary part at a point of real coordinates, and at one of whole ones."""
Shape = tuple[list[list[Value]], list[tuple[int, list[float] | None]]]
"""(items, each with all values that it may have; as a set of reals: which fixed numbers lie in it, its borders)"""
Fingerprint = list[Shape]
"""One shape for each way to read the answer."""

_NEAR = 1e-4
"""Relative: wider than what six digits of a decimal leave open."""
_TINY = 1e-12
_LARGEST = 1e300


def may_be_equal(a: Fingerprint | None, b: Fingerprint | None) -> bool:
    """Tells whether two answers with these fingerprints may be equal; True where one has none."""
    if a is None or b is None:
        return True
    return any(_alike(x, y) for x in a for y in b)


def of_number(answer: str) -> Fingerprint | None:
    """Returns the fingerprint of a plain number, which needs no parser; None for anything else."""
    value = fast.rational(clean(answer))
    if value is None:
        return None
    size = bounded(value)
    return [([[(size, 0.0, size, 0.0)]], [])]


def bounded(value: Fraction | float) -> float:
    """Returns a float within a range that JSON can carry."""
    try:
        size = float(value)
    except OverflowError:
        size = math.inf if value > 0 else -math.inf
    return max(-_LARGEST, min(_LARGEST, size))


def _alike(a: Shape, b: Shape) -> bool:
    if a[0] and b[0]:
        return _covers(a[0], b[0]) and _covers(b[0], a[0])
    return any(bits == other and _lie_alike(x, y) for bits, x in a[1] for other, y in b[1])


def _lie_alike(borders: list[float] | None, others: list[float] | None) -> bool:
    if borders is None or others is None:
        return True
    return all(any(_close(x, 0.0, y, 0.0) for y in others) for x in borders) and all(
        any(_close(x, 0.0, y, 0.0) for y in borders) for x in others
    )


def _covers(items: list[list[Value]], others: list[list[Value]]) -> bool:
    return all(any(_near(x, y) for other in others for x in item for y in other) for item in items)


def _near(x: Value, y: Value) -> bool:
    return _close(x[0], x[1], y[0], y[1]) or _close(x[2], x[3], y[2], y[3])


def _close(a: float, b: float, c: float, d: float) -> bool:
    size = max(abs(a) + abs(b), abs(c) + abs(d))
    return abs(a - c) + abs(b - d) <= _NEAR * size + _TINY
