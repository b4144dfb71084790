"""Loads a benchmark: finds its rows, reads them as problems, checks the content, gives what a run needs."""

import gc
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ba_eval.benchmark.code_rows import code_problem, evalplus_rows
from ba_eval.benchmark.content import content_hash, golds_hash, ids_hash
from ba_eval.benchmark.definition import Definition, Spec, find, read_definition
from ba_eval.benchmark.problem import Kind, Problem
from ba_eval.benchmark.releases import select, wanted_releases, window
from ba_eval.benchmark.rows import assign_ids, duplicates, math_problem
from ba_eval.benchmark.source import Row, hub_rows, jsonl_rows, local_files
from ba_eval.errors import InputError


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, loaded."""

    name: str
    """As asked, with parameters (`livecodebench@v6`); safe as a file name."""
    title: str
    kind: Kind
    problems: tuple[Problem, ...] = field(repr=False)
    """After `limit`."""
    content: str
    """sha256 over ids, statements, golds and tests of the full set."""
    golds: str
    """See `content.golds_hash`; of all rows that were read."""
    rows: int
    """Size of the full set, before `limit`."""
    origin: str
    """Where the rows were read from."""
    prompt: str
    prompt_function: str | None
    grader: Mapping[str, Any]
    n: int
    temperature: float
    top_p: float
    max_tokens: int
    excluded: Mapping[str, str]
    """Ids of problems that are reported apart, with the reason; in `problems` all the same."""
    marks: tuple[str, ...]
    """What tables must say of this content."""

    def user_message(self, problem: Problem) -> str:
        """The user message that asks a problem."""
        asks_function = problem.code is not None and problem.code.entry_point is not None
        template = self.prompt_function if self.prompt_function is not None and asks_function else self.prompt
        return template.replace("{problem}", problem.prompt)


def load(
    spec: str,
    *,
    data_dir: Path | None = None,
    accept_content: Collection[str] = (),
    limit: int | None = None,
) -> Benchmark:
    """Loads a benchmark by name (`aime24`, `livecodebench@release_v5@2024-08..2025-02`) or YAML path.

    A local folder (`data_dir`, else BA_EVAL_DATA_DIR) is read before the hub. `accept_content` names benchmarks whose
    content may differ from what is pinned; `limit` keeps the first problems. Raises InputError for all that is wrong.
    """
    asked = find(spec)
    definition = read_definition(asked.path)
    if data_dir is None and os.environ.get("BA_EVAL_DATA_DIR"):
        data_dir = Path(os.environ["BA_EVAL_DATA_DIR"]).expanduser()
    if asked.selectors and not definition.source.files:
        raise InputError(f"benchmark {asked.base} has no releases: leave out '@{'@'.join(asked.selectors)}'")
    if asked.selectors:  # refuse what is not a release or window before any reading
        wanted_releases(asked, definition.source)
        window(asked)

    rows, origin = _rows(asked, definition, data_dir)
    problems = _problems(rows, definition, origin)
    golds = golds_hash(problems)
    marks = _check_pins(asked, definition, problems, golds, origin, accept_content)
    if definition.source.files:
        problems, more = select(problems, asked, definition.source)
        marks += more
    excluded = {id: reason for id, reason in definition.excluded.items() if any(p.id == id for p in problems)}
    problems = [_with_reason(problem, excluded.get(problem.id)) for problem in problems]
    if limit is not None and limit < 1:
        raise InputError(f"limit {limit}: must be at least 1")
    return Benchmark(
        name=asked.name,
        title=" ".join([definition.title, *asked.selectors]),
        kind=definition.kind,
        problems=tuple(problems[:limit]),
        content=content_hash(problems),
        golds=golds,
        rows=len(problems),
        origin=origin,
        prompt=definition.prompt,
        prompt_function=definition.prompt_function,
        grader=definition.grader,
        n=definition.n,
        temperature=definition.temperature,
        top_p=definition.top_p,
        max_tokens=definition.max_tokens,
        excluded=excluded,
        marks=tuple(marks),
    )


def _rows(asked: Spec, definition: Definition, data_dir: Path | None) -> tuple[Iterator[Row], str]:
    """The rows, and where they come from: the local folder, the benchmark's own file, evalplus or the hub."""
    source = definition.source
    local = local_files(asked.base, source, data_dir)
    if source.evalplus:
        path = next(iter(local), None)
        return evalplus_rows(asked.base, source.evalplus, path), str(path) if path else "evalplus"
    if not local and source.hub is None:
        beside = asked.path.parent / (source.file or f"{asked.path.stem}.jsonl")
        if not beside.is_file():
            raise InputError(
                f"{asked.path}: its problems are looked for in {beside}, and there is no such file; "
                "put it there, or name another one under 'source: {file: ...}'"
            )
        local = {beside: None}
    if local:
        paths = list(local)
        origin = str(paths[0]) if len(paths) == 1 else f"{paths[0].parent} ({len(paths)} files)"
        return (row for path, release in local.items() for row in jsonl_rows(path, release)), origin
    releases = wanted_releases(asked, source) if source.files else []
    return hub_rows(asked.base, source, releases), f"hub {source.hub}@{(source.revision or 'main')[:8]}"


def _problems(rows: Iterator[Row], definition: Definition, origin: str) -> list[Problem]:
    read = math_problem if definition.kind == "math" else code_problem
    with _kept():
        problems = [_with_release(read(row, definition), row.release) for row in rows]
    if not problems:
        raise InputError(f"{origin}: holds no problems")
    ids = assign_ids(problems, definition.id)
    if "" in ids:
        raise InputError(f"{origin}: row {ids.index('') + 1} has no id, and others have; write 'id: row' into the YAML")
    repeated = duplicates(ids)
    if repeated:
        raise InputError(
            f"{origin}: {len(repeated)} ids stand more than once, as '{repeated[0]}'; give each row its own, "
            "or write 'id: row' into the YAML"
        )
    return [replace(problem, id=id) for problem, id in zip(problems, ids, strict=True)]


@contextmanager
def _kept() -> Iterator[None]:
    """What is made inside is kept to the end: the garbage collector need not look through it again and again."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collected:
            gc.enable()


def _check_pins(
    asked: Spec,
    definition: Definition,
    problems: Sequence[Problem],
    golds: str,
    origin: str,
    accept_content: Collection[str],
) -> list[str]:
    """The marks of the pin that the rows fit. InputError where there are pins and none fits."""
    if not definition.pins:
        return []
    ids = ids_hash(problems)
    for pin in definition.pins:
        if pin.rows == len(problems) and pin.golds in (None, golds) and pin.ids in (None, ids):
            return [pin.mark] if pin.mark else []
    found = f"{len(problems)} rows, golds {golds}" + (f", ids {ids}" if any(p.ids for p in definition.pins) else "")
    pinned = " or ".join(map(str, definition.pins))
    if {asked.name, asked.base} & set(accept_content):
        return [f"content accepted: {found}; pinned: {pinned}"]
    raise InputError(
        f"benchmark {asked.base}: {origin} has {found}, but pinned is {pinned}; mend the data, or take it as it is "
        f"with --accept-content {asked.base}"
    )


def _with_release(problem: Problem, release: str | None) -> Problem:
    return replace(problem, meta={"release": release, **problem.meta}) if release else problem


def _with_reason(problem: Problem, reason: str | None) -> Problem:
    if reason is None or problem.code is None:
        return problem
    return replace(problem, code=replace(problem.code, excluded=reason))
