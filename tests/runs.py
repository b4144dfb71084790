"""Makes run folders for tests, by writing the records as `eval` does."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ba_eval.records import Plan, PlannedBenchmark, PlannedModel, Sample, VerdictRecord, records_path

Scores = npt.NDArray[np.bool_]
Change = Callable[[str, str, int, int], Mapping[str, Any] | None]


def make_run(
    folder: Path,
    scores: Mapping[str, Mapping[str, npt.ArrayLike]],
    *,
    models: Mapping[str, Mapping[str, Any]] | None = None,
    benchmarks: Mapping[str, Mapping[str, Any]] | None = None,
    change: Change | None = None,
    **plan: Any,
) -> Path:
    """Writes a run: `scores` is model -> benchmark -> whether each sample is correct, (P, n).

    `models` and `benchmarks` hold further fields of the plan, by name. `change(model, benchmark, row, index)` gives
    fields of `Sample` or `VerdictRecord` to set on a record, or None to leave the sample out; `verdict=None` leaves
    its verdict out.
    """
    arrays = {model: {name: np.asarray(grid) for name, grid in row.items()} for model, row in scores.items()}
    columns = next(iter(arrays.values()))
    more = models or {}
    run_plan = Plan(
        models=tuple(
            PlannedModel(**{"name": name, "path": f"runs/{name}", "weights": f"w-{name}", **more.get(name, {})})
            for name in arrays
        ),
        benchmarks=tuple(
            PlannedBenchmark(
                **{
                    "name": name,
                    "title": name.upper(),
                    "kind": "math",
                    "n": grid.shape[1],
                    "problem_ids": problem_ids(len(grid)),
                    "content": f"c-{name}",
                    "max_tokens": 3072,
                    **(benchmarks or {}).get(name, {}),
                }
            )
            for name, grid in columns.items()
        ),
        keys={model: {name: f"{model}-{name}" for name in columns} for model in arrays},
        **plan,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_bytes(msgspec.json.encode(run_plan))
    components = {
        run_plan.keys[model.name][benchmark.name]: {
            "weights": model.weights,
            "benchmark content": benchmark.content,
            "benchmark prompt": "{problem}",
            "sampling": {"temperature": 1.0, "top_p": 0.7, "max_tokens": benchmark.max_tokens},
            "seed": run_plan.seed,
        }
        for model in run_plan.models
        for benchmark in run_plan.benchmarks
    }
    (folder / "keys.json").write_bytes(msgspec.json.encode(components))
    (folder / "run.yaml").write_text("k: [1]\n")
    for model, row in arrays.items():
        for benchmark, grid in zip(run_plan.benchmarks, row.values(), strict=True):
            _write_cell(folder, run_plan, model, benchmark, grid, change)
    return folder


def problem_ids(count: int) -> tuple[str, ...]:
    """`p0`, `p1`, ..."""
    return tuple(f"p{number}" for number in range(count))


def append_records(folder: Path, model: str, benchmark: str, records: Sequence[Sample | VerdictRecord]) -> None:
    """Appends records to their files."""
    for record in records:
        path = records_path(folder, "samples" if isinstance(record, Sample) else "verdicts", model, benchmark)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")


def _write_cell(
    folder: Path, plan: Plan, model: str, benchmark: PlannedBenchmark, grid: npt.NDArray[Any], change: Change | None
) -> None:
    samples, verdicts = [], []
    for row, problem in enumerate(benchmark.problem_ids):
        for index in range(grid.shape[1]):
            changes = change(model, benchmark.name, row, index) if change else {}
            if changes is None:
                continue
            key = plan.keys[model][benchmark.name]
            fields = {
                "key": key,
                "problem_id": problem,
                "index": index,
                "seed": index,
                "finish_reason": "stop",
                "prompt_tokens": 50,
                "completion_tokens": 100 + index,
                "seconds": 0.5,
                "text": "The answer is \\boxed{1}.",
                "outcome": "correct" if grid[row, index] else "wrong",
                "reason": "equal" if grid[row, index] else "not equal",
                "grader": "math 1",
                "extracted": "1" if grid[row, index] else "2",
                **changes,
            }
            samples.append(Sample(**{name: fields[name] for name in Sample.__struct_fields__ if name in fields}))
            if fields.get("verdict", True) is not None:
                names = VerdictRecord.__struct_fields__
                verdicts.append(VerdictRecord(**{name: fields[name] for name in names if name in fields}))
    for what, records in (("samples", samples), ("verdicts", verdicts)):
        path = records_path(folder, what, model, benchmark.name)  # type: ignore[arg-type]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
