r"""Families of answers: sets `\{k\pi \mid k \in \mathbb{Z}\}`, and the letters of arbitrary constants."""

import re
from collections.abc import Iterator
from fractions import Fraction

from ba_eval.grade.math.exact import TooLarge, exact
from ba_eval.grade.math.tree import Node, children, renamed, symbols, terms

_SET = re.compile(r"(?:[a-z]\s*\\in\s*)?\\\{((?:(?!\\[{}]).)*)\\\}", re.S)
_BAR = re.compile(r"\\mid(?![a-z])|[|:]")
_WHOLE = r"([a-z])\s*\\in\s*\\mathbb\s*\{?\s*Z\s*\}?"
_DECLARED = re.compile(rf"\s*{_WHOLE}\s*")
_BEHIND = re.compile(
    r"[\s,;(]*(?:\\text\s*\{[\s,]*(?:where|with|for(?: all| any| every| some)?)?\s*\})?\s*"
    rf"(?:\\forall\s*)?{_WHOLE}\s*\)?\s*"
)
_EQUATION = re.compile(rf"\s*([a-z])\s*(=.*?)\s*,\s*{_WHOLE}\s*", re.S)


Part = tuple[str, str]
"""(answer, what was cut from it: `, k \\in \\mathbb{Z}`)"""


def members(gold: Part, answer: Part) -> tuple[Part, Part]:
    r"""Returns k\pi of `\{k\pi \mid k \in \mathbb{Z}\}`, with its condition, where the other side is a family too."""
    found = [_member(text) for text, _ in (gold, answer)]
    families = [member or _BEHIND.fullmatch(part[1]) for member, part in zip(found, (gold, answer), strict=True)]
    return (found[0] if found[0] and families[1] else gold), (found[1] if found[1] and families[0] else answer)


def _member(text: str) -> Part | None:
    found = _SET.fullmatch(text)
    parts = _BAR.split(found[1]) if found else []
    if len(parts) != 2:
        return None
    element, said = parts
    if declared := _DECLARED.fullmatch(said):
        letter = declared[1]
    elif (equation := _EQUATION.fullmatch(said)) and equation[1] == element.strip():
        element, letter = equation[1] + equation[2], equation[3]
    else:
        return None
    if not re.search(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])|(?<=\d){letter}", element):
        return None
    return element.strip(), rf", {letter} \in \mathbb{{Z}}"


_INTEGER = (
    re.compile(r"\s*(?:(?:where|with|for|and)\s+)?([a-z])\s+(?:is|being|denotes)\s+(?:an?|any)\s+integer\W*"),
    re.compile(r"\s*(?:(?:where|with|for|and)\s+)?(?:an?|any|all|every|each|some)\s+integers?\s+([a-z])\W*"),
)
_SHIFTS = tuple((sign, by) for sign in (1, -1) for by in (0, 1, -1, 2, -2))


def _unmarked(condition: str) -> str:
    """Returns a condition with blanks in the place of what sets its words apart in LaTeX."""
    return re.sub(r"\\(?:text|mathrm|mbox)\s*\{|[{}$]", " ", condition)


def index(condition: str) -> str | None:
    """Returns the letter that a condition calls any whole number, and nothing more."""
    if behind := _BEHIND.fullmatch(condition):
        return behind[1]
    plain = " ".join(re.sub(r"[,;()]", " ", _unmarked(condition)).split())
    return next((match[1] for pattern in _INTEGER if (match := pattern.fullmatch(plain))), None)


_SETS = (
    (re.compile(r"\\mathbb\s*\{?\s*Z\s*(?![}\s^_{]*[+>\d\\*-])"), "integer"),
    (re.compile(r"\\mathbb\s*\{?\s*(?:N|Z\s*\}?\s*[\^_]\s*\{?\s*\+|Z\s*\}?\s*[\^_]\s*\{?\s*\\?(?:ge|>))"), "natural"),
    (re.compile(r"(?:positive|non-?\s?negative)\s+(?:integers?|whole)|natural\s+numbers?", re.I), "natural"),
    (re.compile(r"(?<!positive )(?<!negative )(?<!nonzero )\bintegers?\b", re.I), "integer"),
)


def other_numbers(gold_condition: str, condition: str) -> bool:
    """Tells whether one side lets its letter be any integer and the other only a natural number."""
    kinds = [
        {kind for pattern, kind in _SETS if pattern.search(text)}
        if not re.search(r"[<>\d]|\\(?:[lg]eq?|neq?)(?![a-z])", text)
        else set()
        for text in (gold_condition, condition)
    ]
    return all(len(kind) == 1 for kind in kinds) and kinds[0] != kinds[1]


_NATURAL = re.compile(_BEHIND.pattern.replace("Z", "N"))


def same_family(gold: Node, answer: Node, gold_condition: str, condition: str) -> Iterator[Node]:
    """Yields what the answer says with the gold's letter for any whole number: 2k - 1, 2k + 1, 1 - 2k of 2n - 1."""
    naturals = [_NATURAL.fullmatch(text) for text in (gold_condition, condition)]
    if naturals[0] and naturals[1] and naturals[0][1] not in symbols(answer):
        yield renamed(answer, ("sym", naturals[1][1]), ("sym", naturals[0][1]))
    letter, other = index(gold_condition), index(condition)
    if letter is None or other is None or letter not in symbols(gold) or other not in symbols(answer):
        return
    if (letter != other and letter in symbols(answer)) or _is_indexed(gold, letter) or _is_indexed(answer, other):
        return
    for sign, by in _SHIFTS:
        shifted: Node = ("add", ("mul", ("num", Fraction(sign)), ("sym", letter)), ("num", Fraction(by)))
        yield renamed(answer, ("sym", other), shifted)


def _is_indexed(node: Node, letter: str) -> bool:
    """Tells whether the letter numbers something by name, as in a_k and f(k)."""
    if node[0] == "sym":
        return bool(re.search(rf"_.*{letter}", node[1]))
    if node[0] == "call" and letter in symbols(node):
        return True
    return any(_is_indexed(part, letter) for part in children(node))


_QUALIFIED = re.compile(
    r"positive|negative|zero|integer|natural|rational|fixed|given|distinct|\\mathbb\s*\{?\s*[NZQ]|[<>]|\d|"
    r"\\(?:[lg]e|[lg]eq|ne|neq|[lg]t|[lg]eqslant)(?![a-z])|\b(?:odd|even|prime|except|not)\b"
)
_CONSTANTS = (
    re.compile(r"\b([A-Za-z])\s+(?:is|being|denotes)\s+(?:an?\s+|any\s+|some\s+)?(?:\w+\s+){0,2}constant\b"),
    re.compile(r"\b(?:any|arbitrary|some|all|every|a)\s+(?:\w+\s+){0,2}constants?\s+([A-Za-z])(?![A-Za-z])"),
    re.compile(r"\b(?:any|every|all|arbitrary)\s+([A-Za-z])\s*\\in\s*\\mathbb\s*[RC]\b"),
    re.compile(r"[\s,;(](?:\\forall\s*)?([A-Za-z])\s*\\in\s*\\mathbb\s*[RC]\s*\)?\s*$"),
)
_VARIABLES = frozenset("xyzt") | {"theta", "phi"}
_CUSTOMARY = re.compile(r"[cCkK](?:_\d)?")
"""Letters of constants that need no word about them; another may be one that the problem gives."""


def constant(condition: str) -> str | None:
    """Returns the letter that the condition behind a gold calls an arbitrary constant, and no more than that."""
    plain = " " + " ".join(_unmarked(condition).split())
    if _QUALIFIED.search(plain):
        return None
    letters = {match[1] for pattern in _CONSTANTS for match in pattern.finditer(plain)}
    letter = letters.pop() if len(letters) == 1 else None
    return None if letter in _VARIABLES else letter


def same_constant(gold: Node, answer: Node, named: str | None, condition: str) -> Node:
    """Returns the answer with the gold's letter for an arbitrary constant: c x is k x, and F(x) + K is F(x) + C.

    The gold's condition names the constant, or it is a capital C that is added to a function of a variable.
    `condition` is what the answer says of its letters; one that is bound to more than a number is kept.
    """
    mine, others = symbols(gold) - symbols(answer), symbols(answer) - symbols(gold)
    if len(mine) != 1 or len(others) != 1 or _QUALIFIED.search(condition):
        return answer
    letter, other = mine.pop(), others.pop()
    if not _CUSTOMARY.fullmatch(other) and constant(condition) != other:
        return answer
    if letter != named and not (letter == "C" and _is_added(gold, letter) and _is_added(answer, other)):
        return answer
    return renamed(answer, ("sym", other), ("sym", letter))


def as_residue(node: Node, other: Node, condition: str) -> Node:
    """Writes 7k + 3, for any whole number k, as 3 modulo 7 where the other side is a congruence."""
    letter = index(condition)
    value = terms(node)[-1] if node[0] == "rel" else node
    if other[0] != "mod" or letter is None or symbols(value) != {letter}:
        return node
    try:
        first, second, third = (exact(renamed(value, ("sym", letter), ("num", Fraction(k)))) for k in range(3))
    except TooLarge:
        return node
    if first is None or second is None or third is None or third - second != second - first:
        return node
    step = abs(second - first)
    return ("mod", ("num", first), ("num", step)) if step and step.denominator == 1 else node


def antiderivatives(gold: Node, answer: Node) -> tuple[Node, Node] | None:
    """Returns the growth of both from one point to another where a free constant is added to each: F(x) + C.

    They have the same derivative where they grow alike.
    """
    letters = [letter for letter in ("C", "c", "K", "k") if _is_added(gold, letter) and _is_added(answer, letter)]
    variables = (symbols(gold) | symbols(answer)) & _VARIABLES
    if len(letters) != 1 or len(variables) != 1 or "rel" in (gold[0], answer[0]):
        return None
    here, there = ("sym", variables.pop()), ("sym", "x_0")
    gold, answer = (("add", node, ("neg", renamed(node, here, there))) for node in (gold, answer))
    return gold, answer


def _is_added(node: Node, letter: str) -> bool:
    side = terms(node)[-1] if node[0] == "rel" else node
    if side[0] != "add" or side.count(("sym", letter)) != 1:
        return False
    rest = set().union(*(symbols(part) for part in side[1:] if part != ("sym", letter)))
    return letter not in rest and bool(rest & _VARIABLES)
