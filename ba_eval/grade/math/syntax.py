r"""Reads an answer, in LaTeX or in plain notation, into a small tree. Nothing is evaluated here.

A node is a tuple whose first item names it:
(num, Fraction) · (dec, Fraction, ulp, digits) a decimal literal and the value of its last digit · (sym, name) ·
(const, "pi" | "e" | "i" | "inf") · (add, a, b, ...) · (mul, a, b, ...) · (div, a, b) · (pow, a, b) · (neg, a) ·
(pm, +1 | -1, a) · (fn, name, a, ...) · (call, name, a, ...) an unknown function · (fact, a) · (percent, a) · (deg, a) ·
(base, digits, base) · (rel, op, a, b, op, c, ...) a chain · (list, items...) unordered · (tuple, open, close, items...) ·
(set, items...) · (union, a, b, ...) · (inter, a, b) · (minus, a, b) set difference · (matrix, rows) · (ratio, a, b, ...) ·
(text, words) · (dots,)
"""

import re
from fractions import Fraction
from typing import Any

Node = tuple[Any, ...]

MAX_TOKENS = 1500
MAX_DEPTH = 48
MAX_DIGITS = 4000


class Unreadable(Exception):
    """The text is not in the notation that this parser knows, or is over its limits."""


_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<num>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4}(?![\dA-Za-z]))?)|(?P<cmd>\\[A-Za-z]+\*?|\\.)|(?P<word>[A-Za-z]+)"
    r"|(?P<op>\*\*|<=|>=|!=|==|\.\.\.|[^\s])",
    re.S,
)
_FUNCTIONS = {
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "coth", "ln", "log", "lg", "exp", "sqrt", "cbrt", "abs", "floor", "ceil", "ceiling", "arcsinh", "arccosh",
    "arctanh", "min", "max", "gcd", "lcm", "binomial", "factorial", "Re", "Im", "sgn", "det", "arg", "erf",
}  # fmt: skip
_ALIASES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "ceiling": "ceil", "arccot": "acot"}
_GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa", "lambda",
    "mu", "nu", "xi", "rho", "varrho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega", "Gamma", "Delta",
    "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega", "hbar", "ell", "partial", "nabla", "mho", "aleph",
    "odot", "oplus", "prime", "dagger", "star", "AA",
}  # fmt: skip
_WORDS = {
    "pi": ("const", "pi"),
    "infinity": ("const", "inf"),
    "inf": ("const", "inf"),
    "oo": ("const", "inf"),
    "infty": ("const", "inf"),
}
_RELATIONS = {
    "=": "=", "==": "=", "\\equiv": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "!=": "!=", "\\lt": "<", "\\gt": ">",
    "\\le": "<=", "\\leq": "<=", "\\leqslant": "<=", "\\ge": ">=", "\\geq": ">=", "\\geqslant": ">=", "\\ne": "!=",
    "\\neq": "!=", "\\approx": "~", "\\simeq": "~", "\\sim": "~", "\\in": "in", "\\coloneqq": "=", "\\to": "to",
    "\\rightarrow": "to", "\\mapsto": "to", "\\propto": "~", "\\notin": "notin", "\\mid": "|", "\\Rightarrow": "to", "\\implies": "to",
}  # fmt: skip
_TEXT = {
    "\\text",
    "\\textbf",
    "\\textit",
    "\\textrm",
    "\\textnormal",
    "\\mbox",
    "\\textsf",
    "\\texttt",
    "\\hbox",
    "\\textup",
}
_STYLED = {
    "\\mathrm", "\\mathbf", "\\mathit", "\\mathsf", "\\boldsymbol", "\\bm", "\\mathcal", "\\mathscr", "\\mathfrak", "\\operatorname",
    "\\operatorname*", "\\overline", "\\vec", "\\overrightarrow", "\\bar", "\\hat", "\\tilde", "\\widehat", "\\dot", "\\ddot",
    "\\underline", "\\boxed", "\\mathbb", "\\overset", "\\mathop", "\\widetilde", "\\cancel",
}  # fmt: skip
_DECORATED = {
    "\\overline",
    "\\vec",
    "\\overrightarrow",
    "\\bar",
    "\\hat",
    "\\tilde",
    "\\widehat",
    "\\dot",
    "\\ddot",
    "\\widetilde",
}
_DOTS = {"\\ldots", "\\dots", "\\cdots", "\\dotsc", "\\dotsb", "...", "\\vdots", "\\ddots"}
_MULTIPLY = {"*", "\\cdot", "\\times", "\\ast", "\\bullet"}
_DIVIDE = {"/", "\\div"}
_CLOSERS = {")", "]", "}", "\\}", "\\rangle", "\\rfloor", "\\rceil", "\\rvert", "\\rbrace", "\\rbrack", "\\rVert", ">"}
_FUNCTION_LETTERS = set("fghFGHPQWIuUT") | {"delta", "Gamma", "phi", "psi", "varphi", "Phi", "mho"}


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, bool]] = []
        spaced = False
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or "op"
            if kind == "space":
                spaced = True
                continue
            if kind == "num" and len(match[0]) > MAX_DIGITS:
                raise Unreadable("a number with too many digits")
            self.tokens.append((kind, match[0], spaced))
            spaced = False
            if len(self.tokens) > MAX_TOKENS:
                raise Unreadable("too long")
        self.at = 0
        self.depth = 0
        self.bars = 0

    # -- tokens

    def peek(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i][1] if i < len(self.tokens) else ""

    def kind(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i][0] if i < len(self.tokens) else "end"

    def spaced(self) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][2]

    def take(self) -> str:
        if self.at >= len(self.tokens):
            raise Unreadable("ends too early")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, *texts: str) -> bool:
        if self.peek() in texts and self.at < len(self.tokens):
            self.at += 1
            return True
        return False

    def expect(self, *texts: str) -> str:
        if self.peek() not in texts or self.at >= len(self.tokens):
            raise Unreadable(f"expected {texts[0]!r}, found {self.peek()!r}")
        return self.take()

    def split_word(self, first: str) -> None:
        """Replaces the word at the current place by its first part and the rest."""
        kind, word, spaced = self.tokens[self.at]
        self.tokens[self.at : self.at + 1] = [(kind, first, spaced), (kind, word[len(first) :], False)]

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")

    # -- collections and relations

    def answer(self) -> Node:
        node = self.collection(top=True)
        if self.at < len(self.tokens):
            raise Unreadable(f"unexpected {self.peek()!r}")
        return node

    def collection(self, top: bool = False) -> Node:
        items: list[Node] = []
        while True:
            if self.separator():
                continue
            if self.at >= len(self.tokens) or (not top and self.peek() in _CLOSERS):
                break
            items.append(self.relation())
            if not self.separator():
                break
        if not items:
            raise Unreadable("empty")
        return items[0] if len(items) == 1 else ("list", *items)

    def separator(self) -> bool:
        if self.accept(",", ";", "&"):
            return True
        if self.kind() == "word" and self.peek().lower() in ("and", "or"):
            self.at += 1
            return True
        if self.peek() in ("\\land", "\\lor", "\\vee", "\\wedge", "\\And"):
            self.at += 1
            return True
        if (
            self.peek() in _TEXT
            and (words := self.text_ahead()) is not None
            and re.fullmatch(r"[\s,;]*(?:and|or|,|;)?[\s,;]*", words, re.I)
        ):
            self.at += 1
            self.skip_group()
            return True
        return False

    def text_ahead(self, skip: int = 1) -> str | None:
        """Returns the words of the group that starts `skip` tokens ahead."""
        i = self.at + skip
        if i >= len(self.tokens) or self.tokens[i][1] != "{":
            return None
        depth, words = 0, []
        while i < len(self.tokens):
            _, text, spaced = self.tokens[i]
            if text == "{":
                depth += 1
            elif text == "}":
                depth -= 1
                if depth == 0:
                    return "".join(words).strip()
            else:
                words.append((" " if spaced else "") + text)
            i += 1
        return None

    def skip_group(self) -> None:
        depth = 0
        while True:
            token = self.take()
            depth += (token == "{") - (token == "}")
            if depth == 0:
                return

    def relation(self) -> Node:
        first = self.sets()
        parts: list[Any] = [first]
        while True:
            op = _RELATIONS.get(self.peek()) if self.at < len(self.tokens) else None
            if op is None or (op == ">" and self.depth < 0):
                if self.peek() == ":" and self.at < len(self.tokens):
                    self.at += 1
                    right = self.sets()
                    last = parts[-1]
                    parts[-1] = (*last, right) if last[0] == "ratio" else ("ratio", last, right)
                    continue
                break
            self.at += 1
            if op == "<" and self.accept("="):
                op = "<="
            elif op == ">" and self.accept("="):
                op = ">="
            parts += [op, self.sets()]
        if len(parts) == 1:
            return first if parts[0] is first else parts[0]
        chain: Node = ("rel", parts[1], parts[0], parts[2], *parts[3:])
        return chain

    def sets(self) -> Node:
        left = self.sum()
        while True:
            if self.accept("\\cup", "\\bigcup") or (
                self.kind() == "word"
                and self.peek() == "U"
                and left[0] in ("tuple", "union", "set")
                and self.accept("U")
            ):
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
        self.enter()
        terms = [self.signed()]
        while True:
            token = self.peek()
            if token == "+":
                self.at += 1
                terms.append(self.signed())
            elif token == "-":
                self.at += 1
                terms.append(("neg", self.signed()))
            elif token in ("\\pm", "\\mp"):
                self.at += 1
                terms.append(("pm", 1 if token == "\\pm" else -1, self.signed()))
            elif token in _DOTS:
                # 1 + 2 + \dots + n
                self.at += 1
                terms.append(("dots",))
            else:
                break
        self.depth -= 1
        return terms[0] if len(terms) == 1 else ("add", *terms)

    def signed(self) -> Node:
        if self.accept("+"):
            return self.signed_checked()
        if self.accept("-"):
            return ("neg", self.signed_checked())
        if self.peek() in ("\\pm", "\\mp"):
            return ("pm", 1 if self.take() == "\\pm" else -1, self.signed_checked())
        if self.peek() in _DOTS:
            self.at += 1
            return ("dots",)
        return self.product()

    def signed_checked(self) -> Node:
        self.enter()
        node = self.signed()
        self.depth -= 1
        return node

    def product(self) -> Node:
        left = self.power()
        while self.at < len(self.tokens):
            token = self.peek()
            if token in _MULTIPLY:
                self.at += 1
                left = self.multiply(left, self.factor_signed())
            elif token in _DIVIDE:
                self.at += 1
                left = ("div", left, self.factor_signed())
            elif self.starts_factor():
                right = self.power()
                if (
                    _is_whole(left)
                    and right[0] == "div"
                    and _is_whole(right[1])
                    and _is_whole(right[2])
                    and self.mixed(left)
                ):
                    left = ("add", left, right)
                else:
                    left = self.multiply(left, right)
            else:
                break
        return left

    def mixed(self, left: Node) -> bool:
        return True

    @staticmethod
    def multiply(left: Node, right: Node) -> Node:
        return (*left, right) if left[0] == "mul" else ("mul", left, right)

    def factor_signed(self) -> Node:
        if self.accept("-"):
            return ("neg", self.factor_signed_checked())
        if self.accept("+"):
            return self.factor_signed_checked()
        return self.power()

    def factor_signed_checked(self) -> Node:
        self.enter()
        node = self.factor_signed()
        self.depth -= 1
        return node

    def starts_factor(self) -> bool:
        kind, token = self.kind(), self.peek()
        if kind == "num":
            return True
        if kind == "word":
            return token.lower() not in ("and", "or") and not (token == "U" and self.peek(1) in ("(", "[", "\\{"))
        if kind == "op":
            return token in ("(", "[", "{") or (token == "|" and not self.bars)
        if kind == "cmd":
            if token in _TEXT:
                words = self.text_ahead() or ""
                return not re.fullmatch(r"[\s,;]*(?:and|or|,|;)?[\s,;]*", words, re.I)
            return (
                token[1:] in _FUNCTIONS or token[1:] in _GREEK or token in _STYLED
                or token in ("\\frac", "\\sqrt", "\\binom", "\\pi", "\\infty", "\\lfloor", "\\lceil", "\\langle", "\\{", "\\lvert", "\\|",
                             "\\begin", "\\imath", "\\jmath", "\\angle", "\\triangle", "\\lbrace", "\\lbrack", "\\max", "\\circ", "\\over")
            )  # fmt: skip
        return False

    def power(self) -> Node:
        self.enter()
        base = self.postfix(self.atom())
        node = self.raised(base)
        self.depth -= 1
        return node

    def raised(self, base: Node) -> Node:
        while self.at < len(self.tokens):
            token = self.peek()
            if token in ("^", "**"):
                self.at += 1
                if token == "^" and self.degree_mark():
                    base = ("deg", base)
                    continue
                if token == "^" and self.prime_mark():
                    base = _primed(base)
                    continue
                exponent = self.exponent()
                base = ("pow", base, exponent)
                base = self.postfix(base)
            elif token == "'":
                self.at += 1
                base = _primed(base)
            elif token in ("\\degree", "\\circ") and token == "\\degree":
                self.at += 1
                base = ("deg", base)
            else:
                break
        return base

    def degree_mark(self) -> bool:
        if self.accept("\\circ"):
            return True
        if self.peek() == "{" and self.peek(1) == "\\circ" and self.peek(2) == "}":
            self.at += 3
            return True
        return False

    def prime_mark(self) -> bool:
        if self.accept("\\prime"):
            return True
        if self.peek() == "{" and self.peek(1) == "\\prime" and (self.peek(2) == "}" or self.peek(3) == "}"):
            while self.take() != "}":
                pass
            return True
        return False

    def exponent(self) -> Node:
        if self.peek() == "{":
            return self.group()
        if self.accept("-"):
            return ("neg", self.exponent_checked())
        if self.accept("+"):
            return self.exponent_checked()
        if (
            self.kind() == "word"
            and len(self.peek()) > 1
            and self.peek() not in _WORDS
            and self.peek() not in _FUNCTIONS
        ):
            self.split_word(self.peek()[0])
        self.enter()
        node = self.atom()
        if self.peek() in ("^", "**"):
            self.at += 1
            node = ("pow", node, self.exponent())
        self.depth -= 1
        return node

    def exponent_checked(self) -> Node:
        self.enter()
        node = self.exponent()
        self.depth -= 1
        return node

    def postfix(self, node: Node) -> Node:
        while True:
            if self.peek() == "!" and self.peek(1) != "=":
                self.at += 1
                node = ("fact", node)
            elif self.accept("%"):
                node = ("percent", node)
            elif self.kind() == "word" and self.peek().lower() in ("percent", "percentage", "pct"):
                self.at += 1
                node = ("percent", node)
            elif self.peek() in _TEXT and (self.text_ahead() or "").lower() in ("percent", "percentage", "pct", "%"):
                self.at += 1
                self.skip_group()
                node = ("percent", node)
            else:
                return node

    def group(self) -> Node:
        """A braced group, read as one value."""
        self.expect("{")
        self.enter()
        bars, self.bars = self.bars, 0
        node = self.collection()
        self.bars = bars
        self.depth -= 1
        self.expect("}")
        return node

    def argument(self) -> Node:
        """The argument of \\frac or \\sqrt: a group, or one token (one digit of a number)."""
        if self.peek() == "{":
            return self.group()
        kind, token, spaced = self.tokens[self.at] if self.at < len(self.tokens) else ("end", "", False)
        if kind == "num" and len(token) > 1:
            self.tokens[self.at : self.at + 1] = [(kind, token[0], spaced), (kind, token[1:], False)]
        elif kind == "word" and len(token) > 1:
            self.split_word(token[0])
        return self.atom()

    def atom(self) -> Node:
        kind, token = self.kind(), self.peek()
        if kind == "num":
            return self.number()
        if kind == "word":
            return self.word()
        if kind == "cmd":
            return self.command()
        if token == "{":
            return self.group()
        if token in ("(", "["):
            return self.bracketed(token)
        if token == "]":
            return self.bracketed(token)
        if token == "|":
            self.at += 1
            self.enter()
            self.bars += 1
            inner = self.sum()
            self.bars -= 1
            self.depth -= 1
            self.expect("|")
            return ("fn", "abs", inner)
        if token == "?":
            self.at += 1
            return ("sym", "?")
        raise Unreadable(f"unexpected {token!r}")

    def number(self) -> Node:
        token = self.take()
        literal = literal_number(token)
        if self.peek() == "_" and token.isdigit():
            base = self.subscript()
            if base.isdigit() and 2 <= int(base[:4]) <= 64:
                return ("base", token.lstrip("0") or "0", int(base))
            raise Unreadable("a subscript on a number")
        if self.kind() == "num" and not self.spaced() and "." in token:
            raise Unreadable("two decimal points")
        return literal

    def subscript(self) -> str:
        """Reads `_x`, `_{...}` into plain text."""
        self.expect("_")
        if self.peek() != "{":
            kind, token = self.kind(), self.peek()
            if kind == "num" and len(token) > 1 and token.isdigit():
                return self.take()
            if kind == "word" and len(token) > 1:
                self.split_word(token[0])
            return self.take()
        depth, parts = 0, []
        while True:
            token = self.take()
            depth += (token == "{") - (token == "}")
            if depth == 0:
                break
            if token not in ("{", "}") and token not in _TEXT and token not in _STYLED:
                parts.append(token)
        return "".join(parts)

    def word(self) -> Node:
        word = self.peek()
        if word in _WORDS:
            self.at += 1
            return _WORDS[word]
        if word in _FUNCTIONS and word not in ("Re", "Im", "min", "max"):
            self.at += 1
            return self.function(word)
        if word in _GREEK and len(word) > 2:
            self.at += 1
            return self.symbol(word)
        if len(word) > 1:
            for name in ("sqrt", "pi", *sorted(_FUNCTIONS, key=len, reverse=True)):
                where = word.find(name)
                if where >= 0 and len(name) > 1 and name not in ("Re", "Im", "lg", "det", "arg", "max", "min"):
                    if where == 0:
                        self.split_word(name)
                    else:
                        self.split_word(word[0])
                    return self.word()
            if len(word) > 4 and word.lower() not in ("abcde",):
                raise Unreadable(f"the word {word[:20]!r}")
            self.split_word(word[0])
        return self.symbol(self.take())

    def symbol(self, name: str) -> Node:
        if self.peek() == "_":
            name = f"{name}_{self.subscript()}"
        while self.peek() == "'":
            self.at += 1
            name += "'"
        if name in ("e", "i"):
            return ("const", name)
        if self.peek() == "(" and not self.spaced() or (self.peek() == "(" and name in _FUNCTION_LETTERS):
            arguments = self.call_arguments(name)
            if arguments is not None:
                return ("call", name, *arguments)
        return ("sym", name)

    def call_arguments(self, name: str) -> tuple[Node, ...] | None:
        """Reads `(...)` after a letter as arguments where it is a function rather than a product: f(x), I(0), t(0)."""
        plain = re.sub(r"[_'].*", "", name)
        first, second = (self.kind(1), self.peek(1)), self.peek(2)
        lone = second in (")", ",") and first[0] in ("num", "word", "cmd")
        zero = second == ")" and first[1] == "0"
        if not (zero or (plain in _FUNCTION_LETTERS and lone)):
            return None
        self.at += 1
        arguments = self.collection()
        self.expect(")")
        return tuple(arguments[1:]) if arguments[0] == "list" else (arguments,)

    def function(self, name: str) -> Node:
        name = _ALIASES.get(name, name)
        power: Node | None = None
        base: Node | None = None
        index: Node | None = None
        if name == "sqrt" and self.peek() == "[":
            self.at += 1
            index = self.collection()
            self.expect("]")
        while self.peek() in ("^", "_"):
            if self.peek() == "^":
                self.at += 1
                power = self.exponent()
            else:
                self.at += 1
                base = self.argument_number()
        argument = self.function_argument(name)
        if index is not None:
            node: Node = ("pow", argument, ("div", ("num", Fraction(1)), index))
        elif name == "sqrt":
            node = ("pow", argument, ("num", Fraction(1, 2)))
        elif name == "cbrt":
            node = ("pow", argument, ("num", Fraction(1, 3)))
        elif name == "exp":
            node = ("pow", ("const", "e"), argument)
        elif name == "factorial":
            node = ("fact", argument)
        elif name == "log" and base is not None:
            node = ("div", ("fn", "ln", argument), ("fn", "ln", base))
        elif name == "lg":
            node = ("div", ("fn", "ln", argument), ("fn", "ln", ("num", Fraction(10))))
        else:
            arguments = (
                argument[1:] if argument[0] == "list" else argument[3:] if argument[0] == "tuple" else (argument,)
            )
            node = ("fn", "ln" if name == "log" else name, *arguments)
            if base is not None:
                raise Unreadable(f"a subscript on {name}")
        if power is None:
            return node
        if power == ("neg", ("num", Fraction(1))) and name in ("sin", "cos", "tan", "cot"):
            return ("fn", "a" + name, argument)
        return ("pow", node, power)

    def argument_number(self) -> Node:
        if self.peek() == "{":
            return self.group()
        if self.kind() == "word" and len(self.peek()) > 1:
            self.split_word(self.peek()[0])
        return self.atom()

    def function_argument(self, name: str) -> Node:
        token = self.peek()
        if token == "{":
            return self.group()
        if token in ("(", "["):
            return self.bracketed(token, call=True)
        if name in ("sqrt", "cbrt"):
            return self.raised_atom()
        self.enter()
        sign = self.accept("-")
        left = self.power()
        while self.starts_factor() and not self.starts_function() and self.peek() not in ("(", "["):
            left = self.multiply(left, self.power())
        self.depth -= 1
        return ("neg", left) if sign else left

    def raised_atom(self) -> Node:
        if self.kind() == "word" and len(self.peek()) > 1 and self.peek() not in _WORDS:
            self.split_word(self.peek()[0])
        return self.atom()

    def starts_function(self) -> bool:
        return self.peek().lstrip("\\") in _FUNCTIONS and self.peek() not in ("\\sqrt", "sqrt")

    def bracketed(self, opening: str, call: bool = False) -> Node:
        self.take()
        self.enter()
        bars, self.bars = self.bars, 0
        inner = self.collection()
        self.bars = bars
        self.depth -= 1
        closing = self.expect(")", "]", "[") if opening != "(" else self.expect(")", "]", "[")
        if inner[0] == "list":
            return ("tuple", opening, closing, *inner[1:])
        if call or opening == "(" and closing == ")":
            return inner
        if opening == "[" and closing == "]":
            return inner
        raise Unreadable("unbalanced brackets")

    # -- commands

    def command(self) -> Node:
        token = self.take()
        name = token[1:]
        if name == "frac":
            return ("div", self.argument(), self.argument())
        if name == "sqrt":
            return self.function("sqrt")
        if name == "pi":
            return ("const", "pi")
        if name == "infty":
            return ("const", "inf")
        if name in ("imath", "jmath"):
            return ("const", "i")
        if name == "binom":
            return ("fn", "binomial", self.argument(), self.argument())
        if name in ("angle", "triangle", "measuredangle"):
            return ("sym", f"{name} {self.run_of_letters()}")
        if name in _FUNCTIONS:
            return self.function(name)
        if name in _GREEK:
            return self.symbol({"varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta"}.get(name, name))
        for left, right, function in (
            ("lfloor", "\\rfloor", "floor"),
            ("lceil", "\\rceil", "ceil"),
            ("lvert", "\\rvert", "abs"),
            ("|", "\\|", "abs"),
        ):
            if name == left:
                self.enter()
                inner = self.sum()
                self.depth -= 1
                self.expect(right)
                return ("fn", function, inner)
        if name in ("{", "lbrace"):
            return self.braces()
        if name == "lbrack":
            return self.bracketed_open("[")
        if name == "langle":
            self.enter()
            inner = self.collection()
            self.depth -= 1
            self.expect("\\rangle")
            return ("tuple", "(", ")", *(inner[1:] if inner[0] == "list" else (inner,)))
        if name == "begin":
            return self.environment()
        if token in _TEXT or token in _STYLED:
            return self.styled(token)
        if name in ("emptyset", "varnothing"):
            return ("set",)
        if token in _DOTS:
            return ("dots",)
        raise Unreadable(f"the command {token[:20]!r}")

    def bracketed_open(self, opening: str) -> Node:
        self.at -= 1
        self.tokens[self.at] = ("op", opening, False)
        return self.bracketed(opening)

    def run_of_letters(self) -> str:
        letters = []
        if self.peek() == "{":
            self.at += 1
            while not self.accept("}"):
                letters.append(self.take())
            return "".join(letters)
        while self.kind() == "word" or (letters and self.peek() == "_"):
            if self.peek() == "_":
                letters.append("_" + self.subscript())
            else:
                letters.append(self.take())
        return "".join(letters)

    def braces(self) -> Node:
        self.enter()
        if self.accept("\\}", "\\rbrace"):
            self.depth -= 1
            return ("set",)
        bars, self.bars = self.bars, 1
        inner = self.collection()
        self.bars = bars
        if self.accept("|", ":", "\\mid"):
            # {x | condition}: the condition is the set
            inner = self.collection()
            self.expect("\\}", "\\rbrace")
            self.depth -= 1
            return inner
        self.depth -= 1
        self.expect("\\}", "\\rbrace")
        return ("set", *(inner[1:] if inner[0] == "list" else (inner,)))

    def environment(self) -> Node:
        name = "".join(self.name_group())
        if name not in (
            "pmatrix",
            "bmatrix",
            "matrix",
            "array",
            "vmatrix",
            "smallmatrix",
            "Bmatrix",
            "aligned",
            "align",
            "align*",
            "cases",
            "gathered",
        ):
            raise Unreadable(f"the environment {name[:20]!r}")
        if name == "array" and self.peek() == "{":
            self.name_group()
        rows: list[tuple[Node, ...]] = []
        row: list[Node] = []
        while True:
            if self.peek() == "\\end":
                break
            if self.accept("\\\\"):
                if row:
                    rows.append(tuple(row))
                row = []
                continue
            if self.accept("&", "\\hline"):
                continue
            self.enter()
            row.append(self.relation())
            self.depth -= 1
            self.accept(",", ";")
        self.expect("\\end")
        self.name_group()
        if row:
            rows.append(tuple(row))
        if not rows:
            raise Unreadable("an empty matrix")
        if name in ("aligned", "align", "align*", "cases", "gathered"):
            flat = [item for r in rows for item in r]
            return ("list", *flat) if len(flat) > 1 else flat[0]
        if name == "vmatrix":
            return ("fn", "det", ("matrix", tuple(rows)))
        return ("matrix", tuple(rows))

    def name_group(self) -> list[str]:
        self.expect("{")
        parts = []
        while not self.accept("}"):
            parts.append(self.take())
        return parts

    def styled(self, token: str) -> Node:
        if self.peek() != "{":
            if token in _TEXT:
                raise Unreadable("text without a group")
            return self.argument()
        words = self.text_ahead(0)
        if words is None:
            raise Unreadable("an open group")
        if token == "\\mathbb":
            self.skip_group()
            return ("sym", f"mathbb {words}")
        if token in _DECORATED:
            if token == "\\overline" and re.fullmatch(r"[\d ]+", words):
                raise Unreadable("a repeating decimal or a digit string")
            self.skip_group()
            name = f"{token[1:]} {words.replace(' ', '')}"
            return self.symbol(name) if self.peek() == "_" else ("sym", name)
        if token == "\\operatorname" and words.replace(" ", "") in _FUNCTIONS:
            self.skip_group()
            return self.function(words.replace(" ", ""))
        if (
            re.fullmatch(r"\s*[A-Za-z]{2,}[A-Za-z\s.,'-]*", words)
            and words.strip() not in _FUNCTIONS
            and words.strip() not in _WORDS
        ):
            self.skip_group()
            return ("text", " ".join(words.split()))
        if token in _TEXT and not words:
            self.skip_group()
            return self.atom()
        return self.group()


def literal_number(token: str) -> Node:
    """Returns (num, value) of a whole number, (dec, value, value of the last digit, significant digits) of a decimal."""
    mantissa, _, exponent = token.lower().partition("e")
    if len(mantissa) > MAX_DIGITS:
        raise Unreadable("a number with too many digits")
    power = int(exponent) if exponent else 0
    if abs(power) > 2000:
        raise Unreadable("an exponent that is too large")
    whole, point, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    value = Fraction(int(whole + fraction or "0"), 10 ** len(fraction)) * Fraction(10) ** power
    if not point and not exponent:
        return ("num", value)
    return ("dec", value, Fraction(10) ** (power - len(fraction)), len(digits))


def _is_whole(node: Node) -> bool:
    return node[0] == "num" and node[1].denominator == 1


def _primed(node: Node) -> Node:
    if node[0] == "sym":
        return ("sym", node[1] + "'")
    if node[0] == "call":
        return ("call", node[1] + "'", *node[2:])
    raise Unreadable("a prime")


def read(text: str) -> Node:
    """Returns the tree of a cleaned answer; raises Unreadable."""
    return _Reader(text).answer()
