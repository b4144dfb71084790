"""Weight files of a checkpoint: which ones count, whether they are whole, and what identifies them."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ba_eval.errors import InputError

WHOLE_FILE = 64 * 2**20
"""Files up to this size are hashed whole."""
BLOCK = 4096
"""Bytes of one content sample."""
_MAX_HEADER = 100_000_000  # the limit of the safetensors format

INDEX_FILES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


def weight_files(folder: Path) -> list[Path]:
    """Returns the files that hold the weights of a model, sorted by name; empty where there are none.

    With an index, the shards it names, all of which must exist; otherwise every `*.safetensors`; otherwise
    `pytorch_model*.bin` and other `*.bin` that are not the trainer's own state.
    """
    for name in INDEX_FILES:
        index = folder / name
        if index.is_file():
            return _shards(folder, index)
    safetensors = sorted(folder.glob("*.safetensors"))
    if safetensors:
        named = [file for file in safetensors if not file.name.startswith(("adapter_", "consolidated"))]
        return named or [file for file in safetensors if not file.name.startswith("adapter_")]
    trainer = {"training_args.bin", "optimizer.bin", "scheduler.bin"}
    return sorted(f for f in folder.glob("*.bin") if f.name not in trainer and not f.name.startswith("adapter_"))


def _shards(folder: Path, index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{index}: is not a weight index (no weight_map); copy or save the checkpoint again") from None
    if not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise InputError(f"{index}: names shards outside its folder; save the checkpoint again")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise InputError(
            f"{folder}: {len(missing)} of {len(names)} weight shards named by {index.name} are missing ({shown}); "
            "copy or save the checkpoint again"
        )
    return [folder / name for name in names]


def read_header(file: Path) -> dict[str, Any]:
    """Reads a safetensors header and checks that the file is as long as it says.

    Raises InputError for a file that is empty, truncated, or no safetensors file.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = int.from_bytes(start, "little")
        if len(start) == 8 and start[:7] == b"version":
            raise InputError(f"{file}: is a Git LFS pointer, not the weights; run: git lfs pull")
        if len(start) < 8 or 8 + length > size or length > _MAX_HEADER:
            raise InputError(f"{file}: truncated or no safetensors file ({size} bytes); copy or save it again")
        try:
            header = json.loads(stream.read(length))
            tensors = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
            end = max((int(offsets[1]) for offsets in tensors.values()), default=0)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            raise InputError(f"{file}: its header is not readable; copy or save the file again") from None
    if size < 8 + length + end:
        raise InputError(
            f"{file}: truncated: {size} bytes, but its header asks for {8 + length + end}; copy or save it again"
        )
    return {**header, "__data_start__": 8 + length}


def identity(files: list[Path]) -> str:
    """Returns a hash (hex) over names, sizes, headers and content samples of the weight files, not over their place.

    Small files are hashed whole. Of a large safetensors file: the header, and three blocks of every tensor (start,
    middle, end). A step of training moves some element of nearly every block, so weights overwritten in place are
    noticed at the cost of a few megabytes of reads. Of a large torch file: its tail, which holds the checksums of all
    tensors (the central directory of a zip archive), and blocks spread over the file.
    """
    total = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        total.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            if size <= WHOLE_FILE:
                while chunk := stream.read(2**20):
                    total.update(chunk)
            elif file.suffix == ".safetensors":
                for offset, length in _tensor_blocks(file):
                    total.update(_read(stream, offset, length))
            else:
                tail = min(size, 4 * 2**20)
                total.update(_read(stream, size - tail, tail))
                for i in range(1024):
                    total.update(_read(stream, i * size // 1024, BLOCK))
    return total.hexdigest()


def _tensor_blocks(file: Path) -> Iterator[tuple[int, int]]:
    header = read_header(file)
    start = int(header.pop("__data_start__"))
    yield 0, start
    for name in sorted(header):
        if name == "__metadata__":
            continue
        begin, end = header[name]["data_offsets"]
        length = end - begin
        if length <= 3 * BLOCK:
            yield start + begin, length
        else:
            for offset in (begin, begin + length // 2, end - BLOCK):
                yield start + offset, BLOCK


def _read(stream: BinaryIO, offset: int, length: int) -> bytes:
    return os.pread(stream.fileno(), length, offset)
