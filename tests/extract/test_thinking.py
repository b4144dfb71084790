"""Thinking and answer come apart as the model meant them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.extract.thinking import split_thinking


@pytest.mark.parametrize(
    ("text", "thinking", "answer", "closed"),
    [
        ("The answer is 4.", None, "The answer is 4.", True),
        ("", None, "", True),
        ("<think>2+2</think>4", "2+2", "4", True),
        ("<think>\n</think>\n\n4", "\n", "\n\n4", True),
        ("<thinking>2+2</thinking>4", "2+2", "4", True),
        ("[THINK]2+2[/THINK]4", "2+2", "4", True),
        ("<|begin_of_thought|>2+2<|end_of_thought|>4", "2+2", "4", True),
        ("<thought>2+2 is", "2+2 is", "", False),
        # the chat template ended with <think>
        ("2+2 is four\n</think>\n4", "2+2 is four\n", "\n4", True),
        # cut off while thinking: nothing was answered
        ("<think>2+2 is", "2+2 is", "", False),
        ("Sure.\n<think>\\boxed{5} maybe", "\\boxed{5} maybe", "", False),
        ("<think>a</think>b\n<think>c", "ac", "", False),
        # the thinking speaks of the tags
        ("<think>the <think> tag\n<think></think>x", "the <think> tag\n<think>", "x", True),
        ("<think>ends with '</think>' now</think>x", "ends with '' now", "x", True),
        # the answer speaks of the tag
        ("<think>a</think>print('<think>')", "a", "print('<think>')", True),
        ("Use the <think> tag.", None, "Use the <think> tag.", True),
        # several blocks
        ("<think>a</think>b\n<think>c</think>d", "ac", "b\nd", True),
        ("  <think>a</think>b", "a", "  b", True),
        ("<think>a</think> <think>b", "ab", "", False),
        ("<think>a</think>the <think> tag", "a", "the <think> tag", True),
    ],
)
def test_split(text: str, thinking: str | None, answer: str, closed: bool) -> None:
    assert split_thinking(text) == (thinking, answer, closed)


@given(st.lists(st.sampled_from(["<think>", "</think>", "\n", " ", "x", "<", "think>"])).map("".join))
def test_invariants(text: str) -> None:
    thinking, answer, closed = split_thinking(text)
    assert closed or not answer
    # everything after the last closing tag is the answer, unless a block opens there
    tail = text.rsplit("</think>", 1)[-1]
    if closed and "<think>" not in tail:
        assert answer.endswith(tail)
    assert len(thinking or "") + len(answer) <= len(text)


@pytest.mark.parametrize("unit", ["<think>", "</think>", "<think></think>", " \t", "\n<think>x</think>y"])
def test_linear(unit: str) -> None:
    started = time.process_time()
    split_thinking(unit * 100_000)
    assert time.process_time() - started < 5  # quadratic would take minutes
