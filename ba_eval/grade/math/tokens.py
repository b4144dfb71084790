"""Tokens of the answer notation, LaTeX and plain, and a cursor over them."""

import re

MAX_TOKENS = 1500
MAX_DEPTH = 200


class Unreadable(Exception):
    """The text is not in the notation that the parser knows, or is over its limits."""


class OverLimit(Unreadable):
    """The text is longer or nested deeper than is read; it may mean anything."""


_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<num>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4}(?![\dA-Za-z]))?)|(?P<cmd>\\[A-Za-z]+\*?|\\.)"
    r"|(?P<word>[A-Za-z]+)|(?P<op>\*\*|<=|>=|!=|==|\.\.\.|[^\s])",
    re.S,
)


class Cursor:
    """A place in the tokens of one answer. Reading past the end raises Unreadable, as does deep nesting."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, bool]] = []
        """(kind, text, whether space stands before it)"""
        spaced = False
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or "op"
            if kind == "space":
                spaced = True
                continue
            self.tokens.append((kind, match[0], spaced))
            spaced = False
            if len(self.tokens) > MAX_TOKENS:
                raise OverLimit("too long")
        self.at = 0
        self._depth = 0

    def peek(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i][1] if i < len(self.tokens) else ""

    def kind(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i][0] if i < len(self.tokens) else "end"

    def spaced(self) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][2]

    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def take(self) -> str:
        if self.done():
            raise Unreadable("ends too early")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, *texts: str) -> bool:
        if not self.done() and self.peek() in texts:
            self.at += 1
            return True
        return False

    def expect(self, *texts: str) -> str:
        if self.done() or self.peek() not in texts:
            raise Unreadable(f"expected {texts[0]!r}, found {self.peek()[:20]!r}")
        return self.take()

    def split(self, first: str) -> None:
        """Replaces the token at the current place by its first part and the rest."""
        kind, word, spaced = self.tokens[self.at]
        if len(word) > len(first):
            self.tokens[self.at : self.at + 1] = [(kind, first, spaced), (kind, word[len(first) :], False)]

    def __enter__(self) -> None:
        """`with reader:` reads one level deeper, and not deeper than MAX_DEPTH."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise OverLimit("nested too deeply")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    # -- groups as text

    def text_ahead(self, skip: int = 0) -> str | None:
        """Returns the text of the braced group that starts `skip` tokens ahead, None where there is none."""
        i = self.at + skip
        if i >= len(self.tokens) or self.tokens[i][1] != "{":
            return None
        depth = 0
        words: list[str] = []
        for _, text, spaced in self.tokens[i:]:
            if text == "{":
                depth += 1
            elif text == "}":
                depth -= 1
                if depth == 0:
                    return "".join(words).strip()
            else:
                words.append((" " if spaced else "") + text)
        return None

    def take_group(self) -> list[str]:
        """Reads a braced group as it stands, without its outer braces."""
        self.expect("{")
        depth = 1
        parts: list[str] = []
        while True:
            token = self.take()
            depth += (token == "{") - (token == "}")
            if depth == 0:
                return parts
            parts.append(token)


def names(text: str, prefix: str = "") -> frozenset[str]:
    """Returns the words of a text as a set, each behind a prefix."""
    return frozenset(prefix + word for word in text.split())


FUNCTIONS = names(
    "sin cos tan cot sec csc arcsin arccos arctan arccot asin acos atan acot sinh cosh tanh coth ln log lg exp "
    "sqrt cbrt abs floor ceil cis ceiling arcsinh arccosh arctanh min max gcd lcm binomial factorial Re Im sgn det arg "
    "erf"
)
NAMED_ELSEWHERE = {
    "tg": "tan", "ctg": "cot", "arctg": "arctan", "arcctg": "arccot", "sh": "sinh", "ch": "cosh", "arsinh": "arcsinh",
    "arcosh": "arccosh", "artanh": "arctanh",
}  # fmt: skip
ALIASES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "ceiling": "ceil", "arccot": "acot"}
GREEK = names(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega hbar ell partial "
    "nabla mho aleph odot oplus dagger star AA"
)
CONSTANTS = {
    "pi": ("const", "pi"),
    "infinity": ("const", "inf"),
    "inf": ("const", "inf"),
    "oo": ("const", "inf"),
    "infty": ("const", "inf"),
}
RELATIONS = {
    "=": "=", "==": "=", "\\equiv": "=", "\\coloneqq": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "!=": "!=",
    "\\lt": "<", "\\gt": ">", "\\le": "<=", "\\leq": "<=", "\\leqslant": "<=", "\\leqq": "<=", "\\ge": ">=",
    "\\geq": ">=", "\\ngtr": "<=", "\\nless": ">=", "\\nleq": ">", "\\ngeq": "<", "\\geqslant": ">=", "\\geqq": ">=",
    "\\ne": "!=", "\\neq": "!=", "\\approx": "~", "\\simeq": "~", "\\sim": "~", "\\doteq": "~", "\\propto": "~",
    "\\in": "in", "\\notin": "notin", "\\to": "to", "\\rightarrow": "to", "\\mapsto": "to", "\\Rightarrow": "to",
    "\\implies": "to", "\\longrightarrow": "to", "\\searrow": "to+", "\\nearrow": "to-",
}  # fmt: skip
ORDER = ("<", ">", "<=", ">=", "!=")
TEXT = names("text textbf textit textrm textnormal mbox textsf texttt hbox textup", "\\")
DECORATED = names(
    "overline vec overrightarrow bar hat tilde widehat dot ddot widetilde overset overleftrightarrow", "\\"
)
STYLED = DECORATED | names(
    "mathrm mathbf mathit mathsf boldsymbol bm mathcal mathscr mathfrak operatorname operatorname* underline boxed "
    "mathbb mathop cancel mathtt",
    "\\",
)
DOTS = frozenset(("\\ldots", "\\dots", "\\cdots", "\\dotsc", "\\dotsb", "...", "\\vdots", "\\ddots"))
MULTIPLY = frozenset(("*", "\\cdot", "\\times", "\\ast", "\\bullet"))
DIVIDE = frozenset(("/", "\\div"))
BIG = frozenset(("\\sum", "\\prod", "\\int", "\\lim", "\\iint", "\\oint"))
_LIMITING = (
    "at most|at least|less|more|greater|fewer|larger|smaller|not|between|under|over|above|below|up to|except|minus|"
    "impossible|extraneous|wrong|incorrect|invalid|undefined|rejected|none|fails?|"
    "или|oder|ou|больше|меньше|mehr|weniger|plus|moins|más|menos"
)
LIMITING = re.compile(rf"\b(?:{_LIMITING})\b", re.I)
"""Words that change what a value says: at most 6 is not 6."""
CHANGED_BEFORE = re.compile(
    rf"\b(?:{_LIMITING}|negative|(?:square|cube|\w+th)? ?root|square of|cube of|twice|thrice|double|triple|half|"
    r"reciprocal|powers? of|multiples? of|divisible|log(?:arithm)?|factorial|sum of|product of|no|base|infinity)\b",
    re.I,
)
"""Such words in front of a value: the square root of 2."""
CHANGED_BEHIND = re.compile(
    rf"\b(?:{_LIMITING}|dozens?|lakh|crore|halves|thirds|quarters|fourths|fifths|sixths|sevenths|eighths|ninths|tenths|"
    r"(?:hundred|thousand|million|billion)ths|and a half|googol|millionen|millones|mill?i[ao]rde?n?|mille|tausend|"
    r"сотен|тыс|тысяч\w*|миллион\w*|миллиард\w*)\b|"
    r"^\s*(?:squared|cubed|factorial)\b",
    re.I,
)
"""Such words behind a value: 5 dozen."""
