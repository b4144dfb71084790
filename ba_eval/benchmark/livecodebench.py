"""Rows of LiveCodeBench: stdin or function tests, the hidden ones decoded without unpickling and read when used."""

import base64
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

from ba_eval.benchmark.problem import CallTest, CodeTask, Problem, StdinTest
from ba_eval.benchmark.source import Row, json_object
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
    if data.get("_version"):
        meta["release"] = str(data["_version"])
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
        return read_tests(json_object(file.read(length), f"{path} at byte {offset}"))
