"""Values that a text names and does not claim: taken back, refuted, supposed, what others think, mere bounds.

The patterns work on plain and on masked text (see `math_prose.Masked`), where each formula is a mark.
"""

import re

PLAIN_VALUE = r"[\d(√π][\w./^*()√π]*"
VALUE = rf"[-−+]?(?:\x00\d+\x00|{PLAIN_VALUE})"
CONTRAST = r"(?:but|while|whereas|and)"

# -- refuted: "x = 5 is impossible", "5 does not work"

_UNDER_A_CONDITION = r"(?!\w)(?!\s+(?:to|for|if|when|unless|with)\b)"
"""It is impossible to do better, not valid for n = 1: said of something else."""
_WRONG = (
    r"(?:wrong|incorrect|invalid|impossible|false|extraneous|absurd|mistaken|infeasible|unacceptable|inadmissible|"
    r"too\s+(?:small|large|big|high|low|few|many|much|short|long)|rejected|excluded|discarded|eliminated|ruled\s+out|"
    r"contradictory|an?\s+(?:contradiction|mistake|error)|an?\s+(?:extraneous|invalid|impossible)\s+(?:solution|root|value|answer))"
)
_RIGHT = (
    r"(?:right|correct|valid|true|possible|allowed|permitted|acceptable|admissible|feasible|"
    r"an?\s+(?:\w+\s+)?(?:solution|answer|root)|the\s+(?!only\b)(?:\w+\s+)?(?:answer|solution)|"
    r"in\s+the\s+(?:domain|range|interval)|included|part\s+of|work|fit|satisfy|hold|the\s+case)"
)
_NOT = r"(?:(?:is|are|was|were|do|does|did|could|would|will|can)(?:\s+not|n['’]t)|can['’]t|cannot|never)"
_REFUTED = (
    rf"(?:(?:(?:is|are|was|were|be|seems)\s+|['’]s\s+)(?:(?:\w+ly|also|thus|then)\s+)?{_WRONG}"
    rf"|(?:{_NOT}|['’]s\s+not)\s+(?:be\s+)?{_RIGHT}|{_NOT}(?=[\s.!]*$)|must\s+be\s+{_WRONG}|fails|(?:violates|contradicts)\s+(?:the|our|this|that|what)"
    rf"|(?:leads?\s+to|gives?|is|yields?)\s+an?\s+contradiction|makes\s+no\s+sense){_UNDER_A_CONDITION}"
)
REFUTED = re.compile(rf"[\s$)*]{{0,6}}{_REFUTED}", re.I)
VALUE_REFUTED = re.compile(
    rf"(?<![\w.])(?P<value>{VALUE})(?:\s*,?\s+(?:{CONTRAST}\s+)?(?:(?:it|this|that|which)\s+)?(?:must\s+)?{_REFUTED}"
    rf"|\s*\((?:this\s+is\s+|which\s+is\s+)?{_WRONG}\))",
    re.I,
)
OTHER_REFUTED = re.compile(
    rf"\s*(?:[,;]?\s+{CONTRAST}|;)\s+(?:(?:the|for)\s+)?(?:[A-Za-z]\s*=\s*)?{VALUE}\s+{_REFUTED}[^\x00\d]*$", re.I
)
"""A second value that the first one is told from: x = 5 works, while x = 7 does not work."""

# -- taken back: "But that is wrong."

_INTERJECTIONS = (
    r"(?:(?:but|wait|hmm+|oh|no|oops|actually|however|sorry|hold\s+on|so|unfortunately|clearly)\b"
    r"[\s,.!…:—–-]{0,4}){0,4}"
)
_IT = (
    r"(?:this|that|it|they|these|the\s+(?:answer|value|result|solution)(?:\s+above)?|"
    r"(?:this|that|my|our)\s+(?:\w+\s+)?(?:answer|value|result|solution))"
)
_STARTS_WITH_INTERJECTIONS = re.compile(rf"\W*{_INTERJECTIONS}", re.I)
_TAKEN_BACK = re.compile(
    rf"\b(?:{_IT}\s*{_REFUTED}|I\s+(?:have\s+)?(?:made|see)\s+(?:an?|my)\s+(?:\w+\s+)?(?:mistake|error)\b|"
    r"I\s+(?:was\s+(?:wrong|mistaken)|miscounted|miscalculated)\b)",
    re.I,
)
_HYPOTHETICAL = re.compile(r"\b(?:if|suppose|assum\w+|otherwise|would|case|were)\b|\bfor\s+(?:\$|[a-z]\s*=)", re.I)
_LOOK_BACK = 1000
_REST_OF_SENTENCE = re.compile(r"[^.!?\n]*?(?=\b(?:so|thus|hence|therefore)\b|[.!?\n]|\Z)", re.I)


def is_taken_back(after: str) -> bool:
    """Tells whether what follows a statement takes it back at once: `But that is wrong.`"""
    opening = _STARTS_WITH_INTERJECTIONS.match(after[:200])
    return opening is not None and _TAKEN_BACK.match(after, opening.end()) is not None


def without_taken_back(text: str) -> str:
    """Returns what follows the last sentence that takes back all before it; not what refutes a mere case."""
    for found in reversed(list(_TAKEN_BACK.finditer(text, max(0, len(text) - _LOOK_BACK)))):
        before = text[max(0, found.start() - 300) : found.start()]
        opening = re.split(r"[.!?\n,:(]", before)[-1]
        before = before[: len(before) - len(opening)].rstrip(" .!?\n*_(")
        said = re.split(r"[.!?\n]", before)[-1]
        if _STARTS_WITH_INTERJECTIONS.fullmatch(opening) and not _HYPOTHETICAL.search(said):
            rest = _REST_OF_SENTENCE.match(text, found.end())
            return text[rest.end() if rest else found.end() :]
    return text


CORRECTION = re.compile(
    r"\bcorrection(?=[*_]{0,3}:)|\b(?:actually|oops|wait|sorry|no|scratch\s+that)\b[\s,.!…]{1,4}"
    r"(?:(?:it|this|that)(?:['’]s|\s+(?:should\s+(?:be|have\s+been)|is))|I\s+meant(?:\s+to\s+say)?)(?=\s+[-\d$\\(*])|"
    r"\b(?:it|this|(?:the|my)\s+(?:\w+\s+)?answer)\s+should\s+(?:be|have\s+been)(?=\s+[-\d$\\(*])",
    re.I,
)
"""What introduces another answer than the one before: `Correction: 7`, `actually, it should be 7`."""
CORRECTING = re.compile(
    r"\b(?:wait|actually|oops|sorry|apolog\w+|mistaken?|error|wrong|incorrect|correction|corrected|revised?|"
    r"updated|amended|second thoughts?|reflection|further review|reconsider|scratch that|hold on|miscounted|"
    r"miscalculated|overlooked|correct my|false|(?:not|n['’]t) (?:correct|right|valid|true))\b|^\W*no\b",
    re.I,
)
"""Words with which a text corrects what it said before."""

# -- never claimed: "suppose the answer is 5", "many think that the answer is 5", "the wrong answer is 5"

_OTHERS_SAY = (
    r"(?:claims?|claimed|thinks?|thought|says?|said|believes?|guess(?:es|ed)?|argues?|concludes?|gets?|expects?)"
)
_NOT_CLAIMED = (
    r"(?:\b(?:whether|if|unless|assum(?:e|es|ing)|suppos(?:e|es|ing)|imagine|pretend|doubt|"
    r"let(?:'s|\s+us)?\s+say|(?:false|unclear|unlikely|impossible)\s+that|"
    r"(?:not|n['’]t)\s+(?:true|clear|sure|certain|convinced|known|the\s+case)\s+(?:that|if|whether))"
    rf"|(?<!\bI )(?<!\bwe )(?<!I would )(?<!\bthis )(?<!\bwhich )\b{_OTHERS_SAY}|\bto\s+think)"
    r"\s+(?:that\s+)?(?:(?:the|this|his|her|their|final|correct|right)\s+)*"
    r"|\bnone\s+of\s+(?:the|these)\s+"
    rf"|(?:[,;]?\s+{CONTRAST}\s+)?\b(?:an?|the|one)\s+(?:\w+\s+)?"
    r"(?:wrong|incorrect|false|naive|tempting|mistaken|erroneous|invalid)\s+"
)
UNCLAIMED_ANSWER = re.compile(rf"(?:{_NOT_CLAIMED})answers?\b", re.I)

# -- limits and tasks: "at least 5", "we need to find 5!"

BOUNDED = re.compile(
    r"\b(?P<words>at\s+(?:least|most)|(?:no|not)\s+(?:more|fewer|less|greater)\s+than|"
    r"(?:more|fewer|less|greater|larger|smaller)\s+than|exceeds?|up\s+to|bounded\s+(?:above|below)\s+by|(?<=are\s)over|(?<=is\s)over)\s+"
    rf"(?P<value>\\?\$?{VALUE})|(?P<open>{VALUE}\s+or\s+(?:more|fewer|less|greater))\b",
    re.I,
)
_TASK_OF = (
    r"\b(?:(?:needs?|have|has|wants?|wish|suffices|enough|remains|left|going|trying|goal\s+is|task\s+is)\s+to|must|should)"
    r"\s+(?:now\s+|only\s+|also\s+)?"
)
TASK = re.compile(
    rf"{_TASK_OF}(?P<task>find|compute|determine|calculate|evaluate|count|solve|minimi[sz]e|maximi[sz]e|work\s+out)\b|"
    r"^\W*(?P<next>(?:now|next|then)\b[,\s]+(?:we\s+(?:(?:can|will|now|must)\s+)*)?(?:find|compute|determine|calculate|evaluate|"
    r"count|solve|substitute|plug|consider)\b)|"
    rf"{_TASK_OF}(?:show|prove|consider|check|verify|examine|test|try)\b",
    re.I,
)
TASK_DONE = re.compile(
    r"\b(?:so|thus|hence|therefore|which\s+(?:is|equals|gives)|namely|giving)\b|(?<![A-Za-z\s])\s?=(?=[^\x00=]*$)", re.I
)
SUPPOSITION = re.compile(
    r"\W*(?:(?:now|so|next|wlog|without\s+loss\s+of\s+generality|we\s+(?:may|can))\b[\s,:]*){0,4}"
    r"(?:let|assume|suppose|consider)\b[^\x00\d]*(?:\x00\d+\x00|\d[\d.]*)[^\x00\d]*",
    re.I,
)
"""A whole sentence that sets one value: WLOG let a = 5."""
REFERENCE = re.compile(
    r"\b(?:by|from|in|using|see|with)\s+\(\d{1,2}\)|"
    r"\b(?:lemma|theorem|equations?|eq\.?|case|step|part|section|figure|formula)\s+\(?\d{1,2}\)?(?![\d.]*\d)",
    re.I,
)
"""By (5), in step 3: a number that names a place."""
ANSWER_DESCRIBED = re.compile(r"\banswers?\s+(?:has|have|ends?|lies|contains|consists)\b", re.I)
