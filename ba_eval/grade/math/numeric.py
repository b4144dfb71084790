"""Values of trees: exact rationals within bounds, and high-precision numbers at random points."""

import random
from fractions import Fraction
from typing import Any

from ba_eval.grade.math.syntax import Node

MAX_BITS = 300_000
"""Exact powers and factorials stay below this many bits."""
MAX_FACTORIAL = 5000
MAX_PRECISION = 6000


class TooLarge(Exception):
    """A value that may not be computed: it would take too much time or memory."""


class Undefined(Exception):
    """The tree has no number as its value: sets, text, unknown constructions, a pole."""


def exact(node: Node) -> Fraction | None:
    """Returns the rational value of a tree, None where it is not rational by its form; raises TooLarge."""
    kind = node[0]
    if kind in ("num", "dec"):
        return node[1]  # type: ignore[no-any-return]
    if kind == "neg":
        value = exact(node[1])
        return None if value is None else -value
    if kind in ("add", "mul"):
        total = Fraction(0) if kind == "add" else Fraction(1)
        for part in node[1:]:
            value = exact(part)
            if value is None:
                return None
            total = total + value if kind == "add" else total * value
            _bounded(total)
        return total
    if kind == "div":
        above, below = exact(node[1]), exact(node[2])
        if above is None or below is None or below == 0:
            return None
        return _bounded(above / below)
    if kind == "pow":
        return _exact_power(node)
    if kind == "percent":
        value = exact(node[1])
        return None if value is None else value / 100
    if kind == "deg":
        return exact(node[1])
    if kind == "fact":
        value = exact(node[1])
        return None if value is None else Fraction(_factorial(value))
    if kind == "fn":
        return _exact_function(node)
    return None


def _exact_power(node: Node) -> Fraction | None:
    base, exponent = exact(node[1]), exact(node[2])
    if base is None or exponent is None:
        return None
    if exponent.denominator == 1:
        if base == 0:
            return Fraction(0) if exponent > 0 else (Fraction(1) if exponent == 0 else None)
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(exponent) * size > MAX_BITS and abs(base) != 1:
            raise TooLarge("a power")
        return base ** int(exponent)
    root = exponent.denominator
    if (
        root <= 12
        and base > 0
        and abs(exponent.numerator) * max(base.numerator.bit_length(), base.denominator.bit_length()) <= MAX_BITS
    ):
        above, below = _root(base.numerator, root), _root(base.denominator, root)
        if above is not None and below is not None:
            return Fraction(above, below) ** exponent.numerator
    return None


def _root(value: int, degree: int) -> int | None:
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


def _factorial(value: Fraction) -> int:
    import math

    if value.denominator != 1 or value < 0:
        raise Undefined("a factorial")
    if value > MAX_FACTORIAL:
        raise TooLarge("a factorial")
    return math.factorial(int(value))


def _exact_function(node: Node) -> Fraction | None:
    import math

    name = node[1]
    if name not in ("abs", "floor", "ceil", "binomial", "gcd", "lcm", "min", "max", "sgn"):
        return None
    values = [exact(argument) for argument in node[2:]]
    known = [v for v in values if v is not None]
    if len(known) < len(values) or not known:
        return None
    if name in ("abs", "floor", "ceil", "sgn") and len(known) == 1:
        value = known[0]
        return {
            "abs": abs(value),
            "floor": Fraction(math.floor(value)),
            "ceil": Fraction(math.ceil(value)),
            "sgn": Fraction((value > 0) - (value < 0)),
        }[name]
    if name in ("min", "max"):
        return min(known) if name == "min" else max(known)
    if any(v.denominator != 1 for v in known) or len(known) != 2:
        return None
    first, second = int(known[0]), int(known[1])
    if name == "binomial":
        if not 0 <= second <= 100_000 or not 0 <= first <= 100_000:
            raise TooLarge("a binomial")
        return Fraction(math.comb(first, second))
    return Fraction(math.gcd(first, second) if name == "gcd" else math.lcm(first, second))


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > 2 * MAX_BITS:
        raise TooLarge("a rational")
    return value


# -- numbers at points


def symbols(node: Node) -> set[str]:
    """Returns the names of the free symbols."""
    if node[0] == "sym":
        return {node[1]}
    names: set[str] = set()
    for part in _children(node):
        names |= symbols(part)
    return names


def contains(node: Node, kinds: frozenset[str]) -> bool:
    """Tells whether a node of these kinds, or a function of these names, occurs."""
    if node[0] in kinds or (node[0] == "fn" and node[1] in kinds):
        return True
    return any(contains(part, kinds) for part in _children(node))


def _children(node: Node) -> list[Node]:
    if node[0] == "matrix":
        return [item for row in node[1] for item in row]
    return [part for part in node[1:] if isinstance(part, tuple)]


def needed_precision(*nodes: Node) -> int:
    """Returns decimal digits enough to tell the values apart: the more and longer the numbers, the more digits."""
    return min(50 + sum(_weight(node) for node in nodes), MAX_PRECISION)


def _weight(node: Node) -> int:
    if node[0] in ("num", "dec"):
        return (
            len(str(node[1].numerator)) + len(str(node[1].denominator))
            if node[1].numerator.bit_length() < 14_000
            else 4000
        )
    if node[0] == "pow" and node[2][0] in ("num", "neg") and (value := _small(node[2])) is not None:
        return (
            min(abs(value), 10_000) * max(1, _weight(node[1]))
            if node[1][0] in ("num", "dec")
            else _weight(node[1]) * min(abs(value), 100)
        )
    if node[0] == "fact":
        return 3 * min(_small(node[1]) or 10, 2000)
    return sum(_weight(part) for part in _children(node))


def _small(node: Node) -> int | None:
    try:
        value = exact(node)
    except (TooLarge, Undefined):
        return None
    return int(value) if value is not None and value.denominator == 1 and abs(value) < 10**6 else None


def evaluate(node: Node, point: dict[str, Any], mp: Any) -> Any:
    """Returns the value as an mpmath number at a point; raises Undefined and TooLarge."""
    kind = node[0]
    if kind in ("num", "dec"):
        value = node[1]
        return mp.mpf(value.numerator) / value.denominator
    if kind == "const":
        if node[1] == "inf":
            return mp.inf
        return {"pi": mp.pi, "e": mp.e, "i": mp.mpc(0, 1)}[node[1]] * 1
    if kind == "sym":
        return point[node[1]]
    if kind == "neg":
        return -evaluate(node[1], point, mp)
    if kind == "add":
        return mp.fsum([evaluate(part, point, mp) for part in node[1:]])
    if kind == "mul":
        return mp.fprod([evaluate(part, point, mp) for part in node[1:]])
    if kind == "div":
        below = evaluate(node[2], point, mp)
        if below == 0:
            raise Undefined("a division by zero")
        return evaluate(node[1], point, mp) / below
    if kind == "pow":
        return _power(evaluate(node[1], point, mp), evaluate(node[2], point, mp), node[2], mp)
    if kind == "percent":
        return evaluate(node[1], point, mp) / 100
    if kind == "deg":
        return evaluate(node[1], point, mp) * mp.pi / 180
    if kind == "fact":
        value = evaluate(node[1], point, mp)
        if mp.im(value) or abs(value) > MAX_FACTORIAL or (value < 0 and value == mp.floor(value)):
            raise TooLarge("a factorial") if abs(value) > MAX_FACTORIAL else Undefined("a factorial")
        return mp.gamma(value + 1)
    if kind == "fn":
        return _function(node[1], [evaluate(argument, point, mp) for argument in node[2:]], mp)
    if kind == "call":
        # An unknown function: some fixed smooth function of its name, the same on both sides.
        draw = random.Random(f"call {node[1]}")
        value = mp.mpf(draw.uniform(0.5, 1.5))
        for argument in node[2:]:
            value = (
                value
                + mp.sin(evaluate(argument, point, mp) * mp.mpf(draw.uniform(0.5, 1.5)) + mp.mpf(draw.uniform(0, 1)))
                * 2
            )
        return value
    raise Undefined(f"no number: {kind}")


def _power(base: Any, exponent: Any, written: Node, mp: Any) -> Any:
    if base == 0:
        if mp.re(exponent) > 0:
            return mp.mpf(0)
        raise Undefined("a power of zero")
    if not mp.isfinite(exponent) or not mp.isfinite(base):
        raise Undefined("a power at infinity")
    if abs(exponent) > 10**4 or abs(base) > mp.mpf(10) ** 10_000:
        digits = abs(exponent) * (abs(mp.log(abs(base))) + 1)
        if digits > 10**7:
            raise TooLarge("a power")
    if not mp.im(base) and base < 0 and not mp.im(exponent):
        # An odd root of a negative number is real, as schools write it.
        ratio = exact(written)
        if ratio is not None and ratio.denominator % 2 == 1 and ratio.denominator > 1:
            size = mp.power(-base, exponent)
            return -size if ratio.numerator % 2 else size
    return mp.power(base, exponent)


def _function(name: str, values: list[Any], mp: Any) -> Any:
    if len(values) == 1:
        value = values[0]
        if (
            name in ("exp", "sinh", "cosh", "tanh", "coth", "sin", "cos", "tan", "cot", "sec", "csc")
            and abs(value) > 10**7
        ):
            raise TooLarge(name)
        simple = {
            "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "cot": mp.cot, "sec": mp.sec, "csc": mp.csc, "asin": mp.asin, "acos": mp.acos,
            "atan": mp.atan, "acot": lambda v: mp.pi / 2 - mp.atan(v), "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "coth": mp.coth,
            "arcsinh": mp.asinh, "arccosh": mp.acosh, "arctanh": mp.atanh, "abs": abs, "Re": mp.re, "Im": mp.im, "arg": mp.arg,
            "sgn": mp.sign, "erf": mp.erf,
        }  # fmt: skip
        if name == "ln":
            if value == 0:
                raise Undefined("ln 0")
            return mp.log(value)
        if name in ("floor", "ceil"):
            if mp.im(value):
                raise Undefined(name)
            nearest = mp.nint(value)
            if abs(value - nearest) < mp.mpf(10) ** (-mp.dps // 2):
                return nearest
            return mp.floor(value) if name == "floor" else mp.ceil(value)
        if name in simple:
            return simple[name](value)
    if name == "binomial" and len(values) == 2:
        if abs(values[0]) > 10**5 or abs(values[1]) > 10**5:
            raise TooLarge(name)
        return mp.binomial(*values)
    if name in ("min", "max") and values and not any(mp.im(v) for v in values):
        return min(values) if name == "min" else max(values)
    raise Undefined(name)


_INTEGER_ONLY = frozenset({"floor", "ceil", "fact", "binomial", "gcd", "lcm"})
_POINTS = 4


def same(a: Node, b: Node) -> bool | None:
    """Tells whether two trees have one value wherever both are defined; None where that cannot be told.

    Symbols stand for positive numbers, for whole ones where floors, factorials, binomials or powers of a negative
    number occur; also for negative ones where an absolute value occurs. Differing once in high precision settles it;
    agreeing at every point does, too. Raises TooLarge.
    """
    from mpmath import MPContext

    mp = MPContext()
    names = sorted(symbols(a) | symbols(b))
    if not names:
        return _same_constant(a, b, mp)
    whole = contains(a, _INTEGER_ONLY) or contains(b, _INTEGER_ONLY) or _alternates(a) or _alternates(b)
    signed = contains(a, frozenset({"abs"})) or contains(b, frozenset({"abs"}))
    draw = random.Random(f"{len(names)} points")
    mp.dps = min(needed_precision(a, b), 400)
    agreed = tried = 0
    while agreed < _POINTS + 2 * signed and tried < 24:
        tried += 1
        negative = signed and tried % 2 == 0
        point = {name: _coordinate(draw, whole, negative, mp) for name in names}
        try:
            left, right = evaluate(a, point, mp), evaluate(b, point, mp)
        except (Undefined, ZeroDivisionError, ValueError, OverflowError):
            continue
        if not mp.isfinite(left) or not mp.isfinite(right):
            continue
        if negative and (mp.im(left) or mp.im(right)):
            continue
        if not _close(left, right, mp):
            return False
        agreed += 1
    return True if agreed >= 3 else None


def _alternates(node: Node) -> bool:
    """Tells whether a negative number stands under a symbolic exponent, as in (-1)^n."""
    if node[0] == "pow" and symbols(node[2]) and not symbols(node[1]):
        try:
            value = exact(node[1])
        except (TooLarge, Undefined):
            value = None
        if value is not None and value < 0:
            return True
    return any(_alternates(part) for part in _children(node))


def _coordinate(draw: random.Random, whole: bool, negative: bool, mp: Any) -> Any:
    sign = -1 if negative and draw.random() < 0.6 else 1
    if whole:
        return mp.mpf(sign * draw.randint(1, 30))
    return sign * (mp.mpf(draw.randint(10**17, 3 * 10**18)) / 10**18)


def _close(left: Any, right: Any, mp: Any) -> bool:
    scale = max(abs(left), abs(right))
    return scale == 0 or abs(left - right) <= scale * mp.mpf(10) ** (-mp.dps // 2)


def _same_constant(a: Node, b: Node, mp: Any) -> bool | None:
    digits = needed_precision(a, b)
    for dps in (digits, 2 * digits):
        mp.dps = min(dps, MAX_PRECISION)
        try:
            left, right = evaluate(a, {}, mp), evaluate(b, {}, mp)
        except (Undefined, ZeroDivisionError, ValueError, OverflowError):
            return None
        if mp.isinf(left) or mp.isinf(right):
            return bool(left == right)
        if mp.isnan(left) or mp.isnan(right):
            return None
        if _close(left, right, mp):
            return True
        # Zero that rounding hides: both are no larger than the precision allows, at twice the precision as well.
        if max(abs(left), abs(right)) > mp.mpf(10) ** (-mp.dps * 2 // 3):
            return False
    return True


def number(node: Node, digits: int = 60) -> Any:
    """Returns the real value of a constant as a Fraction (exact) or an mpf; None where there is none. May raise TooLarge."""
    value = exact(node)
    if value is not None:
        return value
    if symbols(node):
        return None
    from mpmath import MPContext

    mp = MPContext()
    mp.dps = min(max(digits, needed_precision(node)), MAX_PRECISION)
    try:
        result = evaluate(node, {}, mp)
    except (Undefined, ZeroDivisionError, ValueError, OverflowError):
        return None
    if mp.im(result) and abs(mp.im(result)) > mp.mpf(10) ** (-mp.dps // 2):
        return None
    return mp.re(result)


def proportion(a: Node, b: Node) -> int | None:
    """Returns the sign of k where a = k b at every point for one constant k, 0 where there is none, None if undefined."""
    from mpmath import MPContext

    mp = MPContext()
    mp.dps = min(needed_precision(a, b), 400)
    names = sorted(symbols(a) | symbols(b))
    draw = random.Random(f"{len(names)} proportion")
    factor = None
    agreed = 0
    for _ in range(24):
        point = {name: _coordinate(draw, False, False, mp) for name in names}
        try:
            left, right = evaluate(a, point, mp), evaluate(b, point, mp)
        except (Undefined, ZeroDivisionError, ValueError, OverflowError):
            continue
        if not mp.isfinite(left) or not mp.isfinite(right) or right == 0:
            continue
        here = left / right
        if factor is None:
            factor = here
        elif not _close(factor, here, mp):
            return 0
        agreed += 1
        if agreed >= _POINTS or not names:
            break
    if factor is None or (names and agreed < 3):
        return None
    if abs(factor) < mp.mpf(10) ** (-mp.dps // 2):
        return 0
    return -1 if mp.re(factor) < 0 else 1
