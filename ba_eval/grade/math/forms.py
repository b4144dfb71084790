"""Rewritings of trees that leave their meaning: order of terms, ±, matrix arithmetic, marks that may be left out."""

import itertools
from collections.abc import Iterator
from fractions import Fraction

from ba_eval.grade.math.exact import TooLarge, exact
from ba_eval.grade.math.tree import Node, children, contains, mapped, operators, symbols, terms

MAX_SIGNS = 4
MAX_CELLS = 400
_NO_FACTOR = frozenset({"tuple", "list", "set", "matrix", "union", "text", "call", "mod", "pm"})


def canonical(node: Node) -> Node:
    """Returns a form in which the order of sums and products and double signs do not show."""
    kind = node[0]
    if kind in ("add", "mul"):
        parts: list[Node] = []
        for part in map(canonical, node[1:]):
            parts += part[1:] if part[0] == kind else (part,)
        return (kind, *sorted(parts, key=repr))
    if kind == "neg":
        inner = canonical(node[1])
        if inner[0] == "num":
            return ("num", -inner[1])
        return inner[1] if inner[0] == "neg" else ("neg", inner)
    if kind == "dec":
        return ("num", node[1])
    if kind in ("set", "union", "inter"):
        return (kind, *sorted(set(map(canonical, node[1:])), key=repr))
    return mapped(node, canonical)


def simple(node: Node) -> Node:
    """Unwraps units, sets and lists of one; makes p = 3, q = 2 of `(p, q) = (3, 2)`; works out matrices."""
    while True:
        if node[0] == "unit" or (node[0] in ("set", "list") and len(node) == 2 and node[1] != ("set",)):
            node = node[1]
        elif node[0] == "rel" and len(node) == 4 and node[1] == "=" and node[2][0] == node[3][0] == "tuple":
            if len(node[2]) != len(node[3]):
                return node
            node = ("list", *(("rel", "=", a, b) for a, b in zip(node[2][3:], node[3][3:], strict=True)))
        elif node[:2] == ("fn", "det") and node[2][0] == "matrix" and (value := _determinant(node[2][1])):
            node = value
        elif node[0] in ("add", "mul", "neg", "div", "pow") and any(part[0] in ("matrix",) for part in children(node)):
            return _matrix(node) or node
        elif (multiple := _multiple(node)) is not None:
            node = multiple
        elif (different := _all_different(node)) is not None:
            return different
        elif node[0] == "add" and len(node) == 3 and node[2][0] == "neg" and node[2][1][0] in ("set", "tuple", "union"):
            # R - {0}: a difference of sets
            return ("minus", node[1], node[2][1])
        else:
            return node


def _all_different(node: Node) -> Node | None:
    """Writes x != 1, 2 and x != ±1 as conditions that hold together."""
    first, *more = node[1:] if node[0] == "list" else (node,)
    if first[0] != "rel" or first[1] != "!=" or len(first) != 4 or any(item[0] == "rel" for item in more):
        return None
    values = [value for item in (first[3], *more) for value in signs(item)]
    return ("inter", *(("rel", "!=", first[2], value) for value in values)) if len(values) > 1 else None


def _matrix(node: Node) -> Node | None:
    """Returns the matrix that sums, products and multiples of matrices make; None where they do not fit."""
    parts = [simple(part) for part in children(node)]
    kind = node[0]
    if kind == "neg" and parts[0][0] == "matrix":
        return _cells(parts[0], lambda cell: ("neg", cell))
    if kind == "div" and parts[0][0] == "matrix" and parts[1][0] != "matrix":
        return _cells(parts[0], lambda cell: ("div", cell, parts[1]))
    if kind == "pow" and parts[1] in (("sym", "T"), ("sym", "top"), ("sym", "intercal")):
        return ("matrix", tuple(zip(*parts[0][1], strict=True))) if len({*map(len, parts[0][1])}) == 1 else None
    if kind not in ("add", "mul"):
        return None
    total = parts[0]
    for part in parts[1:]:
        joined = _joined(kind, total, part)
        if joined is None:
            return None
        total = joined
    return total


def _multiple(node: Node) -> Node | None:
    """Works out a number times a tuple in round brackets: 2(1, 3) is (2, 6). A letter may name the point: P(1, 3)."""
    kind, *parts = node
    vectors = [part for part in parts if isinstance(part, tuple) and part[:3] == ("tuple", "(", ")")]
    if kind not in ("neg", "mul", "div") or len(vectors) != 1 or (kind == "div" and vectors[0] is not parts[0]):
        return None
    if any(symbols(part) or contains(part, _NO_FACTOR) for part in parts if part is not vectors[0]):
        return None
    return ("tuple", "(", ")", *((kind, *(item if p is vectors[0] else p for p in parts)) for item in vectors[0][3:]))


def _determinant(rows: tuple[tuple[Node, ...], ...]) -> Node | None:
    """Returns the determinant of a matrix of at most 4 x 4, by its first row."""
    if len(rows) > 4 or any(len(row) != len(rows) for row in rows):
        return None
    if len(rows) == 1:
        return rows[0][0]
    parts: list[Node] = []
    for i, cell in enumerate(rows[0]):
        minor = _determinant(tuple(row[:i] + row[i + 1 :] for row in rows[1:]))
        assert minor is not None
        product: Node = ("mul", cell, minor)
        parts.append(("neg", product) if i % 2 else product)
    return ("add", *parts)


def _cells(matrix: Node, change) -> Node:  # type: ignore[no-untyped-def]
    return ("matrix", tuple(tuple(change(cell) for cell in row) for row in matrix[1]))


def _joined(kind: str, left: Node, right: Node) -> Node | None:
    if kind == "add":
        if left[0] != "matrix" or right[0] != "matrix" or [len(r) for r in left[1]] != [len(r) for r in right[1]]:
            return None
        rows = zip(left[1], right[1], strict=True)
        return ("matrix", tuple(tuple(("add", a, b) for a, b in zip(r, s, strict=True)) for r, s in rows))
    if left[0] != "matrix" or right[0] != "matrix":
        matrix, factor = (left, right) if left[0] == "matrix" else (right, left)
        return _cells(matrix, lambda cell: ("mul", factor, cell)) if matrix[0] == "matrix" else ("mul", left, right)
    a, b = left[1], right[1]
    if any(len(row) != len(b) for row in a) or len({len(row) for row in b}) != 1 or len(a) * len(b[0]) > MAX_CELLS:
        return None
    columns = list(zip(*b, strict=True))
    return (
        "matrix",
        tuple(tuple(("add", *(("mul", x, y) for x, y in zip(r, c, strict=True))) for c in columns) for r in a),
    )


def remainder(node: Node) -> Node:
    """Works out 3^{100} mod 7 where both are whole numbers: (mod, 4, 7)."""
    if node[0] != "mod":
        return node
    (kind, *parts), modulus = node[1], exact(node[2])
    if modulus is None or modulus.denominator != 1 or not 0 < modulus < 10**18:
        return node
    if kind == "rel" and len(node[1]) == 4 and parts[0] == "=" and _whole(parts[2]) is not None:
        # n = 4 modulo 3 is n = 1.
        return ("mod", (*node[1][:3], remainder(("mod", parts[2], node[2]))[1]), node[2])
    if kind == "pow":
        base, exponent = (_whole(part) for part in parts)
        if base is not None and exponent is not None and exponent >= 0:
            return ("mod", ("num", Fraction(pow(base, exponent, int(modulus)))), node[2])
    value = _whole(node[1])
    return node if value is None else ("mod", ("num", Fraction(value % int(modulus))), node[2])


def _whole(node: Node) -> int | None:
    try:
        value = exact(node)
    except TooLarge:
        return None
    return int(value) if value is not None and value.denominator == 1 else None


# -- plus or minus


def expanded(node: Node) -> Node:
    """Writes ± out: an expression with it becomes a list, a list gets more items."""
    if node[0] in ("list", "set"):
        return (node[0], *(variant for item in node[1:] for variant in signs(item)))
    if node[0] in ("matrix", "union"):
        return node
    variants = signs(node)
    return ("list", *variants) if len(variants) > 1 else node


def signs(node: Node) -> list[Node]:
    """Returns the node with every choice of its ±; with a ∓ in it all of them go together."""
    plus, minus = _count(node)
    if plus + minus == 0 or plus + minus > MAX_SIGNS:
        return [node]
    if minus:
        return [_signed(node, itertools.repeat(sign)) for sign in (1, -1)]
    return [_signed(node, iter(choice)) for choice in itertools.product((1, -1), repeat=plus)]


def _count(node: Node) -> tuple[int, int]:
    plus, minus = (int(node[1] == 1), int(node[1] == -1)) if node[0] == "pm" else (0, 0)
    for part in children(node):
        more_plus, more_minus = _count(part)
        plus, minus = plus + more_plus, minus + more_minus
    return plus, minus


def _signed(node: Node, choice: Iterator[int]) -> Node:
    if node[0] == "pm":
        sign = node[1] * next(choice)
        inner = _signed(node[2], choice)
        return inner if sign == 1 else simple(("neg", inner))
    return mapped(node, lambda part: _signed(part, choice))


def point(node: Node) -> Node:
    """Returns the tuple of a named point: (2, 3) of P(2, 3)."""
    if node[0] == "call" and len(node) > 3 and node[1].isupper():
        return ("tuple", "(", ")", *node[2:])
    if node[0] == "mul" and len(node) == 3 and node[1][0] == "sym" and node[2][0] == "tuple":
        return node[2]  # type: ignore[no-any-return]
    return node


# -- marks and decimals


def in_radians(node: Node) -> Node:
    """Writes degrees out, so that none can be left out."""
    if node[0] == "deg":
        return ("mul", node[1], ("div", ("const", "pi"), ("num", Fraction(180))))
    return mapped(node, in_radians)


def readings(gold: Node, answer: Node) -> list[tuple[Node, Node]]:
    """Percent and degree signs mean what they say, or are left out on both sides.

    A bare log is the natural one or, on both sides, the decimal one.
    """
    pairs = [(gold, answer)]
    if contains(gold, _BARE_LOG) or contains(answer, _BARE_LOG):
        pairs.append((_decimal_logs(gold), _decimal_logs(answer)))
    for mark in ("percent", "deg"):
        left, right = _without(gold, mark), _without(answer, mark)
        if left is not gold or right is not answer:
            pairs.append((left, right))
    return pairs


_BARE_LOG = frozenset({"log"})


def _decimal_logs(node: Node) -> Node:
    node = mapped(node, _decimal_logs)
    if node[:2] == ("fn", "log"):
        return ("div", ("fn", "ln", *node[2:]), ("fn", "ln", ("num", Fraction(10))))
    return node


def _without(node: Node, mark: str) -> Node:
    if node[0] == mark:
        return node[1]  # type: ignore[no-any-return]
    if node[0] == "neg" and node[1][0] == mark:
        return ("neg", node[1][1])
    if node[0] in ("mul", "add", "div") and node[-1][0] == mark:
        return (*node[:-1], node[-1][1])
    return node


def decimal(node: Node) -> tuple[Fraction, Fraction, int] | None:
    """Returns (value, value of the last digit, significant digits) of a written decimal, a x 10^b among them."""
    if node[0] == "dec":
        return node[1], node[2], node[3]
    if node[0] in ("neg", "percent", "unit") and (inner := decimal(node[1])):
        scale = Fraction(1, 100) if node[0] == "percent" else Fraction(1)
        return inner[0] * (-scale if node[0] == "neg" else scale), inner[1] * scale, inner[2]
    if node[0] == "mul" and len(node) == 3 and node[2][0] == "pow" and node[2][1] == ("num", Fraction(10)):
        inner = decimal(node[1])
        try:
            power = exact(node[2])
        except TooLarge:
            return None
        if inner and power:
            return inner[0] * power, inner[1] * abs(power), inner[2]
    return None


# -- equations


def is_equation(node: Node) -> bool:
    """Tells whether a node is a chain of equalities."""
    return node[0] == "rel" and all(op in ("=", "~", "to") for op in operators(node))


def is_label(node: Node, loose: bool = False) -> bool:
    """Tells whether a node names what is asked for: x, f(x), AB, |AB|, NO/BO, A:B, (p, q); with `loose` also m + 2n."""
    kind = node[0]
    if kind in ("sym", "call", "text"):
        return True
    if kind in ("mul", "div", "ratio"):
        return any(part[0] != "num" for part in node[1:]) and all(
            is_label(part, loose) or (loose and part[0] == "num") for part in node[1:]
        )
    if kind == "tuple":
        return all(is_label(part) for part in node[3:])
    if kind == "fn":
        return all(is_label(part, loose) or part[0] in ("num", "deg") for part in node[2:])
    if kind == "unit":
        return is_label(node[1], loose)
    if kind in ("const", "big"):
        return kind == "big" or node[1] in ("e", "i")
    return loose and kind in ("add", "neg") and all(is_label(p, loose) or p[0] == "num" for p in node[1:])


def assigned(node: Node, loose: bool = False) -> Node | None:
    """Returns the value that an equation gives to a name, None where it names nothing.

    5 of x = 5, of 5 = x and of x = 2 + 3 = 5; the exact one of x = 1/3 ≈ 0.33. With `loose` also 7 of m + n = 7, of
    3 + 4 = 7 and of any expression that is said to be a number.
    """
    sides, signs_between = terms(node), operators(node)
    if "~" in signs_between[1:]:
        cut = signs_between.index("~", 1)
        sides, signs_between = sides[: cut + 1], signs_between[:cut]
    if len(sides) > 2 or is_label(sides[0], loose):
        return sides[-1]
    if sides[1][0] == "sym" or signs_between[0] == "~":
        return sides[0]
    if loose and not symbols(sides[-1]):
        return sides[-1]
    return sides[-1] if loose and not _named(sides[0]) else None


def _named(node: Node) -> bool:
    return node[0] in ("sym", "call", "text") or any(map(_named, children(node)))
