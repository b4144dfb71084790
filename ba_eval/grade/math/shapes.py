"""Takes the fingerprint of an answer; runs in the limited worker (see `fingerprint`)."""

import random
import zlib
from typing import Any

from ba_eval.grade.math import families, units
from ba_eval.grade.math.clean import MAX_LENGTH, clean
from ba_eval.grade.math.decide import is_decimal_comma, parted, readings_of
from ba_eval.grade.math.exact import TooLarge
from ba_eval.grade.math.fingerprint import Fingerprint, Shape, Value, bounded
from ba_eval.grade.math.forms import expanded, in_radians, is_equation, point, readings, simple
from ba_eval.grade.math.lists import PARAMETERS, has_pi
from ba_eval.grade.math.numeric import NO_VALUE, context, evaluate, needed_precision
from ba_eval.grade.math.regions import membership
from ba_eval.grade.math.tree import Node, children, contains, operators, symbols
from ba_eval.grade.math.vectors import has_units
from ba_eval.grade.math.words import decide_words, in_symbols, labelled, without_choice

_MOST_ITEMS = 60
_NO_SCALAR = frozenset(
    {"text", "mod", "base", "ratio", "dots", "big", "call", "inter", "union", "minus", "rel", "tuple", "list", "set"}
)
_FIRST_ITEM = {"list": 1, "set": 1, "tuple": 3}


def fingerprint(answer: str) -> Fingerprint | None:
    """Returns the fingerprint of an answer; None where it is not plainly values or a set of real numbers."""
    text = in_symbols(clean(answer))
    if not text or len(text) > MAX_LENGTH or labelled(text) or decide_words(text, text) is not None:
        return None
    if units.is_money(answer):
        text = units.in_dollars(text)
    text, condition = parted(text)
    if families.constant(condition) or families.index(condition):
        return None
    shapes: Fingerprint = []
    for letters in (False, True):
        value, unit = units.split_unit(text, letters)
        value, unit, _ = units.angles(value, unit)
        known = units.measure(unit)
        for tree in dict.fromkeys(
            readings_of(value, is_decimal_comma(value, unit))[0] + readings_of(without_choice(value), True, True)[0]
        ):
            try:
                shape = _shape(tree)
            except (*NO_VALUE, TooLarge, RecursionError):
                shape = None
            if shape is None:
                return None
            shapes.append(shape)
            if known:
                size = bounded(known[1])
                shapes.append(([[_scaled(v, size) for v in item] for item in shape[0]], []))
    return shapes or None


def _scaled(value: Value, size: float) -> Value:
    a, b, c, d = (bounded(part * size) for part in value)
    return a, b, c, d


def _shape(tree: Node) -> Shape | None:
    node = expanded(simple(tree))
    if node[0] == "tuple":
        node = point(node)
    if has_units(node) or (symbols(node) & PARAMETERS and has_pi(node)) or "C" in symbols(node):
        return None  # these have more than one spelling: letters that count, an arbitrary constant
    if node[0] == "rel" and node[1] == "in" and len(node) == 4:
        node = expanded(simple(node[3]))
    probes = [] if _has_equation(node) else membership(node)
    items = _items(node)
    if items is None:
        return ([], probes) if probes else None
    return ([_values(item) for item in items], probes) if len(items) <= _MOST_ITEMS else None


def _has_equation(node: Node) -> bool:
    return (node[0] == "rel" and "=" in operators(node)) or any(map(_has_equation, children(node)))


def _items(node: Node) -> list[Node] | None:
    """Returns the scalars that a node consists of; None where it is made of more than scalars."""
    if node[0] == "rel":
        return _assigned(node)
    if node[0] in _FIRST_ITEM or node[0] == "matrix":
        parts = [cell for row in node[1] for cell in row] if node[0] == "matrix" else node[_FIRST_ITEM[node[0]] :]
        found = [_items(expanded(simple(part))) for part in parts]
        return None if None in found else [item for items in found for item in items or ()]
    return None if contains(node, _NO_SCALAR) or node == ("sym", "mathbb R") else [node]


def _assigned(node: Node) -> list[Node] | None:
    """Returns what an equation sets a name to: a constant, or for y and f(x) an expression in one letter."""
    if not is_equation(node) or len(node) != 4:
        return None
    name, value = (node[2], node[3]) if node[2][0] in ("sym", "call") else (node[3], node[2])
    function = name == ("sym", "y") or name[0] == "call"
    if name[0] not in ("sym", "call") or len(symbols(value)) > function or (function and symbols(value) & {"y"}):
        return None
    return _items(expanded(simple(value)))


def _values(node: Node) -> list[Value]:
    """Returns the values that a scalar may have: its percent and degree signs may be left out, its logs decimal.

    A single letter has one value whatever its name, since f(n) = n + 1 says the same as f(x) = x + 1.
    """
    variants = [pair[0] for pair in readings(node, node)]
    return [_value(variant) for variant in dict.fromkeys((*variants, *map(in_radians, variants)))]


def _value(node: Node) -> Value:
    mp = context(min(needed_precision(node), 400))
    parts: list[float] = []
    names = sorted(symbols(node))
    for whole in (False, True):
        value = evaluate(node, {name: _coordinate(name if len(names) > 1 else "", whole, mp) for name in names}, mp)
        if mp.isnan(value):
            raise ValueError("no number")
        parts += [bounded(mp.re(value)), bounded(mp.im(value))]
    a, b, c, d = parts
    return a, b, c, d


def _coordinate(name: str, whole: bool, mp: Any) -> Any:
    draw = random.Random(zlib.crc32(name.encode("utf-8", "replace")))
    return mp.mpf(draw.randint(2, 40)) if whole else mp.mpf(draw.randint(10**17, 3 * 10**18)) / 10**18
