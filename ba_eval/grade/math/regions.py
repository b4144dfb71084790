"""Sets of real numbers: intervals, unions, inequalities in one variable, compared by where their borders lie."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ba_eval.grade.math.exact import TooLarge
from ba_eval.grade.math.numeric import Undefined, context, evaluate, number
from ba_eval.grade.math.tokens import ORDER
from ba_eval.grade.math.tree import Node, operators, symbols, terms

_DIGITS = 60
_REALS: Node = ("sym", "mathbb R")
_SETS = ("union", "inter", "minus", "list")


@dataclass(frozen=True)
class Region:
    """`holds(x)` tells whether x lies in the set; `borders` are the finite points where that may change."""

    holds: Callable[[Any], bool]
    borders: tuple[Any, ...]


def same_region(a: Node, b: Node) -> bool | None:
    """Compares two sets of real numbers; None where either is none that can be tested."""
    if a[0] == "inter" and all(part[0] == "rel" for part in a[1:]) and _same_region(a, ("set",)):
        a = ("union", *a[1:])  # a gold that says `and` for x < 1 and x > 3 means both parts
    result = _same_region(a, b)
    if result is False and "list" in (a[0], b[0]):
        # Conditions in a list may hold together: x >= 3 and x <= 5.
        together = [("inter", *node[1:]) if node[0] == "list" else node for node in (a, b)]
        return _same_region(*together)
    return result


def _same_region(a: Node, b: Node) -> bool | None:
    if max(len(_letters(a)), len(_letters(b))) > 1:
        return None
    mp = context(_DIGITS)
    try:
        left, right = region_of(a, mp), region_of(b, mp)
    except (Undefined, TooLarge):
        return None
    if left is None or right is None:
        return None
    borders = sorted({_mpf(x, mp) for x in (*left.borders, *right.borders)})
    try:
        return all(left.holds(x) == right.holds(x) for x in test_points(borders, mp))
    except (Undefined, ZeroDivisionError, ValueError, OverflowError, TypeError):
        return None


def _letters(node: Node) -> set[str]:
    """Returns the letters that conditions are about."""
    if node[0] == "rel":
        return symbols(node) - {"mathbb R"}
    return set().union(*map(_letters, node[1:])) if node[0] in _SETS else set()


_MOST_WHOLE = 1000


def whole_numbers(node: Node) -> Node:
    """Writes out `{n in Z | 1 <= n <= 4}` where it holds some numbers only; any other node stays as it is."""
    if node[:3] != ("tuple", "{", "}") or len(node) != 5 or node[3][0] != "rel" or node[3][1] != "in":
        return node
    if node[3][3] not in (("sym", "mathbb Z"), ("sym", "mathbb N")):
        return node
    mp = context(_DIGITS)
    condition = ("inter", *node[4][1:]) if node[4][0] == "list" else node[4]
    try:
        region = region_of(condition, mp) if symbols(condition) == symbols(node[3][2]) else None
        if region is None or not region.borders:
            return node
        low, high = int(mp.floor(min(region.borders))) - 1, int(mp.ceil(max(region.borders))) + 1
        if high - low > _MOST_WHOLE or region.holds(mp.mpf(low)) or region.holds(mp.mpf(high)):
            return node
        first = 1 if node[3][3][1] == "mathbb N" else low
        return ("set", *(("num", Fraction(k)) for k in range(max(low, first), high + 1) if region.holds(mp.mpf(k))))
    except (Undefined, TooLarge, ZeroDivisionError, ValueError, OverflowError, TypeError):
        return node


PROBES = tuple(
    sign * (2 + step / 7) ** power for sign in (-1, 1) for power in (-6, -2, 0.5, 1, 2, 4) for step in range(4)
)
"""Numbers of many sizes, none of them a likely border."""


def membership(node: Node) -> list[tuple[int, list[float] | None]]:
    """Returns, for a set of real numbers, which of some fixed numbers lie in it, as bits, and its finite borders.

    The borders are None where they are roots that had to be searched. Nothing for another node; two where conditions in
    a list may hold together or one of them.
    """
    mp = context(_DIGITS)
    found: list[tuple[int, list[float] | None]] = []
    # A gold's `and` may mean both parts: see `same_region`.
    other = {"list": "inter", "inter": "union"}.get(node[0])
    for form in (node,) if other is None else (node, (other, *node[1:])):
        try:
            region = region_of(form, mp)
            if region is None:
                continue
            bits = sum(1 << i for i, x in enumerate(PROBES) if region.holds(mp.mpf(x)))
            borders = {_mpf(x, mp) for x in region.borders} if _is_plain(form) else None
            found.append(
                (
                    bits,
                    None
                    if borders is None
                    else [max(-1e300, min(1e300, float(x))) for x in borders if _changes(region, x, mp)],
                )
            )
        except (Undefined, TooLarge, ZeroDivisionError, ValueError, OverflowError, TypeError):
            continue
    return found


def _is_plain(node: Node) -> bool:
    """Tells whether a set is written by its borders alone: intervals, and inequalities of a letter and numbers."""
    if node[0] == "rel":
        sides = terms(node)
        return sum(side[0] == "sym" for side in sides) == 1 and len(set().union(*map(symbols, sides))) == 1
    return node[0] in ("tuple", "set") or all(map(_is_plain, node[1:]) if node[0] in _SETS else (node == _REALS,))


def _changes(region: Region, border: Any, mp: Any) -> bool:
    step = (1 + abs(border)) * mp.mpf(10) ** -12
    return len({region.holds(x) for x in (border - step, border, border + step)}) > 1


def test_points(borders: list[Any], mp: Any) -> list[Any]:
    points = [mp.mpf(0), mp.mpf(10) ** 6 + mp.mpf(1) / 3, -(mp.mpf(10) ** 6) - mp.mpf(1) / 3]
    for border in borders:
        step = (1 + abs(border)) * mp.mpf(10) ** -12
        points += [border, border - step, border + step]
    points += [(x + y) / 2 for x, y in itertools.pairwise(borders)]
    if borders:
        points += [borders[0] - 1, borders[-1] + 1, borders[0] - mp.mpf(31) / 7, borders[-1] + mp.mpf(37) / 7]
    return points


def _mpf(value: Any, mp: Any) -> Any:
    return mp.mpf(value.numerator) / value.denominator if hasattr(value, "denominator") else mp.mpf(value)


def region_of(node: Node, mp: Any) -> Region | None:
    kind = node[0]
    if node == _REALS:
        return Region(lambda x: True, ())
    if kind == "tuple" and len(node) == 5:
        return _interval(node, mp)
    if kind == "set":
        members = [_real(item, mp) for item in node[1:]]
        return Region(lambda x: any(_equal(x, m, mp) for m in members), tuple(members))
    if kind in _SETS:
        parts = [region_of(part, mp) for part in node[1:]]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        borders = tuple(b for part in known for b in part.borders)
        if kind in ("union", "list"):
            return Region(lambda x: any(part.holds(x) for part in known), borders)
        if kind == "inter":
            return Region(lambda x: all(part.holds(x) for part in known), borders)
        return Region(lambda x: known[0].holds(x) and not any(part.holds(x) for part in known[1:]), borders)
    if kind == "rel":
        if node[1] == "in" and len(node) == 4:
            return region_of(node[3], mp)
        return _inequality(node, mp)
    return None


def _interval(node: Node, mp: Any) -> Region | None:
    low, high = _real(node[3], mp), _real(node[4], mp)
    if low > high or (low == high and node[1] == "("):
        return None
    left_closed, right_closed = node[1] == "[", node[2] == "]"

    def holds(x: Any) -> bool:
        if _equal(x, low, mp):
            return bool(left_closed and (right_closed or low != high))
        if _equal(x, high, mp):
            return bool(right_closed)
        return bool(low < x < high)

    return Region(holds, tuple(b for b in (low, high) if mp.isfinite(b)))


def _real(node: Node, mp: Any) -> Any:
    value = number(node)
    if value is None:
        raise Undefined("no real number")
    return _mpf(value, mp)


def _equal(x: Any, y: Any, mp: Any) -> bool:
    return bool(x == y or (mp.isfinite(x) and mp.isfinite(y) and abs(x - y) <= (abs(x) + abs(y)) * mp.mpf(10) ** -40))


def _inequality(node: Node, mp: Any) -> Region | None:
    signs, sides = operators(node), terms(node)
    if any(op not in ORDER and op != "=" for op in signs):
        return None
    names = set().union(*(symbols(side) for side in sides))
    label = None
    if not names or any(side[0] == "call" for side in sides):
        calls = {side for side in sides if side[0] == "call"}
        if len(calls) != 1:
            return None
        label = calls.pop()
    elif len(names) != 1:
        return None
    name = next(iter(names)) if label is None else "value"
    if label is not None:
        sides = [("sym", "value") if side == label else side for side in sides]
        if set().union(*(symbols(side) for side in sides)) != {"value"}:
            return None

    def holds(x: Any) -> bool:
        values = [evaluate(side, {name: x}, mp) for side in sides]
        if any(mp.im(v) for v in values):
            return False
        values = [mp.re(v) for v in values]
        return all(_related(op, a, b, mp) for op, a, b in zip(signs, values, values[1:], strict=False))

    def difference(i: int, x: Any) -> Any:
        value = evaluate(sides[i], {name: x}, mp) - evaluate(sides[i + 1], {name: x}, mp)
        if mp.im(value):
            raise Undefined("not real")
        return mp.re(value)

    borders: list[Any] = []
    for i in range(len(signs)):
        borders += _roots(lambda x, i=i: difference(i, x), mp)  # type: ignore[misc]
    return Region(holds, tuple(borders))


def _related(op: str, a: Any, b: Any, mp: Any) -> bool:
    equal = _equal(a, b, mp) or abs(a - b) < mp.mpf(10) ** -40
    if op in ("=", "!="):
        return equal == (op == "=")
    if equal:
        return op in ("<=", ">=")
    return bool(a < b) if op in ("<", "<=") else bool(a > b)


def _roots(f: Callable[[Any], Any], mp: Any) -> list[Any]:
    """Returns the sign changes of f: exactly for a linear f, else on a grid, refined by bisection."""
    try:
        at0, slope = f(mp.mpf(0)), f(mp.mpf(1)) - f(mp.mpf(0))
        if slope and all(_equal(f(mp.mpf(x)) - at0, x * slope, mp) for x in (3, -2, 17, -40, 10**6, -(10**6))):
            return [-at0 / slope]
    except (Undefined, ZeroDivisionError):
        pass
    grid = [mp.mpf(k) / 8 + mp.mpf(1) / 1007 for k in range(-400, 401)] + [
        mp.mpf(s) * 2**k for s in (-1, 1) for k in range(6, 24)
    ]
    found: list[Any] = []
    previous: tuple[Any, Any] | None = None
    for x in sorted(grid):
        try:
            value = f(x)
        except (Undefined, ZeroDivisionError):
            if previous is not None:
                found.append(x)
            previous = None
            continue
        if previous is None and found == [] and x != min(grid):
            found.append(x)
        if previous is not None and (value > 0) != (previous[1] > 0):
            low, high = previous[0], x
            for _ in range(160):
                middle = (low + high) / 2
                try:
                    sign = f(middle) > 0
                except (Undefined, ZeroDivisionError):
                    break
                low, high = (middle, high) if sign == (previous[1] > 0) else (low, middle)
            found.append((low + high) / 2)
        previous = (x, value)
    return found
