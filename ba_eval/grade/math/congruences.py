r"""Residues of congruences: `x \equiv \pm 1 \pmod 8` says the same as `x \equiv 1, 7 \pmod 8`."""

from ba_eval.grade.math.exact import TooLarge, exact
from ba_eval.grade.math.forms import canonical, signs
from ba_eval.grade.math.tree import Node

Residues = tuple[Node | None, int, frozenset[int]]
"""(what is congruent, modulus, its residues)"""


def residues(node: Node) -> Residues | None:
    """Returns the residues that a congruence, or a list of them for one modulus, allows; None for another node.

    The modulus may stand behind the last one only. Several moduli are a system, which is not read here.
    """
    items = [variant for item in (node[1:] if node[0] == "list" else (node,)) for variant in signs(item)]
    if items[-1][0] != "mod":
        return None
    try:
        moduli = {exact(item[2]) for item in items if item[0] == "mod"}
        modulus = moduli.pop()
        if moduli or modulus is None or modulus.denominator != 1 or modulus < 1:
            return None
        named: Node | None = None
        found: set[int] = set()
        for item in items:
            value = item[1] if item[0] == "mod" else item
            if value[0] == "rel":
                if len(value) != 4 or value[1] != "=" or (named and canonical(value[2]) != named):
                    return None
                if named is None and found:
                    return None
                named, value = canonical(value[2]), value[3]
            number = exact(value)
            if number is None or number.denominator != 1:
                return None
            found.add(int(number % modulus))
    except TooLarge:
        return None
    return named, int(modulus), frozenset(found)
