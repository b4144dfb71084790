"""Judges files of model outputs: the work behind `ba-eval judge code` and `ba-eval judge --benchmark`."""

import json
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from ba_eval.benchmark.code_rows import called
from ba_eval.benchmark.load import Benchmark
from ba_eval.benchmark.problem import CallTest, CheckTest, CodeTask, EvalplusTest, Problem, StdinTest
from ba_eval.errors import InputError
from ba_eval.grade.code import CodeGrader
from ba_eval.grade.trial import checked_call
from ba_eval.grade.verdict import Grader, Verdict
from ba_eval.plan import math_grader

# Verdicts are written in the order of the file; so many may be under way ahead of the one that is written next.
_AHEAD = 256

PASS_AT = (1, 10, 100)


def judge_code_file(
    path: Path, out: Path | None, workers: int | None = None, level: int | None = None, unsafe: bool = False
) -> Counter[str]:
    """Judges each line `{id, response | solution, entry_point?, tests}` of a JSONL file; returns the outcomes' counts.

    `tests` is a list of `{args, expected}` (and `kwargs`), of `{stdin, stdout}` or of asserts, or the source of a test
    program.
    A `response` is searched for its program, a `solution` is run as it stands. `prefix` may give code that a
    function's body continues, and `finish_reason` `length` says that a response was cut off. Verdicts go to `out`, one
    line each in the file's order, or to stdout. Raises InputError, before anything is run, for a line that cannot be
    used.
    """
    rows = [(row["id"], _own_problem(row, where), row) for row, where in _rows(path)]
    for _, problem, row in rows:
        _check_program(row, problem.id)
    counts: Counter[str] = Counter()
    with _output(out, path) as file, _code_grader(workers, level, unsafe) as grader:
        submitted = ((id, _submit(grader, problem, row)) for id, problem, row in rows)
        for id, verdict in _in_order(submitted):
            _write(file, {"id": id}, verdict)
            counts[verdict.outcome] += 1
    return counts


@dataclass(frozen=True)
class BenchmarkScore:
    """What a file of samples reaches on a benchmark."""

    tables: Mapping[str, Mapping[str, float]]
    """pass@k by name, for the whole benchmark and, for evalplus sets, for the base tests alone."""
    problems: int
    """Problems that have a sample and count."""
    samples: int
    missing: int
    """Problems without a sample."""
    apart: int
    """Problems that are reported apart and do not count."""
    undecided: int
    """Samples that the grader could not decide; not correct."""
    errors: int
    """Samples that could not be judged."""


def judge_benchmark_file(
    benchmark: Benchmark,
    path: Path,
    out: Path,
    workers: int | None = None,
    level: int | None = None,
    unsafe: bool = False,
) -> BenchmarkScore:
    """Judges each line `{task_id | problem_id, response}` of a JSONL file against a benchmark.

    A line may have the program itself as `solution`, or what follows the prompt as `completion`. Several lines of one
    problem are its samples. Verdicts are written to `out`, one line each in the file's order. Raises InputError, before
    anything is run, for a line that cannot be used.
    """
    problems = {problem.id: problem for problem in benchmark.problems}
    rows = []
    for row, where in _rows(path, id_required=False):
        id = row.get("problem_id", row.get("task_id"))
        if not _is_id(id):
            raise InputError(f"{where}: needs `problem_id` or `task_id`")
        if str(id) not in problems:
            raise InputError(f"{where}: {benchmark.name} has no problem '{id}'; it has {next(iter(problems))}, ...")
        if benchmark.kind != "math":
            if isinstance(row.get("completion"), str) and not {"solution", "response"} & row.keys():
                task = problems[str(id)].code
                row["solution"] = (task.prefix if task else "") + row["completion"]
            _check_program(row, where)
        elif not isinstance(row.get("response"), str):
            raise InputError(f"{where}: needs `response`, a text")
        rows.append((str(id), row))
    results: dict[str, list[Verdict]] = defaultdict(list)
    grading = (
        closing(math_grader(benchmark, workers)) if benchmark.kind == "math" else _code_grader(workers, level, unsafe)
    )
    with _output(out, path) as file, grading as grader:
        submitted = (
            _heaviest_first(grader, problems, rows)
            if isinstance(grader, CodeGrader)
            else ((id, _submit(grader, problems[id], row)) for id, row in rows)
        )
        for id, verdict in _in_order(submitted):
            _write(file, {"problem_id": id, "index": len(results[id])}, verdict)
            results[id].append(verdict)
    return _score(benchmark, results)


def _score(benchmark: Benchmark, results: Mapping[str, list[Verdict]]) -> BenchmarkScore:
    counted = {id: verdicts for id, verdicts in results.items() if id not in benchmark.excluded}
    judged = {id: [v for v in verdicts if v.outcome != "error"] for id, verdicts in counted.items()}
    judged = {id: verdicts for id, verdicts in judged.items() if verdicts}
    tables = {benchmark.name: _pass_at(judged.values(), lambda verdict: verdict.outcome == "correct")}
    if any(isinstance(p.code.tests, EvalplusTest) for p in benchmark.problems if p.code is not None):
        base = _pass_at(judged.values(), lambda verdict: verdict.details.get("base") == "pass")
        tables = {f"{benchmark.name} (base tests only)": base, **tables}
    return BenchmarkScore(
        tables,
        problems=len(judged),
        samples=sum(map(len, judged.values())),
        missing=sum(problem.id not in results for problem in benchmark.problems),
        apart=sum(id in benchmark.excluded for id in results),
        undecided=sum(verdict.outcome == "undecided" for verdicts in results.values() for verdict in verdicts),
        errors=sum(verdict.outcome == "error" for verdicts in results.values() for verdict in verdicts),
    )


def _pass_at(verdicts: Iterable[list[Verdict]], right: Callable[[Verdict], bool]) -> dict[str, float]:
    """pass@k where every problem has k samples; the mean over problems."""
    from ba_eval.stats.estimators import pass_at_k

    counts = [(len(samples), sum(map(right, samples))) for samples in verdicts]
    fewest = min((n for n, _ in counts), default=0)
    n, c = [n for n, _ in counts], [c for _, c in counts]
    return {f"pass@{k}": float(pass_at_k(n, c, k).mean()) for k in PASS_AT if k <= fewest}


def _rows(path: Path, id_required: bool = True) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of a JSONL file, each with its place for messages."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    empty = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line.decode("utf-8-sig"), parse_int=_integer)
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: not UTF-8 (byte {error.start + 1} of the line)") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: a line must be a JSON object")
        if id_required and not _is_id(row.get("id")):
            raise InputError(f"{where}: needs `id`, a text or number")
        empty = False
        yield row, where
    if empty:
        raise InputError(f"{path}: holds no lines")


def _integer(digits: str) -> int:
    """An integer of any length: Python's own conversion refuses more than 4300 digits, since it takes too long."""
    return int(digits) if len(digits) < 4000 else int(Decimal(digits))


def _is_id(value: Any) -> bool:
    return isinstance(value, str) or (type(value) is int and abs(value) < 1 << 63)


def _check_program(row: Mapping[str, Any], where: str) -> None:
    given = [name for name in ("response", "solution") if row.get(name) is not None]
    if len(given) != 1 or not isinstance(row[given[0]], str):
        raise InputError(f"{where}: needs either `response` (searched for its program) or `solution`, a text")


def _own_problem(row: Mapping[str, Any], where: str) -> Problem:
    """A problem made of the tests that a line carries."""
    _check_program(row, where)
    entry_point, prefix, tests = row.get("entry_point"), row.get("prefix", ""), row.get("tests")
    if entry_point is not None and not (isinstance(entry_point, str) and _is_dotted_name(entry_point)):
        raise InputError(f"{where}: `entry_point` must be the name of a function, or Class.method")
    if not isinstance(prefix, str):
        raise InputError(f"{where}: `prefix` must be a text")
    read = _tests(tests, entry_point, where)
    if isinstance(read, CheckTest) and entry_point is None:
        entry_point = called(read.source, None, where, "give `entry_point`, the name of the function that is tested")
    task = CodeTask(read, entry_point, prefix)
    return Problem(str(row["id"]), "", code=task)


def _tests(tests: Any, entry_point: str | None, where: str) -> list[StdinTest] | list[CallTest] | CheckTest:
    if isinstance(tests, str) and tests.strip():
        _check_text(tests, "tests", where)
        return CheckTest(tests)
    if not isinstance(tests, list) or not tests:
        raise InputError(f"{where}: needs `tests`, a list that is not empty")
    if all(isinstance(test, str) and test.strip() for test in tests):  # asserts, as MBPP has them
        return _tests("\n".join(tests), entry_point, where)
    if all(isinstance(test, dict) and {"stdin", "stdout"} <= test.keys() for test in tests):
        if all(isinstance(test[name], str) for test in tests for name in ("stdin", "stdout")):
            for test in tests:
                _check_text(test["stdin"], "stdin", where)
            return [StdinTest(test["stdin"], test["stdout"]) for test in tests]
        raise InputError(f"{where}: `stdin` and `stdout` of a test must be texts")
    if all(isinstance(test, dict) and {"args", "expected"} <= test.keys() for test in tests):
        if entry_point is None:
            raise InputError(f"{where}: tests with `args` need `entry_point`, the name of the function")
        if all(isinstance(test["args"], list) and isinstance(test.get("kwargs", {}), dict) for test in tests):
            for test in tests:
                _check_call(test, where)
            return [CallTest(test["args"], test["expected"], test.get("kwargs", {})) for test in tests]
        raise InputError(f"{where}: `args` of a test must be a list (and `kwargs` an object)")
    raise InputError(
        f"{where}: each test must have `args` and `expected`, or each `stdin` and `stdout`, or each be an assert"
    )


def _check_text(text: str, name: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: `{name}` holds half a surrogate pair, which is no text") from None


def _check_call(test: Mapping[str, Any], where: str) -> None:
    try:
        checked_call(test["args"], test.get("kwargs"))
        checked_call([test["expected"]])
    except ValueError as error:
        raise InputError(f"{where}: a test cannot be used: {error}") from None


def _is_dotted_name(text: str) -> bool:
    return text.count(".") <= 1 and all(part.isidentifier() for part in text.split("."))


@contextmanager
def _code_grader(workers: int | None, level: int | None, unsafe: bool) -> Iterator[CodeGrader]:
    grader = CodeGrader(workers, level, unsafe)
    try:
        yield grader
    finally:
        grader.close()


def _submit(grader: Grader, problem: Problem, row: Mapping[str, Any]) -> Future[Verdict]:
    if isinstance(grader, CodeGrader) and row.get("solution") is not None:
        return grader.submit_program(problem, row["solution"])
    return grader.submit(problem, row["response"], str(row.get("finish_reason") or "stop"))


def _heaviest_first(
    grader: CodeGrader, problems: Mapping[str, Problem], rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[tuple[str, Future[Verdict]]]:
    """Submits all rows, those of slow problems first, so that none of them runs alone at the end; yields them in the
    order of the file."""
    weights = {id: grader.weight(problems[id]) for id in {id for id, _ in rows}}
    numbers = sorted(range(len(rows)), key=lambda number: weights[rows[number][0]], reverse=True)
    futures = {number: _submit(grader, problems[rows[number][0]], rows[number][1]) for number in numbers}
    for number, (id, _) in enumerate(rows):
        yield id, futures.pop(number)


def _in_order(submitted: Iterable[tuple[Any, Future[Verdict]]]) -> Iterator[tuple[Any, Verdict]]:
    waiting: deque[tuple[Any, Future[Verdict]]] = deque()
    for item in submitted:
        waiting.append(item)
        if len(waiting) > _AHEAD:
            id, future = waiting.popleft()
            yield id, future.result()
    while waiting:
        id, future = waiting.popleft()
        yield id, future.result()


@contextmanager
def _output(out: Path | None, source: Path) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    try:
        if out.exists() and out.samefile(source):
            raise InputError(f"{out}: verdicts would overwrite the file that is judged; give another --out")
        file = out.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from None
    with file:
        yield file


def _write(file: TextIO, head: Mapping[str, Any], verdict: Verdict) -> None:
    row = {
        **head,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        **verdict.details,
        "extracted": verdict.extracted,
        "seconds": round(verdict.seconds, 3),
    }
    # ASCII: lone surrogates of a response stay readable, whatever the locale
    file.write(json.dumps(row) + "\n")
    file.flush()
