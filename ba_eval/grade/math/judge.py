"""Grades a file of answers: the work behind `ba-eval judge math`."""

import sys
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TextIO

import msgspec

from ba_eval.benchmark.problem import Problem
from ba_eval.errors import InputError
from ba_eval.grade.math.grader import MathGrader
from ba_eval.grade.math.options import MathOptions
from ba_eval.grade.verdict import Verdict

_AHEAD = 256


def judge_file(
    path: Path, out: Path | None = None, options: MathOptions | None = None, workers: int = 1
) -> Counter[str]:
    """Grades each line {id, gold, answer | response} of a JSONL file and writes {id, outcome, reason, extracted, ...}.

    `gold` is a string or number, or a list of accepted ones; `unit`, `tolerance` and `finish_reason` may be given.
    An `answer` is compared as it stands, a `response` is searched for its answer. Writes to stdout where `out` is None;
    returns the number of each outcome. Raises InputError for a line that cannot be used.
    """
    rows = list(_rows(path))
    with MathGrader(options, workers) as grader:
        if out is None:
            return _write(rows, grader, sys.stdout)
        try:
            with out.open("w", encoding="utf-8") as file:
                return _write(rows, grader, file)
        except OSError as error:
            raise InputError(f"{out}: cannot be written ({error.strerror})") from error


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            row = _lenient(line, path, number)
        if (
            not isinstance(row, dict)
            or "id" not in row
            or "gold" not in row
            or not ({"answer", "response"} & row.keys())
        ):
            raise InputError(f"{path}:{number}: a line needs `id`, `gold` and `answer` or `response`")
        yield row


def _lenient(line: bytes, path: Path, number: int) -> Any:
    """Invalid UTF-8 and lone surrogates come from models; anything else that is no JSON is refused."""
    import json

    try:
        return json.loads(line.decode("utf-8", "replace"))
    except ValueError as error:
        raise InputError(f"{path}:{number}: not JSON ({error})") from error


def _write(rows: list[dict[str, Any]], grader: MathGrader, file: TextIO) -> Counter[str]:
    counts: Counter[str] = Counter()
    waiting: deque[tuple[Any, Future[Verdict]]] = deque()

    def flush(most: int) -> None:
        while len(waiting) > most:
            name, future = waiting.popleft()
            verdict = future.result()
            counts[verdict.outcome] += 1
            line = {
                "id": name,
                "outcome": verdict.outcome,
                "reason": verdict.reason,
                "extracted": verdict.extracted,
                "method": verdict.method,
                "seconds": round(verdict.seconds, 6),
            }
            file.write(msgspec.json.encode(_printable(line)).decode() + "\n")

    for row in rows:
        golds = row["gold"] if isinstance(row["gold"], list) else [row["gold"]]
        golds = [str(gold) for gold in golds]
        unit, tolerance = str(row.get("unit") or ""), row.get("tolerance")
        if row.get("answer") is not None:
            future = grader.submit_answer(
                golds, str(row["answer"]), unit, None if tolerance is None else float(tolerance)
            )
        else:
            problem = Problem(str(row["id"]), "", tuple(golds), meta={"unit": unit, "tolerance": tolerance})
            future = grader.submit(problem, str(row["response"] or ""), str(row.get("finish_reason") or "stop"))
        waiting.append((row["id"], future))
        flush(_AHEAD)
    flush(0)
    return counts


def _printable(line: dict[str, Any]) -> dict[str, Any]:
    return {k: v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for k, v in line.items()}
