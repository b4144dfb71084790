"""Separates a reasoning model's thinking from its answer."""

import re

# <think> of most models, and the tags of Magistral, OpenThinker, Kimi and of prompts that name their own.
_TAG = re.compile(
    r"<(/?)(?:think|thinking|thought|reasoning)>|\[(/?)THINK\]|<\|(?:begin|(end))_of_thought\|>|◁(/?)think▷"
)
_FEW = 64
_TAG_STARTS = ("<th", "</th", "<re", "</re", "<|begin_of", "<|end_of")
TURN_ENDS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|return|>",
    "<|end|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "</s>",
)
"""What models write at the end of their turn; what they make up behind it is not theirs to answer with."""


def may_hold(text: str, starts: tuple[str, ...]) -> bool:
    """Tells whether a text may hold a mark that starts as one of `starts`, all of which begin with `<`.

    Most texts have few of that character: looking at each takes a tenth of the time that looking for the marks would.
    """
    at = -1
    for _ in range(_FEW):
        at = text.find("<", at + 1)
        if at < 0:
            return False
        if text.startswith(starts, at):
            return True
    return True


def split_thinking(text: str) -> tuple[str | None, str, bool]:
    """Splits a response at its `<think>` blocks; linear in its length.

    Returns `(thinking, answer, closed)`. `thinking` is None where there is none. A template that opens the block in the
    prompt leaves only `</think>` in the response: everything before it is thinking. `closed` is False where the last
    block never ends; nothing was answered then, and `answer` is empty.

    An opening tag counts at the start of a line only, and right behind another block, so that an answer may speak of
    `<think>`; inside a block a further one means nothing. A closing tag ends the thinking wherever it stands.
    """
    if not may_hold(text, _TAG_STARTS) and ("[" not in text or "THINK]" not in text) and "think▷" not in text:
        return None, text, True
    thinking: list[str] = []
    answer: list[str] = []
    inside = False
    start = 0
    for tag in _TAG.finditer(text):
        closing = any(tag.groups())
        if not closing and (inside or not _starts_line(text, tag.start(), start)):
            continue
        piece = text[start : tag.start()]
        if not closing:
            answer.append(piece)
        elif inside:
            thinking.append(piece)
        else:  # no opening tag before it: all so far was thinking
            thinking += answer
            thinking.append(piece)
            answer.clear()
        inside = not closing
        start = tag.end()
    if inside:
        thinking.append(text[start:])
        return "".join(thinking), "", False
    answer.append(text[start:])
    return ("".join(thinking) if start else None), "".join(answer), True


def _starts_line(text: str, position: int, floor: int) -> bool:
    """Tells whether only blanks stand before a position, on its line or from `floor` on."""
    while position > floor and text[position - 1] in " \t":
        position -= 1
    return position == floor or text[position - 1] in "\r\n"
