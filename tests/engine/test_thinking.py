"""Thinking blocks: how long they are, and stop strings that must not fire inside them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.engine.thinking import find_stop, in_thinking, thinking_tokens

WORDS = ["<think>", "</think>", "</th", "ink>", "a", "b ", "\n", "stop"]


def decode(ids: Sequence[int]) -> str:
    return "".join(WORDS[i] for i in ids)


def count(ids: list[int], *, opened: bool) -> int | None:
    return thinking_tokens(ids, decode(ids), opened=opened, decode=decode)


@pytest.mark.parametrize(
    ("ids", "opened", "wanted"),
    [
        ([4, 5, 4], False, None),  # no block
        ([4, 0, 5, 1], False, None),  # a tag in the middle of an answer opens nothing
        ([0, 4, 5, 1, 4], False, 3),  # <think> a b </think>: with the opening tag
        ([6, 0, 4, 1], False, 3),  # white space before it
        ([4, 5, 1, 4, 4], True, 2),  # opened by the prompt
        ([4, 5, 2, 3, 4], True, 3),  # the closing tag in two tokens
        ([4, 5, 4], True, 3),  # never closed: all of it
        ([0, 4], False, 2),
        ([1, 4], True, 0),  # closed at once
        ([4, 1, 4, 1], True, 1),  # the first closing tag counts
        ([], True, 0),
    ],
)
def test_thinking_tokens(ids: list[int], opened: bool, wanted: int | None) -> None:
    assert count(ids, opened=opened) == wanted


@given(st.lists(st.integers(0, len(WORDS) - 1), max_size=30), st.booleans())
def test_thinking_tokens_are_those_before_the_first_closing_tag(ids: list[int], opened: bool) -> None:
    found = count(ids, opened=opened)
    text = decode(ids)
    if found is None:
        assert not opened
        assert not text.lstrip().startswith("<think>")
    elif "</think>" in text:
        assert "</think>" not in decode(ids[:found])
        assert "</think>" in decode(ids[: found + 1])
    else:
        assert found == len(ids)


@pytest.mark.parametrize(
    ("text", "opened", "wanted"),
    [
        ("a stop b", False, 2),
        ("a stop b", True, None),
        ("<think> stop", False, None),
        ("<think> stop </think> a stop", False, 24),
        ("stop </think> stop", True, 14),
        ("a END stop", False, 2),
        ("nothing", False, None),
    ],
)
def test_stop_strings(text: str, opened: bool, wanted: int | None) -> None:
    assert find_stop(text, ["stop", "END"], opened=opened) == wanted


@given(st.lists(st.integers(0, len(WORDS) - 1), max_size=30), st.booleans())
def test_looking_at_each_piece_finds_what_looking_at_the_whole_finds(ids: list[int], opened: bool) -> None:
    """The engine looks at text as it grows, and starts where the last look ended."""
    stops = ["stop", "ab", "k>a"]
    text = ""
    found = None
    for piece in (WORDS[i] for i in ids):
        before = len(text)
        text += piece
        found = find_stop(text, stops, opened=opened, start=max(0, before - max(map(len, stops)) + 1))
        if found is not None:
            break
    assert found == find_stop(text, stops, opened=opened)
    if found is None:
        assert find_stop(decode(ids), stops, opened=opened) is None


def test_in_thinking() -> None:
    assert in_thinking("", opened=True)
    assert not in_thinking("", opened=False)
    assert in_thinking(" <think>x", opened=False)
    assert not in_thinking("<think>x</think>", opened=False)
