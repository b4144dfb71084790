"""Writes a run's samples with their verdicts as Parquet, for `datasets`, pandas and other tools."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ba_eval.errors import InputError, MachineError
from ba_eval.records import Plan, Sample, VerdictRecord, records_path
from ba_eval.store import read_plan, read_records

if TYPE_CHECKING:
    import pyarrow

# Rows of a row group: about 10 MB of text.
_ROWS = 2000


def export_parquet(run: Path, output: Path) -> int:
    """Writes one row a wanted sample that is there, and returns how many.

    A row has the fields of `Sample`, those of its last `VerdictRecord` (null where it is not graded; `details` as JSON
    text) and the model, its aggregation rule, step and training seed, and the benchmark. Read it with
    `datasets.load_dataset("parquet", data_files=...)`. The file appears whole or not at all.
    """
    import pyarrow
    import pyarrow.parquet

    plan = read_plan(run)
    schema = _schema()
    temporary = output.with_name(output.name + ".tmp")
    count = 0
    try:
        with pyarrow.parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
            block: list[dict[str, Any]] = []
            for row in _rows(run, plan):
                block.append(row)
                if len(block) == _ROWS:
                    writer.write_table(pyarrow.Table.from_pylist(block, schema))
                    count, block = count + len(block), []
            writer.write_table(pyarrow.Table.from_pylist(block, schema))
            count += len(block)
        temporary.replace(output)
    except OSError as error:
        kind = InputError if error.errno in (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EACCES) else MachineError
        raise kind(f"{output}: cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _schema() -> "pyarrow.Schema":
    import pyarrow

    text, whole, real = pyarrow.string(), pyarrow.int64(), pyarrow.float64()
    return pyarrow.schema(
        {
            "model": text, "aggregation": text, "step": whole, "training_seed": whole, "benchmark": text,
            "problem_id": text, "index": whole, "seed": whole, "text": text, "finish_reason": text,
            "prompt_tokens": whole, "completion_tokens": whole, "thinking_tokens": whole, "seconds": real,
            "error": text, "outcome": text, "reason": text, "extracted": text, "method": text, "grader": text,
            "grading_seconds": real, "details": text, "apart": text,
        }
    )  # fmt: skip


def _rows(run: Path, plan: Plan) -> Iterator[dict[str, Any]]:
    for model in plan.models:
        for benchmark in plan.benchmarks:
            key = plan.keys[model.name][benchmark.name]
            wanted = set(benchmark.problem_ids)

            def counts(
                record: Sample | VerdictRecord, key: str = key, wanted: set[str] = wanted, n: int = benchmark.n
            ) -> bool:
                return record.key == key and record.problem_id in wanted and 0 <= record.index < n

            # Verdicts are small and come in another order than samples; of several the last counts. So it is with
            # samples, but their texts stay on disk: the first pass only finds the line that counts.
            verdicts = {
                (verdict.problem_id, verdict.index): verdict
                for verdict in read_records(records_path(run, "verdicts", model.name, benchmark.name), VerdictRecord)
                if counts(verdict)
            }
            path = records_path(run, "samples", model.name, benchmark.name)
            last = {(s.problem_id, s.index): line for line, s in enumerate(read_records(path, Sample)) if counts(s)}
            head = {
                "model": model.name,
                "aggregation": model.aggregation,
                "step": model.step,
                "training_seed": model.training_seed,
                "benchmark": benchmark.name,
            }
            for line, sample in enumerate(read_records(path, Sample)):
                place = (sample.problem_id, sample.index)
                if counts(sample) and last[place] == line:
                    yield {
                        **head,
                        **msgspec.structs.asdict(sample),
                        **_graded(verdicts.get(place)),
                        "apart": benchmark.excluded.get(sample.problem_id),
                    }


def _graded(verdict: VerdictRecord | None) -> dict[str, Any]:
    if verdict is None:
        return {}
    return {
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "extracted": verdict.extracted,
        "method": verdict.method,
        "grader": verdict.grader,
        "grading_seconds": verdict.seconds,
        "details": msgspec.json.encode(verdict.details).decode(),
    }
