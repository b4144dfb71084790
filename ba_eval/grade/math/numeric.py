"""High-precision values of trees, and the comparison of two trees at random points."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ba_eval.grade.math.exact import MAX_FACTORIAL, TooLarge, exact
from ba_eval.grade.math.tokens import names
from ba_eval.grade.math.tree import Node, children, contains, symbols

MAX_PRECISION = 6000
MAX_TERMS = 3000
_POINTS = 4
_MANY_POINTS = 12
_TRIES = 36
_RANGES = (6, 40, 300)
"""Whole numbers are drawn up to each of these in turn."""
_FARTHEST = 10_000
_CORNERS = frozenset({"abs", "min", "max", "sgn"})
_SAME_NAME = names("sin cos tan cot sec csc asin acos atan sinh cosh tanh coth arg erf")
_BIG, _POWER = frozenset({"big"}), frozenset({"pow"})
_INTEGER_ONLY = frozenset({"floor", "ceil", "fact", "fact2", "gamma", "binomial", "gcd", "lcm", "big"})


class Undefined(Exception):
    """The tree has no number as its value here: sets, text, unknown constructions, a pole."""


NO_VALUE = (Undefined, ZeroDivisionError, ValueError, OverflowError, TypeError, NotImplementedError)


_PRECISIONS = (60, 80, 120, 200, 400, 800, 1600, 3200, 6400, 12800)


def context(digits: int) -> Any:
    """Returns an mpmath context of at least this many decimal digits; the precision of a context never changes."""
    return _context(next(p for p in _PRECISIONS if p >= min(digits, _PRECISIONS[-1])))


@lru_cache(maxsize=len(_PRECISIONS))
def _context(digits: int) -> Any:
    from mpmath import MPContext

    mp = MPContext()
    mp.dps = digits
    return mp


# -- values


def evaluate(node: Node, point: dict[str, Any], mp: Any) -> Any:
    """Returns the value as an mpmath number at a point; raises Undefined and TooLarge."""
    kind = node[0]
    if kind in ("num", "dec"):
        return mp.mpf(node[1].numerator) / node[1].denominator
    if kind == "sym":
        return _symbol(node[1], point)
    if kind == "const":
        if node[1] == "i":
            return mp.mpc(0, 1)
        return mp.inf if node[1] == "inf" else +(mp.pi if node[1] == "pi" else mp.e)
    if kind == "neg":
        return -evaluate(node[1], point, mp)
    if kind in ("add", "mul"):
        values = [evaluate(part, point, mp) for part in node[1:]]
        return mp.fsum(values) if kind == "add" else mp.fprod(values)
    if kind == "div":
        below = evaluate(node[2], point, mp)
        if below == 0:
            raise Undefined("a division by zero")
        return evaluate(node[1], point, mp) / below
    if kind == "pow":
        return _power(evaluate(node[1], point, mp), evaluate(node[2], point, mp), node[2], mp)
    if kind == "unit":
        return evaluate(node[1], point, mp)
    if kind == "percent":
        return evaluate(node[1], point, mp) / 100
    if kind == "deg":
        return evaluate(node[1], point, mp) * mp.pi / 180
    if kind in ("fact", "fact2"):
        return _factorial(evaluate(node[1], point, mp), kind, mp)
    if kind == "fn":
        return _function(node[1], [evaluate(argument, point, mp) for argument in node[2:]], mp)
    if kind == "call":
        return _unknown(node[1], [evaluate(argument, point, mp) for argument in node[2:]], mp)
    if kind == "big":
        return _big(node, point, mp)
    raise Undefined(f"no number: {kind}")


def _symbol(name: str, point: dict[str, Any]) -> Any:
    if name not in point:
        raise Undefined(f"the symbol {name}")
    return point[name]


def _power(base: Any, exponent: Any, written: Node, mp: Any) -> Any:
    if base == 0:
        if mp.re(exponent) > 0:
            return mp.mpf(0)
        raise Undefined("a power of zero")
    if not mp.isfinite(exponent) or not mp.isfinite(base):
        raise Undefined("a power at infinity")
    if (abs(exponent) > 10**4 or abs(base) > mp.mpf(10) ** 10_000) and abs(exponent) * (
        abs(mp.log(abs(base))) + 1
    ) > 10**7:
        raise TooLarge("a power")
    if not mp.im(base) and base < 0 and not mp.im(exponent):
        # An odd root of a negative number is real, as schools write it.
        ratio = exact(written)
        if ratio is not None and ratio.denominator % 2 == 1 and ratio.denominator > 1:
            size = mp.power(-base, exponent)
            return -size if ratio.numerator % 2 else size
    return mp.power(base, exponent)


def _factorial(value: Any, kind: str, mp: Any) -> Any:
    if abs(value) > MAX_FACTORIAL:
        raise TooLarge("a factorial")
    if mp.im(value) or (value < 0 and value == mp.floor(value)):
        raise Undefined("a factorial")
    return mp.gamma(value + 1) if kind == "fact" else mp.fac2(value)


def _function(name: str, values: list[Any], mp: Any) -> Any:
    if len(values) == 2 and name == "binomial":
        if max(abs(values[0]), abs(values[1])) > 10**5:
            raise TooLarge(name)
        return mp.binomial(*values)
    if name in ("gcd", "lcm") and all(v == mp.nint(mp.re(v)) for v in values):
        return mp.mpf(getattr(math, name)(*(int(mp.re(v)) for v in values)))
    if name in ("min", "max") and values and not any(mp.im(v) for v in values):
        return min(values) if name == "min" else max(values)
    if len(values) != 1:
        raise Undefined(name)
    value = values[0]
    if name in ("floor", "ceil"):
        if mp.im(value) or not mp.isfinite(value):
            raise Undefined(name)
        nearest = mp.nint(value)
        if abs(value - nearest) < mp.mpf(10) ** (-mp.dps // 2):
            return nearest
        return mp.floor(value) if name == "floor" else mp.ceil(value)
    if name in ("ln", "log"):
        if value == 0:
            raise Undefined("ln 0")
        return mp.log(value)
    if name == "gamma":
        return _factorial(value - 1, "fact", mp)
    if abs(value) > 10**7 and name not in ("abs", "sgn", "Re", "Im", "arg"):
        raise TooLarge(name)
    functions: dict[str, Callable[[Any], Any]] = {
        "abs": abs,
        "sgn": mp.sign,
        "conj": mp.conj,
        "Re": mp.re,
        "Im": mp.im,
        "arcsinh": mp.asinh,
        "arccosh": mp.acosh,
        "arctanh": mp.atanh,
        "acot": lambda v: mp.pi / 2 - mp.atan(v),
    }
    if name in _SAME_NAME:
        return getattr(mp, name)(value)
    if name not in functions:
        raise Undefined(name)
    return functions[name](value)


def _unknown(name: str, values: list[Any], mp: Any) -> Any:
    """An unknown function stands for some smooth function that its name fixes, the same on both sides."""
    draw = random.Random(f"call {name}")
    result = mp.mpf(draw.uniform(0.5, 1.5))
    for value in values:
        if abs(value) > 10**7:
            raise TooLarge(name)
        result += 2 * mp.sin(value * mp.mpf(draw.uniform(0.5, 1.5)) + mp.mpf(draw.uniform(0, 1)))
    return result


def _big(node: Node, point: dict[str, Any], mp: Any) -> Any:
    """A definite integral, or a sum or product over a whole-number index."""
    _, name, lower, upper, body, *variable = node
    if variable and lower[0] != "dots":
        if contains(body, _BIG):
            raise Undefined("an integral of an integral")
        with _too_large_is_undefined():
            return _integral(lambda x: evaluate(body, {**point, variable[0][1]: x}, mp), lower, upper, point, mp)
    if name not in ("sum", "prod") or lower[0] != "rel" or lower[1] != "=" or lower[2][0] != "sym" or len(lower) != 4:
        raise Undefined(name)
    first, last = evaluate(lower[3], point, mp), evaluate(upper, point, mp)
    if mp.im(first) or mp.im(last) or first != mp.floor(first) or last != mp.floor(last):
        raise Undefined(name)

    def term(k: Any, mp: Any = mp) -> Any:
        return evaluate(body, {**point, lower[2][1]: mp.mpf(k)}, mp)

    if last == mp.inf:
        if name != "sum" or contains(body, _BIG):
            raise Undefined("an infinite product, or a sum of sums")
        with _too_large_is_undefined():
            return _series(term, int(first), mp)
    if last - first > MAX_TERMS:
        raise TooLarge(name)
    values = [term(k) for k in range(int(first), int(last) + 1)]
    return mp.fsum(values) if name == "sum" else mp.fprod(values)


@contextmanager
def _too_large_is_undefined() -> Iterator[None]:
    """Somewhere between its limits a term may be too large to work out; sympy may still know the value."""
    try:
        yield
    except TooLarge as trouble:
        raise Undefined(str(trouble)) from trouble


def _integral(f: Callable[[Any], Any], lower: Node, upper: Node, point: dict[str, Any], mp: Any) -> Any:
    value, error = mp.quad(f, [evaluate(lower, point, mp), evaluate(upper, point, mp)], error=True)
    if not error <= mp.mpf(10) ** (-mp.dps // 2) * max(1, abs(value)):
        raise Undefined("an integral")
    return value


def _series(term: Callable[..., Any], first: int, mp: Any) -> Any:
    """The limit of a series that plainly converges: its terms fall faster than 1/n, or fall with changing signs."""
    near, far = first + 500, first + 50_000
    a, b, c, d = term(near), term(near + 1), term(far), term(far + 1)
    alternates = not any(map(mp.im, (a, b, c, d))) and a * b < 0 and c * d < 0
    if not abs(c) * (1 if alternates else far) < abs(a) * (1 if alternates else near) / 5 and c != 0:
        raise Undefined("a series")
    more = context(mp.dps + 1)
    value = mp.nsum(term, [first, mp.inf])
    if not _close(value, more.nsum(lambda k: term(k, more), [first, mp.inf]), mp):
        raise Undefined("a series")
    return value


# -- precision and points


def needed_precision(*nodes: Node) -> int:
    """Returns decimal digits enough to tell values apart: the more and longer the numbers, the more digits."""
    return min(50 + sum(map(_weight, nodes)), MAX_PRECISION)


def _weight(node: Node) -> int:
    if node[0] in ("num", "dec"):
        value: Fraction = node[1]
        return (value.numerator.bit_length() + value.denominator.bit_length()) * 2 // 3 + 1
    if node[0] == "pow" and (exponent := _small(node[2])) is not None:
        return min(abs(exponent), 10_000) * max(1, _weight(node[1]))
    if node[0] == "fact":
        return 3 * min(_small(node[1]) or 10, 2000)
    return sum(_weight(part) for part in children(node))


def _small(node: Node) -> int | None:
    try:
        value = exact(node)
    except TooLarge:
        return None
    return int(value) if value is not None and value.denominator == 1 and abs(value) < 10**6 else None


def _alternates(node: Node) -> bool:
    """Tells whether a negative number stands under a symbolic exponent, as in (-1)^n."""
    if node[0] == "pow" and symbols(node[2]) and not symbols(node[1]):
        try:
            value = exact(node[1])
        except TooLarge:
            value = None
        if value is not None and value < 0:
            return True
    return any(map(_alternates, children(node)))


def _is_stepwise(node: Node) -> bool:
    """Tells whether symbols must be whole numbers: floors, factorials, binomials, (-1)^n."""
    return bool(symbols(node)) and (contains(node, _INTEGER_ONLY) or _alternates(node))


def _points(a: Node, b: Node, mp: Any) -> Iterator[tuple[Any, Any, bool]]:
    """Yields the values of both trees at random points where both have one, and whether a coordinate is negative.

    Symbols stand for positive numbers; for whole ones where floors, factorials, binomials or powers of a negative
    number occur; also for negative ones where an absolute value or a root occurs. A third of the points lie beyond the
    numbers that are written, for |x - 20| is 20 - x before them; whole ones at their multiples as well. The points
    depend on nothing but the names and these numbers.
    """
    unknowns = sorted(symbols(a) | symbols(b))
    whole = _is_stepwise(a) or _is_stepwise(b)
    signed = any(contains(n, frozenset({"abs"})) for n in (a, b))
    written = sorted(_numbers(a) | _numbers(b))
    far = max(1, *written) if written else 1
    draw = random.Random(" ".join(unknowns))
    for attempt in range(_TRIES):
        negative = signed and attempt % 2 == 1
        point = {}
        for name in unknowns:
            if not whole:
                size = mp.mpf(draw.randint(10**17, 3 * 10**18)) / 10**18 * (far if attempt % 3 == 2 else 1)
            elif written and attempt % 4 == 3:
                size = mp.mpf(draw.choice(written) * draw.randint(1, 3))
            else:
                size = mp.mpf(draw.randint(1, _RANGES[attempt % 3]))
            point[name] = -size if negative and draw.random() < 0.6 else size
        try:
            left, right = evaluate(a, point, mp), evaluate(b, point, mp)
        except NO_VALUE:
            continue
        if mp.isfinite(left) and mp.isfinite(right):
            yield left, right, negative


def _numbers(node: Node) -> set[int]:
    """Returns the whole numbers that are written in a tree, as far as they may be where it bends."""
    if node[0] in ("num", "dec"):
        size = abs(int(node[1]))
        return {size} if 1 < size <= _FARTHEST else set()
    return set().union(*map(_numbers, children(node)))


def _close(left: Any, right: Any, mp: Any) -> bool:
    scale = max(abs(left), abs(right))
    return bool(scale == 0 or abs(left - right) <= scale * mp.mpf(10) ** (-mp.dps // 2))


# -- comparisons


def same(a: Node, b: Node) -> bool | None:
    """Tells whether two trees have one value wherever both are defined; None where that cannot be told.

    Differing once in high precision settles it, and so does agreeing at every point. Raises TooLarge.
    """
    if not symbols(a) and not symbols(b):
        return _same_constant(a, b)
    mp = context(min(needed_precision(a, b), 400))
    agreed = 0
    # Smooth functions that agree at a few random points agree; steps and corners need more of them.
    bends = any(_is_stepwise(n) or contains(n, _CORNERS) or _has_root_of_square(n) for n in (a, b))
    wanted = _MANY_POINTS if bends else _POINTS
    for left, right, negative in _points(a, b, mp):
        if negative and (mp.im(left) or mp.im(right)):
            continue
        if not _close(left, right, mp) and max(abs(left), abs(right)) > mp.mpf(10) ** (-mp.dps // 2):
            return False
        agreed += 1
        if agreed >= wanted:
            return True
    return True if agreed >= 3 else None


def _has_root_of_square(node: Node) -> bool:
    """Tells whether an even root of something with an even power occurs, which bends as |x| does."""
    if node[0] == "pow" and node[2][0] in ("num", "div") and contains(node[1], _POWER):
        power = exact(node[2])
        if power is not None and power.denominator % 2 == 0:
            return True
    return any(map(_has_root_of_square, children(node)))


def _same_constant(a: Node, b: Node) -> bool | None:
    digits = needed_precision(a, b)
    for precision in (digits, 2 * digits):
        mp = context(precision)
        try:
            left, right = evaluate(a, {}, mp), evaluate(b, {}, mp)
        except NO_VALUE:
            return None
        if mp.isinf(left) or mp.isinf(right):
            return bool(left == right)
        if mp.isnan(left) or mp.isnan(right):
            return None
        if _close(left, right, mp):
            return True
        # Zero that rounding hides: both stay no larger than the precision allows, at twice the precision as well.
        if max(abs(left), abs(right)) > mp.mpf(10) ** (-mp.dps * 2 // 3):
            return False
    return True


def proportion(a: Node, b: Node) -> int | None:
    """Returns the sign of k where a = k b at every point, 0 where there is no such k, None where none is defined."""
    mp = context(min(needed_precision(a, b), 400))
    factor = None
    agreed = 0
    for left, right, _ in _points(a, b, mp):
        if right == 0:
            continue
        if factor is None:
            factor = left / right
        elif not _close(factor, left / right, mp):
            return 0
        agreed += 1
        if agreed >= _POINTS:
            break
    if factor is None or agreed < 3:
        return None
    if abs(factor) < mp.mpf(10) ** (-mp.dps // 2):
        return 0
    return -1 if mp.re(factor) < 0 else 1


def number(node: Node, digits: int = 60) -> Any:
    """Returns the real value of a constant: a Fraction where it is rational by its form, else an mpf; None otherwise.

    Raises TooLarge.
    """
    value = exact(node)
    if value is not None:
        return value
    if symbols(node):
        return None
    mp = context(max(digits, needed_precision(node)))
    try:
        result = evaluate(node, {}, mp)
    except NO_VALUE:
        return None
    if mp.isnan(result) or abs(mp.im(result)) > mp.mpf(10) ** (-mp.dps // 2):
        return None
    return mp.re(result)


def as_fraction(value: Any) -> Fraction | None:
    """Returns a real number of `number` as a Fraction, None for an infinity."""
    if isinstance(value, Fraction):
        return value
    from mpmath import isfinite, libmp

    return Fraction(*libmp.to_rational(value._mpf_)) if isfinite(value) else None
