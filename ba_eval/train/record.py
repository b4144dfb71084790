"""What a run leaves besides the checkpoints: `diagnostics.jsonl`, rows per group in Parquet, and `training.json`.

<out>/diagnostics.jsonl              a line per sampled batch: every rule's numbers, loss, reward, gradient norm
<out>/groups/step-000050.parquet     a row per group of the batches up to that checkpoint
<out>/checkpoint-50/training.json    what made this checkpoint; written last, so it marks a whole one
"""

import json
import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from transformers import TrainerCallback

from ba_eval.train.aggregation import Scope, diagnostics, group_rows
from ba_eval.train.checkpoints import RECORD, checkpoints
from ba_eval.train.trainer import SampledBatch


class Recorder(TrainerCallback):  # type: ignore[misc]
    """Writes the records on the main process. `batch` is the trainer's `on_batch`.

    Args:
        out: the run folder.
        record: what `training.json` says besides the step.
        max_grad_norm: the clipping threshold, 0 for none.
        say: prints a line for people.
    """

    def __init__(
        self,
        out: Path,
        record: Mapping[str, Any],
        scope: Scope,
        max_grad_norm: float,
        say: Callable[[str], None],
    ) -> None:
        self.out, self.record, self.scope, self.max_grad_norm, self.say = out, record, scope, max_grad_norm, say
        self._rows: list[dict[str, Any]] = []
        self._groups: list[dict[str, Any]] = []

    def batch(self, batch: SampledBatch) -> dict[str, float]:
        """Takes a sampled batch; returns what TRL shall log of it."""
        accuracy = batch.rewards.get("accuracy")
        found = diagnostics(
            batch.lengths,
            batch.advantages,
            batch.groups,
            self.scope,
            correct=None if accuracy is None else accuracy == 1,
            truncated=batch.truncated,
        )
        self._rows.append({"step": batch.step, **found})
        columns = group_rows(batch.lengths, batch.advantages, batch.groups, accuracy, batch.truncated)
        steps = np.full(len(columns["tokens"]), batch.step)
        self._groups.append({"step": steps, "group": np.arange(len(steps)), **columns})
        return {f"aggregation/{name}": value for name, value in found.items()}

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Joins the batch's numbers with what the step gave, and appends the line."""
        if not self._rows or not state.is_world_process_zero or logs is None or "grad_norm" not in logs:
            return
        step = {k: v for k, v in logs.items() if not k.startswith("aggregation/")}
        step["grad_clipped"] = bool(0 < self.max_grad_norm < float(step["grad_norm"]))
        with (self.out / "diagnostics.jsonl").open("a", encoding="utf-8") as file:
            for row in self._rows:
                file.write(json.dumps({k: _plain(v) for k, v in {**row, **step}.items()}) + "\n")
        self.say(_line(state.global_step, state.max_steps, {**self._rows[-1], **step}))
        self._rows.clear()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Follows the trainer's own saving of the checkpoint."""
        if not state.is_world_process_zero:
            return
        self._write_groups(state.global_step)
        folder = self.out / f"checkpoint-{state.global_step}"
        _write(folder / RECORD, json.dumps({"step": state.global_step, **self.record}, indent=1) + "\n")

    def _write_groups(self, step: int) -> None:
        if not self._groups:
            return
        import pyarrow
        import pyarrow.parquet

        columns = {name: np.concatenate([group[name] for group in self._groups]) for name in self._groups[0]}
        file = self.out / "groups" / f"step-{step:06d}.parquet"
        file.parent.mkdir(exist_ok=True)
        scratch = file.with_suffix(".part")
        pyarrow.parquet.write_table(pyarrow.table(columns), scratch)
        scratch.replace(file)
        self._groups.clear()


def _line(step: int, steps: int, row: Mapping[str, Any]) -> str:
    return (
        f"step {step}/{steps}  reward {float(row['reward'] or 0):.3f}  length {row['length/mean']:.0f} "
        f"(+ {row['length/positive']:.0f}, - {row['length/negative']:.0f})  truncated {row['truncated/all']:.0%}  "
        f"no advantage {row['groups/zero_advantage']:.0%}  gradient {float(row['grad_norm']):.3g}"
        f"{' clipped' if row['grad_clipped'] else ''}  {float(row['step_time']):.1f} s"
    )


def cut_back(out: Path) -> Path | None:
    """Takes a run folder back to its last whole checkpoint, and returns that (None: there is none).

    Half-written checkpoints go, and so do the records of steps that will be made again.
    """
    whole = checkpoints(out)
    step = max(whole, default=0)
    for folder in out.glob("checkpoint-*"):
        if folder.is_dir() and folder not in whole.values():
            shutil.rmtree(folder)
    for file in (out / "groups").glob("step-*"):
        if file.suffix != ".parquet" or int(file.stem.partition("-")[2]) > step:
            file.unlink()
    log = out / "diagnostics.jsonl"
    if log.is_file():
        lines = [line for line in log.read_text(encoding="utf-8").splitlines() if _step(line) <= step]
        _write(log, "".join(line + "\n" for line in lines))
    return whole.get(step)


def _step(line: str) -> float:
    """The step of a line of the diagnostics; infinite for a line that was torn."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def _plain(value: Any) -> Any:
    """JSON knows no NaN: what is undefined is null."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(file: Path, text: str) -> None:
    scratch = file.with_name(f".{file.name}.part")
    with scratch.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    scratch.replace(file)
