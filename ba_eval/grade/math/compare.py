"""Equivalence of two answers as trees. The gold's type decides how the answer is read."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from ba_eval.grade.math.numeric import TooLarge, Undefined, exact, number, same, symbols
from ba_eval.grade.math.regions import INEQUALITIES, is_region, same_region, terms
from ba_eval.grade.math.syntax import Node

MIN_DIGITS = 6
"""A decimal stands for an exact value only when it claims at least this many significant digits."""
MAX_ITEMS = 200


@dataclass
class Comparison:
    """What the comparison of one pair allows and what it used."""

    absolute: Fraction | None = None
    relative: Fraction | None = None
    methods: set[str] = field(default_factory=set)
    troubles: list[str] = field(default_factory=list)

    def equal(self, gold: Node, answer: Node) -> bool | None:
        """Returns True, False, or None where it could not be told (`troubles` says why)."""
        if canonical(gold) == canonical(answer):
            self.methods.add("form")
            return True
        gold, answer = _unwrap(gold), _unwrap(answer)
        if gold[0] == "text" or answer[0] == "text":
            return gold[0] == answer[0] and gold[1].lower() == answer[1].lower()
        if gold[0] == "rel" or answer[0] == "rel":
            return self.relations(gold, answer)
        gold, answer = _expanded(gold), _expanded(answer)
        if _has_region(gold) or _has_region(answer):
            if (same_sets := same_region(gold, answer)) is not None:
                self.methods.add("region")
                return same_sets
        return self.collections(gold, answer)

    # -- lists, tuples, sets, matrices

    def collections(self, gold: Node, answer: Node) -> bool | None:
        kinds = gold[0], answer[0]
        if "matrix" in kinds:
            return self.matrices(gold, answer)
        if kinds[0] in ("union", "inter", "minus"):
            return kinds[1] == kinds[0] and self.unordered(gold[1:], answer[1:])
        if kinds == ("tuple", "tuple"):
            if len(gold) != len(answer):
                return False
            if len(gold) == 5 and gold[1:3] != answer[1:3]:
                return False
            return self.ordered(gold[3:], answer[3:])
        if kinds == ("tuple", "list"):
            return self.ordered(gold[3:], answer[1:])
        if kinds == ("list", "tuple"):
            return (
                self.unordered(gold[1:], answer[3:])
                if answer[1:3] == ("(", ")") or answer[1:3] == ("[", "]")
                else False
            )
        if "tuple" in kinds:
            return False
        if kinds[0] in ("list", "set") or kinds[1] in ("list", "set"):
            items = gold[1:] if kinds[0] in ("list", "set") else (gold,)
            others = answer[1:] if kinds[1] in ("list", "set") else (answer,)
            if any(item[0] == "dots" for item in (*items, *others)):
                return self.ordered(items, others)
            return self.unordered(items, others)
        if "ratio" in kinds:
            return self.ratios(gold, answer)
        if "base" in kinds:
            return kinds == ("base", "base") and gold[1:] == answer[1:]
        if "dots" in kinds:
            return kinds[0] == kinds[1]
        return self.values(gold, answer)

    def ordered(self, items: tuple[Node, ...], others: tuple[Node, ...]) -> bool | None:
        if len(items) != len(others):
            return False
        return _all(self.equal(a, b) for a, b in zip(items, others, strict=True))

    def unordered(self, items: tuple[Node, ...], others: tuple[Node, ...]) -> bool | None:
        """Compares as sets: every item has its partner, in both directions, and no item is missing."""
        items, others = tuple(dict.fromkeys(items)), tuple(dict.fromkeys(others))
        if max(len(items), len(others)) > MAX_ITEMS:
            self.troubles.append("too many items")
            return None
        table = [[self.equal(a, b) for b in others] for a in items]
        if all(any(cell is True for cell in row) for row in table) and all(
            any(row[j] is True for row in table) for j in range(len(others))
        ):
            return True
        possible = all(any(cell is not False for cell in row) for row in table) and all(
            any(row[j] is not False for row in table) for j in range(len(others))
        )
        return None if possible else False

    def matrices(self, gold: Node, answer: Node) -> bool | None:
        left, right = _rows(gold), _rows(answer)
        if left is None or right is None:
            return False
        if (
            len(left) == 1
            and len(right) > 1
            and all(len(row) == 1 for row in right)
            and "matrix" not in (gold[0], answer[0])
        ):
            right = (tuple(row[0] for row in right),)
        if "matrix" in (gold[0], answer[0]) and gold[0] != answer[0]:
            # A vector may be written as a tuple.
            left, right = (tuple(i for row in left for i in row),), (tuple(i for row in right for i in row),)
        if [len(row) for row in left] != [len(row) for row in right]:
            return False
        return _all(self.equal(a, b) for r, s in zip(left, right, strict=True) for a, b in zip(r, s, strict=True))

    def ratios(self, gold: Node, answer: Node) -> bool | None:
        left = gold[1:] if gold[0] == "ratio" else (gold, ("num", Fraction(1)))
        right = answer[1:] if answer[0] == "ratio" else (answer, ("num", Fraction(1)))
        if len(left) != len(right):
            return False
        return _all(self.values(("mul", left[0], right[i]), ("mul", right[0], left[i])) for i in range(1, len(left)))

    # -- relations

    def relations(self, gold: Node, answer: Node) -> bool | None:
        gold_equation, answer_equation = _is_equation(gold), _is_equation(answer)
        if gold_equation and answer_equation:
            return self.equations(gold, answer)
        if gold_equation:
            value = assigned(gold)
            return False if value is None else self.equal(value, answer)
        if answer_equation:
            value = assigned(answer, loose=gold[0] != "rel")
            return False if value is None else self.equal(gold, value)
        for node, other, flip in ((gold, answer, False), (answer, gold, True)):
            if node[0] == "rel" and node[1] == "in" and len(node) == 4 and not (other[0] == "rel" and other[1] == "in"):
                if other[0] != "rel":
                    return self.equal(other, node[3]) if flip else self.equal(node[3], other)
        if gold[0] == answer[0] == "rel" and gold[1] == answer[1] == "in":
            return self.equal(gold[3], answer[3])
        regions = same_region(gold, answer)
        if regions is not None:
            self.methods.add("region")
            return regions
        if gold[0] == answer[0] == "rel":
            return self.chains(gold, answer)
        return False

    def equations(self, gold: Node, answer: Node) -> bool | None:
        left, right = _labelled(gold), _labelled(answer)
        if left and right:
            (name, value), (other, other_value) = left, right
            if canonical(name) == canonical(other):
                return self.equal(value, other_value)
            if _is_function(name) and _is_function(other):
                return self.equal(value, _renamed(other_value, other, name))
            if name[0] == other[0] == "ratio" or name[0] == other[0] == "tuple":
                return self.equal(name, other) and self.equal(value, other_value)
        if len(gold) != 4 or len(answer) != 4:
            return self.ordered(tuple(terms(gold)), tuple(terms(answer)))
        if any(side[0] in ("list", "tuple", "set", "matrix", "union", "text") for side in (*gold[2:4], *answer[2:4])):
            return _any(
                (
                    _all((self.equal(gold[2], answer[2]), self.equal(gold[3], answer[3]))),
                    _all((self.equal(gold[2], answer[3]), self.equal(gold[3], answer[2]))),
                )
            )
        return self.proportional(_difference(gold), _difference(answer), positive=False)

    def proportional(self, a: Node, b: Node, positive: bool) -> bool | None:
        """Tells whether a = k b for a constant k that is not zero (positive where the direction matters)."""
        if symbols(a) != symbols(b):
            return False
        self.methods.add("numeric")
        try:
            from ba_eval.grade.math.numeric import proportion

            factor = proportion(a, b)
        except TooLarge as trouble:
            self.troubles.append(f"too large: {trouble}")
            return None
        if factor is None:
            self.troubles.append("no point where both are defined")
            return None
        return factor > 0 if positive else factor != 0

    def chains(self, gold: Node, answer: Node) -> bool | None:
        """Inequalities in several variables: same chain of terms, or the same difference up to a positive factor."""
        left, right = _rising(gold), _rising(answer)
        if left is None or right is None:
            return False
        (ops, sides), (other_ops, other_sides) = left, right
        if ops == other_ops and self.ordered(tuple(sides), tuple(other_sides)):
            return True
        if len(ops) == len(other_ops) == 1 and ops == other_ops:
            symmetric = ops == ["!="]
            return self.proportional(
                ("add", sides[0], ("neg", sides[1])),
                ("add", other_sides[0], ("neg", other_sides[1])),
                positive=not symmetric,
            )
        return False

    # -- numbers and expressions

    def values(self, gold: Node, answer: Node) -> bool | None:
        for a, b in _readings(gold, answer):
            result = self.value(a, b)
            if result is not False:
                return result
        return False

    def value(self, gold: Node, answer: Node) -> bool | None:
        try:
            left, right = exact(gold), exact(answer)
            if left is not None and right is not None and left == right:
                self.methods.add("exact")
                return True
            if self.within(gold, answer) or self.claimed(gold, answer) or self.claimed(answer, gold):
                return True
            if left is not None and right is not None:
                self.methods.add("exact")
                return False
            self.methods.add("numeric")
            result = same(gold, answer)
        except TooLarge as trouble:
            self.troubles.append(f"too large: {trouble}")
            return None
        except Undefined:
            result = None
        if result is None:
            self.troubles.append("no point where both are defined")
        return result

    def within(self, gold: Node, answer: Node) -> bool:
        """The benchmark's own tolerance."""
        if self.absolute is None and self.relative is None:
            return False
        left, right = number(gold), number(answer)
        if left is None or right is None:
            return False
        difference = abs(_float(left) - _float(right))
        allowed = max(float(self.absolute or 0), float(self.relative or 0) * abs(_float(left)))
        if difference <= allowed * (1 + 1e-9):
            self.methods.add("tolerance")
            return True
        return False

    def claimed(self, decimal: Node, other: Node) -> bool:
        """A decimal that claims many digits is an exact value when it is right in all of them."""
        literal = _decimal(decimal)
        if literal is None:
            return False
        value, step, digits = literal
        if digits < MIN_DIGITS:
            return False
        other_literal = _decimal(other)
        if other_literal is not None and other_literal[2] < digits:
            return False
        target = number(other, digits + 20)
        if target is None:
            return False
        if not isinstance(target, Fraction):
            from mpmath import isfinite, libmp

            if not isfinite(target):
                return False
            target = Fraction(*libmp.to_rational(target._mpf_))
        if target.denominator == 1 and target != value:
            # A whole number has no digits to round: 24.9999999 is not 25.
            return False
        if abs(value - target) < step:
            self.methods.add("digits")
            return True
        return False


def _all(results: Iterator[bool | None] | tuple[bool | None, ...]) -> bool | None:
    unknown = False
    for result in results:
        if result is False:
            return False
        unknown |= result is None
    return None if unknown else True


def _any(results: tuple[bool | None, ...]) -> bool | None:
    if any(r is True for r in results):
        return True
    return None if any(r is None for r in results) else False


def _float(value: object) -> float:
    return float(value)  # type: ignore[arg-type]


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
        return inner[1] if inner[0] == "neg" else ("num", -inner[1]) if inner[0] == "num" else ("neg", inner)
    if kind == "dec" and node[1].denominator == 1:
        return ("num", node[1])
    if kind == "dec":
        return node[:2]
    if kind == "matrix":
        return ("matrix", tuple(tuple(map(canonical, row)) for row in node[1]))
    if kind in ("set", "union"):
        return (kind, *sorted(map(canonical, node[1:]), key=repr))
    return tuple(canonical(part) if isinstance(part, tuple) else part for part in node)


def _unwrap(node: Node) -> Node:
    """A set or list of one is its item, unless it is a range of reals."""
    while node[0] in ("set", "list") and len(node) == 2:
        node = node[1]
    return node


def _has_region(node: Node) -> bool:
    return node[0] in ("union", "inter", "minus") or (
        node[0] == "list" and any(n[0] == "rel" and n[1] in INEQUALITIES for n in node[1:])
    ) or (node[0] == "sym" and node[1] == "mathbb R")  # fmt: skip


def _expanded(node: Node) -> Node:
    """Writes ± out: an expression with it becomes a list, a list gets more items."""
    if node[0] in ("list", "set"):
        items = [variant for item in node[1:] for variant in _signs(item)]
        return (node[0], *items)
    if node[0] in ("tuple", "matrix", "union", "rel"):
        return node
    variants = _signs(node)
    return ("list", *variants) if len(variants) > 1 else node


def _signs(node: Node) -> list[Node]:
    count = _count_pm(node)
    if count == (0, 0) or sum(count) > 4:
        return [node]
    if count[1]:
        return [_signed(node, itertools.repeat(sign)) for sign in (1, -1)]
    return [_signed(node, iter(signs)) for signs in itertools.product((1, -1), repeat=count[0])]


def _count_pm(node: Node) -> tuple[int, int]:
    plus = minus = 0
    if node[0] == "pm":
        plus, minus = (1, 0) if node[1] == 1 else (0, 1)
    for part in node[1:]:
        if isinstance(part, tuple) and part and isinstance(part[0], str):
            p, m = _count_pm(part)
            plus, minus = plus + p, minus + m
    return plus, minus


def _signed(node: Node, signs: Iterator[int]) -> Node:
    if node[0] == "pm":
        sign = node[1] * next(signs)
        inner = _signed(node[2], signs)
        return inner if sign == 1 else ("neg", inner)
    return tuple(_signed(p, signs) if isinstance(p, tuple) and p and isinstance(p[0], str) else p for p in node)


def _rows(node: Node) -> tuple[tuple[Node, ...], ...] | None:
    if node[0] == "matrix":
        return node[1]  # type: ignore[no-any-return]
    if node[0] == "tuple":
        return (tuple(node[3:]),)
    return None


def _readings(gold: Node, answer: Node) -> list[tuple[Node, Node]]:
    """Percent and degree signs may be left out, or mean what they say."""
    pairs = [(gold, answer)]
    for mark in ("percent", "deg"):
        left, right = _without(gold, mark), _without(answer, mark)
        if left is not gold or right is not answer:
            pairs.append((left, right))
    return pairs


def _without(node: Node, mark: str) -> Node:
    if node[0] == mark:
        return node[1]  # type: ignore[no-any-return]
    if node[0] == "neg" and node[1][0] == mark:
        return ("neg", node[1][1])
    if node[0] in ("mul", "add", "div") and node[-1][0] == mark:
        return (*node[:-1], node[-1][1])
    return node


def _decimal(node: Node) -> tuple[Fraction, Fraction, int] | None:
    """Returns (value, value of the last digit, significant digits) of a written decimal, a x 10^b among them."""
    if node[0] == "dec":
        return node[1], node[2], node[3]
    if node[0] == "neg" and (inner := _decimal(node[1])):
        return -inner[0], inner[1], inner[2]
    if node[0] == "percent" and (inner := _decimal(node[1])):
        return inner[0] / 100, inner[1] / 100, inner[2]
    if node[0] == "mul" and len(node) == 3 and node[2][0] == "pow" and (inner := _decimal(node[1])):
        try:
            scale = exact(node[2])
        except TooLarge:
            return None
        if scale and node[2][1] == ("num", Fraction(10)):
            return inner[0] * scale, inner[1] * abs(scale), inner[2]
    return None


# -- equations


def _is_equation(node: Node) -> bool:
    return node[0] == "rel" and all(op in ("=", "~", "to") for op in [node[1], *node[4::2]])


def _is_label(node: Node, loose: bool = False) -> bool:
    """A name of what is asked for: x, f(x), AB, |AB|, NO/BO, A:B, (p, q); with `loose` also m + n."""
    kind = node[0]
    if kind in ("sym", "call", "text"):
        return True
    if kind in ("mul", "div", "ratio"):
        return all(_is_label(part, loose) or (loose and part[0] == "num") for part in node[1:])
    if kind in ("tuple",):
        return all(_is_label(part) for part in node[3:])
    if kind == "fn":
        return node[1] in ("abs", "Re", "Im", "min", "max", "gcd", "det") and all(
            _is_label(part, loose) for part in node[2:]
        )
    if kind == "const":
        return node[1] in ("e", "i")
    if loose and kind in ("add", "neg"):
        return all(_is_label(part, loose) or part[0] == "num" for part in node[1:])
    return False


def assigned(node: Node, loose: bool = False) -> Node | None:
    """Returns the value that an equation assigns to a name: 5 of x = 5, of 5 = x, of x = 2 + 3 = 5 ≈ 5.0; else None."""
    sides, operators = terms(node), [node[1], *node[4::2]]
    if "~" in operators[1:]:
        cut = operators.index("~", 1)
        sides, operators = sides[: cut + 1], operators[:cut]
    if len(sides) > 2 or _is_label(sides[0], loose):
        return sides[-1]
    if _is_label(sides[1]) and sides[1][0] == "sym":
        return sides[0]
    if operators[0] == "~":
        return sides[0]
    return None


def _labelled(node: Node) -> tuple[Node, Node] | None:
    value = assigned(node)
    if value is None:
        return None
    sides = terms(node)
    return (sides[0], value) if value is not sides[0] else (sides[1], value)


def _is_function(name: Node) -> bool:
    return name[0] == "call" or name == ("sym", "y")


def _renamed(value: Node, old: Node, new: Node) -> Node:
    """Renames the argument of a function: n in f(n) = n + 1 to x where the other side says f(x)."""
    if old[0] == new[0] == "call" and len(old) == len(new):
        mapping = {a: b for a, b in zip(old[2:], new[2:], strict=True) if a[0] == "sym"}
        return _mapped(value, mapping)
    return value


def _mapped(node: Node, mapping: dict[Node, Node]) -> Node:
    if node in mapping:
        return mapping[node]
    return tuple(
        _mapped(part, mapping) if isinstance(part, tuple) and part and isinstance(part[0], str) else part
        for part in node
    )


def _difference(node: Node) -> Node:
    return ("add", node[2], ("neg", node[3]))


def _rising(node: Node) -> tuple[list[str], list[Node]] | None:
    """Writes a chain of inequalities with < and <= only."""
    operators, sides = [node[1], *node[4::2]], terms(node)
    if all(op in ("<", "<=", "=", "!=") for op in operators):
        return operators, sides
    if all(op in (">", ">=", "=") for op in operators):
        return [op.replace(">", "<") for op in reversed(operators)], sides[::-1]
    return None


__all__ = ["Comparison", "assigned", "canonical", "is_region"]
