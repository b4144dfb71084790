"""What a benchmark's content is identified by: hashes over its gold answers, ids, and all that a sample depends on."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence

from ba_eval.benchmark.problem import Problem


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
        tests = problem.code.digest if problem.code else ""
        entries.append(json.dumps([problem.id, problem.prompt, problem.golds, tests, problem.meta.get("tolerance")]))
    return hashlib.sha256("\n".join(sorted(entries)).encode()).hexdigest()


def _gold(problem: Problem) -> str:
    if problem.code is not None:
        return f"{problem.id} {problem.code.digest}"
    return " | ".join(sorted({canonical_gold(gold) for gold in problem.golds}))


def canonical_gold(gold: str) -> str:
    """A gold answer without what differs between file formats: dollar signs, spaces, leading zeros, a trailing .0."""
    text = re.sub(r"[\s$]+", "", gold)
    number = re.fullmatch(r"(-?)0*(\d+)(?:\.0+)?", text)
    return f"{number[1]}{number[2]}" if number else text


def _short(entries: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(entries).encode("utf-8", "surrogatepass")).hexdigest()[:16]
