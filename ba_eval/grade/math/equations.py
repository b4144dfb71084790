"""Equivalence of equations, assignments and inequalities."""

from fractions import Fraction
from typing import Protocol

from ba_eval.grade.math.exact import TooLarge
from ba_eval.grade.math.forms import assigned, canonical, is_equation
from ba_eval.grade.math.numeric import proportion, same
from ba_eval.grade.math.regions import same_region
from ba_eval.grade.math.tree import Node, mapped, operators, symbols, terms


class Comparing(Protocol):
    """What the comparison of relations needs from the comparison as a whole."""

    methods: set[str]
    troubles: list[str]

    def equal(self, gold: Node, answer: Node) -> bool | None: ...

    def ordered(self, items: tuple[Node, ...], others: tuple[Node, ...]) -> bool | None: ...


def same_relation(gold: Node, answer: Node, of: Comparing) -> bool | None:
    """Compares two answers of which at least one is a relation."""
    gold_equation, answer_equation = is_equation(gold), is_equation(answer)
    if gold_equation and answer_equation:
        return _equations(gold, answer, of)
    if gold_equation:
        value = assigned(gold)
        return False if value is None else of.equal(value, answer)
    if answer_equation:
        value = assigned(answer, loose=gold[0] != "rel")
        return False if value is None else of.equal(gold, value)
    left, right = _member_of(gold), _member_of(answer)
    if left is not None or right is not None:
        if left is not None and left[0] == "tuple" and answer[0] == "list":
            return False  # x in [2, 7] is an interval, whatever [2, 7] alone may be
        return of.equal(left or gold, right or answer)
    region = same_region(gold, answer)
    if region is not None:
        of.methods.add("region")
        return region
    if gold[0] == answer[0] == "rel":
        return _chains(gold, answer, of)
    sides = [_between(side) for side in (gold, answer)]
    return False if None in sides else of.equal(*sides)  # type: ignore[arg-type]


def _between(node: Node) -> Node | None:
    """Returns the interval that `a < x < b` says, with letters in its ends; an interval stays as it is."""
    if node[0] != "rel":
        return node if node[0] == "tuple" else None
    rising = _rising(node)
    if rising is None or len(rising[0]) != 2 or "=" in rising[0] or rising[1][1][0] != "sym":
        return None
    (low, high), (first, middle, last) = rising
    if middle[1] in symbols(first) | symbols(last):
        return None
    return ("tuple", "[" if low == "<=" else "(", "]" if high == "<=" else ")", first, last)


def _member_of(node: Node) -> Node | None:
    """Returns the set of `x in S`."""
    return node[3] if node[0] == "rel" and node[1] == "in" and len(node) == 4 else None


def _equations(gold: Node, answer: Node, of: Comparing) -> bool | None:
    left, right = _labelled(gold), _labelled(answer)
    if left and right:
        (name, value), (other, other_value) = left, right
        if canonical(name) == canonical(other):
            return of.equal(value, other_value)
        if _is_function(name) and _is_function(other):
            # f(n) = n is f(x) = x, and y = x; it is not g(x) = x.
            same = name[1] == other[1] or ("sym", "y") in (name, other)
            return of.equal(value, _renamed(other_value, other, name)) if same else False
        if (index := _index_letters(name, other)) is not None:
            # a_n = 2n + 1 is a_k = 2k + 1.
            return of.equal(value, _replaced(other_value, ("sym", index[1]), ("sym", index[0])))
        if name[0] == other[0] and name[0] in ("ratio", "tuple"):
            return of.equal(name, other) and of.equal(value, other_value)
    if len(gold) != 4 or len(answer) != 4:
        return of.ordered(tuple(terms(gold)), tuple(terms(answer)))
    if any(side[0] in ("list", "tuple", "set", "matrix", "union", "text") for side in (*gold[2:4], *answer[2:4])):
        straight = [of.equal(gold[2], answer[2]), of.equal(gold[3], answer[3])]
        crossed = [of.equal(gold[2], answer[3]), of.equal(gold[3], answer[2])]
        return any(all(pair) for pair in (straight, crossed))
    result = _proportional(_difference(gold), _difference(answer), False, of)
    implicit = "sym" not in (gold[2][0], gold[3][0])
    return True if result is False and implicit and _solves(gold, answer) else result


def _solves(equation: Node, solved: Node) -> bool:
    """Tells whether `solved` is the equation written for one of its letters, which stands in it to the first power.

    y = 6/x of xy = 6: it solves the equation, and as that is linear in the letter there is no other solution.
    """
    for name, value in ((solved[2], solved[3]), (solved[3], solved[2])):
        if name[0] != "sym" or name[1] in symbols(value) or name[1] not in symbols(equation):
            continue
        difference = _difference(equation)
        zero, one, two = (_replaced(difference, name, ("num", Fraction(n))) for n in range(3))
        try:
            if (
                same(_replaced(difference, name, value), ("num", Fraction(0)))
                and same(("add", zero, two), ("mul", ("num", Fraction(2)), one))
                and same(zero, one) is False
            ):
                return True
        except TooLarge:
            continue
    return False


def _replaced(node: Node, name: Node, value: Node) -> Node:
    return value if node == name else mapped(node, lambda part: _replaced(part, name, value))


def _labelled(node: Node) -> tuple[Node, Node] | None:
    value = assigned(node)
    if value is None:
        return None
    sides = terms(node)
    return (sides[0], value) if value is not sides[0] else (sides[1], value)


def _index_letters(name: Node, other: Node) -> tuple[str, str] | None:
    """Returns the letters that index one sequence: (n, k) of a_n and a_k."""
    if name[0] != "sym" or other[0] != "sym":
        return None
    (stem, _, index), (other_stem, _, other_index) = name[1].partition("_"), other[1].partition("_")
    letters = len(index) == len(other_index) == 1 and (index + other_index).isalpha()
    return (index, other_index) if stem == other_stem and letters else None


def _is_function(name: Node) -> bool:
    return name[0] == "call" or name == ("sym", "y")


def _renamed(value: Node, old: Node, new: Node) -> Node:
    """Renames the arguments of a function: f(n) = n + 1 says the same as f(x) = x + 1."""
    if old[0] != "call" or new[0] != "call" or len(old) != len(new):
        return value
    names = {a: b for a, b in zip(old[2:], new[2:], strict=True) if a[0] == "sym"}

    def rename(node: Node) -> Node:
        return names[node] if node in names else mapped(node, rename)

    return rename(value)


def _difference(node: Node) -> Node:
    return ("add", node[2], ("neg", node[3]))


def _proportional(a: Node, b: Node, positive: bool, of: Comparing) -> bool | None:
    """Tells whether a = k b for a constant k that is not zero (positive where the direction matters)."""
    if symbols(a) != symbols(b):
        return False
    of.methods.add("numeric")
    try:
        factor = proportion(a, b)
    except TooLarge as trouble:
        of.troubles.append(f"too large: {trouble}")
        return None
    if factor is None:
        of.troubles.append("no point where both are defined")
        return None
    return factor > 0 if positive else factor != 0


def _chains(gold: Node, answer: Node, of: Comparing) -> bool | None:
    """Inequalities in several variables: the same chain, or the same difference up to a positive factor."""
    left, right = _rising(gold), _rising(answer)
    if left is None or right is None or left[0] != right[0]:
        return False
    (signs, sides), (_, other_sides) = left, right
    if of.ordered(tuple(sides), tuple(other_sides)):
        return True
    if len(signs) != 1:
        return False
    a, b = (("add", s[0], ("neg", s[1])) for s in (sides, other_sides))
    return _proportional(a, b, signs != ["!="], of)


def _rising(node: Node) -> tuple[list[str], list[Node]] | None:
    """Writes a chain of inequalities with < and <= only."""
    signs, sides = operators(node), terms(node)
    if all(op in ("<", "<=", "=", "!=") for op in signs):
        return signs, sides
    if all(op in (">", ">=", "=") for op in signs):
        return [op.replace(">", "<") for op in reversed(signs)], sides[::-1]
    return None
