r"""The tree of an answer. A node is a tuple whose first item names it:

(num, Fraction) · (dec, Fraction, value of the last digit, significant digits) a written decimal · (sym, name) ·
(const, "pi" | "e" | "i" | "inf") · (add, a, b, ...) · (mul, a, b, ...) · (div, a, b) · (pow, a, b) · (neg, a) ·
(pm, +1 | -1, a) · (fn, name, a, ...) · (call, name, a, ...) an unknown function · (fact, a) · (fact2, a) n!! ·
(percent, a) · (deg, a) · (unit, a, words) · (base, digits, base) · (rel, op, a, b, op, c, ...) a chain ·
(mod, a, modulus) · (list, items...) unordered · (tuple, open, close, items...) · (set, items...) ·
(union, a, b, ...) · (inter, a, b) · (minus, a, b) difference of sets · (matrix, rows) · (ratio, a, b, ...) ·
(big, "sum" | "prod" | ..., lower, upper, body) · (big, "int", lower, upper, integrand, (sym, variable)) ·
(text, words) · (dots,)
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from ba_eval.grade.math.tokens import OverLimit

Node = tuple[Any, ...]
one: Node = ("num", Fraction(1))
MAX_DIGITS = 4000


def children(node: Node) -> Iterator[Node]:
    """Yields the nodes directly below a node."""
    if node[0] == "matrix":
        for row in node[1]:
            yield from row
        return
    for part in node[1:]:
        if isinstance(part, tuple):
            yield part


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """Returns the node with `change` applied to each node directly below it."""
    if node[0] == "matrix":
        return ("matrix", tuple(tuple(change(item) for item in row) for row in node[1]))
    return tuple(change(part) if isinstance(part, tuple) else part for part in node)


def renamed(node: Node, old: Node, new: Node) -> Node:
    """Returns the node with another in the place of one."""
    return new if node == old else mapped(node, lambda part: renamed(part, old, new))


def symbols(node: Node) -> set[str]:
    """Returns the names of the free symbols."""
    if node[0] == "sym":
        return {node[1]}
    if node[0] == "big":
        _, _, lower, upper, body, *variable = node
        if variable and lower[0] != "dots":
            return symbols(lower) | symbols(upper) | (symbols(body) - symbols(variable[0]))
        if lower[0] == "rel" and lower[2][0] == "sym" and len(lower) == 4:
            return symbols(lower[3]) | symbols(upper) | (symbols(body) - symbols(lower[2]))
    names: set[str] = set()
    for part in children(node):
        names |= symbols(part)
    return names


def contains(node: Node, kinds: frozenset[str]) -> bool:
    """Tells whether a node of these kinds, or a function or big operator of these names, occurs."""
    if node[0] in kinds or (node[0] in ("fn", "big") and node[1] in kinds):
        return True
    return any(contains(part, kinds) for part in children(node))


def terms(relation: Node) -> list[Node]:
    """Returns the members of a chain of relations, from left to right."""
    return [relation[2], relation[3], *relation[5::2]]


def operators(relation: Node) -> list[str]:
    """Returns the operators of a chain of relations, from left to right."""
    return [relation[1], *relation[4::2]]


def is_whole(node: Node) -> bool:
    """Tells whether a node is a written whole number."""
    return bool(node[0] == "num" and node[1].denominator == 1)


def literal_number(token: str) -> Node:
    """Returns (num, value) of a whole number, (dec, value, value of the last digit, digits) of a decimal."""
    mantissa, _, exponent = token.lower().partition("e")
    power = int(exponent) if exponent else 0
    if len(mantissa) > MAX_DIGITS or abs(power) > 2000:
        raise OverLimit("a number with too many digits")
    whole, point, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    value = Fraction(int(whole + fraction or "0"), 10 ** len(fraction)) * Fraction(10) ** power
    if not point and not exponent:
        return ("num", value)
    return ("dec", value, Fraction(10) ** (power - len(fraction)), len(digits))
