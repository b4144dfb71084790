r"""Decides golds that are words, choice letters, times, dates or numbers in a base, before anything is parsed."""

import re

from ba_eval.grade.math.tokens import names

_TEXT_COMMAND = re.compile(
    r"\\(?:text(?:bf|it|rm|normal|sc|sf)?|mathrm|mathbf|mathit|mbox|operatorname|emph)(?![A-Za-z])\s*"
)
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SMALL = {word: value for value, word in enumerate(_ONES)} | {word: 10 * (i + 2) for i, word in enumerate(_TENS)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS = {
    **{"half": 2, "halves": 2, "quarter": 4, "quarters": 4},
    **{f"{word}{s}": n for n, word in enumerate(("third", "fourth", "fifth", "sixth"), 3) for s in ("", "s")},
    **{f"{word}{s}": n for n, word in enumerate(("seventh", "eighth", "ninth", "tenth"), 7) for s in ("", "s")},
}
_WORDY = re.compile(r"[A-Za-z]{3,}")
_MATH_WORDS = re.compile(
    r"(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|cbrt|abs|floor|ceil|pi|inf|infinity|oo|max|min|gcd|lcm|mod|arcsin|arccos|arctan|asin|"
    r"acos|atan|sinh|cosh|tanh|theta|alpha|beta|gamma|lambda|omega|sigma|delta|phi|rho|mu|tau|and|or|percent|percentage|pct|cis)+"
)
_REALS = re.compile(
    r"(?:x is )?(?:(?:the )?set of )?(?:all |any )?(?P<sign>\w+(?: \w+)? )?(?:reals?|real numbers?|real values?)"
)
_SIGNED = {
    "": "\\mathbb{R}",
    "positive": "(0,\\infty)",
    "negative": "(-\\infty,0)",
    "nonnegative": "[0,\\infty)",
    "non negative": "[0,\\infty)",
    "nonpositive": "(-\\infty,0]",
    "non positive": "(-\\infty,0]",
    "nonzero": "(-\\infty,0)\\cup(0,\\infty)",
    "non zero": "(-\\infty,0)\\cup(0,\\infty)",
}
_EXCEPT = re.compile(
    r"(?:x is )?(?:all|any) real (?:numbers|values)(?: of)?\s*(?:\\?\w)?\s*(?:except|other than|but)(?: for| when)?:?"
    r"\s*(?:[a-z]\s*=)?\s*(-?[\w.\\{}/]+)"
)
_NUMBER_SETS = {
    "positive integers": "\\mathbb{Z}^+",
    "positive whole numbers": "\\mathbb{Z}^+",
    "integers": "\\mathbb{Z}",
    "all integers": "\\mathbb{Z}",
    "all positive integers": "\\mathbb{Z}^+",
}


_ALL_WITH = re.compile(
    r"(?:\\(?:text|mathrm)\s*\{\s*)?(?:the\s+set\s+of\s+)?all\s+(?:real\s+)?(?:numbers\s+|values\s+)?(?:of\s+)?\}?\s*(?P<name>[a-z])\s*"
    r"(?:\\(?:text|mathrm)\s*\{\s*)?(?:with|such\s+that|satisfying|where|for\s+which)\s*\}?\s*(?=[^,]*\b(?P=name)\b[^,]*$)",
    re.I,
)
"""All x with -2 < x < 7."""


def in_symbols(text: str) -> str:
    """Writes numbers and sets that stand in words: five, all real numbers except 2."""
    if len(text) > 80 or text.lstrip()[:1] in "-+":
        return text
    if described := _ALL_WITH.match(text):
        return text[described.end() :]
    if (limit := _limit(text)) is not None:
        return limit
    words = plain_words(text)
    if match := _REALS.fullmatch(words):
        return _SIGNED.get((match["sign"] or "").strip(), text)
    if match := _EXCEPT.fullmatch(" ".join(_without_commands(text).lower().split())):
        return f"x \\ne {match[1]}"
    return _NUMBER_SETS.get(words) or _number(words) or text


_FIRST = (
    (r"at most|no more than|not more than|no greater than|not greater than|up to", "\\le"),
    (r"at least|no less than|not less than|no fewer than|not fewer than", "\\ge"),
    (r"more than|greater than|larger than", ">"),
    (r"less than|fewer than|smaller than", "<"),
)
_BEHIND = (
    (r"(?:or|and) (?:more|greater|larger|above|higher)", "\\ge"),
    (r"(?:or|and) (?:less|fewer|smaller|below|lower)", "\\le"),
)
_LIMIT_FIRST = tuple(
    (
        re.compile(
            rf"(?:[a-z]\s*)?(?:\\text\s*\{{)?\s*(?:[a-z]\s+)?(?:is\s+)?(?:{words})\s*(?:\}}\s*|(?<=\s))(?P<value>[-+\d\\(.].*)",
            re.I,
        ),
        sign,
    )
    for words, sign in _FIRST
)
_LIMIT_BEHIND = tuple(
    (re.compile(rf"(?P<value>[-+\d\\(.].*?)(?:\s*\\text\s*\{{|\s)\s*(?:{words})\s*\}}?", re.I), sign)
    for words, sign in _BEHIND
)


def _limit(text: str) -> str | None:
    """Writes at most 6, at least 3, 5 or more as inequalities."""
    for pattern, sign in (*_LIMIT_FIRST, *_LIMIT_BEHIND):
        match = pattern.fullmatch(text.strip())
        if match and not re.search(r"[A-Za-z]{2,}|[<>=]", re.sub(r"\\(?!text|mathrm)[A-Za-z]+", "", match["value"])):
            return f"x {sign} {match['value']}"
    return None


def _number(words: str) -> str | None:
    """Returns the digits of a number in words: twenty one, three hundred and five, two thirds."""
    if words.startswith(("negative ", "minus ")) and (size := _number(words.partition(" ")[2])):
        return f"-{size}"
    words = re.sub(r"^an? (?=hundred|thousand|million|billion|half\b)", "one ", words)
    if words.endswith(" and a half") and (size := _number(words.removesuffix(" and a half"))):
        return f"{size}.5"
    *front, last = words.split() or [""]
    if last in _PARTS and len(front) == 1 and front[0] in ("a", *_ONES[1:]):
        return f"{_SMALL.get(front[0], 1)}/{_PARTS[last]}"
    total = group = 0
    for word in words.split():
        if word in _SMALL:
            value = _SMALL[word]
            # twenty one, hundred and five: what follows must fit into what stands before.
            if group % 10 or (group % 100 and value >= 10) or (group and not value):
                return None
            group += value
        elif word == "hundred" and 0 < group < 10:
            group *= 100
        elif word in _LARGE and group and total % (1000 * _LARGE[word]) == 0:
            total, group = total + group * _LARGE[word], 0
        elif word != "and" or not (total or group >= 100):
            return None
    return str(total + group) if words else None


def _without_commands(text: str) -> str:
    return re.sub(r"[{}$]", " ", _TEXT_COMMAND.sub("", text))


def plain_words(text: str) -> str:
    """Returns the words of a text answer in lower case, without LaTeX and punctuation."""
    text = _TEXT_COMMAND.sub("", text)
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def decide_words(gold: str, answer: str) -> tuple[bool, str] | None:
    """Returns (equal, method) where the gold is no formula; None where it may be one."""
    inner = _TEXT_COMMAND.sub("", gold).replace("{", "").replace("}", "").strip()
    given = _TEXT_COMMAND.sub("", answer).replace("{", "").replace("}", "").strip()
    match = _CHOICE.fullmatch(inner)
    if match and (match[1].isupper() or inner[0] == "("):
        return _choice(match[1].upper(), given, strict="(" not in inner)
    if (
        _CHOICES.fullmatch(inner)
        and _CHOICES.fullmatch(given)
        and list(_letters(inner)) == sorted(set(_letters(inner)))
    ):
        return set(_letters(inner)) == set(_letters(given)), "choice"
    clock, other = _TIME.fullmatch(inner), _TIME.fullmatch(given)
    if clock and not other and (clock[3] or clock[6]) and not _WORDY.search(given):
        return False, "time"
    if clock and other and max(int(c[2] or 0) for c in (clock, other)) < 60:
        return _same_time(clock, other), "time"
    if (date := _date(inner)) is not None:
        return _same_date(date, _date(given)), "date"
    base, other_base = _BASE.fullmatch(inner), _BASE.fullmatch(given)
    if base and other_base:
        return _base(base) == _base(other_base), "base"
    for kind in (_NOTHING, _INFINITE):
        if _is_kind(kind, gold) and _is_kind(kind, answer):
            return True, "text"
    left, right = plain_words(gold), plain_words(answer)
    if left in _YES_OR_NO:
        # "No, because ...": the first word answers, where none of the others takes it back.
        said = right.split()
        taken_back = (_YES_OR_NO - {left} | _SECOND_THOUGHTS) & set(said) or set(said[1:2]) & _CONDITIONS
        return said[:1] == [left] and not taken_back, "text"
    if not _is_text(gold, inner):
        return None
    if left == right or left.replace(" ", "") == right.replace(" ", ""):
        return True, "text"
    return _members(gold) == _members(answer), "text"


def is_wordy(text: str) -> bool:
    """Tells whether a text is words and numbers without a sign of mathematics: Room 12, World War 2."""
    return bool(re.fullmatch(r"[A-Za-z0-9 .,'-]+", _without_commands(text))) and bool(_WORDY.search(text))


# -- words

_NOTHING = re.compile(
    r"(?:there (?:is|are) )?(?:no|zero) (?:real |integer |positive |valid |such )*"
    r"(?:solutions?|values?|numbers?|roots?|integers?|pairs?|triples?|functions?|[a-z])(?: exists?)?|"
    r"(?:has|have) no solutions?|(?:there (?:is|are) )?none(?: exists?)?|dne|empty(?: set)?|"
    r"(?:the )?empty set|emptyset|varnothing|"
    r"(?:it )?does not exist|no such \w+(?: exists?)?|(?:it is )?impossible|not possible"
)
_INFINITE = re.compile(
    r"(?:there (?:is|are) )?(?:infinitely many|infinite(?: number of| many)?|an infinite number of|infty|infinity)"
    r"(?: (?:solutions?|values?|numbers?|primes?|integers?|pairs?|points?))?"
)
_YES_OR_NO = names("yes no true false")
_SECOND_THOUGHTS = names("wait actually hmm sorry mistake")
_CONDITIONS = names("if only unless provided except when")
"""Words that make no plain yes of `Yes, if ...`."""


def _is_kind(kind: re.Pattern[str], text: str) -> bool:
    if kind is _NOTHING and text in ("\\{\\}", "{}", "()"):
        return True
    return not re.search(r"[-(\[]|\\\{.*\S.*\\\}", text) and bool(kind.fullmatch(plain_words(text)))


def _members(text: str) -> list[str]:
    """Returns the names of a list in words, in one order and without articles."""
    parts = (part.strip() for part in re.split(r"\b(?:and|or)\b", plain_words(text.replace(",", " and "))))
    return sorted(re.sub(r"^(?:it is |it s |this is )?(?:the |a |an )?", "", part) for part in parts if part)


def _is_text(gold: str, inner: str) -> bool:
    letters = re.sub(r"[^A-Za-z ]", "", inner).strip()
    if not letters:
        return False
    if (
        re.fullmatch(r"\\(?:text|textbf|textit|textrm|mathrm|mbox)\s*\{[^{}]*\}", gold)
        and len(letters) > 1
        and not re.search(r"\d", inner)
    ):
        return not _MATH_WORDS.fullmatch(letters)
    if re.search(r"[\\=<>^_+*/|]", inner) or re.match(r"[\d(\[{.-]", inner):
        return False
    words = _WORDY.findall(inner)
    return bool(words) and any(not _MATH_WORDS.fullmatch(w.lower()) for w in words) and not re.search(r"\d", inner)


# -- choices

_CHOICE = re.compile(r"\(?([A-Ja-j])\)?")
_CHOICES = re.compile(r"\(?[A-H]\)?(?:\s*(?:,|;|and|&)?\s*\(?[A-H]\)?)+")
_CHOICE_PREFIX = re.compile(
    r"(?:(?:option|choice|answer)\s*(?=.\b))?(?:\(([A-J])\)|([A-J])(?=[).:]|\s*[\d\\$]|\s*$))[).:\s~]*(.*)", re.S | re.I
)
_FURTHER = re.compile(r"(?:or|and|[,;/&])\s*\(?[A-J](?![A-Za-z])")
"""A second letter, as in (A) or (B)."""
_LABELLED = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{\s*\(([A-J])\)\s*\}\s*(?=\S)")


def labelled(gold: str) -> tuple[str, str] | None:
    r"""Returns (letter, value) of a gold that gives both: `\textbf{(B) }12`."""
    match = _LABELLED.match(gold)
    return (match[1], gold[match.end() :]) if match else None


_OWN_CHOICE = re.compile(r"\(([A-J])\)\s*(?=[\d\\$-])")


def own_choice(answer: str) -> tuple[str, str] | None:
    """Returns (letter, value) of an answer that gives both: (C) 12."""
    match = _OWN_CHOICE.match(answer)
    return (match[1], answer[match.end() :]) if match else None


_OPPOSITES = (
    ("increasing", "decreasing"),
    ("concave up", "concave down"),
    ("convex", "concave"),
    ("maximum", "minimum"),
    ("even", "odd"),
    ("clockwise", "counterclockwise"),
    ("inside", "outside"),
    ("above", "below"),
    ("north", "south"),
    ("east", "west"),
)


def says_opposite(gold: str, answer: str) -> bool:
    """Tells whether an answer has one word of a pair and the gold the other: decreasing on (0, 1)."""
    mine, other = f" {plain_words(gold)} ", f" {plain_words(answer)} "
    for pair in _OPPOSITES:
        for one, two in (pair, pair[::-1]):
            if f" {one} " in mine and f" {two} " in other and f" {two} " not in mine and f" {one} " not in other:
                return True
    return False


def without_choice(answer: str) -> str:
    r"""Cuts a choice label before a value: `(C) 12`, `\textbf{(C)} 12`."""
    return re.sub(
        r"^(?:\\(?:text|textbf|mathrm|mathbf)\s*\{\s*\(?[A-J]\)?[.:]?\s*\}|\(?[A-J]\)[.:]?|[A-J][.:](?=\s))\s*(?=\S)",
        "",
        answer,
    )


def _letters(text: str) -> str:
    return "".join(re.findall(r"\b[A-H]+\b", text.replace("and", " ")))


def _choice(letter: str, given: str, strict: bool) -> tuple[bool, str] | None:
    match = _CHOICE_PREFIX.fullmatch(given)
    if match:
        return (match[1] or match[2]).upper() == letter and not _FURTHER.match(match[3]), "choice"
    if _CHOICE.fullmatch(given):
        return given.strip("()").upper() == letter, "choice"
    return None if strict else (False, "choice")


# -- times and dates

_TIME = re.compile(r"(\d{1,2}):(\d{2})\s*((?:[ap]\.?\s?m\.?|noon)?)|(\d{1,2})()\s*([ap]\.?\s?m\.?)", re.I)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATE = re.compile(
    rf"(?:\w+day,?\s+)?(?:{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?|(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH})"
    r"(?:,?\s+(\d{4}))?",
    re.I,
)


def _same_time(gold: re.Match[str], answer: re.Match[str]) -> bool:
    (hour, minute, half), (other_hour, other_minute, other_half) = map(_time, (gold, answer))
    if minute != other_minute:
        return False
    # Where one side leaves the half of the day out, the hours as written count.
    return hour == other_hour if not half or not other_half else _of_day(hour, half) == _of_day(other_hour, other_half)


def _time(match: re.Match[str]) -> tuple[int, int, str]:
    """Returns (hour as written, minute, half of the day); 15:30 says the half by itself."""
    hour, minute = int(match[1] or match[4]), int(match[2] or "0")
    half = re.sub(r"[^ap]", "", (match[3] or match[6] or "").lower().replace("noon", "p"))
    return hour, minute, "24" if hour > 12 or hour == 0 else half


def _of_day(hour: int, half: str) -> int:
    return hour if half == "24" else hour % 12 + (12 if half == "p" else 0)


def _date(text: str) -> tuple[int, int, str] | None:
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    month = _MONTHS.index((match[1] or match[4])[:3].lower()) + 1
    return month, int(match[2] or match[3]), match[5] or ""


def _same_date(gold: tuple[int, int, str], answer: tuple[int, int, str] | None) -> bool:
    """The year may be left out."""
    return answer is not None and gold[:2] == answer[:2] and (gold[2] == answer[2] or not gold[2] or not answer[2])


# -- number bases

_BASE = re.compile(r"\(?([0-9A-F]+)\)?\s*_\s*(?:base\s*)?\(?(\d+|[a-z]+)\)?", re.I)


def _base(match: re.Match[str]) -> tuple[str, str]:
    return match[1].lstrip("0").upper(), _number(match[2].lower()) or match[2]
