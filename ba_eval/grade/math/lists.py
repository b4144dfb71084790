"""Lists with dots, lists of points, and the letters that count solutions."""

from fractions import Fraction

from ba_eval.grade.math.exact import TooLarge, exact
from ba_eval.grade.math.forms import assigned
from ba_eval.grade.math.tree import Node, children, renamed, symbols

_MOST = 200
PARAMETERS = frozenset("kmnlj")
_PI = ("const", "pi")


def filled(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """Writes out 1, 3, ..., 9 where the numbers before the dots and the last ones are in arithmetic progression."""
    places = [i for i, item in enumerate(items) if item[0] == "dots"]
    if len(places) != 1 or not 2 <= places[0] < len(items) - 1:
        return items
    try:
        known = [exact(item) for item in (*items[: places[0]], *items[places[0] + 1 :])]
    except TooLarge:
        return items
    values = [value for value in known if value is not None]
    if len(values) < len(known):
        return items
    step = values[1] - values[0]
    if (
        not step
        or not 0 < (values[-1] - values[0]) / step < _MOST
        or ((values[-1] - values[0]) / step).denominator != 1
    ):
        return items
    whole = [values[0] + i * step for i in range(int((values[-1] - values[0]) / step) + 1)]
    if (
        whole[: places[0]] != values[: places[0]]
        or whole[len(whole) - len(values) + places[0] :] != values[places[0] :]
    ):
        return items
    return tuple(("num", Fraction(value)) for value in whole)


def is_list_of_points(node: Node) -> bool:
    """Tells whether a node is a list of tuples of one length."""
    return (
        node[0] in ("list", "set")
        and len({len(item) for item in node[1:] if item[0] == "tuple"}) == 1
        and all(item[0] == "tuple" for item in node[1:])
    )


def points(node: Node) -> Node:
    """Returns the list of tuples that x = 1, y = 2, x = 2, y = 1 says; another node as it is."""
    if node[0] != "list" or not all(item[0] == "rel" and len(item) == 4 and item[1] == "=" for item in node[1:]):
        return node
    names = [item[2] for item in node[1:]]
    period = len(dict.fromkeys(names))
    if period < 2 or len(names) % period or names != names[:period] * (len(names) // period):
        return node
    values = [assigned(item) for item in node[1:]]
    if any(value is None for value in values):
        return node
    groups = (values[i : i + period] for i in range(0, len(values), period))
    return ("list", *(("tuple", "(", ")", *group) for group in groups))


def coordinates(node: Node) -> tuple[Node, ...] | None:
    """Returns the items of a list that can be a point's coordinates, x before y; None where it names alternatives."""
    items = node[1:]
    names = [item[2][1] for item in items if item[0] == "rel" and item[1] == "=" and item[2][0] == "sym"]
    if names and (len(names) < len(items) or len(set(names)) < len(names)):
        return None
    if set(names) <= {"x", "y", "z"} and len(names) == len(items):
        return tuple(item for _, item in sorted(zip(names, items, strict=True)))
    return items


def same_parameter(gold: Node, answer: Node) -> Node:
    """Returns the answer with the gold's letter for the whole number that counts solutions: k pi is n pi."""
    mine, others = symbols(gold) - symbols(answer), symbols(answer) - symbols(gold)
    if len(mine) != 1 or len(others) != 1 or not mine | others <= PARAMETERS:
        return answer
    if not has_pi(gold) or not has_pi(answer):
        return answer
    return renamed(answer, ("sym", others.pop()), ("sym", mine.pop()))


def has_pi(node: Node) -> bool:
    """Tells whether pi or a degree sign occurs."""
    return node == _PI or node[0] == "deg" or any(map(has_pi, children(node)))
