"""Equivalence of two answers as trees. The gold's type decides how the answer is read."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from ba_eval.grade.math.congruences import residues
from ba_eval.grade.math.equations import same_relation
from ba_eval.grade.math.exact import TooLarge, exact
from ba_eval.grade.math.forms import (
    canonical,
    decimal,
    expanded,
    in_radians,
    is_equation,
    point,
    readings,
    remainder,
    simple,
)
from ba_eval.grade.math.lists import coordinates, filled, is_list_of_points, points, same_parameter
from ba_eval.grade.math.numeric import as_fraction, number, same
from ba_eval.grade.math.pieces import same_function
from ba_eval.grade.math.regions import same_region, whole_numbers
from ba_eval.grade.math.tokens import ORDER
from ba_eval.grade.math.tree import Node, contains, one, symbols
from ba_eval.grade.math.vectors import has_units, in_components

MIN_DIGITS = 6
"""A decimal stands for an exact value only when it claims at least this many significant digits."""
MAX_ITEMS = 200
_SYMBOLIC = frozenset({"big"})
_NO_NUMBER = frozenset({"tuple", "set", "list", "union", "matrix", "text", "base"})


@dataclass
class Comparison:
    """What the comparison of one pair allows (tolerances of the benchmark), and what it used."""

    absolute: Fraction | None = None
    relative: Fraction | None = None
    marks: bool = False
    """Whether degree signs count: one side says that it is in radians."""
    methods: set[str] = field(default_factory=set)
    troubles: list[str] = field(default_factory=list)

    def equal(self, gold: Node, answer: Node) -> bool | None:
        """Returns True, False, or None where it could not be told (`troubles` says why)."""
        answer = same_parameter(gold, answer)
        if canonical(gold) == canonical(answer):
            self.methods.add("form")
            return True
        gold, answer = whole_numbers(simple(gold)), whole_numbers(simple(answer))
        if is_list_of_points(gold):
            answer = points(answer)
        if "text" in (gold[0], answer[0]):
            return bool(gold[0] == answer[0] and gold[1].lower() == answer[1].lower())
        if (
            (left := residues(gold))
            and (right := residues(answer))
            and (None in (left[0], right[0]) or left[0] == right[0])
        ):
            self.methods.add("residues")
            return left[1:] == right[1:]
        if "mod" in (gold[0], answer[0]):
            return self.congruences(gold, answer)
        if (found := same_function(gold, answer)) is not None:
            self.methods.add("pieces")
            return found
        if "rel" in (gold[0], answer[0]):
            return same_relation(gold, answer, self)
        if has_units(gold) or has_units(answer):
            gold, answer = in_components(gold, answer)
        if {gold[0], answer[0]} == {"pm", "tuple"}:
            return False
        gold, answer = expanded(gold), expanded(answer)
        if "tuple" in (gold[0], answer[0]):
            gold, answer = point(gold), point(answer)
        if (_is_region(gold) or _is_region(answer)) and (found := same_region(gold, answer)) is not None:
            self.methods.add("region")
            return found
        return self.collections(gold, answer)

    def congruences(self, gold: Node, answer: Node) -> bool | None:
        gold, answer = remainder(gold), remainder(answer)
        if any(node[0] == "mod" and exact(node[2]) == 0 for node in (gold, answer)):
            return False
        if gold[0] == answer[0] == "mod":
            return _all((self.equal(gold[2], answer[2]), self.equal(gold[1], answer[1])))
        # The modulus may be left out, by the gold or by the answer, of a number.
        if any(node[0] == "mod" and node[1][0] != "rel" and symbols(node[1]) for node in (gold, answer)):
            return False
        return self.equal(gold[1] if gold[0] == "mod" else gold, answer[1] if answer[0] == "mod" else answer)

    # -- lists, tuples, sets, matrices

    def collections(self, gold: Node, answer: Node) -> bool | None:
        kinds = gold[0], answer[0]
        if "matrix" in kinds:
            return self.matrices(gold, answer)
        if kinds[0] in ("union", "inter", "minus") or kinds[1] in ("union", "inter", "minus"):
            # Conditions on several letters: a comma may stand for either word.
            either = "list" in kinds and all(part[0] == "rel" for part in (*gold[1:], *answer[1:]))
            # ... but of different letters it says that all of them hold.
            either = either and ("union" not in kinds or len(symbols(gold) | symbols(answer)) < 2)
            return self.unordered(gold[1:], answer[1:]) if kinds[0] == kinds[1] or either else False
        if kinds == ("tuple", "tuple"):
            if len(gold) != len(answer) or (len(gold) == 5 and gold[1:3] != answer[1:3]):
                return False
            return self.ordered(gold[3:], answer[3:])
        if kinds == ("tuple", "list"):
            items = coordinates(answer)
            is_interval = gold[1:3] not in (("(", ")"), ("[", "]"), ("\\langle", "\\rangle"))
            return False if items is None or (is_interval and len(gold) == 5) else self.ordered(gold[3:], items)
        if kinds == ("list", "tuple"):
            if answer[1:3] not in (("(", ")"), ("[", "]")):
                return False
            named = all(is_equation(item) for item in gold[1:])
            return self.ordered(gold[1:], answer[3:]) if named else self.unordered(gold[1:], answer[3:])
        if "tuple" in kinds:
            return False
        if kinds[0] in ("list", "set") or kinds[1] in ("list", "set"):
            items = gold[1:] if kinds[0] in ("list", "set") else (gold,)
            others = answer[1:] if kinds[1] in ("list", "set") else (answer,)
            items, others = filled(items), filled(others)
            dots = any(item[0] == "dots" for item in (*items, *others))
            return self.ordered(items, others) if dots else self.unordered(items, others)
        if "ratio" in kinds:
            return self.ratios(gold, answer)
        if "base" in kinds:
            return bool(kinds == ("base", "base") and gold[1:] == answer[1:])
        if "dots" in kinds:
            return bool(kinds[0] == kinds[1])
        return self.values(gold, answer)

    def ordered(self, items: tuple[Node, ...], others: tuple[Node, ...]) -> bool | None:
        """Compares item by item."""
        return len(items) == len(others) and _all(self.equal(a, b) for a, b in zip(items, others, strict=True))

    def unordered(self, items: tuple[Node, ...], others: tuple[Node, ...]) -> bool | None:
        """Compares as sets: every item has its partner, in both directions."""
        items, others = tuple(dict.fromkeys(items)), tuple(dict.fromkeys(others))
        if items == others or not items or not others:
            return items == others
        if max(len(items), len(others)) > MAX_ITEMS:
            self.troubles.append("too many items")
            return None
        # Of conditions on several letters each is about its own.
        apart = all(item[0] == "rel" for item in (*items, *others)) and len(set().union(*map(symbols, items))) > 1
        table = [
            [symbols(a) == symbols(b) and self.equal(a, b) if apart else self.equal(a, b) for b in others]
            for a in items
        ]
        lines = [*table, *(list(column) for column in zip(*table, strict=True))]
        if all(True in line for line in lines):
            return True
        return None if all(True in line or None in line for line in lines) else False

    def matrices(self, gold: Node, answer: Node) -> bool | None:
        left, right = _rows(gold), _rows(answer)
        if gold[0] != answer[0]:
            # A vector may be written as a tuple or a list.
            matrix = left if gold[0] == "matrix" else right
            if len(left) == len(right) > 1:
                return _all(self.ordered(a, b) for a, b in zip(left, right, strict=True))
            is_vector = len(matrix) == 1 or all(len(row) == 1 for row in matrix)
            cells = [tuple(cell for row in rows for cell in row) for rows in (left, right)]
            return is_vector and self.ordered(*cells)
        if [len(row) for row in left] != [len(row) for row in right]:
            return False
        return _all(self.ordered(a, b) for a, b in zip(left, right, strict=True))

    def ratios(self, gold: Node, answer: Node) -> bool | None:
        left = gold[1:] if gold[0] == "ratio" else (gold, one)
        right = answer[1:] if answer[0] == "ratio" else (answer, one)
        if len(left) != len(right):
            return False
        cross = ((("mul", left[0], b), ("mul", right[0], a)) for a, b in zip(left[1:], right[1:], strict=True))
        return _all(self.values(a, b) for a, b in cross)

    # -- numbers and expressions

    def values(self, gold: Node, answer: Node) -> bool | None:
        unknown = False
        if self.marks:
            gold, answer = in_radians(gold), in_radians(answer)
        for a, b in readings(gold, answer):
            result = self.value(a, b)
            if result:
                return True
            unknown |= result is None
        return None if unknown else False

    def value(self, gold: Node, answer: Node) -> bool | None:
        if contains(gold, _NO_NUMBER) != contains(answer, _NO_NUMBER):
            return False
        try:
            left, right = exact(gold), exact(answer)
            if left is not None and left == right:
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
        if result is None and (contains(gold, _SYMBOLIC) or contains(answer, _SYMBOLIC)):
            self.methods.add("symbolic")
            from ba_eval.grade.math.symbolic import same_form

            result = same_form(gold, answer)
        if result is None:
            self.troubles.append("no point where both are defined")
        return result

    def within(self, gold: Node, answer: Node) -> bool:
        """The benchmark's own tolerance."""
        if self.absolute is None and self.relative is None:
            return False
        values = number(gold), number(answer)
        if None in values or None in (fractions := [as_fraction(v) for v in values]):
            return False
        left, right = fractions
        assert left is not None and right is not None
        if abs(left - right) > max(self.absolute or 0, (self.relative or 0) * abs(left)):
            return False
        self.methods.add("tolerance")
        return True

    def claimed(self, written: Node, other: Node) -> bool:
        """A decimal that claims many digits is an exact value when it is right in all of them."""
        literal, other_literal = decimal(written), decimal(other)
        if literal is None or literal[2] < MIN_DIGITS or (other_literal and other_literal[2] < literal[2]):
            return False
        value, step, digits = literal
        target = number(other, digits + 20)
        target = None if target is None else as_fraction(target)
        if target is None or target.denominator == 1:
            # A whole number has no digits to round: 24.9999999 is not 25.
            return False
        # Rounded or cut off at the last digit, or as good as a double that was printed in full.
        off = abs(value - target)
        rounded = off <= step / 2 or (off < step and abs(value) < abs(target))
        if not rounded and not (15 <= digits <= 17 and off <= abs(target) / 2**52):
            return False
        self.methods.add("digits")
        return True


def _all(results: Iterable[bool | None]) -> bool | None:
    unknown = False
    for result in results:
        if result is False:
            return False
        unknown |= result is None
    return None if unknown else True


def _is_region(node: Node) -> bool:
    if node[0] == "list":
        return any(item[0] == "rel" and item[1] in ORDER for item in node[1:])
    return node[0] in ("union", "inter", "minus") or node == ("sym", "mathbb R")


def _rows(node: Node) -> list[tuple[Node, ...]]:
    if node[0] == "matrix":
        return list(node[1])
    if node[0] == "tuple" and all(item[0] == "tuple" for item in node[3:]):
        return [tuple(item[3:]) for item in node[3:]]
    return [tuple(node[3:] if node[0] == "tuple" else node[1:] if node[0] == "list" else (node,))]
