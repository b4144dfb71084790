r"""Sentences that state a value, and the formulas in them."""

import re

from ba_eval.extract.math_denials import OTHER_REFUTED, PLAIN_VALUE, VALUE, VALUE_REFUTED

MATH_SPAN = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(\\begin\{(?:align|aligned|equation|gather|alignat|eqnarray)\*?\}.+?\\end\{\w+\*?\})|"
    r"(?<!\\)\$((?:[^$\\\n]|\\.)+?)(?<!\s)\$(?!\d)|"
    # Space before the closing dollar: mathematics, unless it holds words, as in "from $5 to $10".
    r"(?<!\\)\$((?:[^$\\\nA-Za-z]|\\[A-Za-z]+(?:\{[A-Za-z ]*\})*|\\.|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))+?)\$(?!\d)",
    re.S,
)
BOLD = re.compile(r"\*\*([^*\n]{1,200}?)\*\*")


def span_text(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


_TAGS = re.compile(r"</?(?:b|strong|i|em|u|span|p|br)\b[^<>]{0,80}>", re.I)
_OF_THEM = re.compile(r"(?<=\w)\s+(?:of\s+(?:them|these|those)|in\s+(?:all|total)|altogether)\W*$", re.I)


DESCRIBED = re.compile(
    r"(?:(?:the\s+)?(?:remainder\s+(?:when|of|left|after)|(?:last|units?|ones|tens|rightmost)\s+(?:\w+\s+)?digits?\s+of|"
    r"(?:(?:square|cube)(?:\s+root)?|reciprocal|inverse|negative|factorial|sine|cosine|tangent|logarithm|half)\s+of|"
    r"number\s+(?:with|whose|that)|\d+\s+(?:times|(?:less|more|fewer|greater)\s+than)\s+the|"
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten)\s+(?:less|more|fewer|greater)\s+than|"
    r"(?:one|two|three|four)[\s-](?:half|halves|thirds?|quarters?|fourths?|fifths?)\s+of|"
    r"(?:all\s+)?(?:\w+\s+){0,3}(?:divisors?|factors?|multiples?|primes?|subsets?)\s+(?:of|after|before|below|above|up\s+to)|"
    r"(?:sum|product|difference|quotient|number)\s+of\s+(?:the\s+)?(?:first\s+|all\s+)?\S+\s+[a-z]{3,}|"
    r"\d+(?:st|nd|rd|th)\s+[a-z]+)"
    r"|one\s+of\s+the|an?\s+(?:[\w-]+\s+){0,2}(?:number|integer|multiple|power|divisor|factor|prime|value)\s+"
    r"(?:ending|starting|beginning|divisible|between|less|greater|larger|smaller|of|with|that|which|whose|in|from))\b"
    r"(?:.*?(?:\bwhich\s+(?:is|equals)|\bnamely|\bi\.e\.,?|:|,(?=\s*[-\d$][^,]*$))\s*(?P<value>\S.*))?",
    re.I,
)
"""The answer is the remainder when ..., the square root of ...: what is yet to be worked out, or follows."""
VERB_OF_VALUE = re.compile(r"\bis\s+(?!divided)|=|\bequals?\b")
DIVIDED = re.compile(r"\bremainder\s+(?:when|of|left|after)\b.*\bdivided by \S+\W*$", re.I | re.S)
"""A sentence that ends with what is divided, and by what."""


_PREPOSITION = re.compile(r"^(?:(?:[a-z]+(?:ed|ing)|found|taken)\s+)?(?:at|by|when|as)\s+(?=[-\d\x00(])")
_RELATION = r"\s*(?:=|[<>]=?|[≤≥])\s*"
_NAMED = re.compile(
    rf"\b[A-Za-z](?:_\w+)?{_RELATION}{VALUE}(?:(?:\s*[,;]\s*|\s+)(?:(?:and|or)\s+)?[A-Za-z](?:_\w+)?{_RELATION}{VALUE})+$"
)
"""x = 5 or x = -2, at the end of a sentence."""
_SOLVED = re.compile(
    r"(?<![\w$])(?!(?i:if|for|when|where|at|let|with|suppose|assume|assuming|taking|setting|than|not)\b)[A-Za-z]+[,:]?\s+"
    rf"(?P<equation>[A-Za-z](?:_\w+)?(?:\s*[-+*]\s*[A-Za-z](?:_\w+)?){{0,3}}{_RELATION}[-−+]?{PLAIN_VALUE})$"
)
"""Therefore, x = 5."""
_SUPPOSED = re.compile(
    rf",?\s+(?:if|when|at|suppose|assume|assuming)\s+(?:[A-Za-z]\s*=\s*{VALUE}|\x00(?P<span>\d+)\x00)\W*$", re.I
)
"""... if x = 5, at the end of a sentence."""
_DOMAIN = re.compile(
    r"(?<=\x00),?\s+(?:in|on|over|for)\s+(?:the\s+(?:interval|domain|range)\s+)?\x00(?P<span>\d+)\x00\W*$"
)
_INTERVAL = re.compile(r"\\?(?:left)?\s*[\[(][^,]*,[^,]*[\])]|.*(?:\\in|\\leq?|<).*", re.S)
"""x = 5 or x = 7 in [0, 9): the interval, or the condition, is no value."""
_PLACE = re.compile(r"=|^\\?(?:left)?\(")
_ATTAINED = re.compile(
    r"(?<=[\d\x00)]),?\s+(?:and\s+)?(?:(?:it|this|that|which)\s+)?(?:(?:is|are)\s+)?(?:attained|achieved|reached|"
    r"occur(?:s|ring)|happens)\b[^\d\x00]*\b(?:at|when|for|if|by|with|where)\s"
    rf"(?:[^\x00\d,]{{0,40}}{VALUE}){{0,3}}\W*$",
    re.I,
)

_BOILERPLATE = re.compile(
    r"<\|[^|]{1,30}\|>.*|\bI hope (?:it|this) is correct\.?|Let me know if.*",
    re.S | re.I,
)
SENTENCE_END = re.compile(
    r"(?<=[\w})\]%\x00!\"'])(?<!\bi\.e)\s?[.](?=\s|\*|$)|(?<=[a-z)\x00])!(?=\s|$)|\n+|\s[—–]\s|(?<=\x00)\s+(?=(?:Therefore|Thus|Hence|So|The|Final|Answer)\b)"
)
_VERB = re.compile(r"\b(?:is|are|was|be|equals?|equal to|becomes?|yields?|gives?|get|obtain|have)\b|=(?![^\x00]*\x00)")
WORD = re.compile(r"[A-Za-z]{2,}")
MONEY = r"\\?[$€£]\s?\d[\d,]*(?:\.\d+)?(?![\w.]*\d)"
NUMBER = re.compile(
    r"(?<![\w.,])(?!\d+(?:st|nd|rd|th)\b)(?:\\?\$|[€£])?\s?[-−]?\s?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,/]\d+)*|\.\d+)(?:\s*\\?%|\s*percent\b)?"
)


_NAMES = re.compile(r"\w|\\?[({]\s*\w(?:\s*,\s*\w)*\s*\\?[)}]")
_COMBINED = re.compile(r"\w(?:\^\S+)?\s*[-+*]\s*\w.*")
_SPAN_MARK = re.compile(r"\x00(\d+)\x00")


class Masked:
    """Text whose math spans are replaced by a mark each, so that prose can be told from formulas."""

    def __init__(self, text: str) -> None:
        self.spans: list[re.Match[str]] = []
        self.text = MATH_SPAN.sub(self._keep, text.replace("\x00", ""))

    def _keep(self, match: re.Match[str]) -> str:
        self.spans.append(match)
        return f"\x00{len(self.spans) - 1}\x00"

    def listed(self, sentence: str) -> str | None:
        """Returns the formulas that end a sentence: all of x = 5 or x = -2, the last of r = 1/2, and p + q = 3."""
        found = SPAN_LIST.search(sentence)
        if found is None:
            return None
        names = [span_text(self.spans[int(n)]).partition("=") for n in _SPAN_MARK.findall(found[0])]
        named = [name.strip() for name, equals, _ in names if equals]
        if len(named) == len(names) > 1 and re.fullmatch(r"[A-Za-z]{1,2}", named[-1]) and _steps(names, named[-1]):
            # n - 2 = 9, and n = 11: steps towards the last.
            return "=".join((names[-1][0], names[-1][2])).strip()
        if (
            len(names) > 1
            and names[-1][1]
            and _COMBINED.fullmatch(named[-1])
            and all(map(_NAMES.fullmatch, named[:-1]))
        ):
            # r = 1/2 (or 1/2 alone), and p + q = 3.
            return "=".join(part for part in (names[-1][0], names[-1][2])).strip()
        return self.shown(found[0].strip(" ."))

    def shown(self, masked: str) -> str:
        """Returns a piece of the masked text with its math in place; a lone span without its dollars."""
        whole = re.fullmatch(r"\x00(\d+)\x00", masked.strip())
        if whole:
            return span_text(self.spans[int(whole[1])])
        return _SPAN_MARK.sub(lambda m: " " + span_text(self.spans[int(m[1])]) + " ", masked).strip()


def _steps(equations: list[tuple[str, str, str]], letter: str) -> bool:
    """Tells whether all equations but the last are about expressions in its letter, none about a name by itself."""
    return all(
        re.search(r"[-+\d^{(]", left) and re.search(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", left + right)
        for left, _, right in equations[:-1]
    )


SPAN_LIST = re.compile(r"\x00\d+\x00(?:\s*(?:[,;]\s*(?:and|or)?|and|or)\s*\x00\d+\x00)*[\s.]*$")
"""The formulas that end a sentence: x = 5 or x = -2."""
_AS_DESIRED = re.compile(
    r",?\s+as\s+(?:desired|required|claimed|expected|needed|wanted|stated|above|before)\b.*$", re.S
)
NEXT_STATEMENT = r";\s+(?:the|another|others?|however|but|note)\s(?!.*\b(?:so|thus|hence|therefore|answer)\b)"
"""The smallest is 7; the next one is 12."""
_REMARK = re.compile(
    rf"(?<=\S),?\s+(?:(?:because|since|where|which|as)\b|i\.\s?e\.)|(?<=\S)\s+\((?=[a-z]{{2}})|{NEXT_STATEMENT}|"
    # 12, with 8 from the one and 4 from the other; 12: 8 from the one plus 4 from the other.
    r"(?<=[\d\x00)]),\s+with\s|(?<=[\d\x00)]):\s+(?=[^\n]*[a-z]{3})"
)


def stated(line: str) -> str | None:
    """Returns what a line states as an answer: all of it, or the value at the end of a sentence in prose."""
    masked = Masked(without_boilerplate(line))
    sentence = _ATTAINED.sub("", first_sentence(masked.text))
    sentence = without_where(corrected(_REMARK.split(sentence)[0].strip()), masked)
    if not sentence:
        return None
    return _OF_THEM.sub("", value_of(sentence, masked) or masked.shown(trim(sentence))) or None


def without_where(sentence: str, masked: Masked) -> str:
    """Cuts where a value is taken, at the end of a masked sentence: 15 when x = 3, attained at x = 3."""
    sentence = _ATTAINED.sub("", sentence)
    domain = _DOMAIN.search(sentence)
    if domain and _INTERVAL.fullmatch(span_text(masked.spans[int(domain["span"])])):
        sentence = sentence[: domain.start()]
    supposed = _SUPPOSED.search(sentence)
    if supposed and (supposed["span"] is None or _PLACE.search(span_text(masked.spans[int(supposed["span"])]))):
        before = sentence[: supposed.start()]
        return before if re.search(r"[\d\x00]", before) else sentence
    return sentence


_VALUE_OR_CHOICE = rf"(?:{VALUE}|\(?(?-i:[A-J])\)?(?!\w))"
_NOT_BUT = re.compile(
    rf"\bnot\s+{_VALUE_OR_CHOICE}(?:\s+[a-z]+)?\s*[,;]?\s+but\s+(?:(?:rather|instead|actually)\s+)?"
    rf"(?={_VALUE_OR_CHOICE})",
    re.I,
)
_BUT_NOT = re.compile(
    rf"(?:(?<=[\d\x00)%\]}}]),?|(?<=\w),|(?<=\b[A-J]))\s+(?:(?:and|but)\s+)?"
    rf"(?:not|rather than|instead of)\s+{_VALUE_OR_CHOICE}(?:\s+[a-z]+)*\W*$",
    re.I,
)


_UNIT_BUT_NOT = re.compile(rf"(?<=\d)(\s[A-Za-z/]+)(?:,|,?\s+(?:and|but))\s+not\s+{VALUE}(?:\s+[A-Za-z/]+)?\W*$", re.I)
"""5 minutes and not 10 minutes."""
_WORD_NOT_WORD = re.compile(r"([A-Z]\w+)(?:,|\s+and)\s+not\s+[A-Z]\w+\W*")
"""Tuesday, not Monday."""


def corrected(sentence: str) -> str:
    """Cuts the value that a masked sentence takes back where it states another: `not 10, but 12`, `11, not 10`."""
    kept = _UNIT_BUT_NOT.sub(r"\1", _NOT_BUT.sub("", sentence))
    without = OTHER_REFUTED.sub("", _BUT_NOT.sub("", kept))
    if word := _WORD_NOT_WORD.fullmatch(kept):
        return word[1]
    return without if re.search(r"[\d\x00]|\b[A-J]\b", without) else kept


def first_sentence(masked: str) -> str:
    return next((s for s in SENTENCE_END.split(masked) if s and s.strip(" *_")), "").strip()


DECORATION = "".join(map(chr, range(0x1F300, 0x1FB00))) + "✅✔✓⭐✨\ufe0f"
"""Pictures that praise an answer."""


def trim(piece: str) -> str:
    piece = piece.replace('\\"', '"').strip().strip('*_`" ')
    return piece.rstrip(DECORATION + ".,;:。．！ ").strip()


_FOR_SOME = re.compile(rf"^({VALUE})\s+(?:for|after|at|from|over|during)\s+(?:[a-z]+\s+)?\d[^\x00]*$", re.I)
"""... is 6 for 3 disks."""
_FOR_ALL = re.compile(r"(?<=\x00),?\s+for\s+(?:all|every|any|each)\s+(?:[a-z]+\s+){0,2}\x00(\d+)\x00")
_MEASURED = re.compile(
    r"(?<![\x00])\W(\x00\d+\x00)\s+(degrees?|radians?|(?:square|cubic)\s+\w+|units?|percent)[\s.!]*$"
)
"""So $A = 30$ degrees."""
_AT_TIME = re.compile(r"\bat (\d{1,2}:\d\d(?:\s*[ap]\.?m\b\.?)?)\W*$", re.I)
_STEP = re.compile(
    r".*[\s,](?:so|thus|hence|therefore|from which|which gives|which means|leading to|giving|yielding|i\.e\.)[\s,:]+",
    re.S,
)
DENIED = re.compile(
    r"(?:\b(?:not|cannot|never|neither|nor)|n't)\s+(?:\w+\s+){0,3}[-\d\x00\\$]|\b(?:false|not true)\s+that\b"
)
"""A value that a sentence takes away: it is not 5."""


def denies(sentence: str) -> bool:
    """Tells whether a masked sentence takes a value away: it is not 5, 5 is impossible."""
    return bool(DENIED.search(sentence) or VALUE_REFUTED.search(sentence))


_SIDE = re.compile(
    r"(?:\b(?:in|after|before|for|at|by|within|per|from|over|during|every|out\s+of|with)\s+(?:[a-z]+\s+){0,3}|"
    r"\bof\s+(?:the|her|his|their|its|my|our|these|those|all)\s+(?:[a-z]+\s+)?|"
    r"\bfrom\s+\S+\s+(?:[a-z]+\s+)?to\s+|"
    r"\b(?:each|all|both|any)\s+of\s+(?:[a-z]+\s+)?|"
    r"(?<!has\s)(?<!had\s)(?<!have\s)(?<!needs\s)(?<!need\s)(?<!able\s)(?<!going\s)\bto\s+[a-z]+\s+(?:[a-z]+\s+)?|"
    r"^\W*(?:(?:so|thus|hence|therefore)\b,?\s+)?(?:the|all|these|those|her|his|their|both)\s+)$",
    re.I,
)
"""What stands before a number in a side phrase: after selling 50, to have 10, each of the 4, at $15; or in the subject,
where what was known stands: the 3 friends."""
_COMPARED = re.compile(r"\b(?:more|less|fewer|times|\w+er)\b[^.]{0,40}\bthan\b", re.I)
"""5 years older than her 30-year-old sister."""
_SIDE_WITHIN = 80
_GIVEN = re.compile(r"\W*(?:(?:so|thus|hence|therefore)\b,?\s+)?(?:if|since|because|as|when|given)\s[^,]*,\s", re.I)
"""If he earns $15 per hour, ..."""


def _last_step(masked: str) -> str:
    """Returns what follows the last `so`, `from which` or `leading to` of a piece of a masked sentence."""
    rest = _STEP.sub("", masked)
    return rest if "\x00" in rest or re.search(r"\d", rest) else masked


def value_of(sentence: str, masked: Masked, concluding: bool = False) -> str | None:
    """Returns the value that a sentence in prose ends with, None where it is no prose or states none."""
    if concluding and denies(sentence):
        step = _last_step(sentence)
        if step == sentence or denies(step):
            return None
        sentence = f"so {step}"
    if concluding:
        sentence = without_where(sentence, masked)
        if (supposed := _SUPPOSED.search(sentence)) and not supposed["span"]:
            return None
    if DIVIDED.search(sentence):
        before = re.search(rf"({VALUE})\s+(?:is|as|remains as)\s+(?:the|its|a)\s+remainder\b", sentence)
        return masked.shown(before[1]) if before else None
    if clock := _AT_TIME.search(sentence):
        return clock[1]
    if named := _NAMED.search(trim(sentence)):
        return masked.shown(named[0])
    if concluding and (solved := _SOLVED.search(trim(sentence))):
        return solved["equation"]
    sentence = _FOR_ALL.sub(lambda m: "" if _NAMES.fullmatch(span_text(masked.spans[int(m[1])])) else m[0], sentence)
    if concluding and (measured := _MEASURED.search(sentence)):
        return f"{masked.shown(measured[1])} {measured[2]}"
    if len(WORD.findall(sentence)) < 3:
        return masked.listed(sentence) if concluding else None
    sentence = re.sub(r"\s*\([^()]*\)\s*$", "", trim(_AS_DESIRED.sub("", sentence)))
    verbs = list(_VERB.finditer(sentence))
    last = verbs[-1] if verbs else None
    if last:
        rest = trim(
            re.sub(
                r"^\s*(?:(?:equal|equivalent) to|to|one of|also|then|either|exactly|about|approximately|"
                r"simply|just|given by|therefore|thus|:)\s*",
                "",
                sentence[last.end() :],
            )
        )
        rest = re.sub(r"^(?:an?|the)\s+(?:[a-z]+:?\s+){1,2}(?=\x00)", "", _PREPOSITION.sub("", rest))
        rest = re.sub(r"^(\x00\d+\x00)\s+(?!and\b|or\b)[a-z]{3,}(?:\s+[a-z]{3,})*\s+\x00\d+\x00$", r"\1", rest)
        rest = _FOR_SOME.sub(r"\1", _last_step(rest))
        if (described := DESCRIBED.match(rest)) and not described["value"] and not VERB_OF_VALUE.search(rest):
            return None
        if rest and len(WORD.findall(rest)) <= 2 and re.search(r"[\d\x00]", rest):
            return masked.listed(rest) if SPAN_LIST.fullmatch(rest) else masked.shown(rest)
    if (end := masked.listed(sentence)) is not None:
        return end
    if "\x00" not in sentence and (number := _main_number(sentence)):
        return number
    if last and rest and (start := NUMBER.match(rest)):
        return start[0].strip()
    if last and rest and (start := re.match(r"\x00\d+\x00", rest)):
        return masked.shown(start[0])
    return None


def _main_number(sentence: str) -> str | None:
    """Returns the number of a plain sentence, or its only one outside side phrases: in 3 hours, of her 40 apples."""
    numbers = list(NUMBER.finditer(sentence))
    if len(numbers) > 1:
        if _COMPARED.search(sentence):
            return None
        given = _GIVEN.match(sentence)
        start = given.end() if given else 0
        numbers = [n for n in numbers if n.start() >= start and not _SIDE.search(_before(sentence, n.start()))]
    return numbers[0][0].strip() if len(numbers) == 1 else None


def _before(sentence: str, at: int) -> str:
    """What stands before a place, as far as it matters; a beginning only where it is the sentence's own."""
    return sentence[:at] if at <= _SIDE_WITHIN else f"x{sentence[at - _SIDE_WITHIN : at]}"


def inner(text: str) -> str:
    """Returns a formula without its delimiters, other text as it is."""
    span = MATH_SPAN.fullmatch(text.strip())
    return span_text(span) if span else text.strip()


def without_boilerplate(text: str) -> str:
    """Cuts what says nothing: special tokens, hopes, offers."""
    return _TAGS.sub("", _BOILERPLATE.sub("", text))
