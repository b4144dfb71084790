r"""Takes the committed final answer of a mathematical response out of its text.

Four ways, in the order of `extract`: the last `\boxed`, an answer line ("Answer: ...", "the final answer is ...",
"#### ..."), bold text or display math in the closing lines, a response that is nothing but an answer. The last number
of the text is taken only where a benchmark asks for it. Every scan is linear in the length of the text.
"""

import re
from collections.abc import Sequence

from ba_eval.extract.extraction import Extraction, Method
from ba_eval.extract.math_answer_line import PRAISE, answer_line
from ba_eval.extract.math_closing import bare, closing, last_number
from ba_eval.extract.math_denials import CORRECTING, CORRECTION, REFUTED
from ba_eval.extract.thinking import TURN_ENDS, may_hold

DEFAULT: tuple[Method, ...] = ("boxed", "answer-line", "closing", "bare")

_BOX = re.compile(
    r"(?:\\+(?:boxed|Boxed|fbox|framebox|bbox|mathboxed|boxd|(?:math)?box(?=\s*\{))|\x08oxed|(?<![A-Za-z])boxed(?=\s*\\?\{))\s*(?P<open>\\?\{|\(|\s?)"
)
_PLAIN_BOX = (" \\boxed{", "$\\boxed{")
_INNER_BOX = re.compile(r"\\+(?:boxed|fbox)\s*(?=\{)")
_NESTED_LIMIT = 500
_BOX_TOKENS = re.compile(r"<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|\Z)", re.S)
_SEPARATOR_NOISE = re.compile(
    r"\\(?:quad|qquad|text|textbf|mathrm|mbox|[()\[\],;:! ])|\\\\|[${}~*\s]|\\(?:left|right)(?![A-Za-z])"
)
_CONNECTIVE = re.compile(r"\b(?:and|or)\b|[,;&、]|[-+=~_]{3,}|\\(?:quad|qquad)\b|\\\\", re.I)
_CONCLUDING = re.compile(
    r"\b(?:so|thus|then|therefore|hence|final|finally|answer|is|are|get|wait|but|which|gives?|equals?|actually|not|no|"
    r"instead|rather|correct|should|be|becomes?|we|have|i)\b",
    re.I,
)
_BRACES = re.compile(r"\\.|[{}]", re.S)
_REST_OF_MATH = re.compile(r"(?:(?!\\+f?box)[^\n$])*")
_OPEN_END = re.compile(r"(?<!\\)\$|\\[\])]|\n(?=\s*\S)")
_BETWEEN_LIMIT = 80
_PARAGRAPH_END, _SENTENCE_END = re.compile(r"\n\s*\n"), re.compile(r"[.!?]\s*\S")
_BOX_LIMIT = 200_000
_BEHIND_LIMIT = 20_000
_SHORTEST_CORRECTION = len("No, 5")
_NEXT_QUESTION = re.compile(r"\n(?:Human|User|(?:\*\*)?Question|Problem|Q|### Instruction):")
_TURN_END_STARTS = ("<|", "</s", "<end_", "<｜")
_REPLY = re.compile(r"\n\s*(?:\*\*|###\s)?(?:Assistant|Answer|Solution|Response|A)\s?:")
_RUN_ON_WITHIN = 20_000
_CHANNEL_WITHIN = 200
_NEIGHBOURS_WITHIN = 20_000
_VALUE_FIRST = re.compile(r"\s*(?:[-+$\\(\[{\d.]|[A-Za-z](?:_\w+)?\s*=)")
_STRUCK_OUT = re.compile(r"(?<![^\s(*])~~(?=[^\s~])[^~\n]{1,200}(?<=[^\s~])~~(?![\w\\~])")
_STRUCK_WITHIN = 20_000
_BESIDE_WITHIN = 300
_HYPOTHETICAL = re.compile(r"\b(?:if|would|otherwise|in that case|had)\b", re.I)
_CONCLUDED = re.compile(
    rf"\b(?:so|thus|hence|therefore|since)\b[^.!?\n]{{0,60}}\b(?:the|our|final)\s+answer\s+is\s+(?!{PRAISE.pattern})|"
    r"^[*#_\s]*(?:final\s+)?answer[*_\s]*:|^####\s",
    re.I | re.M,
)
"""What comes to an answer of its own behind a box, which held a step."""
_BESIDE = re.compile(
    r"(?:^|[\n.(!?])\W*e\.\s?g\.|(?:^|[\n.(!?])\W*(?:verif\w+|check\w*|proof|probe|for (?:example|instance)|earlier|"
    r"steps(?=\W)|why not|in particular|note|remark|indeed|(?:and )?equality)\b|\b(?:equality|attained|achieved)\b",
    re.I,
)
"""What a box stands in that holds no answer: a check, an example, where equality holds."""
_ELSEWISE = re.compile(
    r"\b(?:if|had|without|instead|whereas|for comparison)\b.*\b(?:would|could|might|'?d)\b|"
    r"\bhad\s+(?:there|it|we|the)\b|\bif\s+(?:we\s+only|instead)\b|\bwhereas\s+for\b|"
    r"\b(?:common|typical|frequent|incorrect|wrong|naive)\s+(?:\w+\s+)?(?:answer|mistake|error|value|result)\b|"
    r"\b(?:not\s+to\s+be\s+confused\s+with|for\s+comparison|(?:old|previous|original)\s+(?:answer|value))\b|"
    r"\b(?:students|people|some|many|others?)\s+(?:\w+\s+)?(?:may|might|often|would|could)?\s*"
    r"(?:say|answer|get|think|write|obtain|claim)s?\b",
    re.I | re.S,
)
"""A sentence that names a value of another problem, or of others, up to its box: if there were 6 rows, it would be."""
_SHORTEST_REMARK = len(" Some get ")
_PLAIN_LEADS = ("he answer is $", "he answer is ", "nswer: $", "nswer: ")
"""What stands before most last boxes, and is no such sentence."""
_MISTAKEN = re.compile(r"[\s$*)]{0,4},?\s*(?:by\s+mistake|by\s+accident|which\s+is\s+(?:incorrect|wrong))\b", re.I)
_CHECKING = re.compile(r"\W*(?:verif\w+|check\w*)\b", re.I)
_SOLUTIONS_ARE = re.compile(
    r"\b(?:so|thus|hence|therefore),?\s+(?:all\s+)?the\s+(?:only\s+|possible\s+|complete\s+|set\s+of\s+){0,2}"
    r"(?:solutions?|values|roots|answers)(?:\s+(?:of|to|for)\s+[^.\n]{1,30}?)?\s+(?:are|is)\b(?!\s+(?:therefore|thus|given))",
    re.I,
)
"""What lists, behind boxes of single cases, all of them."""
_NEW_CONCLUSION = re.compile(r"\b(?:so|thus|hence|therefore|final|answer)\b", re.I)
_NOT_THIS_BOX = re.compile(
    r"\b(?:not|rather than|instead of|(?:reject|discard|exclud|eliminat)(?:s|e|es|ed|ing)?)[\s$(*]{0,6}$", re.I
)
_DENYING = ("not", "than", "of", "ct", "cts", "rd", "rds", "de", "des", "te", "tes", "ed", "ing")
"""How the words above end, which is looked at first."""


def extract_answer(text: str, methods: Sequence[Method] = DEFAULT) -> Extraction:
    """Returns the final answer of a response whose thinking block is already cut off."""
    final = _final_channel(text)
    if final is None:
        return Extraction(None)
    text = _first_turn(text[final:])
    if "~" in text and "~~" in text[-_STRUCK_WITHIN:]:
        text = text[:-_STRUCK_WITHIN] + _STRUCK_OUT.sub("", text[-_STRUCK_WITHIN:])
    for method in methods:
        found = _EXTRACTORS[method](text)
        if found is None:
            continue
        if method == "boxed" and "answer-line" in methods and (later := _overruled(text, found)):
            return later
        return found
    return Extraction(None)


def _final_channel(text: str) -> int | None:
    """Returns where the final channel starts, in the format of some models that write to several; None without one."""
    if ("<" not in text or "<|channel|>" not in text) and "assistantfinal" not in text:
        return 0
    for mark in ("<|channel|>final<|message|>", "assistantfinal"):
        if (at := text.rfind(mark)) >= 0:
            return at + len(mark)
    return None if "<|channel|>" in text[:_CHANNEL_WITHIN] else 0


def _first_turn(text: str) -> str:
    """Cuts what a model invents behind the end of its turn: another question, and its answer."""
    tail = text[-_RUN_ON_WITHIN:]
    if may_hold(tail, _TURN_END_STARTS):
        ends = [text.find(mark) for mark in TURN_ENDS if mark in tail]
        if ends and text[: min(ends)].strip():
            text = text[: min(ends)]
    for mark in set(_NEXT_QUESTION.findall(tail)) if ":" in tail else ():
        head, _, rest = text.partition(mark)
        # A text that starts with a question repeats the one that it was asked.
        if _REPLY.search(rest) and not head.startswith(mark[1:]) and (_boxed(head) or answer_line(head)):
            text = head
    return text


def _overruled(text: str, box: Extraction) -> Extraction | None:
    """Returns what stands behind the last box and overrules it: a "final answer is ...", a correction."""
    if not box.closed:
        return None
    if len(text) - box.end < _SHORTEST_CORRECTION:
        return None
    behind = text[box.end :][-_BEHIND_LIMIT:]
    behind, corrected = CORRECTION.subn("answer:", behind)
    behind, listed = _SOLUTIONS_ARE.subn("answer:", behind)
    corrected += listed
    concluded = _CONCLUDED.search(behind)
    if not (corrected or concluded or CORRECTING.search(behind) or "final answer" in behind.lower()):
        return None
    later = answer_line(behind)
    if later is None or later.answer is None or not _VALUE_FIRST.match(later.answer):
        return None
    before, after = behind[: later.start + len("answer")], behind[later.start :]
    if _HYPOTHETICAL.search(re.split(r"[.!?\n]", before)[-1] + re.split(r"[.!?\n]", after)[0]):
        return None
    follows = concluded and later.start >= concluded.start()
    told = corrected or follows or CORRECTING.search(before) or "final answer" in before.lower()
    return later if told else None


def _boxed(text: str) -> Extraction | None:
    at = text.rfind("<|begin_of_box|>") if "<" in text else -1
    if at >= 0 and (token := _BOX_TOKENS.match(text, at)):
        inner = _boxed(token[1])
        answer = inner.answer if inner and inner.answer else token[1].strip()
        return Extraction(answer, "boxed", closed="end_of_box" in token[0], start=at, end=token.end())
    boxes = _Boxes(text)
    starts = boxes.starts
    if not starts:
        return None
    while len(starts) > 1 and _is_beside(boxes):
        starts.pop()
    while len(starts) > 1 and _is_denied(boxes):
        denied = boxes.content(starts[-1])[0].strip()
        earlier = starts[:-1]
        kept = [box for box in earlier if boxes.content(box, box.end() + _NESTED_LIMIT)[0].strip() != denied]
        starts[:] = kept or earlier[:1]
    content, end, closed = boxes.content(starts[-1])
    if closed and len(starts) > 1 and (outer := _outer(boxes, end)) is not None:
        return outer
    last = begin = starts[-1].start()
    if not closed:
        # Cut off, a box commits to nothing, and an earlier, closed one is not the final word either. Where the formula
        # or the line is over and the text goes on, a brace was forgotten.
        garbled = _OPEN_END.search(text, end - len(content), end)
        if garbled is None:
            return Extraction(content.strip() or None, "boxed", closed=False, start=begin)
        content = text[end - len(content) : garbled.start()]
        return Extraction(content.strip() or None, "open box", start=begin, end=garbled.start())
    contents = [content]
    for match in reversed(starts[:-1]):
        previous, previous_end, previous_closed = boxes.content(match, begin)
        if not previous_closed or previous_end < begin - _BETWEEN_LIMIT:
            break
        between = text[previous_end:begin]
        if not (_adjacent(between) or _next_part(text, match.start(), between)):
            break
        contents.insert(0, _label(text, match.start()) + previous)
        if len(contents) == 2:
            contents[-1] = _label(text, begin) + content
        begin = match.start()
    content = " ".join(content.split())
    if len(contents) > 1:
        content = ", ".join(dict.fromkeys(" ".join(c.split()) for c in contents if c.strip()))
    return Extraction(content, "boxed", start=last, end=end) if content else None


class _Boxes:
    """The last boxes of a text; each is read once."""

    def __init__(self, text: str) -> None:
        self.text, self.starts = text, _last_boxes(text)
        self._contents: dict[int, tuple[str, int, bool]] = {}

    def content(self, box: re.Match[str], limit: int | None = None) -> tuple[str, int, bool]:
        """See `_content`. Not closed where it is not by `limit`."""
        start = box.start()
        known = self._contents.get(start)
        if known is None:
            known = _content(self.text, box, limit)
            if known[2]:
                self._contents[start] = known
        elif limit is not None and known[1] > limit:
            return "", limit, False
        return known


def _is_beside(boxes: _Boxes) -> bool:
    """Tells whether the last box stands in a remark behind the one before it."""
    begin = boxes.starts[-1].start()
    _, end, closed = boxes.content(boxes.starts[-2], begin)
    if not closed or begin - end > _BESIDE_WITHIN:
        return False
    between = boxes.text[end:begin]
    if len(between) >= _SHORTEST_REMARK and not between.endswith(_PLAIN_LEADS):
        sentence = between[max(map(between.rfind, ".!?\n")) + 1 :]
        if _ELSEWISE.search(sentence) or _MISTAKEN.match(boxes.text, boxes.content(boxes.starts[-1])[1]):
            return True
    if "answer" in between or _NEW_CONCLUSION.search(between):
        return False
    return _BESIDE.search(between) is not None or _is_checking(boxes.text, begin)


def _is_checking(text: str, begin: int) -> bool:
    """Tells whether a box stands on a line that checks the answer."""
    start = max(text.rfind("\n", max(0, begin - _BESIDE_WITHIN), begin) + 1, begin - _BESIDE_WITHIN)
    return _CHECKING.match(text, start, begin) is not None


def _is_denied(boxes: _Boxes) -> bool:
    """Tells whether the last box holds what the answer is not: `not \\boxed{5}`, `\\boxed{5} is extraneous`."""
    text, box = boxes.text, boxes.starts[-1]
    begin = box.start()
    before = text[max(0, begin - 20) : begin]
    if before.rstrip(" \t\n$(*").lower().endswith(_DENYING) and _NOT_THIS_BOX.search(before):
        return True
    _, end, closed = boxes.content(box)
    return closed and len(text) - end >= _SHORTEST_CORRECTION and REFUTED.match(text, end) is not None


def _outer(boxes: _Boxes, end: int) -> Extraction | None:
    """Returns the box around the last box: an empty one in 5, or a part of a formula; a label in words is no part."""
    text, starts = boxes.text, boxes.starts
    for box in starts[:-1]:
        if starts[-1].start() - box.start() > _NESTED_LIMIT:
            continue
        content, outer_end, closed = boxes.content(box, end + _NESTED_LIMIT)
        if closed and outer_end >= end:
            if content.strip() == text[starts[-1].start() : end]:
                return None
            whole = re.sub(r"\{\s*\}", "", _INNER_BOX.sub("", content)).strip()
            if not whole or re.search(r"[A-Za-z]{3,}", re.sub(r"\\[A-Za-z]+", "", whole)):
                return None
            return Extraction(whole, "boxed", start=box.start(), end=outer_end)
    return None


def _last_boxes(text: str, most: int = 64) -> list[re.Match[str]]:
    """Returns the last boxes' openings in order of the text, found from the end."""
    found: list[re.Match[str]] = []
    at, floor, last = len(text), 0, -1
    while len(found) < most and (at := text.rfind("ox", floor, at)) >= 0:
        if text.startswith(_PLAIN_BOX, at - 3):
            match = _BOX.match(text, at - 2)
        else:
            before = text[max(0, at - 8) : at]
            begin = at - len(before) + len(before.rstrip("\\bfBrameth\x08"))
            match = _BOX.search(text, begin, at + 16)
        if match and (start := match.start()) <= at and start != last:
            found.append(match)
            at = last = start
            floor = max(0, start - _NEIGHBOURS_WITHIN)
    found.reverse()
    return found


def _content(text: str, box: re.Match[str], limit: int | None = None) -> tuple[str, int, bool]:
    """Returns (content, end, closed) of a box; braces may nest, escaped ones count as text."""
    start = box.end()
    stop = min(len(text) if limit is None else limit, start + _BOX_LIMIT * (50 if limit is None else 1))
    opening = box["open"]
    if opening not in ("{", "\\{"):
        # `\boxed 5` and `\boxed(5)`: TeX would box one token; people mean the rest of the math, or up to the next box.
        start = box.end() if opening != "(" else box.end() - 1
        match = _REST_OF_MATH.match(text, start, min(start + 200, stop))
        piece = match[0] if match else ""
        piece = re.split(r"\\[\])]|(?<=\S)\.(?:\s|$)", piece)[0]
        return piece, start + len(piece), bool(piece.strip())
    if opening == "{" and (end := text.find("}", start, stop)) >= 0:
        content = text[start:end]
        if "{" not in content and "\\" not in content:
            return content, end + 1, True
    depth = 1
    for token in _BRACES.finditer(text, start, stop):
        mark = token[0]
        if mark == "{" or (opening == "\\{" and mark == "\\{"):
            depth += 1
        elif mark == "}" or (opening == "\\{" and mark == "\\}"):
            depth -= 1
            if depth == 0:
                return text[start : token.start()], token.end(), True
    stop = min(stop, start + 2000)
    return text[start:stop], stop, False


def _adjacent(between: str) -> bool:
    """Tells whether two boxes are parts of one list: only a separator, labels or a few words stand between them."""
    if (
        len(between) > _BETWEEN_LIMIT
        or _PARAGRAPH_END.search(between)
        or _SENTENCE_END.search(between.replace("...", ""))
    ):
        return False
    words = re.findall(r"[A-Za-z]{2,}|\bI\b", _SEPARATOR_NOISE.sub(" ", between))
    if _CONCLUDING.search(" ".join(words)):
        return False
    if not _CONNECTIVE.search(between):
        return not _SEPARATOR_NOISE.sub("", between)
    return sum(word.lower() not in ("and", "or") for word in words) <= 3


_PART = re.compile(r"\(?([a-h])\)[\s$*]*$")
_ITEM = re.compile(r"[\s$*]*([A-Za-z](?:_\w+)?(?=\s*=)|(?:part\s*)?\(?[a-h\d]\)?(?=[.):]))\s*[=.):]*[\s$*:]*", re.I)
_ITEM_BETWEEN = re.compile(rf"(?:[\s$.,;*]|\\[\])]){{0,8}}\n(?:\s*\\[\[(])?{_ITEM.pattern}", re.I)
_ITEM_SIGNS = frozenset("=.):")
_PART_BETWEEN = re.compile(r"[\s$.*]{0,12}\(?([b-h])\)[\s$*]{0,12}")


def _next_part(text: str, begin: int, between: str) -> bool:
    """Tells whether two boxes are parts of one answer: (a) before the one, nothing but (b) between them."""
    first = _PART.search(text, max(0, begin - 12), begin) if ")" in text[max(0, begin - 12) : begin] else None
    if first and (second := _PART_BETWEEN.fullmatch(between)):
        return ord(first[1]) + 1 == ord(second[1])
    at = between.find("\n")
    if at < 0 or _ITEM_SIGNS.isdisjoint(between[at:]):
        return False
    # x = ... on one line, y = ... on the next
    other = _ITEM_BETWEEN.fullmatch(between)
    line = text[text.rfind("\n", max(0, begin - 40), begin) + 1 : begin]
    own = _ITEM.fullmatch(line.lstrip(" \\[(")) if other else None
    return bool(own and other and own[1].isalpha() == other[1].isalpha() and own[1] != other[1])


def _label(text: str, begin: int) -> str:
    """Returns `y_1 = ` where it stands before a box, so that parts of a list keep their names."""
    match = re.search(r"([A-Za-z](?:_\{?\w{1,3}\}?)?)\s*=\s*$", text[max(0, begin - 16) : begin])
    return f"{match[1]} = " if match else ""


_EXTRACTORS = {
    "boxed": _boxed,
    "answer-line": answer_line,
    "closing": closing,
    "bare": bare,
    "last-number": last_number,
}
