"""Exact rational values of trees, within bounds on the size of every intermediate number."""

import math
from fractions import Fraction

from ba_eval.grade.math.tree import Node

MAX_BITS = 300_000
"""Powers and factorials stay below this many bits."""
MAX_FACTORIAL = 5000


class TooLarge(Exception):
    """A value that may not be computed: it would take too much time or memory."""


def exact(node: Node) -> Fraction | None:
    """Returns the rational value of a tree, None where its form is not rational; raises TooLarge."""
    kind = node[0]
    if kind in ("num", "dec"):
        value: Fraction = node[1]
        return value
    if kind in ("neg", "percent", "deg", "unit", "fact", "fact2"):
        inner = exact(node[1])
        if inner is None or kind in ("deg", "unit"):
            return inner
        if kind == "percent":
            return inner / 100
        return -inner if kind == "neg" else _factorial(inner, 1 if kind == "fact" else 2)
    if kind in ("add", "mul"):
        total = Fraction(0) if kind == "add" else Fraction(1)
        for part in node[1:]:
            inner = exact(part)
            if inner is None:
                return None
            total = total + inner if kind == "add" else total * inner
            _bounded(total)
        return total
    if kind == "div":
        above, below = exact(node[1]), exact(node[2])
        return None if above is None or not below else _bounded(above / below)
    if kind == "pow":
        return _power(node)
    return _function(node) if kind == "fn" else None


def _power(node: Node) -> Fraction | None:
    base, exponent = exact(node[1]), exact(node[2])
    if base is None or exponent is None:
        return None
    if base == 0:
        return None if exponent < 0 else Fraction(int(exponent == 0))
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * size > MAX_BITS and abs(base) != 1:
        raise TooLarge("a power")
    if exponent.denominator == 1:
        return base ** int(exponent)
    if exponent.denominator > 12 or base < 0:
        return None
    above, below = (_root(n, exponent.denominator) for n in (base.numerator, base.denominator))
    return None if above is None or below is None else Fraction(above, below) ** exponent.numerator


def _root(value: int, degree: int) -> int | None:
    """Returns the whole root of a whole number, None where there is none."""
    if value.bit_length() > 20_000:
        return None
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**degree <= value:
            low = middle
        else:
            high = middle - 1
    return low if low**degree == value else None


def _factorial(value: Fraction, step: int) -> Fraction | None:
    if value.denominator != 1 or value < 0:
        return None
    if value > MAX_FACTORIAL:
        raise TooLarge("a factorial")
    return Fraction(math.factorial(int(value)) if step == 1 else math.prod(range(int(value), 0, -2)))


def _function(node: Node) -> Fraction | None:
    name = node[1]
    if name not in ("abs", "floor", "ceil", "binomial", "gcd", "lcm", "min", "max", "sgn"):
        return None
    values = [value for value in map(exact, node[2:]) if value is not None]
    if len(values) < len(node) - 2 or not values:
        return None
    first = values[0]
    if len(values) == 1:
        if name == "abs":
            return abs(first)
        if name == "sgn":
            return Fraction((first > 0) - (first < 0))
        return (
            Fraction(math.floor(first) if name == "floor" else math.ceil(first)) if name in ("floor", "ceil") else None
        )
    if name in ("min", "max"):
        return min(values) if name == "min" else max(values)
    if len(values) != 2 or any(v.denominator != 1 for v in values) or name in ("abs", "floor", "ceil", "sgn"):
        return None
    n, k = int(values[0]), int(values[1])
    if name != "binomial":
        return Fraction(math.gcd(n, k) if name == "gcd" else math.lcm(n, k))
    if not 0 <= n <= 100_000 or not 0 <= k <= 100_000:
        raise TooLarge("a binomial")
    return Fraction(math.comb(n, k))


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > 2 * MAX_BITS:
        raise TooLarge("a rational")
    return value
