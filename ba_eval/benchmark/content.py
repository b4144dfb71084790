"""What a benchmark's content is identified by: hashes over its gold answers, ids, and all that a sample depends on."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ba_eval.benchmark.problem import CodeTask, Problem


def golds_hash(problems: Iterable[Problem]) -> str:
    """16 hex digits over the sorted golds (of code: the tests), in a form that is the same in every file format.

    Order of rows, ids and statements do not enter, so copies of a set whose text or order differs agree.
    """
    return _short(sorted(_gold(problem) for problem in problems))


def ids_hash(problems: Iterable[Problem]) -> str:
    """16 hex digits over the sorted problem ids."""
    return _short(sorted(problem.id for problem in problems))


def content_hash(problems: Iterable[Problem]) -> str:
    """sha256 over ids, statements, golds and tests of the whole set, whatever the order of its rows."""
    entries = []
    for problem in problems:
        tests = digest_of_tests(problem.code) if problem.code else ""
        entries.append(json.dumps([problem.id, problem.prompt, problem.golds, tests, problem.meta.get("tolerance")]))
    return hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()


def digest_of_tests(task: CodeTask) -> str:
    """sha256 over the tests of a code problem."""
    digest = getattr(task.tests, "digest", None)  # tests that are read when used know their own
    if isinstance(digest, str):
        return digest
    text = json.dumps([task.entry_point, task.tests], default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _gold(problem: Problem) -> str:
    if problem.code is not None:
        return f"{problem.id} {digest_of_tests(problem.code)}"
    return " | ".join(sorted({canonical_gold(gold) for gold in problem.golds}))


def canonical_gold(gold: str) -> str:
    """A gold answer without what differs between file formats: dollar signs, spaces, leading zeros, a trailing .0."""
    text = re.sub(r"[\s$]+", "", gold)
    number = re.fullmatch(r"(-?)0*(\d+)(?:\.0+)?", text)
    return f"{number[1]}{number[2]}" if number else text


def _plain(value: Any) -> Any:
    """Turns what JSON does not know (sets in sorted order, complex numbers, dataclasses) into JSON data."""
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(value, key=repr)}
    return list(value) if isinstance(value, Sequence) else repr(value)


def _short(entries: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(entries).encode("utf-8", "surrogatepass")).hexdigest()[:16]
