"""How far each arm of a study is, read from its files alone.

<out>/arms/<arm>/            what `ba-eval train` leaves: checkpoints, diagnostics.jsonl
<out>/arms/<arm>.yaml        the configuration it was trained with
<out>/eval/<arm>/            a run folder: its saved steps on the benchmarks (and eval/base)
<out>/eval/<arm>.yaml        what was asked of that run
<out>/times.jsonl            a line for each finished child: arm, stage, seconds, exit code
<out>/run/                   a run folder with all arms, as the tables read it
<out>/tables/, plots/        what the study found
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.checkpoint import resolve
from ba_eval.config import RunConfig
from ba_eval.errors import InputError
from ba_eval.results import load
from ba_eval.store import read_plan, write_atomically
from ba_eval.study.config import BASE, Arm, Study
from ba_eval.train.checkpoints import checkpoints


@dataclass(frozen=True)
class Progress:
    """One arm."""

    arm: Arm
    step: int
    """Of the last whole checkpoint; 0 for none."""
    wanted: int
    evaluated: bool

    @property
    def trained(self) -> bool:
        """Whether nothing is left to train."""
        return self.step >= self.wanted

    def __str__(self) -> str:
        training = "trained" if self.trained else f"step {self.step} of {self.wanted}"
        return f"{training}, {'evaluated' if self.evaluated else 'not evaluated'}"


def progress(study: Study, arm: Arm, contents: Mapping[str, str]) -> Progress:
    """How far an arm is. `contents`: benchmark name to content hash, as loaded now."""
    step = max((step for step in checkpoints(arm.folder) if step <= arm.train.steps), default=0)
    done = step >= arm.train.steps and is_evaluated(study, arm.name, models(arm), contents)
    return Progress(arm, step, arm.train.steps, done)


def models(arm: Arm) -> dict[str, str]:
    """The saved steps of an arm as models: `balanced-0@40` to its folder."""
    return {f"{arm.name}@{step}": str(folder) for step, folder in checkpoints(arm.folder).items()}


def base(study: Study) -> dict[str, str]:
    """The base as a model."""
    return {BASE: study.config.model}


def eval_folder(study: Study, name: str) -> Path:
    """The run folder of an arm's evaluation, or of the base's."""
    return study.out / "eval" / name


def eval_config(study: Study, name: str, named: Mapping[str, str]) -> RunConfig:
    """What is asked of that run."""
    return msgspec.structs.replace(study.eval, models=dict(named), out=str(eval_folder(study, name)))


def is_evaluated(study: Study, name: str, named: Mapping[str, str], contents: Mapping[str, str]) -> bool:
    """Whether the run of this name holds every sample that is wanted now, of these weights and problems."""
    folder = eval_folder(study, name)
    asked = folder.with_suffix(".yaml")
    if not asked.is_file() or asked.read_bytes() != as_yaml(eval_config(study, name, named)):
        return False
    try:
        plan = read_plan(folder)
        weights = {model: resolve(model, path).weights for model, path in named.items()}
        return (
            {model.name: model.weights for model in plan.models} == weights
            and {b.name: b.content for b in plan.benchmarks} == dict(contents)
            and load(folder).complete
        )
    except InputError:  # cut before its plan, or damaged: the evaluation itself says so
        return False


def as_yaml(config: msgspec.Struct) -> bytes:
    """A configuration as its file."""
    import yaml

    return yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False, allow_unicode=True).encode()


def write_config(file: Path, config: msgspec.Struct) -> None:
    """Writes a configuration as a file that `ba-eval train` or `eval --config` reads."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, [as_yaml(config)])


def note_time(study: Study, arm: str, stage: str, seconds: float, code: int, did: int) -> None:
    """Appends what a child took. `did`: steps trained, or checkpoints evaluated."""
    line = {"arm": arm, "stage": stage, "seconds": round(seconds, 1), "exit": code, "did": did}
    with (study.out / "times.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def times(study: Study) -> Iterator[dict[str, Any]]:
    """The lines of `times.jsonl` that are whole."""
    file = study.out / "times.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue
