"""Rows of a benchmark, from a local JSONL file or from the hub at a pinned revision."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ba_eval import hub
from ba_eval.benchmark.definition import Source
from ba_eval.errors import InputError


@dataclass(frozen=True)
class Row:
    """One row, and where it stands for messages and for reading it again."""

    data: Mapping[str, Any]
    where: str
    """As `data/aime24.jsonl:3`."""
    release: str | None = None
    """The release of the set whose file held it."""
    path: Path | None = None
    offset: int = 0
    length: int = 0


def jsonl_rows(path: Path, release: str | None = None) -> Iterator[Row]:
    """Reads a JSONL file line by line; no more than one line is held. Blank lines are skipped."""
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                where = f"{path}:{number}"
                if line.strip():
                    yield Row(json_object(line, where), where, release, path, offset, len(line))
                offset += len(line)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def json_object(line: bytes, where: str) -> Mapping[str, Any]:
    """Decodes one line. InputError where it is not a JSON object."""
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{where}: must be a JSON object with the columns of one problem")
    return data


def local_files(name: str, source: Source, data_dir: Path | None) -> dict[Path, str | None]:
    """The local files that hold a benchmark (with their release, if known); empty where the folder has none.

    These are `<name>.jsonl`, or `<name>/` with the hub's files, as `hf download --local-dir` leaves them.
    """
    if data_dir is None:
        return {}
    if not data_dir.is_dir():
        what = "is a file" if data_dir.is_file() else "there is no such folder"
        raise InputError(f"data folder {data_dir}: {what} (--data-dir, BA_EVAL_DATA_DIR)")
    single = data_dir / f"{name}.jsonl"
    if single.is_file():
        return {single: None}
    parts = {data_dir / name / file: release for release, file in source.files.items()}
    return {path: release for path, release in parts.items() if path.is_file()}


def hub_rows(name: str, source: Source, releases: Sequence[str]) -> Iterator[Row]:
    """Reads a dataset of the hub, of sets in several files those of the releases.

    Raises InputError where the hub cannot be reached or does not have it.
    """
    assert source.hub is not None
    where = f"{source.hub}@{(source.revision or 'main')[:8]}"
    try:
        if source.files:
            for release in releases:
                yield from jsonl_rows(_hub_file(source, source.files[release]), release)
        else:
            for number, data in enumerate(_hub_dataset(source)):
                yield Row(data, f"{where} row {number}")
    except InputError:
        raise
    except Exception as error:  # the hub's clients raise many things, and none is ours to mend
        reason = str(error) if isinstance(error, _Unreachable) else f"{type(error).__name__}: {error}"
        off = hub.switched_off()
        other = f"unset {off}" if off else "set HF_HUB_OFFLINE=1 where the hub's cache already holds it"
        raise InputError(
            f"benchmark {name}: cannot read {where} from the hub ({' '.join(reason.split())[:200]}); "
            f"put {name}.jsonl into a folder and give it as --data-dir (or BA_EVAL_DATA_DIR), or {other}"
        ) from None


class _Unreachable(Exception):
    """The hub does not answer. Asked once: its clients would try for half a minute."""


def _require_hub() -> None:
    reason = hub.why_unreachable(timeout=10.0)
    if reason and not hub.switched_off():
        raise _Unreachable(reason)


def _hub_file(source: Source, file: str) -> Path:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    assert source.hub is not None
    if source.revision:  # a file of a fixed commit needs no question to the hub
        cached = try_to_load_from_cache(source.hub, file, repo_type="dataset", revision=source.revision)
        if isinstance(cached, str):
            return Path(cached)
    _require_hub()
    return Path(hf_hub_download(source.hub, file, repo_type="dataset", revision=source.revision))


def _hub_dataset(source: Source) -> Iterable[Mapping[str, Any]]:
    _require_hub()
    import datasets

    datasets.disable_progress_bars()
    rows: Iterable[Mapping[str, Any]] = datasets.load_dataset(
        source.hub, source.config, split=source.split, revision=source.revision
    )
    return rows
