r"""Families of answers: sets `\{k\pi \mid k \in \mathbb{Z}\}`, and the letters of arbitrary constants."""

import re

from ba_eval.grade.math.tree import Node, renamed, symbols, terms

_SET = re.compile(r"(?:[a-z]\s*\\in\s*)?\\\{((?:(?!\\[{}]).)*)\\\}", re.S)
_BAR = re.compile(r"\\mid(?![a-z])|[|:]")
_WHOLE = r"([a-z])\s*\\in\s*\\mathbb\s*\{?\s*Z\s*\}?"
_DECLARED = re.compile(rf"\s*{_WHOLE}\s*")
_BEHIND = re.compile(
    r"[\s,;(]*(?:\\text\s*\{[\s,]*(?:where|with|for(?: all| any| every| some)?)?\s*\})?\s*"
    rf"(?:\\forall\s*)?{_WHOLE}\s*\)?\s*"
)
_EQUATION = re.compile(rf"\s*([a-z])\s*(=.*?)\s*,\s*{_WHOLE}\s*", re.S)


def members(text: str, other: str, condition: str) -> str:
    r"""Returns k\pi of `\{k\pi \mid k \in \mathbb{Z}\}` where the other side says the same of its letter.

    `other` is the other side, `condition` what was cut from it: `, k \in \mathbb{Z}`.
    """
    found = _SET.fullmatch(text)
    if found is None or "\\{" in other or not _BEHIND.fullmatch(condition):
        return text
    parts = _BAR.split(found[1])
    if len(parts) != 2:
        return text
    element, said = parts
    if declared := _DECLARED.fullmatch(said):
        letter = declared[1]
    elif (equation := _EQUATION.fullmatch(said)) and equation[1] == element.strip():
        element, letter = equation[1] + equation[2], equation[3]
    else:
        return text
    return element.strip() if re.search(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])|(?<=\d){letter}", element) else text


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
    plain = " " + " ".join(re.sub(r"\\(?:text|mathrm|mbox)\s*\{|[{}$]", " ", condition).split())
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


def _is_added(node: Node, letter: str) -> bool:
    side = terms(node)[-1] if node[0] == "rel" else node
    if side[0] != "add" or side.count(("sym", letter)) != 1:
        return False
    rest = set().union(*(symbols(part) for part in side[1:] if part != ("sym", letter)))
    return letter not in rest and bool(rest & _VARIABLES)
