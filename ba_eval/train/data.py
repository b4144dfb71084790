"""The problems to train on: read, cleaned with every step counted, and kept apart from the benchmarks."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from ba_eval import hub
from ba_eval.benchmark.code_rows import code_problem
from ba_eval.benchmark.content import canonical_gold, content_hash
from ba_eval.benchmark.definition import Definition, Source, names, read_definition
from ba_eval.benchmark.load import load
from ba_eval.benchmark.problem import Problem
from ba_eval.benchmark.rows import column, math_problem
from ba_eval.benchmark.source import Row, hub_rows, jsonl_rows
from ba_eval.errors import InputError
from ba_eval.resources import data_folder
from ba_eval.train.config import DataConfig
from ba_eval.train.overlap import Index, Match, plain

HUB = {"dapo17k": "BytedTsinghua-SIA/DAPO-Math-17k", "polaris53k": "POLARIS-Project/Polaris-Dataset-53K"}
PROSE = 3
"""More words than this in an answer are prose, which no grader can check."""

_PROOF = re.compile(r"\b(?:prove|show|verify)\b[^.?!]{0,40}\bthat\b|\bprove\b", re.IGNORECASE)
_ASKS = re.compile(
    r"\b(?:find|compute|determine|evaluate|calculate|what|which|how (?:many|much)|simplify|solve)\b|\?", re.I
)
_PICTURE = re.compile(r"!\[[^\]]*\]\(|<img\b|\\includegraphics")


@dataclass
class Prepared:
    """The problems that are left, and what became of the others."""

    problems: list[Problem]
    rows: int
    dropped: Counter[str]
    """Reason to number of rows, in the order in which they are looked for."""
    overlaps: list[tuple[str, Match]] = field(default_factory=list)
    """(training problem's id, what it repeats)."""
    checked: list[str] = field(default_factory=list)
    """Benchmarks that overlap was looked for in."""
    unchecked: dict[str, str] = field(default_factory=dict)
    """Benchmarks that could not be loaded, with the reason."""
    origin: str = ""

    @property
    def content(self) -> str:
        """Hash over the problems and their answers."""
        return content_hash(self.problems)

    def report(self) -> Iterator[str]:
        """Lines for people."""
        yield f"training data: {self.rows} rows from {self.origin}"
        for reason, count in self.dropped.items():
            yield f"  - {count} {reason}"
        yield f"  = {len(self.problems)} problems (content {self.content[:16]})"
        if self.checked:
            kept = len(self.overlaps) - sum(c for reason, c in self.dropped.items() if reason.startswith("stand in"))
            yield f"  overlap with {', '.join(self.checked)}: {len(self.overlaps)} problems" + (
                f", {kept} of them kept" if kept else ""
            )
        for benchmark, reason in self.unchecked.items():
            yield f"  overlap with {benchmark} NOT checked: {reason}"


def prepare(config: DataConfig) -> Prepared:
    """Reads the source and cleans it. InputError where nothing can be read or nothing is left."""
    dropped: Counter[str] = Counter()
    data_dir = config.dir or os.environ.get("BA_EVAL_DATA_DIR")
    folder = Path(data_dir).expanduser() if data_dir else None
    if folder is not None and not folder.is_dir():
        raise InputError(f"data folder {folder}: there is no such folder (data.dir, BA_EVAL_DATA_DIR)")
    rows, origin = _rows(config, folder)
    made = Prepared([], 0, dropped, origin=origin)
    problems = _checkable(_distinct(_read(rows, config, made), dropped), dropped)
    _mark_overlaps(problems, config, folder, made)
    if config.overlap == "remove":
        repeats = {id: match.benchmark for id, match in made.overlaps}
        for benchmark in repeats.values():
            dropped[f"stand in {benchmark} too"] += 1
        problems = [problem for problem in problems if problem.id not in repeats]
    if config.limit is not None and len(problems) > config.limit:
        dropped[f"beyond the limit of {config.limit}"] += len(problems) - config.limit
        problems = problems[: config.limit]
    if not problems:
        raise InputError("\n".join([f"{origin}: no problem is left to train on", *made.report()]))
    made.problems = problems
    return made


def user_message(problem: Problem, message: str | None) -> str:
    """Returns what a problem is asked with: `message`, or by default what the evaluation asks such problems with."""
    if message is None:
        like = _definition("livecodebench" if problem.code else "math500")
        is_function = problem.code is not None and problem.code.entry_point is not None
        message = like.prompt_function if is_function and like.prompt_function else like.prompt
    return message.replace("{problem}", problem.prompt)


@cache
def _definition(name: str) -> Definition:
    return read_definition(data_folder("benchmarks") / f"{name}.yaml")


def drop_long(prepared: Prepared, lengths: Iterable[int], longest: int) -> None:
    """Drops the problems whose prompt (`lengths`, in tokens, in order) is longer than `longest`."""
    kept = [p for p, length in zip(prepared.problems, lengths, strict=True) if length <= longest]
    if not kept:
        raise InputError(f"every prompt is longer than max_prompt {longest}")
    if len(kept) < len(prepared.problems):
        prepared.dropped[f"prompts of more than {longest} tokens"] += len(prepared.problems) - len(kept)
    prepared.problems = kept


def _rows(config: DataConfig, folder: Path | None) -> tuple[Iterator[Row], str]:
    """The rows and where they come from; a local file goes before the hub."""
    source = config.source
    candidates = [Path(source).expanduser()]
    if folder is not None:
        candidates += [folder / f"{source}{suffix}" for suffix in (".jsonl", ".parquet")]
    for path in candidates:
        if path.is_file():
            return (_parquet_rows(path) if path.suffix == ".parquet" else jsonl_rows(path)), str(path)
    repository = HUB.get(source, source)
    if source.endswith((".jsonl", ".parquet", ".json")) or not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise InputError(
            f"training data {source}: no such file; known by name: {', '.join(HUB)}; "
            "else give a JSONL or Parquet file, or a dataset id of the hub"
        )
    reason = hub.why_unreachable(timeout=10.0)
    if reason and not hub.switched_off():
        raise InputError(
            f"training data {source}: {reason}; put {source}.jsonl or .parquet into a folder and give it as data.dir "
            "(or BA_EVAL_DATA_DIR), or name the file as data.source"
        )
    found = Source(hub=repository, config=config.config, split=config.split, revision=config.revision)
    return hub_rows(source, found, []), f"hub {repository}@{(config.revision or 'main')[:8]}"


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    number = 0
    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=1024):
            for data in batch.to_pylist():
                yield Row(data, f"{path} row {number}")
                number += 1
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {' '.join(str(error).split())[:200]}") from None


def _read(rows: Iterable[Row], config: DataConfig, made: Prepared) -> Iterator[Problem]:
    """Reads rows as problems. Rows that repeat an earlier statement to the letter are not read at all: sets of
    training rows hold the same one a hundred times."""
    definition = Definition(title=config.source, kind=config.kind, prompt="{problem}", columns=config.columns)  # type: ignore[arg-type]
    read = math_problem if config.kind == "math" else code_problem
    seen: set[int] = set()
    first: InputError | None = None
    unread = 0
    for row in rows:
        made.rows += 1
        key = hash(repr((column(row, definition, "problem"), column(row, definition, "answer"))))
        if key in seen:
            made.dropped["repeated rows"] += 1
            continue
        seen.add(key)
        try:
            yield replace(read(row, definition), id=str(made.rows - 1))
        except InputError as error:
            first = first or error
            unread += 1
            made.dropped["without a problem or without an answer"] += 1
    if first is not None and unread == len(seen):
        raise first


def _distinct(problems: Iterable[Problem], dropped: Counter[str]) -> list[Problem]:
    """Keeps the first of the problems with the same normalised text; drops all of them where their answers differ."""
    kept: dict[str, Problem] = {}
    conflicts: Counter[str] = Counter()
    for problem in problems:
        key = plain(problem.prompt)
        before = kept.setdefault(key, problem)
        if before is problem:
            continue
        same = {canonical_gold(g) for g in before.golds} == {canonical_gold(g) for g in problem.golds}
        if same and key not in conflicts:
            dropped["with the text of an earlier problem"] += 1
        else:
            conflicts[key] += 1 if key in conflicts else 2
    if conflicts:
        dropped["with the same text and different answers"] += sum(conflicts.values())
    return [problem for key, problem in kept.items() if key not in conflicts]


def _checkable(problems: Iterable[Problem], dropped: Counter[str]) -> list[Problem]:
    kept = []
    for problem in problems:
        reason = _uncheckable(problem)
        if reason:
            dropped[reason] += 1
        else:
            kept.append(problem)
    return kept


def _uncheckable(problem: Problem) -> str | None:
    """Why no grader can tell whether a response to this is right."""
    if _PICTURE.search(problem.prompt):
        return "need a picture"
    if problem.code is not None:
        return None
    if _PROOF.search(problem.prompt) and not _ASKS.search(problem.prompt):
        return "ask for a proof"
    if all(len(re.findall(r"[A-Za-z]{3,}", re.sub(r"\\[A-Za-z]+", " ", gold))) > PROSE for gold in problem.golds):
        return "have prose for an answer"
    return None


def _mark_overlaps(problems: list[Problem], config: DataConfig, folder: Path | None, made: Prepared) -> None:
    index = Index()
    asked = config.benchmarks if config.benchmarks is not None else _benchmarks(config.kind)
    for name in asked:
        try:
            benchmark = load(name, data_dir=folder)
        except InputError as error:
            if config.benchmarks is not None:
                raise
            made.unchecked[name] = str(error).split(";")[0]
            continue
        index.add(name, ((p.id, p.prompt) for p in benchmark.problems))
        made.checked.append(name)
    for problem in problems:
        match = index.find(problem.prompt)
        if match:
            made.overlaps.append((problem.id, match))


def _benchmarks(kind: str) -> list[str]:
    """The built-in benchmarks of the kind, without those that only try a machine out."""
    found = []
    for name in names():
        is_math = _definition(name).kind == "math"
        if is_math == (kind == "math") and not name.startswith("smoke"):
            found.append(name)
    return found
