"""LiveCodeBench: rows with stdin or function tests, hidden tests that are read when used, releases, date windows."""

import base64
import calendar
import datetime
import hashlib
import io
import json
import pickletools
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from ba_eval.benchmark.definition import Source, Spec
from ba_eval.benchmark.problem import CallTest, CodeTask, Problem, StdinTest
from ba_eval.benchmark.source import Row, _json_object
from ba_eval.errors import InputError

MAX_TESTS_BYTES = 2**31
"""The hidden tests of one problem, unpacked: beyond this they are refused."""

Test = StdinTest | CallTest


def problem(row: Row) -> Problem:
    """Reads a row. Its public tests come first, then the hidden ones where the row has them."""
    data = row.data
    try:
        metadata = json.loads(data.get("metadata") or "{}")
        name = metadata.get("func_name")
        starter = data.get("starter_code") or ""
        hidden = data.get("private_test_cases")
        tests: Sequence[Test]
        if hidden and row.path is not None and len(hidden) > 10_000:
            digest = hashlib.sha256(f"{data['public_test_cases']}\0{hidden}".encode()).hexdigest()
            tests = StoredTests(str(row.path), row.offset, row.length, digest)
        else:
            tests = read_tests(data)
        statement = data["question_content"].strip()
        id = str(data["question_id"])
        date = str(data["contest_date"])[:10]
        datetime.date.fromisoformat(date)
    except KeyError as error:
        raise InputError(f"{row.where}: has no column {error} (its columns: {', '.join(data)})") from None
    except (ValueError, TypeError, AttributeError, zlib.error) as error:
        raise InputError(f"{row.where}: is not a row of LiveCodeBench: {error}") from None
    if name:
        in_class = re.search(r"^class Solution\b", starter, re.MULTILINE)
        statement += f"\n\nStarter code:\n```python\n{starter.rstrip()}\n```"
        name = f"Solution.{name}" if in_class else name
    meta = {key: data[key] for key in ("difficulty", "platform") if data.get(key)}
    meta |= {"date": date, "hidden": bool(hidden)}
    release = data.get("_version") or row.release
    if release:
        meta["release"] = str(release)
    # mypy cannot see that one problem's tests are all of one kind
    return Problem(id=id, prompt=statement, code=CodeTask(tests=tests, entry_point=name), meta=meta)  # type: ignore[arg-type]


def read_tests(data: Mapping[str, Any]) -> list[Test]:
    """The public and hidden tests of a row."""
    tests = json.loads(data.get("public_test_cases") or "[]")
    hidden = data.get("private_test_cases")
    if hidden:
        tests = tests + (json.loads(hidden) if hidden.lstrip().startswith("[") else json.loads(unpack(hidden)))
    return [_test(test) for test in tests]


def _test(test: Mapping[str, str]) -> Test:
    if test["testtype"] == "stdin":
        return StdinTest(test["input"], test["output"])
    if test["testtype"] != "functional":
        raise ValueError(f"a test of unknown kind '{test['testtype']}'")
    # one JSON value a line for each argument
    return CallTest(
        [json.loads(line) for line in test["input"].splitlines() if line.strip()], json.loads(test["output"])
    )


def unpack(packed: str, limit: int = MAX_TESTS_BYTES) -> str:
    """Decodes base64(zlib(pickle(str))). The pickle is read for its one string and never run.

    Raises ValueError for anything else than one string, or more than `limit` bytes.
    """
    unzip = zlib.decompressobj()
    try:
        raw = unzip.decompress(base64.b64decode(packed, validate=True), limit)
    except zlib.error as error:
        raise ValueError(f"hidden tests cannot be unpacked: {error}") from None
    if unzip.unconsumed_tail:
        raise ValueError(f"hidden tests unpack to more than {limit} bytes")
    if not unzip.eof:
        raise ValueError("hidden tests are cut short")
    texts = []
    for opcode, argument, _ in pickletools.genops(io.BytesIO(raw)):
        if opcode.name in ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"):
            texts.append(argument)
        elif opcode.name not in ("PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "STOP"):
            raise ValueError(f"hidden tests hold more than a string ({opcode.name}): refused")
    if len(texts) != 1:
        raise ValueError("hidden tests are not one string: refused")
    return str(texts[0])


class StoredTests(Sequence[Test]):
    """The tests of one row, read and unpacked when used: those of a release would fill the memory.

    Holds only where the row stands, so it is cheap to send to another process.
    """

    def __init__(self, path: str, offset: int, length: int, digest: str) -> None:
        self.path, self.offset, self.length, self.digest = path, offset, length, digest

    def _tests(self) -> list[Test]:
        return _stored_tests(self.path, self.offset, self.length)

    @overload
    def __getitem__(self, index: int) -> Test: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Test]: ...
    def __getitem__(self, index: int | slice) -> Test | Sequence[Test]:
        return self._tests()[index]

    def __len__(self) -> int:
        return len(self._tests())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredTests) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=4)
def _stored_tests(path: str, offset: int, length: int) -> list[Test]:
    with Path(path).open("rb") as file:
        file.seek(offset)
        return read_tests(_json_object(file.read(length), f"{path} at byte {offset}"))


def wanted_releases(spec: Spec, source: Source) -> list[str]:
    """The releases that a spec asks for: `release_v5` is v1 to v5, `v5` that step alone; all where it names none."""
    known = list(source.files)
    asked = [s for s in spec.selectors if ".." not in s]
    if not asked:
        return known
    name = asked[0].removeprefix("release_")
    if len(asked) > 1 or name not in known:
        last = known[-1]
        raise InputError(
            f"benchmark {spec.name}: no release '{'@'.join(asked)}'; known: release_{known[0]} to release_{last} "
            f"(cumulative), {known[0]} to {last} (one step), and windows as 2024-08..2025-02"
        )
    return known[: known.index(name) + 1] if asked[0].startswith("release_") else [name]


def window(spec: Spec) -> tuple[str, str] | None:
    """The first and last day (ISO) of the date window that a spec asks for; months count whole, both ends included."""
    asked = [s for s in spec.selectors if ".." in s]
    if not asked:
        return None
    try:
        if len(asked) > 1:
            raise ValueError
        first, last = asked[0].split("..")
        days = _day(first, last=False), _day(last, last=True)
    except ValueError:
        raise InputError(
            f"benchmark {spec.name}: a date window is written 2024-08..2025-02 or 2024-08-01..2025-02-15"
        ) from None
    if days[0] > days[1]:
        raise InputError(f"benchmark {spec.name}: the window ends before it begins")
    return days


def _day(text: str, *, last: bool) -> str:
    if re.fullmatch(r"\d{4}-\d{2}", text):
        year, month = int(text[:4]), int(text[5:])
        if not 1 <= month <= 12:
            raise ValueError
        return f"{text}-{calendar.monthrange(year, month)[1] if last else 1:02d}"
    return datetime.date.fromisoformat(text).isoformat()


def select(problems: Sequence[Problem], spec: Spec, source: Source) -> tuple[list[Problem], list[str]]:
    """The problems of a spec's releases and window, and what tables must say of them."""
    chosen = list(problems)
    releases = wanted_releases(spec, source)
    if len(releases) < len(source.files):
        if not all("release" in p.meta for p in chosen):
            raise InputError(
                f"benchmark {spec.name}: the local rows do not say their release (no column '_version'); use a date "
                f"window, or the hub's files in a folder {spec.base}/"
            )
        chosen = [p for p in chosen if p.meta["release"] in releases]
    days = window(spec)
    if days is not None:
        chosen = [p for p in chosen if days[0] <= p.meta["date"] <= days[1]]
    if not chosen:
        raise InputError(f"benchmark {spec.name}: no problem is left by {'@'.join(spec.selectors)}")
    marks = []
    present = {p.meta.get("release") for p in problems}
    missing = [release for release in releases if release not in present]
    if missing and None not in present:
        marks.append(f"without {', '.join(missing)}")
    public = sum(not p.meta["hidden"] for p in chosen)
    if public:
        marks.append("public tests only" if public == len(chosen) else f"public tests only for {public} problems")
    return chosen, marks
