r"""Functions given in pieces, compared by their values: |x| is x where x >= 0 and -x where x < 0."""

from typing import Any

from ba_eval.grade.math.exact import TooLarge
from ba_eval.grade.math.numeric import NO_VALUE, Undefined, context, evaluate
from ba_eval.grade.math.regions import PROBES, Region, region_of, test_points
from ba_eval.grade.math.tree import Node, symbols

_DIGITS = 60
_LEAST = 12
_OTHERWISE = ("otherwise", "else", "elsewhere")
_EVERYWHERE: Node = ("sym", "mathbb R")
Pieces = list[tuple[Node, Region | None]]
"""Values with where they hold; None stands for wherever no other one does."""


def same_function(a: Node, b: Node) -> bool | None:
    """Compares two functions of one letter of which at least one is in pieces; None where they cannot be tested.

    The test points lie at, close to and between all the borders of the pieces, and far outside them.
    """
    if not (_in_pieces(a) or _in_pieces(b)):
        return None
    mp = context(_DIGITS)
    try:
        left, right = _pieces(a, mp), _pieces(b, mp)
        names = symbols(a) | symbols(b)
        if left is None or right is None or len(names) != 1:
            return None
        name = names.pop()
        borders = sorted({mp.mpf(x) for _, region in (*left, *right) if region is not None for x in region.borders})
        agreed = 0
        for x in (*test_points(borders, mp), *map(mp.mpf, PROBES)):
            values = _at(left, name, x, mp), _at(right, name, x, mp)
            if values == (None, None):
                continue
            if None in values or not _close(*values, mp):
                return False
            agreed += 1
    except (*NO_VALUE, TooLarge):
        return None
    return True if agreed >= _LEAST else None


def _in_pieces(node: Node) -> bool:
    return node[0] == "list" and all(item[:3] == ("tuple", "{", "}") and len(item) == 5 for item in node[1:])


def _pieces(node: Node, mp: Any) -> Pieces | None:
    if not _in_pieces(node):
        return None if node[0] in ("list", "set", "rel", "tuple", "union") else [(node, region_of(_EVERYWHERE, mp))]
    found: Pieces = []
    for *_, value, condition in node[1:]:
        if condition[0] == "text" and condition[1].lower() in _OTHERWISE:
            found.append((value, None))
        elif condition[0] == "rel" and (region := region_of(condition, mp)) is not None:
            found.append((value, region))
        else:
            return None
    return found


def _at(pieces: Pieces, name: str, x: Any, mp: Any) -> Any:
    """Returns the one value at x, None where there is none; raises Undefined where two pieces clash."""
    held = [value for value, region in pieces if region is not None and region.holds(x)]
    values = []
    for value in held or [value for value, region in pieces if region is None]:
        try:
            values.append(evaluate(value, {name: x}, mp))
        except NO_VALUE:
            return None
    if any(not _close(values[0], other, mp) for other in values[1:]):
        raise Undefined("two values")
    return values[0] if values and mp.isfinite(values[0]) and not mp.im(values[0]) else None


def _close(a: Any, b: Any, mp: Any) -> bool:
    return bool(abs(a - b) <= (1 + abs(a) + abs(b)) * mp.mpf(10) ** (-mp.dps // 2))
