r"""Brings the many spellings of one answer to one: Unicode, LaTeX spacing and styling, currency, separators."""

import re
import unicodedata
from functools import lru_cache

MAX_LENGTH = 4000
"""Longer answers are compared as text only."""

_UNICODE = {
    "−": "-", "–": "-", "—": "-", "﹣": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ",
    "÷": r"\div ", "∗": "*", "π": r"\pi ", "∞": r"\infty ", "√": r"\sqrt ", "≤": r"\le ", "≥": r"\ge ",
    "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "≡": r"\equiv ", "∪": r"\cup ", "∩": r"\cap ",
    "∈": r"\in ", "∅": r"\emptyset ", "±": r"\pm ", "∓": r"\mp ", "°": r"^\circ ", "º": r"^\circ ", "θ": r"\theta ",
    "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "λ": r"\lambda ", "μ": r"\mu ", "µ": r"\mu ",
    "ω": r"\omega ", "φ": r"\phi ", "ϕ": r"\phi ", "σ": r"\sigma ", "τ": r"\tau ", "ρ": r"\rho ", "ε": r"\epsilon ",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "…": r"\ldots ", "⌊": r"\lfloor ", "⌋": r"\rfloor ",
    "⌈": r"\lceil ", "⌉": r"\rceil ", "∶": ":", "：": ":", "，": ",", "；": ";", "（": "(", "）": ")", "⟨": r"\langle ",
    "⟩": r"\rangle ", "′": "'", "“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u2009": r"\,",
    "\u202f": r"\,", "\u2061": "", "\u200b": "", "\ufeff": "", "€": r"\$", "£": r"\$", "¥": r"\$", "₹": r"\$",
    "↔": " ", "℃": r"^\circ C", "℉": r"^\circ F", "∖": r"\setminus ", "¢": r"\text{ cents}", "∴": " ", "Ω": r"\Omega ",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")

_STYLE = re.compile(
    r"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|left|right|mleft|mright|middle|"
    r"bigl?|bigr?|Bigl?|Bigr?|biggl?|biggr?|Biggl?|Biggr?|bigm|Bigm|boldmath|bf|rm|it|sf|large|Large|normalsize)(?![A-Za-z])\.?"
)
_FRACTION = re.compile(r"\\(?:d|t|c|s|x|nice)frac(?![A-Za-z])")
_SLANTED = re.compile(r"\^\s*\{?\s*(\d+)\s*\}?\s*/\s*_\s*\{?\s*(\d+)\s*\}?")
_MINUS_SIGN = re.compile(r"\\(?:text\s*\{\s*[-−–]\s*\}|textminus(?![A-Za-z]))")
_REMARK = re.compile(
    r"\s*(?:\\text\s*\{\s*[.,;]\s*\}|\\checkmark|[✓✔✅]|(?:\\(?:text|mathrm)\s*\{)?\s*\((?:approximately|approx\.?|exactly|rounded[^()]*)\)\s*\}?)\s*$"
)
_BINOMIAL = re.compile(r"\\(?:d|t)binom(?![A-Za-z])")
_SPACES = re.compile(r"(?:(?<!\\)\\(?:[,;:>! ]|q?quad|enspace(?![A-Za-z])|hspace\*?\{[^{}]*\})|[~\s])+")
_DELIMITERS = re.compile(r"\\[()\[\]]|(?<!\\)\$")
_THOUSANDS = re.compile(
    r"(?<=\d)\s*(?:\{\s*,\s*\}|,\\!|\\,|\\;|\\!|,\\,|\{\\,\}|\\ |_(?=\d{3}(?:_\d{3})*$)|'(?=\d{3}(?:'\d{3})*$))\s*"
    r"(?=\d{3}(?!\d))"
)
_GROUPED_DECIMALS = re.compile(r"\d\.\d{3}(?:\s*(?:\\[,;! ]|\{\\,\})\s*\d{1,3})+(?!\d)")
_CURRENCY = re.compile(
    r"(?:(?<![A-Za-z])(?:US|AU|CA|NZ|HK|A|C|S)\s*)?(?:\\\$)|\\(?:pounds|euro|yen|textdollar|texteuro|textsterling)(?![A-Za-z])\s*(?:\{\})?"
)
_CURRENCY_WORD = re.compile(r"^(?:Rs\.?|US|USD|EUR|GBP|INR|CNY|RMB|JPY|CAD|AUD|CHF)\s*(?=[\d.])")
_COLOR = re.compile(r"\\(?:color|textcolor|colorbox)\s*\{\w+\}")
_BASE_WORD = re.compile(
    r"(?<=[0-9A-F)])\s*(?:\(|\\(?:text|mathrm)\s*\{\s*\(?)?\s*(?:in\s+)?base[\s-]*(?:\}\s*)?(\d+|[a-z]+)\s*[)}]*$", re.I
)
_COMBINATIONS = re.compile(
    r"(?:\{\s*\})?[\^_]\s*\{?\s*(\d{1,3}|\w)\s*\}?\s*C\s*_\s*\{?\s*(\d{1,3}|\w)\s*\}?|(?<![A-Za-z])C\s*(?:_\s*\{?(\d+)\}?\s*\^\s*\{?(\d+)\}?|"
    r"\^\s*\{?(\d+)\}?\s*_\s*\{?(\d+)\}?)"
)
_SPACED_EQUATIONS = re.compile(r"(?<=[\w})])\s*\\q?quad(?![A-Za-z])\s*(?=[A-Za-z](?:_\w+)?\s*=)")
"""The space between x = 4 and y = 6."""
_ONE_SIDED = re.compile(r"\\(?:to|rightarrow)(?![A-Za-z])([^{}^]{1,40})\^\s*(?:\{\s*([-+])\s*\}|([-+]))(?=\s*\})")
"""The end of `x \\to 0^+`."""
_PHANTOM = re.compile(r"\\(?:phantom|hphantom|vphantom|label|tag)\*?\{[^{}]*\}")
_WRAPPED = re.compile(
    r"\\+(?:boxed|fbox|framebox|ensuremath|underline|mathbf|boldsymbol|bm|mathit|mathsf|textcolor\{\w+\})\s*\{(.*)\}\s*[.,]?",
    re.S,
)
_DOUBLED = re.compile(
    r"(?<!\\)\\\\(?=(?:d|t|c)?frac|sqrt|text|pi(?![a-z])|boxed|left|right|le(?![a-z])|ge(?![a-z])|cdot|times|cup|infty|pm|circ)"
)
_SPACED_DIGITS = re.compile(r"\\(?:mathbf|textbf|boldsymbol|mathrm)\s*\{\s*([-+]?[\d ]*\d[-+\d .,]*)\}")
_BOLD_DIGITS = re.compile(r"\\(?:mathbf|boldsymbol)\s*\{([^{}]*\d[^{}]*)\}")
_DECIMAL_BRACE = re.compile(r"(?<=\d)\s*\{\s*[,.]\s*\}\s*(?=\d)")
_TEXT_ALL = re.compile(r"\\(?:text|textbf|mathrm|mbox|textrm)\s*\{([^{}]*\d[^{}]*)\}")
_TEXT_BEFORE = re.compile(
    r"^(?:\\(?:text|textbf|mathrm|mbox)\s*\{[^{}]*[:=]\s*\}|\\approx(?![a-z])|\\sim(?:eq)?(?![a-z])|[=≈:]|\(\s*[a-z](?:\s*,\s*[a-z])+\s*\)\s*:\s*(?=\()|"
    r"(?:the\s+)?(?:final\s+)?answer\s*(?:is|:)\s*:?)\s*",
    re.I,
)
_RATIO_WORD = re.compile(r"(?<=\d)\s*(?:\\text\s*\{\s*to\s*\}|(?<=\s)to)\s*(?=\d)")
_OUT_OF = re.compile(r"^(\d+)\s*(?:\\text\s*\{\s*out of\s*\}|(?<=\s)out of)\s*(\d+)$")
_MODULE = re.compile(r"(?<![A-Za-z])(?:np|numpy|math|sp|sympy|cmath)\.(?=[a-z])")
_ORDINAL = re.compile(r"(?<=\d)\s*\^\s*\{?\s*\\(?:text|mathrm|textrm)\s*\{\s*(?:st|nd|rd|th)\s*\}\s*\}?")
_MOD_IN_BRACKETS = re.compile(
    r"\(\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*mod\s*\}|\\b?mod(?![A-Za-z])|mod(?![A-Za-z]))\s*([^()]{1,40})\)"
)
_MOD_WORD = re.compile(r"\\text\s*\{\s*mod(?:ulo)?\s*\}")
_MINUS_WORD = re.compile(
    r"^(?:(?:negative|minus)\s+(?=\d)|\\text\s*\{\s*(?:negative|minus)\s*\}\s*(?=[\da-z\\]))", re.I
)
_TRANSPOSED = re.compile(r"^([(\[][^()\[\]]*[,;][^()\[\]]*[)\]])\s*\^\s*\{?\s*(?:T|\\top)\s*\}?$")
"""A row that is set upright: `(1, 2)^T`."""
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SCALE_WORD = re.compile(
    r"(?<=\d)\s*(\\(?:text|mathrm)\s*\{)?\s*(hundred|thousand|million|billion|trillion)\b\s*(\})?", re.I
)
_TIMES_LETTER = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*(?:\^|\*\*))")
_FOREIGN_OPEN = re.compile(r"(?:(?<=\\in)|(?<![\w)}\]]))\s*([\[\](])([^\[\]()]*[,;][^\[\]()]*)([\[\])])(?![\w(])")
_GLUED = re.compile(r"(?<=[\d)}\]])(or|and)(?=[A-Z\d(\\])")
_STARS = re.compile(r"^\*+|(?<![\^{*])\*+$")
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_REPAIRS = (
    ("\x0crac", r"\frac"),
    ("\times", r"\times"),
    ("\text", r"\text"),
    ("\x08eta", r"\beta"),
    ("\theta", r"\theta"),
    ("\rho", r"\rho"),
)


_BEFORE, _BEHIND = r"(?<=[0-9A-Za-z)}$])\s*", r"\s*(?=[-+0-9A-Za-z\\($])"
_AND_WORDS = "以及|或者|和|或|及|или|и"
_FOREIGN_AND = re.compile(rf"{_BEFORE}(?:\\text\s*\{{\s*(?:{_AND_WORDS})\s*\}}|(?:{_AND_WORDS}|、)){_BEHIND}")
_LATIN_AND = re.compile(
    r"(?<=[\d)}])\s*(?:(?:\\text\s*\{\s*(?:et|ou|und|oder|y|o)\s*\}\s*|(?<=\s)(?:et|ou|und|oder)\s+)(?=[-+\d(\\]|[a-z]\s*=)|"
    r"(?<=\s)y\s+(?=\d|[a-z]\s*=))"  # y may be a letter as well: 2 y + 2
)
"""`and` and `or` in other languages, between two values."""
_CHINESE_UNITS = {
    **{"毫米": "mm", "厘米": "cm", "分米": "dm", "千米": "km", "公里": "km", "米": "m"},
    **{"平方厘米": "cm^2", "平方米": "m^2", "立方厘米": "cm^3", "立方米": "m^3", "升": "l", "毫升": "ml"},
    **{"公斤": "kg", "千克": "kg", "克": "g", "吨": "tonne", "小时": "hours", "分钟": "minutes", "秒": "seconds"},
}
_CHINESE_UNIT = re.compile(rf"(?<=[\d}}])\s*({'|'.join(sorted(_CHINESE_UNITS, key=len, reverse=True))})[。.]?$")
_COUNTER = re.compile(
    r"(?<=[\d}])\s*[元个個人只条本天倍岁张次名位颗支箱辆棵种组页根头匹双瓶杯盒袋朵座台架艘]。?$|(?<=[\d}])\s*(?:개|명|권|마리|번|원|살|장|대|가지)[.。]?$"
)
"""Chinese counters and units, which are no more than that."""
_ROW_SPACE = re.compile(r"(\\\\)\*?[ \t]?\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in|bp|pc|sp|mu)\s*\]")
"""The height of a line's end, as in `\\\\[2pt]`."""


_MAPPING = re.compile(r"^([a-zA-Z])\s*(?::|\\colon)\s*([a-z])\s*\\mapsto\s*")
_RESPECTIVELY = re.compile(r"[,\s]*(?:\\text\s*\{\s*,?\s*respectively[\s.]*\}|\brespectively\b)[\s.]*$")
_PART_LABEL = re.compile(r"(?:^|[\s;,.}$]|\\[ ,;]|\\q?quad)\s*(?:\\text\s*\{\s*)?\(?([a-h])\)\s*\}?\s*(?:[.:]|\\ )?\s*")


def _without_labels(s: str) -> str:
    """Writes (a) 3; (b) 2 as a = 3, b = 2."""
    first, *rest = _PART_LABEL.split(s)
    labels, parts = rest[::2], [re.sub(r"(?:[;,.\s]|\\ |\\q?quad)+$", "", part) for part in rest[1::2]]
    if len(parts) < 2 or not all(parts) or first.strip() or "".join(labels) != "abcdefgh"[: len(labels)]:
        return s
    named = not any(re.search(r"[=<>]|\\(?:[lg]eq?|in|text)(?![A-Za-z])", part) for part in parts)
    return ", ".join(f"{label}={part}" if named else part for label, part in zip(labels, parts, strict=True))


def clean(answer: str) -> str:
    """Returns the answer with one spelling for what means the same; linear in its length."""
    if len(answer) > MAX_LENGTH:
        return answer.strip()
    return _clean(answer)


@lru_cache(maxsize=4096)
def _clean(s: str) -> str:
    for bad, good in _REPAIRS:
        if bad in s:
            s = s.replace(bad, good)
    if not s.isascii():
        s = _unicode(s)
    s = _CONTROL.sub("", s).strip()
    s = _LATIN_AND.sub(", ", _REMARK.sub("", s))
    if "_" in s and "/" in s:
        s = _SLANTED.sub(r"\\frac{\1}{\2}", s)
    if "\\" in s or "$" in s:
        s = re.sub(r"\\cr(?![A-Za-z])", r"\\\\", _ROW_SPACE.sub(r"\1", s))
        s = _MINUS_SIGN.sub("-", s).replace(r"\surd", r"\sqrt")
        s = _CURRENCY.sub("", s).replace("\\%", "%").replace("\\#", "#").replace("\\&", "&")
        s = _DOUBLED.sub(r"\\", s)
        s = _SPACED_DIGITS.sub(lambda m: "".join(m[1].split()), s)
        s = _BOLD_DIGITS.sub(lambda m: "{" + re.sub(r"(?<=\d) (?=\d)", "", m[1]) + "}", s)
        s = _COLOR.sub("", s)
        while (match := _WRAPPED.fullmatch(s)) and _balanced(match[1]):
            s = match[1].strip()
        s = _DELIMITERS.sub(" ", s)
        s = _SPACED_EQUATIONS.sub(", ", _PHANTOM.sub("", s))
        s = _ONE_SIDED.sub(lambda m: (r"\searrow" if "+" in m[0] else r"\nearrow") + m[1], s)
        s = _FRACTION.sub(r"\\frac", s)
        s = _BINOMIAL.sub(r"\\binom", s)
        s = _STYLE.sub(" ", s)
        s = _MOD_WORD.sub(r"\\bmod ", _ORDINAL.sub("", s))
    s = re.sub(r"(?<=\d)\s*\\colon\s*(?=\d)", ":", s.replace("*I", "*i")) if "\\colon" in s or "*I" in s else s
    if "mapsto" in s:
        s = _MAPPING.sub(r"\1(\2)=", s)
    if "mod" in s:
        s = _MOD_IN_BRACKETS.sub(r"\\pmod{\1}", s)
        s = re.sub(r"(?<=[\d)}\s])\bmod\s+(?=[\da-z]+$)", r"\\bmod ", s)
    s = _CURRENCY_WORD.sub("", s)
    s = _GROUPED_DECIMALS.sub(lambda m: re.sub(r"[^\d.]", "", m[0]), s)
    s = _THOUSANDS.sub("", s)
    s = _DECIMAL_BRACE.sub(".", s)
    s = _OUT_OF.sub(r"\\frac{\1}{\2}", s)
    s = _RATIO_WORD.sub(":", s).replace(":=", "=")
    if "." in s:
        s = _MODULE.sub("", s)
    if "respectively" in s:
        s = _RESPECTIVELY.sub("", s)
    if s.lstrip("(\\tex{").startswith("a)"):
        s = _without_labels(s)
    if match := _TEXT_ALL.fullmatch(s):
        s = match[1].strip()
    s = _TEXT_BEFORE.sub("", s)
    s = _MINUS_WORD.sub("-", s)
    if s.endswith(("T", "T}", "top", "top}")):
        s = _TRANSPOSED.sub(r"\1", s)
    s = _SCALE_WORD.sub(_scale, s)
    if "base" in s:
        s = _BASE_WORD.sub(r"_{\1}", s)
    if "C" in s:
        s = _COMBINATIONS.sub(_binomial, s)
    s = _TIMES_LETTER.sub(r"\\times ", s)
    if "]" in s or "[" in s:
        s = _FOREIGN_OPEN.sub(lambda m: ("(" if m[1] == "]" else m[1]) + m[2] + (")" if m[3] == "[" else m[3]), s)
    if "or" in s or "and" in s:
        s = _GLUED.sub(r" \1 ", s)
    s = _SPACES.sub(" ", s).strip()
    s = s.strip('`" ')
    s = _STARS.sub("", s).strip('`" ')
    if s.startswith("'"):
        s = s.strip("' ")
    while s and s[-1] in ".,;:\\" and not s.endswith("..."):
        s = s[:-1].rstrip()
    while s.startswith("{") and s.endswith("}") and _balanced(s[1:-1]):
        s = s[1:-1].strip()
    return s


def _scale(match: re.Match[str]) -> str:
    """Writes million as a factor; further words of the same group stay in it: `5 \\text{ million dollars}`."""
    opened, word, closed = match.groups()
    rest = opened + " " if opened and not closed else closed if closed and not opened else ""
    return rf" \cdot 10^{{{_SCALES[word.lower()]}}}{rest}"


def _binomial(match: re.Match[str]) -> str:
    """Writes the older signs for combinations, ⁿCₖ, C(n over k) and its transposed form, as a binomial."""
    if match[1]:
        return rf"\binom{{{match[1]}}}{{{match[2]}}}"
    n, k = sorted((int(match[3] or match[5]), int(match[4] or match[6])), reverse=True)
    return rf"\binom{{{n}}}{{{k}}}" if n > 2 else match[0]


def _unicode(s: str) -> str:
    s = _CHINESE_UNIT.sub(lambda m: rf"\text{{ {_CHINESE_UNITS[m[1]]}}}", s)
    s = _COUNTER.sub("", _FOREIGN_AND.sub(", ", s))
    s = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+", lambda m: "^{" + m[0].translate(_SUPERSCRIPTS) + "}", s)
    s = re.sub("[₀₁₂₃₄₅₆₇₈₉]+", lambda m: "_{" + m[0].translate(_SUBSCRIPTS) + "}", s)
    s = re.sub("√\\s*(\\d+|[A-Za-z])", r"\\sqrt{\1}", s)
    s = re.sub("∛\\s*(\\d+|[A-Za-z]|(?=[({]))", lambda m: r"\sqrt[3]" + (f"{{{m[1]}}}" if m[1] else ""), s)
    s = re.sub("(?<=\\d)(?=[¼½¾⅐-⅞])", " ", s)
    s = "".join(_UNICODE.get(c, c) for c in s)
    return s if s.isascii() else unicodedata.normalize("NFKC", s).replace("⁄", "/")


def _balanced(s: str) -> bool:
    depth = 0
    for token in re.finditer(r"\\.|[{}]", s, re.S):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0
