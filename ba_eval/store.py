"""The run folder: appended records that survive kill -9 and a full disk, one writer at a time."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from ba_eval.errors import InputError, MachineError
from ba_eval.records import (
    Plan,
    ProblemRecord,
    Sample,
    SampleHead,
    VerdictHead,
    VerdictRecord,
    problems_path,
    records_path,
)

R = TypeVar("R", Sample, VerdictRecord, ProblemRecord)
T = TypeVar("T")
# Bytes read and decoded at a time.
_BLOCK = 1 << 17
_encoder = msgspec.json.Encoder()


class StoreError(MachineError):
    """The run folder cannot be written: a full or failing disk. Nothing more can be recorded."""


def refuse_other(path: Path) -> None:
    """Raises InputError where a path can be no run folder, since it holds something else."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; --out needs a folder")
    if path.is_dir() and any(path.iterdir()) and not _is_run(path):
        raise InputError(f"{path}: holds other files and is not a run folder; give an empty or new --out")


class RunFolder:
    """A run folder opened for writing, as a context manager that holds its lock.

    Raises InputError where another process writes to the folder, or where it holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._appenders: dict[tuple[type, str, str], _Appender] = {}

    def __enter__(self) -> "RunFolder":
        from filelock import FileLock, Timeout

        refuse_other(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # The kernel releases the lock when the process dies, however it dies.
            self._lock = FileLock(self.path / "run.lock")
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError(f"{self.path}: another ba-eval is writing to this run folder; wait, or stop it") from None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for appender in self._appenders.values():
            appender.close()
        self._lock.release()
        if error is not None and [entry.name for entry in self.path.iterdir()] == [
            "run.lock"
        ]:  # refused before anything was written
            (self.path / "run.lock").unlink()
            self.path.rmdir()

    def append(self, model: str, benchmark: str, records: Sequence[Sample] | Sequence[VerdictRecord]) -> None:
        """Appends records of one kind, at least one, in one write.

        Raises StoreError where they cannot be written; the file stays sound, with those that had room.
        """
        which = (type(records[0]), model, benchmark)
        appender = self._appenders.get(which)
        if appender is None:
            appender = self._appenders[which] = _Appender(self._path(*which))
        appender.append(_encoder.encode_lines(records))

    def samples(self, model: str, benchmark: str) -> Iterator[Sample]:
        """Yields the samples on disk, of all keys."""
        return read_records(self._path(Sample, model, benchmark), Sample)

    def verdicts(self, model: str, benchmark: str) -> Iterator[VerdictRecord]:
        """Yields the verdicts on disk, of all keys."""
        return read_records(self._path(VerdictRecord, model, benchmark), VerdictRecord)

    def sample_heads(self, model: str, benchmark: str) -> Iterator[SampleHead]:
        """Yields which samples are on disk, of all keys."""
        return read_records(self._path(Sample, model, benchmark), SampleHead)

    def verdict_heads(self, model: str, benchmark: str) -> Iterator[VerdictHead]:
        """Yields which verdicts are on disk, of all keys."""
        return read_records(self._path(VerdictRecord, model, benchmark), VerdictHead)

    def drop(self, model: str, benchmark: str, type: type[R], unwanted: Callable[[Any], bool]) -> int:
        """Removes the records that are unwanted, so that they are made again; returns how many.

        `unwanted` is asked of heads first, then of records.
        """
        path = self._path(type, model, benchmark)
        heads: Iterator[Any] = read_records(path, SampleHead) if type is Sample else read_records(path, VerdictHead)
        count = sum(map(unwanted, heads))
        if count:
            kept = (_encoder.encode(record) + b"\n" for record in read_records(path, type) if not unwanted(record))
            write_atomically(path, kept)
        return count

    def replace_verdicts(self, model: str, benchmark: str, verdicts: Iterable[VerdictRecord]) -> None:
        """Puts these verdicts in the place of those on disk, all or none."""
        path = self._path(VerdictRecord, model, benchmark)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (_encoder.encode(verdict) + b"\n" for verdict in verdicts))

    def _path(self, type: type, model: str, benchmark: str) -> Path:
        return records_path(self.path, "samples" if type is Sample else "verdicts", model, benchmark)

    def write_problems(self, benchmark: str, problems: Iterable[ProblemRecord]) -> None:
        """Writes what a benchmark's problems ask, for readers of the samples."""
        path = problems_path(self.path, benchmark)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (_encoder.encode(problem) + b"\n" for problem in problems))

    def write_yaml(self, name: str, data: Any) -> None:
        """Writes a YAML file of the folder, whole or not at all."""
        import yaml

        write_atomically(self.path / name, [yaml.safe_dump(data, sort_keys=False, allow_unicode=True).encode()])

    def write_json(self, name: str, data: Any) -> None:
        """Writes a JSON file of the folder, whole or not at all."""
        write_atomically(self.path / name, [msgspec.json.format(_encoder.encode(data), indent=2) + b"\n"])


class _Appender:
    """An append-only file of lines. A torn last line, left by a kill or a full disk, is cut off on opening."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            cut_torn_line(path)
            self._file = path.open("ab", buffering=0)
            self._size = self._file.tell()
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from None

    def append(self, lines: bytes) -> None:
        written = 0
        try:
            while written < len(lines):
                written += self._file.write(memoryview(lines)[written:])
        except OSError as error:
            self._size += lines.rfind(b"\n", 0, written) + 1  # whole lines stay
            self._file.truncate(self._size)
            raise StoreError(
                f"{self._path}: cannot be written: {error.strerror}; make room and run the same command again"
            ) from None
        self._size += written

    def close(self) -> None:
        self._file.close()


def cut_torn_line(path: Path) -> None:
    """Truncates the file behind its last newline."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def read_records(path: Path, type: type[T]) -> Iterator[T]:
    """Yields the whole lines of a records file; a torn last line is left out.

    Raises InputError naming file and line where a line is not a record.
    """
    for block in read_blocks(path, type):
        yield from block


def read_blocks(path: Path, type: type[T]) -> Iterator[list[T]]:
    """The same in lists of many: several times faster than line by line."""
    decoder = msgspec.json.Decoder(type)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        while block := file.read(_BLOCK):
            block += file.readline()
            if not block.endswith(b"\n"):
                block = block[: block.rfind(b"\n") + 1]
            try:
                yield decoder.decode_lines(block)
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise _first_fault(path, type) from None


def _first_fault(path: Path, type: type[Any]) -> InputError:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                msgspec.json.decode(line, type=type)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                return InputError(f"{path}:{number}: is not a record: {error}; remove the line to go on")
    return InputError(f"{path}: changed while it was read; run the command again")


def read_plan(run: Path) -> Plan:
    """Reads what the run folder wants. Raises InputError where there is no run."""
    try:
        return msgspec.json.decode((run / "plan.json").read_bytes(), type=Plan)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{run}: is not a run folder (no plan.json); give what `eval --out` wrote") from None
    except msgspec.DecodeError as error:
        raise InputError(
            f"{run / 'plan.json'}: is not a plan: {error}; remove that file and run the same eval command again "
            "(samples and verdicts are kept)"
        ) from None


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Writes a file whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from None


def is_being_written(run: Path) -> bool:
    """Whether a process holds the run folder's lock just now."""
    from filelock import FileLock, Timeout

    if not (run / "run.lock").exists():
        return False
    try:
        with FileLock(run / "run.lock", timeout=0):
            return False
    except Timeout:
        return True


def _is_run(path: Path) -> bool:
    # A run that was stopped before its plan was written holds the lock file alone.
    return any((path / name).exists() for name in ("plan.json", "run.lock"))
