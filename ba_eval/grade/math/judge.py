"""Grades a file of answers: the work behind `ba-eval judge math`."""

import contextlib
import math
import shutil
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO

import msgspec

from ba_eval.benchmark.problem import Problem
from ba_eval.errors import InputError
from ba_eval.grade.math.grader import MathGrader
from ba_eval.grade.math.options import MathOptions
from ba_eval.grade.verdict import Verdict

_AHEAD = 256
_BOM = b"\xef\xbb\xbf"


def judge_file(
    path: Path, out: Path | None = None, options: MathOptions | None = None, workers: int = 1
) -> Counter[str]:
    """Grades each line {id, gold, answer | response} of a JSONL file and writes {id, outcome, reason, extracted, ...}.

    `gold` is a string or number, or a list of accepted ones; `unit`, `tolerance` and `finish_reason` may be given.
    An `answer` is compared as it stands, a `response` is searched for its answer. Writes to stdout where `out` is None;
    returns the number of each outcome. The file is read twice, line by line: all of it is checked before anything is
    graded. Raises InputError for a line that cannot be used, naming it, and for a file without lines.
    """
    with _opened(path) as file:
        if not sum(1 for _ in _rows(file, path)):
            raise InputError(f"{path}: holds no lines to judge; give lines of {{id, gold, answer | response}}")
        with (
            MathGrader(options, workers) as grader,
            contextlib.nullcontext(sys.stdout) if out is None else _target(out, path) as target,
        ):
            return _write(_rows(file, path), grader, target)


def _opened(path: Path) -> IO[bytes]:
    """Opens a file that can be read twice: of a pipe, a copy."""
    try:
        file: IO[bytes] = path.open("rb")
        if file.seekable():
            return file
        copy = tempfile.TemporaryFile()  # noqa: SIM115 -- the caller closes it
        with file:
            shutil.copyfileobj(file, copy)
        return copy
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _target(out: Path, source: Path) -> TextIO:
    if out.exists() and source.exists() and out.samefile(source):
        raise InputError(f"{out}: is the file to judge; give another --out")
    try:
        return out.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from error


@dataclass(frozen=True)
class _Row:
    """One line, checked."""

    id: Any
    golds: tuple[str, ...]
    answer: str | None
    response: str
    unit: str
    tolerance: float | None
    finish_reason: str


def _rows(file: IO[bytes], path: Path) -> Iterator[_Row]:
    file.seek(0)
    for number, line in enumerate(file, 1):
        line = line.removeprefix(_BOM) if number == 1 else line
        if line.strip():
            try:
                yield _row(_decoded(line))
            except ValueError as error:
                raise InputError(f"{path}:{number}: {error}") from None


def _decoded(line: bytes) -> Any:
    """Takes invalid UTF-8, lone surrogates and control characters, which come from models, and nothing else."""
    import json

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    def whole(digits: str) -> int | str:
        """Python refuses integers of more than 4300 digits; they are compared as text anyway."""
        return int(digits) if len(digits) < 4000 else digits

    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            text = line.decode("utf-8", "replace")
            return json.loads(text, strict=False, parse_constant=refuse, parse_int=whole)
        except ValueError as error:
            raise ValueError(f"not JSON ({error})") from None
        except RecursionError:
            raise ValueError("nested too deeply") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _row(data: Any) -> _Row:
    """Raises ValueError for what is missing or of the wrong kind."""
    if not isinstance(data, dict):
        raise ValueError("a line must be an object {id, gold, answer | response}")
    missing = [name for name in ("id", "gold") if name not in data]
    if missing or not {"answer", "response"} & data.keys():
        told = " and ".join(f"`{name}`" for name in missing) or "`answer` or `response`"
        raise ValueError(f"{told} is missing; a line needs `id`, `gold` and `answer` or `response`")
    golds = data["gold"] if isinstance(data["gold"], list) else [data["gold"]]
    texts = [_text("gold", gold) for gold in golds]
    if not texts or not all(text and text.strip() for text in texts):
        raise ValueError("`gold` is empty")
    return _Row(
        id=data["id"],
        golds=tuple(text for text in texts if text),
        answer=_text("answer", data.get("answer")),
        response=_text("response", data.get("response")) or "",
        unit=_string("unit", data.get("unit")) or "",
        tolerance=_tolerance(data.get("tolerance")),
        finish_reason=_string("finish_reason", data.get("finish_reason")) or "stop",
    )


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"`{name}` must be text or a number, not {_shown(value)}")
    return str(value)


def _string(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"`{name}` must be text, not {_shown(value)}")
    return value


def _tolerance(value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or isinstance(value, bool):
        raise ValueError(f"`tolerance` must be a number, 0 or more, not {_shown(value)}")
    return number


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _write(rows: Iterator[_Row], grader: MathGrader, file: TextIO) -> Counter[str]:
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
        if row.answer is not None:
            future = grader.submit_answer(row.golds, row.answer, row.unit, row.tolerance)
        else:
            problem = Problem("", "", row.golds, meta={"unit": row.unit, "tolerance": row.tolerance})
            future = grader.submit(problem, row.response, row.finish_reason)
        waiting.append((row.id, future))
        flush(_AHEAD)
    flush(0)
    return counts


def _printable(line: dict[str, Any]) -> dict[str, Any]:
    return {k: v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for k, v in line.items()}
