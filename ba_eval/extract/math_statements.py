r"""Sentences that point out a value ("$C = 1/2$ is the smallest choice", "so there are 8 of them"), and asides.

The sentences are masked (see `math_prose.Masked`): each formula is a mark, so that patterns see prose alone.
"""

import re

from ba_eval.extract.math_prose import NEXT_STATEMENT, WORD, Masked, span_text

_SPAN = r"\x00\d+\x00"
_SPANS = rf"{_SPAN}(?:\s*(?:,\s*(?:and|or)?|and|or)\s*{_SPAN})*"
_NUMBER = r"(?<![\w.])\$?\d[\d,]*(?:\.\d+)?(?![\w.])"
_THEN = r"(?:so|thus|hence|therefore|then|consequently|altogether|overall|only|in total|in all|in summary)"
_KIND = (
    r"(?:the|an?|our|indeed|also|both|in fact|possible|unique|only|smallest|largest|least|greatest|minimum|maximum|"
    r"minimal|maximal|optimal|best|required|desired|sought|wanted|correct|final|positive|real|integer|whole)"
)
_SUBJECTS = (
    re.compile(
        rf"(?P<value>{_SPANS}|\b{_THEN},?\s+{_NUMBER}|\b[A-Za-z]\s*=\s*{_NUMBER})\s+(?:is|are|to be)\s+(?:{_KIND}\s+)*"
        r"(?:unique|only|smallest|largest|least|greatest|minimum|maximum|minimal|maximal|optimal|best|required|desired|"
        r"sought|wanted|answers?|solutions?|possibility|possibilities)\b",
        re.I,
    ),
    re.compile(rf"(?P<value>{_SPAN})\s+(?:is|are)\s+(?:attained|achieved|reached)\b", re.I),
    re.compile(
        rf"(?P<value>{_SPANS}|\b(?:thus|so|hence|therefore|and)?,?\s*\bonly\s+(?:{_NUMBER}|{_SPAN})|"
        rf"\b[A-Za-z]\s*=\s*{_NUMBER})\s+"
        r"(?:works?|satisf(?:ies|y)|remains?|fits?|is valid)\b(?=[^\x00]*$|,?\s*(?:but|while|whereas)\b)",
        re.I,
    ),
)
_VALUE = rf"(?P<value>{_SPAN}|{_NUMBER})"
_SUPPOSED = re.compile(r"\b(?:false|not true|suppose|assum\w+|if|whether|unless|n't)\b", re.I)
_OF = r"(?=(?P<of>(?!(?:cases|or|and)\b)[a-z(][^\x00]*))"
_COUNTS = (
    re.compile(
        rf"(?:\bthere\s+(?:are|is|were|will be)\s+(?:(?:exactly|only|a total of|in total|altogether|thus)\s+)?|"
        rf"\b(?:giving|yielding|leaving)\s+(?:us\s+)?(?:a total of\s+)?|\btotal of\s+|"
        rf"\btakes?\s+(?:\w+\s+){{0,2}}){_VALUE}\s+{_OF}",
        re.I,
    ),
    re.compile(
        rf"\b{_THEN},?\s+(?:exactly\s+)?(?P<value>{_NUMBER})\s+(?=(?P<of>(?:of|such|distinct|different|possible)\b[^\x00]*))",
        re.I,
    ),
)
_WORD_NUMBERS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty"
)
_IN_WORDS = re.compile(
    r"\bthere\s+(?:are|is)\s+(?:(?:exactly|only|in total|altogether|thus)\s+)?"
    rf"(?P<value>{_WORD_NUMBERS})\s+"
    r"(?=(?P<of>(?:such|possible|distinct|different|integer|whole|positive|real|valid)\b[^\x00\d]*$))",
    re.I,
)
_SOLUTIONS_IN_WORDS = re.compile(
    rf"\b{_THEN},?\s+there\s+are\s+(?:exactly\s+|only\s+)?(?P<value>{_WORD_NUMBERS})\s+"
    r"(?=(?P<of>(?:solutions?|roots?|answers?)\b[^\x00\d:]*$))",
    re.I,
)
_GOES_ON = re.compile(r"\b(?:so|thus|hence|therefore|means|gives|equals)\b[^.]*[\x00\d]", re.I)
_TOTAL = re.compile(rf"\btotal of\s+{_VALUE}(?=(?P<of>[\s.]*$))", re.I)
_NAME = re.compile(r"\\?[A-Za-z]+(?:_\{?\w+\}?)?'*|[(\[{]?\*+[)\]}]?")
_LEADING = re.compile(rf"^(?:(?:{_THEN}|and)\b,?\s*)+", re.I)
_CONDITION = re.compile(
    rf"(?:^\W*|[,;]\s+|\b(?:so|thus|then|and|now),?\s+)"
    rf"(?:with|when|for|if|because|since|given|taking|setting|putting)\s+(?P<given>{_SPAN})"
    rf"(?:\s*,\s*(?:then\s+|we (?:get|have|find|obtain)\s+)?(?P<main>{_SPAN}))?[\s.]*$",
    re.I,
)
_EXTRAS = (
    re.compile(r",?\s+both\s+of\s+(?:which|them)\b[^\x00\d]*$", re.I),
    re.compile(r",?\s+which\s+is\s+what\s+(?:we|was|the)\b[^\x00\d]*$", re.I),
    re.compile(rf"(?<=[\d\x00]){NEXT_STATEMENT}.*$", re.S),
    re.compile(r"[,\s]\s*(?:since|because|denn|weil|car)\b.*$", re.I | re.S),
    re.compile(
        r"(?<=[\d\x00)]),?\s+(?:(?:and\s+)?(?:indeed|we can (?:check|verify))\b|where\b|whereas\b|whose\b|"
        r"which\s+(?:satisf|tends|holds|has\b|have\b|are\b|is\s+(?:approximately|about|roughly|in|an?|the)\b)|"
        r"(?:or\s+)?(?:approximately|about|roughly)\b|with equality\b|upon division\b|"
        r"when\s+\x00\d+\x00\s+is\s+divided\b|as\s+\x00\d+\x00[\s.]*$).*$",
        re.I | re.S,
    ),
    re.compile(r"(?<=\x00),?\s+(?:achieved|attained|reached|with equality)\s+(?:when|at|for|if)\b.*$", re.I | re.S),
    re.compile(
        r"(?<=\x00)\s+(?:satisf(?:y|ies)|solves?|is\s+(?:a|the)\s+(?:solution|root)\s+(?:of|to))\s+(?:the|this|our|both)\b.*$",
        re.I | re.S,
    ),
    re.compile(
        r"(?<=\x00)(?<!all \x00\d\x00)(?<!any \x00\d\x00)(?<!every \x00\d\x00)(?<!each \x00\d\x00)(?<!of \x00\d\x00)"
        r",?\s+with\s+\x00\d+\x00(?:\s*(?:,|and|,\s*and)\s*\x00\d+\x00)*[\s.]*$",
        re.I,
    ),
    re.compile(rf"(?<=\x00),?\s+for\s+(?:all|any|every)\s+(?:[a-z]+\s+){{0,2}}{_SPAN}[\s.]*$", re.I),
)
ASIDE = re.compile(
    r"\W*(?:(?:we|one|you|it|let(?:'s| me| us)?|the reader|a quick|substitut\w+)\b[^\x00]{0,60}"
    r"\b(?:check|verif\w+|confirm\w*|note)\b|"
    r"(?:(?:quick|sanity|a)\s+)*(?:check|probe|vérification|comprobación|verificación|verifica|проверка)\b\W*:?|检验|验证|"
    r"(?:indeed|to (?:check|verify)|checking|verifying|numerically|remark|for (?:example|instance)|in particular|"
    r"note that|we also considered)\b|e\.\s?g\.|equality (?:holds|occurs|is)\b|(?:this|that|it) (?:makes sense|"
    r"is (?:consistent|reasonable|approximately|about|roughly|achieved|attained|reached))\b|"
    r"(?:these|those|they|both|all)(?:\s+of\s+(?:these|them))?\s+(?:are|work|satisfy|check)\b[^\x00\d]*$|"
    r"the (?:minimum|maximum|bound|value) is (?:attained|achieved|reached)\b|"
    rf"(?-i:for|where)\s+(?:(?:all|any|every|each|some|an?|the|integers?|number|real)\s+)*{_SPAN}"
    r"(?:\s+is\s+(?:an?|any)\s+[a-z -]+)?\W*$)",
    re.I,
)
"""A last sentence that says nothing of the answer: we can check that, for k in Z, where n is an integer."""
CONFIRMED = re.compile(
    r",?\s*so\s+(?:the|our|this)\s+(?:solution|answer|value|result)\s+(?:is\s+(?:correct|valid|right)|works|checks)\b",
    re.I,
)
"""The end of a check, which concludes nothing new."""
_IN_BRACKETS = re.compile(r"(?:\n\s*|(?<=[.!])\s+)\((?=[A-Z])[^\n]*\)\s*\.?$")
_CHECK_HEADING = re.compile(
    r"^[\W\d]{0,8}(?:verification|verifying|checking|check|sanity check|double[- ]check)\b[*_ ]{0,3}(?::[^\n]*)?$",
    re.I | re.M,
)
REMARK_PARAGRAPH = re.compile(r"\n\n[\W_]*(?:remark|generali[sz]ations?|extensions?|follow-up)\b[^\n]{0,3}[.:]", re.I)
"""A paragraph behind the answer, about another problem."""
_OUTCOME = re.compile(r"\b(?:answer|final|therefore|thus|hence|conclu\w+|solutions?|instead|actually)\b", re.I)


def pointed_out(sentence: str, masked: Masked) -> str | None:
    """Returns the value that a masked sentence makes its subject, counts, or derives from a value that is given."""
    for pattern in _SUBJECTS:
        for found in pattern.finditer(sentence):
            value = _LEADING.sub("", found["value"].strip(" ,"), count=1)
            if not _names_only(value, masked) and not _SUPPOSED.search(sentence, 0, found.start()):
                return masked.shown(value)
    every = (
        count for pattern in (*_COUNTS, _TOTAL, _IN_WORDS, _SOLUTIONS_IN_WORDS) for count in pattern.finditer(sentence)
    )
    counts = [count for count in every if not _names_only(count["value"], masked)]
    last = max(counts, key=re.Match.start, default=None)
    if last is not None and not _GOES_ON.search(sentence, last.end()):
        alone = last.end("of") == len(sentence) and not last["value"].isalpha()
        unit = last["of"].strip(" .") if alone and len(WORD.findall(last["of"])) == 1 else ""
        return f"{masked.shown(last['value'])} {unit}".strip()
    condition = _CONDITION.search(sentence)
    if condition is None:
        return None
    if condition["main"]:
        return masked.shown(condition["main"])
    given, *rest = _pieces(masked.shown(condition["given"]))
    return rest[0].strip() if len(rest) == 1 and "=" in given and "=" in rest[0] else None


def _names_only(value: str, masked: Masked) -> bool:
    """Tells whether all of a subject are names, as in `$P$ is the desired point`."""
    spans = [span_text(masked.spans[int(n)]) for n in re.findall(r"\x00(\d+)\x00", value)]
    return bool(spans) and all(_NAME.fullmatch(span) for span in spans)


def _pieces(text: str) -> list[str]:
    """Splits at the commas outside all brackets."""
    pieces, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            pieces.append(text[start:at])
            start = at + 1
    return [*pieces, text[start:]]


def without_extras(sentence: str) -> str:
    """Cuts what stands behind a value: `because ...`, `achieved when ...`, `for all x`."""
    for pattern in _EXTRAS:
        cut = pattern.sub("", sentence)
        if re.search(r"[\d\x00]", cut) and not _GOES_ON.search(sentence, len(cut)):
            sentence = cut
    return sentence


def without_afterthought(tail: str) -> str:
    """Cuts a remark in brackets and a check that stand behind everything else."""
    for _ in range(2):
        found = _IN_BRACKETS.search(tail)
        if found is None or len(WORD.findall(found[0])) < 3 or not tail[: found.start()].strip():
            break
        tail = tail[: found.start()].rstrip()
    if (remark := REMARK_PARAGRAPH.search(tail)) and tail[: remark.start()].strip():
        tail = tail[: remark.start()]
    headings = list(_CHECK_HEADING.finditer(tail))
    if headings and tail[: headings[-1].start()].strip() and not _OUTCOME.search(tail, headings[-1].start()):
        tail = tail[: headings[-1].start()].rstrip()
    return tail
