"""What makes a verdict suspicious, said at the time of grading: `details["flags"]`, which `ba-eval audit` ranks."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_TAIL = 400
_SHOWN = 500
_NUMERAL = re.compile(r"\d+(?:\.\d+)?")
_COMMA = r"(?:,\\!\s*|\{,\}|\\[,!;]\s*|,)"
_THOUSANDS = rf"{_COMMA}(?=\d{{3}}(?!\d))"
_SEPARATOR = re.compile(rf"(?<=\d){_THOUSANDS}")
_WITHIN = re.compile(rf"\d(?:\.|{_COMMA})$")
_GOES_ON = re.compile(rf"\.\d|{_THOUSANDS}")
_COMMAND = re.compile(r"\\[A-Za-z]+\s*")


def flags(
    outcome: str, reason: str, golds: Sequence[str], response: str, *, expected_place: bool, more: Sequence[str] = ()
) -> list[str]:
    """Returns what makes a verdict suspicious. `expected_place`: the answer stood where the prompt asked for it."""
    found = list(more)
    if outcome == "undecided":
        found.append("undecided")
    if outcome == "wrong":
        found += _gold_seen(golds, response[-2000:].rstrip()[-_TAIL:])
        if reason == "answer not read":
            found.append(reason)
    if not expected_place:
        found.append("found outside the expected format")
    return found


def details(flags: Sequence[str], golds: Sequence[str], **more: Any) -> Mapping[str, Any]:
    """Returns the details of a verdict; a suspicious one carries its golds, so that the records alone explain it."""
    if not flags:
        return more
    shown = [gold[:_SHOWN].encode("utf-8", "replace").decode() for gold in golds]
    return {**more, "flags": list(flags), "golds": shown}


def _gold_seen(golds: Sequence[str], tail: str) -> list[str]:
    words = ""
    for gold in golds:
        numerals = _numerals(gold)
        if numerals and all(_stands(numeral, tail) for numeral in numerals):
            return ["gold's numbers in the final lines"]
        if not numerals and len(name := _words(gold)) >= 3:
            words = words or f" {_words(tail)} "
            if f" {name} " in words:
                return ["gold's words in the final lines"]
    return []


def _stands(numeral: str, text: str) -> bool:
    """Tells whether a text holds a number, whole, with or without separators of thousands."""
    if numeral[-3:] not in text:  # mostly it is not there at all
        return False
    at = text.find(numeral)
    while at >= 0:
        end = at + len(numeral)
        if (
            not text[at - 1 : at].isdigit()
            and not text[end : end + 1].isdigit()
            and not _WITHIN.search(text, max(0, at - 6), at)
            and not _GOES_ON.match(text, end)
        ):
            return True
        at = text.find(numeral, end)
    return bool(_SEPARATOR.search(text)) and numeral in _numerals(text)


def _numerals(text: str) -> set[str]:
    return set(_NUMERAL.findall(_SEPARATOR.sub("", text)))


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", _COMMAND.sub(" ", text).lower()))
