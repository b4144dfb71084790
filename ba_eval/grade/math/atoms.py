r"""Reads the parts of an expression: numbers, names, functions, groups, LaTeX commands."""

import re
from fractions import Fraction

from ba_eval.grade.math.tokens import (
    ALIASES,
    BIG,
    CONSTANTS,
    DOTS,
    FUNCTIONS,
    GREEK,
    MULTIPLY,
    RELATIONS,
    STYLED,
    TEXT,
    Cursor,
    Unreadable,
    names,
)
from ba_eval.grade.math.tree import Node, literal_number, one

_CONNECTIVE = re.compile(r"[\s,;]*(?:and|or|,|;|&)?[\s,;]*", re.I)
_PERCENT = ("percent", "percentage", "pct", "%")
_FUNCTION_LETTERS = frozenset("fghFGHPQWIuUT") | {"delta", "Gamma", "phi", "psi", "Phi", "mho"}
_FACTOR_COMMANDS = names(
    "frac sqrt binom pi infty lfloor lceil langle { lvert | begin imath jmath angle triangle lbrace lbrack lVert "
    "measuredangle",
    "\\",
)
_SUM = re.compile(r"[-+]?[A-Za-z0-9]+(?:[-+][A-Za-z0-9]+)+", re.ASCII)
_BASE_WORDS = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
}
_REPEATED = re.compile(r"(?P<before>\d{0,10}?)(?:(?P<once>\d)(?P=once){2,}|(?P<twice>\d{2,12})(?P=twice)+)")
_NEVER_SPLIT = frozenset(("Re", "Im", "lg", "det", "arg", "max", "min", "erf"))


class Atoms(Cursor):
    """The lower half of the grammar; collections, sums and products are read by the subclass."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.bars = 0
        """How many bars are open: a further bar closes one."""
        self.ratios = True
        """Whether a colon makes a ratio; not before the condition of a set."""

    def collection(self, top: bool = False) -> Node:
        raise NotImplementedError

    def relation(self) -> Node:
        raise NotImplementedError

    def sum(self) -> Node:
        raise NotImplementedError

    def power(self) -> Node:
        raise NotImplementedError

    def command(self) -> Node:
        raise NotImplementedError

    def exponent(self) -> Node:
        raise NotImplementedError

    # -- what may follow

    def connective(self) -> bool:
        """Tells whether a \\text group with `and`, `or` or a comma comes next."""
        return self.peek() in TEXT and (words := self.text_ahead(1)) is not None and bool(_CONNECTIVE.fullmatch(words))

    def starts_factor(self) -> bool:
        kind, token = self.kind(), self.peek()
        if kind == "num":
            return True
        if kind == "word":
            return token.lower() not in ("and", "or") and not (token == "U" and self.peek(1) in ("(", "[", "\\{"))
        if kind == "op":
            return token in ("(", "[", "{") or (token == "|" and not self.bars)
        if kind != "cmd":
            return False
        if token in TEXT:
            return not self.connective()
        if token == "\\|":
            return not self.bars
        name = token[1:]
        return name in FUNCTIONS or name in GREEK or token in STYLED or token in _FACTOR_COMMANDS or token in BIG

    def starts_function(self) -> bool:
        return self.peek().lstrip("\\") in FUNCTIONS and self.peek() not in ("\\sqrt", "sqrt")

    # -- atoms

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
            return self.bracketed()
        if token == "|":
            self.at += 1
            return self.between("|", "abs")
        raise Unreadable(f"unexpected {token[:20]!r}")

    def between(self, closing: str, function: str) -> Node:
        """Reads up to a closing bar or bracket of a function: |x|, floor, ceiling."""
        with self:
            self.bars += closing in ("|", "\\|")
            inner = self.sum()
            self.bars -= closing in ("|", "\\|")
        self.expect(closing)
        return ("fn", function, inner)

    def group(self) -> Node:
        """A braced group, read as one value."""
        self.expect("{")
        bars, self.bars = self.bars, 0
        with self:
            node = self.collection()
            if self.peek() in ("\\choose", "\\over"):
                command = self.take()
                other = self.collection()
                node = ("fn", "binomial", node, other) if command == "\\choose" else ("div", node, other)
        self.bars = bars
        self.expect("}")
        return node

    def argument(self) -> Node:
        """The argument of a command: a group, or one token (one digit, one letter)."""
        if self.peek() == "{":
            return self.group()
        if self.kind() in ("num", "word"):
            self.split(self.peek()[0])
        return self.atom()

    def number(self) -> Node:
        token = self.take()
        if self.peek() == "_" and token.isdigit():
            base = self.subscript()
            base = _BASE_WORDS.get(base, base)
            if base == "10":
                return literal_number(token)
            if base.isdigit() and 2 <= int(base[:4]) <= 64:
                return ("base", token.lstrip("0") or "0", int(base))
            raise Unreadable("a subscript on a number")
        if "." in token and self.peek() in ("\\overline", "\\bar", "\\dot") and (period := self.period()):
            return ("num", _repeating(token, period))
        if "." in token and self.peek() in DOTS and (shown := _REPEATED.fullmatch(token.partition(".")[2])):
            self.at += 1
            whole = token.partition(".")[0]
            return ("num", _repeating(f"{whole}.{shown['before']}", shown["once"] or shown["twice"]))
        if "." in token and self.peek() in DOTS and len(token) > 4 and self.kind(1) == "end":
            self.at += 1
            return literal_number(token)
        if self.kind() == "num" and "." in token:
            raise Unreadable("two numbers in a row")
        return literal_number(token)

    def period(self) -> str:
        """Reads the period of a decimal: digits under a bar, or from one dotted digit to the other; else nothing."""
        digits = self.text_ahead(1) or ""
        if not digits.isdigit():
            return ""
        dotted = self.take() == "\\dot"
        self.take_group()
        if dotted and self.kind() == "num" and self.peek().isdigit() and self.peek(1) == "\\dot":
            digits += self.take()
        if dotted and self.peek() == "\\dot" and (last := self.text_ahead(1) or "").isdigit():
            self.at += 1
            self.take_group()
            digits += last
        return digits

    def subscript(self) -> str:
        """Reads `_x`, `_{...}` into plain text."""
        self.expect("_")
        if self.peek() != "{":
            if self.kind() == "word":
                self.split(self.peek()[0])
            return self.take()
        group = self.take_group()
        return _index("".join(t for t in group if t not in ("{", "}") and t not in TEXT and t not in STYLED))

    def word(self) -> Node:
        word = self.peek()
        if word in CONSTANTS:
            self.at += 1
            return CONSTANTS[word]
        if word in FUNCTIONS and (word not in _NEVER_SPLIT or self.peek(1) == "("):
            self.at += 1
            return self.function(word)
        if word in GREEK and len(word) > 2:
            self.at += 1
            return self.symbol(word)
        if len(word) > 1:
            found = sorted((n for n in FUNCTIONS | {"pi"} if n not in _NEVER_SPLIT and n in word), key=len)
            if found and word.startswith(found[-1]):
                self.split(found[-1])
                return self.word()
            if not found and len(word) > 5:
                raise Unreadable(f"the word {word[:20]!r}")
            self.split(word[0])
        return self.symbol(self.take())

    def symbol(self, name: str) -> Node:
        if self.peek() == "_":
            name = f"{name}_{self.subscript()}"
        while self.accept("'"):
            name += "'"
        if name in ("e", "i"):
            return ("const", name)
        inverse = ("^", "{", "-", "1", "}", "(")
        if name in _FUNCTION_LETTERS and all(self.peek(i) == token for i, token in enumerate(inverse)):
            return self.inverse(name)
        if self.peek() == "(":
            arguments = self.call_arguments(name)
            if arguments is not None and name == "Gamma" and len(arguments) == 1:
                return ("fn", "gamma", *arguments)
            if arguments is not None and name == "C" and len(arguments) == 2:
                return ("fn", "binomial", *arguments)
            if arguments is not None:
                return ("call", name, *arguments)
        return ("sym", name)

    def inverse(self, name: str) -> Node:
        """Reads the inverse of a named function: f^{-1}(x)."""
        start = self.at
        self.at += 5
        arguments = self.call_arguments(name)
        if arguments is None:
            self.at = start
            return ("sym", name)
        return ("call", f"{name} inverse", *arguments)

    def call_arguments(self, name: str) -> tuple[Node, ...] | None:
        """Reads `(...)` after a letter as arguments where it is a function, not a factor: f(x), I(0), P(2, 3)."""
        plain = re.sub(r"[_'].*", "", name)
        lone = self.peek(2) in (")", ",") and self.kind(1) in ("num", "word", "cmd")
        zero = self.peek(1) == "0" and self.peek(2) == ")"
        lone |= plain == "Gamma"
        choose = name == "C" and self.peek(2) == "," and self.peek(4) == ")"
        if not (zero or choose or (plain in _FUNCTION_LETTERS and lone)):
            return None
        self.at += 1
        arguments = self.collection()
        self.expect(")")
        return tuple(arguments[1:]) if arguments[0] == "list" else (arguments,)

    def bracketed(self) -> Node:
        opening = self.take()
        bars, self.bars = self.bars, 0
        with self:
            inner = self.collection()
        self.bars = bars
        closing = "]" if self.expect(")", "]", "\\rbrack") != ")" else ")"
        if inner[0] == "list":
            return ("tuple", opening, closing, *inner[1:])
        if (opening == "(") != (closing == ")"):
            raise Unreadable("unbalanced brackets")
        return inner

    # -- functions

    def function(self, name: str) -> Node:
        name = ALIASES.get(name, name)
        if name in ("max", "min") and self.peek() in RELATIONS:
            return ("sym", name)
        power = base = index = None
        if name == "sqrt" and self.accept("["):
            index = self.collection()
            self.expect("]")
        while self.peek() in ("^", "_"):
            if self.take() == "^":
                power = self.exponent()
            else:
                base = self.argument_number()
        argument = self.function_argument(name)
        if name in ("sqrt", "cbrt"):
            degree = index or ("num", Fraction(3 if name == "cbrt" else 2))
            node: Node = ("pow", argument, ("div", one, degree))
        elif name == "exp":
            node = ("pow", ("const", "e"), argument)
        elif name == "cis":
            node = ("pow", ("const", "e"), ("mul", ("const", "i"), argument))
        elif name == "factorial":
            node = ("fact", argument)
        elif name in ("log", "lg") and (base is not None or name == "lg"):
            node = ("div", ("fn", "ln", argument), ("fn", "ln", base or ("num", Fraction(10))))
        elif base is not None:
            raise Unreadable(f"a subscript on {name}")
        else:
            skipped = {"list": 1, "set": 1, "tuple": 3}.get(argument[0])
            arguments = argument[skipped:] if skipped else (argument,)
            node = ("fn", name, *arguments)
        if power is None:
            return node
        if power == ("neg", one) and name in ("sin", "cos", "tan", "cot"):
            return ("fn", "a" + name, argument)
        if power == ("neg", one) and name in ("sinh", "cosh", "tanh"):
            return ("fn", "arc" + name, argument)
        return ("pow", node, power)

    def argument_number(self) -> Node:
        if self.kind() == "word" or (self.kind() == "num" and self.kind(1) == "end"):
            # \log_28 is the logarithm of 8.
            self.split(self.peek()[0])
        return self.atom()

    def function_argument(self, name: str) -> Node:
        if self.peek() == "{":
            return self.group()
        if self.peek() in ("(", "["):
            return self.bracketed()
        if self.peek() in ("\\{", "\\lbrace") and name in ("min", "max", "gcd", "lcm"):
            return self.atom()
        if name in ("sqrt", "cbrt"):
            if self.kind() == "word" and self.peek() not in CONSTANTS:
                self.split(self.peek()[0])
            return self.atom()
        with self:
            sign = self.accept("-")
            left = self.power()
            while not self.starts_function() and self.peek() not in ("(", "["):
                if self.peek() in MULTIPLY and self.peek(1) not in ("(", "["):
                    self.at += 1
                elif not self.starts_factor():
                    break
                left = multiply(left, self.power())
        return ("neg", left) if sign else left

    def percent(self) -> bool:
        if self.accept("%"):
            return True
        if self.kind() == "word" and self.peek().lower() in _PERCENT:
            self.at += 1
            return True
        if self.peek() in TEXT and (self.text_ahead(1) or "").lower() in _PERCENT:
            self.at += 1
            self.take_group()
            return True
        return False


def _index(text: str) -> str:
    """Writes an index that is a sum in one order: n+1 for 1+n."""
    if not _SUM.fullmatch(text) or not re.search(r"[A-Za-z]", text) or len(text) > 40:
        return text
    parts = re.findall(r"([-+]?)(\w+)", text)
    number = sum(int(sign + digits) for sign, digits in parts if digits.isdigit())
    letters = sorted((name, sign or "+") for sign, name in parts if not name.isdigit())
    return "".join(sign + name for name, sign in letters).removeprefix("+") + (f"{number:+d}" if number else "")


def multiply(left: Node, right: Node) -> Node:
    """Returns the product; a chain of factors is one node."""
    return (*left, right) if left[0] == "mul" else ("mul", left, right)


def _repeating(token: str, period: str) -> Fraction:
    """Returns the value of 0.1(6) from "0.1" and "6"."""
    whole, _, fraction = token.partition(".")
    if len(fraction) + len(period) > 200 or not (whole + fraction).isdigit():
        raise Unreadable("a repeating decimal")
    scale = 10 ** len(fraction)
    return Fraction(int(whole + fraction), scale) + Fraction(int(period), scale * (10 ** len(period) - 1))
