"""Reads an answer, in LaTeX or in plain notation, into a tree (see `tree`). Nothing is evaluated here."""

from typing import Any

from ba_eval.grade.math.atoms import multiply
from ba_eval.grade.math.commands import Commands
from ba_eval.grade.math.tokens import (
    CHANGED_BEFORE,
    CHANGED_BEHIND,
    CONSTANTS,
    DIVIDE,
    DOTS,
    FUNCTIONS,
    MULTIPLY,
    ORDER,
    RELATIONS,
    OverLimit,
    Unreadable,
)
from ba_eval.grade.math.tree import Node, is_whole

__all__ = ["CHANGED", "OverLimit", "Unreadable", "read"]

CHANGED = "words that change a value"
_SEPARATORS = {
    **dict.fromkeys((",", ";", "&", "\\\\"), ","),
    **dict.fromkeys(("and", "\\land", "\\wedge", "\\and"), "and"),
    **dict.fromkeys(("or", "\\lor", "\\vee"), "or"),
}
_CLOSERS = frozenset(
    (")", "]", "}", "\\}", "\\rangle", "\\rfloor", "\\rceil", "\\rvert", "\\rbrace", "\\rbrack", "\\end")
)


def read(text: str) -> Node:
    """Returns the tree of a cleaned answer; raises Unreadable."""
    reader = _Reader(text)
    node = reader.collection(top=True)
    if reader.peek() in ("\\choose", "\\over"):
        reader = _Reader("{" + text + "}")
        node = reader.collection(top=True)
    if not reader.done():
        raise Unreadable(f"unexpected {reader.peek()[:20]!r}")
    return node


class _Reader(Commands):
    # -- collections and relations

    def collection(self, top: bool = False) -> Node:
        """Items between separators: one node, or a list; `a, b; c, d` is a list of pairs."""
        groups: list[list[Node]] = [[]]
        semicolons = False
        words: set[str] = set()
        while True:
            if self.peek() == ";" and groups[-1]:
                groups.append([])
                semicolons = True
            if word := self.separator():
                words.add(word)
                continue
            if self.done() or (not top and self.peek() in _CLOSERS):
                break
            groups[-1].append(self.relation())
            if self.peek() == ";":
                continue
            if not (word := self.separator()):
                break
            words.add(word)
        groups = [group for group in groups if group]
        if not groups:
            raise Unreadable("empty")
        if semicolons and any(len(group) > 1 for group in groups) and len(groups) > 1:
            return ("list", *(("tuple", "(", ")", *g) if len(g) > 1 else g[0] for g in groups))
        items = [item for group in groups for item in group]
        if len(items) == 1:
            return items[0]
        if all(item[0] == "rel" for item in items) and any(item[1] in ORDER for item in items):
            # Conditions that are joined in words hold together, or one of them does.
            joined = words & {"and", "or"}
            return ({"or": "union", "and": "inter"}[joined.pop()] if len(joined) == 1 else "list", *items)
        return ("list", *items)

    def separator(self) -> str:
        """Reads what separates two items; returns it as `and`, `or` or a comma, an empty text where there is none."""
        token = self.peek().lower()
        if token in _SEPARATORS and not self.done():
            self.at += 1
            return _SEPARATORS[token]
        if self.connective():
            self.at += 1
            words = " ".join(self.take_group()).lower()
            return "or" if "or" in words else "and" if "and" in words else ","
        return ""

    def relation(self) -> Node:
        parts: list[Any] = [self.sets()]
        while not self.done():
            token = self.peek()
            if token == ":" and self.ratios:
                self.at += 1
                right = self.sets()
                last = parts[-1]
                parts[-1] = (*last, right) if last[0] == "ratio" else ("ratio", last, right)
                continue
            operator = RELATIONS.get(token)
            if operator is None:
                break
            self.at += 1
            if operator in ("<", ">") and self.accept("="):
                operator += "="
            parts += [operator, self.sets()]
        node: Node = parts[0] if len(parts) == 1 else ("rel", parts[1], parts[0], parts[2], *parts[3:])
        if self.accept("\\pmod", "\\mod", "\\bmod"):
            node = ("mod", node, self.group() if self.peek() == "{" else self.atom())
        return node

    def sets(self) -> Node:
        left = self.sum()
        while True:
            if self.accept("\\cup", "\\bigcup") or (left[0] in ("tuple", "union", "set") and self.accept("U")):
                right = self.sum()
                left = (*left, right) if left[0] == "union" else ("union", left, right)
            elif self.accept("\\cap"):
                left = ("inter", left, self.sum())
            elif self.accept("\\setminus", "\\backslash"):
                left = ("minus", left, self.sum())
            else:
                return left

    # -- arithmetic

    def sum(self) -> Node:
        with self:
            parts = [self.signed()]
            while True:
                token = self.peek()
                if self.done() or (token not in ("+", "-", "\\pm", "\\mp") and token not in DOTS):
                    break
                self.at += 1
                if token in DOTS:
                    parts.append(("dots",))
                elif token == "+":
                    parts.append(self.signed())
                elif token == "-":
                    parts.append(("neg", self.signed()))
                else:
                    parts.append(("pm", 1 if token == "\\pm" else -1, self.signed()))
        return parts[0] if len(parts) == 1 else ("add", *parts)

    def signed(self) -> Node:
        with self:
            if self.accept("+"):
                return self.signed()
            if self.accept("-"):
                return ("neg", self.signed())
            if self.peek() in ("\\pm", "\\mp"):
                return ("pm", 1 if self.take() == "\\pm" else -1, self.signed())
            if self.peek() in DOTS:
                self.at += 1
                return ("dots",)
            return self.product()

    def product(self) -> Node:
        left = self.power()
        while not self.done():
            token = self.peek()
            if token in MULTIPLY:
                self.at += 1
                left = _times(left, self.factor())
            elif token in DIVIDE:
                self.at += 1
                right = self.factor()
                left = ("unit", left, right[1]) if right[0] == "text" else ("div", left, right)
            elif self.starts_factor():
                left = self.beside(left)
            else:
                break
        return left

    def beside(self, left: Node) -> Node:
        """A factor without a sign between: a product, a mixed number (1 4/5), or a unit."""
        number = self.kind() == "num"
        right = self.power()
        mark = right[0] if right[0] in ("percent", "deg") else ""
        part = right[1] if mark else right
        if is_whole(left) and part[0] == "div" and is_whole(part[1]) and is_whole(part[2]):
            return (mark, ("add", left, part)) if mark else ("add", left, part)
        if number and left[0] in ("num", "dec"):
            if is_whole(left) and is_whole(right) and self.accept("/"):
                below = self.power()
                if is_whole(below):
                    return ("add", left, ("div", right, below))
            raise Unreadable("two numbers in a row")
        return _times(left, right)

    def factor(self) -> Node:
        with self:
            if self.accept("-"):
                return ("neg", self.factor())
            if self.accept("+"):
                return self.factor()
            return self.power()

    def power(self) -> Node:
        with self:
            return self.raised(self.postfix(self.atom()))

    def raised(self, base: Node) -> Node:
        while not self.done():
            if self.accept("'"):
                base = _primed(base)
            elif self.accept("\\degree"):
                base = ("deg", base)
            elif self.accept("^", "**"):
                if self.mark("\\circ"):
                    base = ("deg", base)
                elif self.mark("\\prime"):
                    base = _primed(base)
                else:
                    base = self.postfix(("pow", base, self.exponent()))
            else:
                break
        return base

    def mark(self, command: str) -> bool:
        """Accepts a superscript that is a mark and no exponent: \\circ, {\\circ}, {\\prime\\prime}."""
        if self.accept(command):
            return True
        words = self.text_ahead()
        if words and not words.replace(command, "").strip():
            self.take_group()
            return True
        return False

    def exponent(self) -> Node:
        with self:
            if self.peek() == "{":
                return self.group()
            if self.accept("-"):
                return ("neg", self.exponent())
            if self.accept("+"):
                return self.exponent()
            if self.kind() == "word" and self.peek() not in CONSTANTS and self.peek() not in FUNCTIONS:
                self.split(self.peek()[0])
            node = self.atom()
            if self.accept("^", "**"):
                node = ("pow", node, self.exponent())
            return node

    def postfix(self, node: Node) -> Node:
        while True:
            if self.peek() == "!" and self.peek(1) != "=":
                self.at += 1
                double = self.peek() == "!" and not self.spaced()
                self.at += double
                node = ("fact2" if double else "fact", node)
            elif self.percent():
                node = ("percent", node)
            else:
                return node


def _times(left: Node, right: Node) -> Node:
    """Returns the product; words beside a value are its unit, words before it a remark."""
    words = right[1] if right[0] == "pow" and right[1][0] == "text" else right
    if (words[0] == "text" and CHANGED_BEHIND.search(words[1])) or (
        left[0] == "text" and CHANGED_BEFORE.search(left[1])
    ):
        raise Unreadable(CHANGED)
    if left[0] == "unit" and right[0] in ("num", "dec", "div"):
        raise Unreadable("words between two values")
    if words[0] == "text":
        return left if left[0] == "text" else ("unit", left, words[1])
    if left[0] == "text":
        return right
    return multiply(left, right)


def _primed(node: Node) -> Node:
    if node[0] == "sym":
        return ("sym", node[1] + "'")
    if node[0] == "call":
        return ("call", node[1] + "'", *node[2:])
    if node[0] in ("num", "dec", "unit", "deg"):
        return ("unit", node, "prime")
    raise Unreadable("a prime")
