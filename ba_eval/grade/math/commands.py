r"""Reads LaTeX commands: fractions, brackets, sets, environments, sums, styled text."""

import re
from fractions import Fraction

from ba_eval.grade.math.atoms import Atoms, multiply
from ba_eval.grade.math.tokens import (
    BIG,
    CONSTANTS,
    DECORATED,
    DIVIDE,
    DOTS,
    FUNCTIONS,
    GREEK,
    MULTIPLY,
    NAMED_ELSEWHERE,
    RELATIONS,
    STYLED,
    TEXT,
    Unreadable,
    names,
)
from ba_eval.grade.math.tree import Node, one, renamed, symbols

_ENVIRONMENTS = names("pmatrix bmatrix matrix array vmatrix smallmatrix Bmatrix")
_ALIGNED = names("aligned align align* alignedat gathered gather gather* split eqnarray equation equation*")
_VECTORS = names("mathbf boldsymbol bm hat widehat vec", "\\")
_BETWEEN = {
    "lfloor": ("\\rfloor", "floor"),
    "lceil": ("\\rceil", "ceil"),
    "lvert": ("\\rvert", "abs"),
    "lVert": ("\\rVert", "abs"),
    "|": ("\\|", "abs"),
}


def _mark(token: str) -> str:
    """Returns the name of an accent; some have two."""
    wide = {"overline": "bar", "widehat": "hat", "widetilde": "tilde", "overrightarrow": "vec"}
    return wide.get(token[1:], token[1:])


def _integrand(body: Node) -> tuple[Node, Node] | None:
    """Returns (integrand, variable) of what stands behind an integral sign: f(x) dx, dx/f(x), sin x dx."""
    if body[0] == "div" and (above := _integrand(body[1])) is not None:
        return ("div", above[0], body[2]), above[1]
    if body[0] == "mul" and len(body) > 2 and body[-2] == ("sym", "d") and body[-1][0] == "sym":
        before = body[1:-2]
        return (("mul", *before) if len(before) > 1 else before[0] if before else one), body[-1]
    if body[0] in ("fn", "mul") and isinstance(body[-1], tuple) and (last := _integrand(body[-1])) is not None:
        return (*body[:-1], last[0]), last[1]
    return None


class Commands(Atoms):
    """The part of the grammar that starts with a backslash."""

    def command(self) -> Node:
        token = self.take()
        name = token[1:]
        if name == "frac":
            return ("div", self.argument(), self.argument())
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name in ("imath", "jmath"):
            return ("const", "i")
        if name == "binom":
            return ("fn", "binomial", self.argument(), self.argument())
        if name in ("angle", "triangle", "measuredangle"):
            return ("sym", f"angle {self.run_of_letters()}")
        if name in FUNCTIONS:
            return self.function(name)
        if name in GREEK:
            return self.symbol({"varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta"}.get(name, name))
        if name in _BETWEEN:
            return self.between(*_BETWEEN[name])
        if name in ("{", "lbrace"):
            return self.braces()
        if name == "lbrack":
            self.at -= 1
            self.tokens[self.at] = ("op", "[", False)
            return self.bracketed()
        if name == "langle":
            with self:
                inner = self.collection()
            self.expect("\\rangle")
            return ("tuple", "(", ")", *(inner[1:] if inner[0] == "list" else (inner,)))
        if name == "begin":
            return self.environment()
        if token in TEXT or token in STYLED:
            return self.styled(token)
        if name in ("emptyset", "varnothing"):
            return ("set",)
        if token in DOTS:
            return ("dots",)
        if token in BIG:
            return self.big(name)
        if name.isalpha() and self.peek() not in ("{", "["):
            # A command that is not known stands for itself, as any letter does.
            return self.symbol(name)
        raise Unreadable(f"the command {token[:20]!r}")

    def big(self, name: str) -> Node:
        """A sum, product, integral or limit."""
        lower: Node = ("dots",)
        upper: Node = ("dots",)
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                lower = self.group() if self.peek() == "{" else self.argument()
            else:
                upper = self.exponent()
        with self:
            body = self.power()
            while self.starts_factor() or self.peek() in MULTIPLY or (name != "prod" and self.peek() in DIVIDE):
                if self.peek() in DIVIDE:
                    self.at += 1
                    body = ("div", body, self.power())
                    continue
                if self.peek() in MULTIPLY:
                    self.at += 1
                body = multiply(body, self.power())
        if lower[0] == "rel" and lower[2] == ("const", "i"):
            # The index i is no imaginary unit.
            lower, body = (renamed(node, ("const", "i"), ("sym", "i")) for node in (lower, body))
        if name == "int" and (found := _integrand(body)) is not None:
            return ("big", name, lower, upper, *found)
        return ("big", name, lower, upper, body)

    def run_of_letters(self) -> str:
        if self.peek() == "{":
            return "".join(self.take_group())
        letters: list[str] = []
        while self.kind() == "word" or (letters and self.peek() == "_"):
            letters.append("_" + self.subscript() if self.peek() == "_" else self.take())
        return "".join(letters)

    def braces(self) -> Node:
        """A set: its elements, or the condition of {x | condition}."""
        with self:
            if self.accept("\\}", "\\rbrace"):
                return ("set",)
            bars, self.bars = self.bars, 1
            self.ratios = False
            inner = self.collection()
            self.ratios = True
            condition = self.accept("|", ":", "\\mid")
            if condition:
                inner = _builder(inner, self.collection())
            self.bars = bars
        self.expect("\\}", "\\rbrace")
        if condition:
            return inner
        return ("set", *(inner[1:] if inner[0] == "list" else (inner,)))

    def environment(self) -> Node:
        name = "".join(self.take_group())
        if name in _ALIGNED:
            return self.aligned()
        if name not in _ENVIRONMENTS and name != "cases":
            raise Unreadable(f"the environment {name[:20]!r}")
        if name == "array" and self.peek() == "{":
            self.take_group()
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        while self.peek() != "\\end":
            if self.accept("\\\\"):
                rows += [tuple(row)] if row else []
                row = []
            elif not self.accept("&", "\\hline", ",", ";"):
                with self:
                    row.append(self.relation())
        self.expect("\\end")
        self.take_group()
        rows += [tuple(row)] if row else []
        if not rows:
            raise Unreadable("an empty matrix")
        if name == "cases":  # of a function: each value with its condition; else the equations of a system
            pairs = [(("tuple", "{", "}", r[0], _told(r[1])),) if len(r) == 2 and r[0][0] != "rel" else r for r in rows]
            return ("list", *(item for r in pairs for item in r))
        matrix: Node = ("matrix", tuple(rows))
        return ("fn", "det", matrix) if name == "vmatrix" else matrix

    def aligned(self) -> Node:
        """Of a derivation the last line counts: `x &= 2 + 3 \\\\ &= 5` says 5. Letters with a value each are a list."""
        start = self.at
        end = start
        while self.peek(end - start) != "\\end":
            if end >= len(self.tokens):
                raise Unreadable("an open environment")
            end += 1
        lines = [start]
        lines += [i + 1 for i in range(start, end) if self.tokens[i][1] == "\\\\" and i + 1 < end]
        named = [
            self.tokens[i][1] for i in lines if self.tokens[i][0] == "word" and self.tokens[i + 1][1] in ("=", "&")
        ]
        if len(lines) > 1 and len(set(named)) == len(lines):
            self.tokens[start:end] = [t for t in self.tokens[start:end] if t[1] != "&"]
            node = self.collection()
            self.expect("\\end")
            self.take_group()
            return node
        self.tokens[lines[-1] : end] = [t for t in self.tokens[lines[-1] : end] if t[1] not in ("&", "\\\\")]
        self.at = lines[-1]
        self.accept("=")
        node = self.relation()
        self.accept(".", ",")
        self.expect("\\end")
        self.take_group()
        return node

    def number_set(self, letter: str) -> Node:
        r"""Reads what follows `\mathbb{R}`: ^+, ^*, _{>0}, _{\ge 0}; positive reals are the interval that they are."""
        marks = {"+": ">", "-": "<", "*": "!=", "\\ast": "!=", "\\times": "!="}
        start = self.at
        if self.peek() in ("^", "_"):
            self.at += 1
            inner = self.take_group() if self.peek() == "{" else [self.take()]
            sign = marks.get(inner[0]) if len(inner) == 1 else None
            if inner[1:] == ["0"] and inner[0] in RELATIONS:
                sign = RELATIONS[inner[0]]
            if sign is not None:
                if letter != "R":
                    return ("sym", f"mathbb {letter} {sign}")
                return ("rel", sign, ("sym", "x"), ("num", Fraction(0)))
            self.at = start
        return ("sym", f"mathbb {letter}")

    def styled(self, token: str) -> Node:
        if self.peek() != "{":
            if token in TEXT:
                raise Unreadable("text without a group")
            if token in DECORATED and (self.kind() == "word" or self.peek()[1:] in GREEK):  # \\vec v
                if self.kind() == "word":
                    self.split(self.peek()[0])
                return self.symbol(f"{_mark(token)} {self.take()}")
            return self.number_set(self.take()) if token == "\\mathbb" else self.argument()
        words = self.text_ahead()
        if words is None:
            raise Unreadable("an open group")
        plain = words.strip()
        if token == "\\mathbb":
            self.take_group()
            return self.number_set(plain)
        if token in _VECTORS and plain in ("i", "j", "k", "\\imath", "\\jmath"):
            self.take_group()
            return ("sym", f"unit {plain.lstrip(chr(92))[0]}")
        if token == "\\overline" and re.search(r"\di|i\d|[+-]", plain.replace(" ", "")):
            return ("fn", "conj", self.group())
        if token in DECORATED:
            if token == "\\overline" and re.fullmatch(r"[\d ]+", plain):
                raise Unreadable("a row of digits under a bar")
            self.take_group()
            return self.symbol(f"{_mark(token)} {plain.replace(' ', '')}")
        name = NAMED_ELSEWHERE.get(plain, plain.replace(" ", ""))
        if name in FUNCTIONS and (token.startswith("\\operatorname") or plain in (*NAMED_ELSEWHERE, "cis")):
            self.take_group()
            return self.function(name)
        if re.fullmatch(r"[A-Za-z]{2,}[A-Za-z\s.,'-]*", plain) and plain not in FUNCTIONS and plain not in CONSTANTS:
            self.take_group()
            if self.peek() == "_":
                return self.symbol(plain)
            return ("text", " ".join(plain.split()))
        if token in TEXT and not plain:
            self.take_group()
            return self.atom()
        return self.group()


def _builder(element: Node, condition: Node) -> Node:
    """The set {element | condition}. Of a variable, or a point of them, the condition says all."""
    parts = element[3:] if element[0] == "tuple" else (element,)
    if any(
        part[0] == "rel" and part[1] == "in" and part[3] in (("sym", f"mathbb {letter}") for letter in "ZNQ")
        for part in parts
    ):
        return ("tuple", "{", "}", element, _told(condition))  # no interval, though the condition may look like one
    if all(part[0] in ("sym", "rel") for part in parts):
        return condition
    shared = symbols(element) & symbols(condition)
    if len(shared) == 1 and "k" not in symbols(element) | symbols(condition):
        letter = ("sym", shared.pop())
        element, condition = (renamed(node, letter, ("sym", "k")) for node in (element, condition))
    return ("tuple", "{", "}", element, _told(condition))


def _told(condition: Node) -> Node:
    """A condition whose words count, as they do not of a unit: n even is not n odd."""
    if condition[0] != "unit":
        return condition
    return ("tuple", "{", "}", condition[1], ("text", condition[2].removeprefix("is ")))
