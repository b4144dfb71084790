r"""Vectors as sums of unit vectors: `3\mathbf{i} - 4\mathbf{j}` is the tuple (3, -4)."""

from fractions import Fraction

from ba_eval.grade.math.tree import Node, children, one

_UNITS = {("sym", f"unit {letter}"): place for place, letter in enumerate("ijk")}
_LETTERS: dict[Node, int] = {("const", "i"): 0, ("sym", "j"): 1, ("sym", "k"): 2}
_zero: Node = ("num", Fraction(0))


def has_units(node: Node) -> bool:
    """Tells whether unit vectors occur."""
    return node in _UNITS or any(map(has_units, children(node)))


def in_components(gold: Node, answer: Node) -> tuple[Node, Node]:
    """Writes both sides as tuples of one length; a side that is no sum of unit vectors stays as it is."""
    sides = [_components(node) or node for node in (gold, answer)]
    longest = max(len(side) for side in sides if side[0] == "tuple") if any(s[0] == "tuple" for s in sides) else 0
    padded = [(*side, *[_zero] * (longest - len(side))) if side[0] == "tuple" else side for side in sides]
    return padded[0], padded[1]


def _components(node: Node) -> Node | None:
    found: dict[int, Node] = {}
    for term in node[1:] if node[0] == "add" else (node,):
        component = _component(term)
        if component is None or component[0] in found:
            return None
        found[component[0]] = component[1]
    return ("tuple", "(", ")", *(found.get(place, _zero) for place in range(max(2, max(found) + 1))))


def _component(term: Node) -> tuple[int, Node] | None:
    """Returns (axis, coefficient) of one term."""
    place = _UNITS.get(term, _LETTERS.get(term))
    if place is not None:
        return place, one
    if term[0] in ("neg", "div") and (inner := _component(term[1])):
        return inner[0], (term[0], inner[1], *term[2:])
    if term[0] == "mul":
        axes = [factor for factor in term[1:] if factor in _UNITS or factor in _LETTERS]
        if len(axes) == 1:
            place = _UNITS.get(axes[0], _LETTERS.get(axes[0]))
            assert place is not None
            return place, ("mul", *(factor for factor in term[1:] if factor is not axes[0]))
    return None
