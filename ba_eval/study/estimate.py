"""What a study would still do, and how long that may take."""

import math
import re
import statistics
from collections.abc import Collection, Sequence
from pathlib import Path

from ba_eval import weights
from ba_eval.engine.devices import gpus
from ba_eval.errors import BaEvalError
from ba_eval.resources import user_path
from ba_eval.study.config import Arm, Study
from ba_eval.study.curves import read_rows
from ba_eval.study.state import Progress, times
from ba_eval.train.config import TrainConfig
from ba_eval.train.launch import processes

TRAINING_FLOPS, GENERATING_FLOPS = 1.5e14, 5e13
"""Assumed of a GPU where nothing was measured: what an 80 GB GPU keeps up in bf16 over a step, and in sampling."""
CPU_FLOPS = 5e10
"""Assumed of a CPU."""
PASSES = 8
"""FLOP for each parameter and token of a step: forward 2, backward 4, the probabilities while sampling 2."""
TOKEN_SECONDS = 0.015
"""Assumed of the next token of a response, however small the model is."""
START_SECONDS = 60.0
"""Assumed for the start of a training or an engine."""
UNKNOWN = "not known, as nothing was measured yet, the model is not on this machine, and its name tells no size"
TRIAL = (
    "To measure it, train one arm for a few steps: "
    "--arm 0 --set train.steps=5 --set out=TRIAL; then --dry-run --set out=TRIAL"
)


def plan_lines(
    study: Study, arms: Sequence[Progress], stages: Collection[str], base_done: bool | None, samples: int, tokens: int
) -> list[str]:
    """The plan for people: what each arm is at, what these stages would do, and the hours that it may take.

    `base_done`: None where the base is no part of it. `samples` and `tokens`: what one checkpoint is evaluated with, at
    the most tokens.
    """
    width = max(len(now.arm.name) for now in arms)
    number = {arm.name: place for place, arm in enumerate(study.arms)}
    lines = [f"{number[now.arm.name]:>3}  {now.arm.name:<{width}}  {now}" for now in arms]
    if base_done is not None:
        lines.append(f"     {'base':<{width}}  {'evaluated' if base_done else 'not evaluated'}")
    to_train = [now for now in arms if not now.trained] if "train" in stages else []
    to_evaluate = [now for now in arms if not now.evaluated and (now.trained or now in to_train)]
    steps = sum(now.wanted - now.step for now in to_train)
    folders = sum(_saves(now.arm) for now in to_evaluate) + (base_done is False) if "eval" in stages else 0
    lines.append(f"left: {steps} training steps, {folders} checkpoints to evaluate ({samples} samples each)")
    if steps or folders:
        lines += _hours(study, len(to_train), steps, folders, tokens)
    return lines


def _hours(study: Study, starts: int, steps: int, folders: int, tokens: int) -> list[str]:
    train = study.arms[0].train
    on_cpu = _on_cpu(train)
    at_once = 1 if on_cpu else processes(train)
    engine = 1 if on_cpu else _engine_gpus(study)
    step, why_step = _step_seconds(study, on_cpu)
    checkpoint, why_checkpoint = _checkpoint_seconds(study, tokens, on_cpu)
    training = (steps * step + starts * START_SECONDS) * at_once / 3600
    evaluating = folders * checkpoint * engine / 3600
    if on_cpu:
        unit, of = "CPU", "this machine's CPU, one thing at a time"
    else:
        unit, of = "GPU", "an 80 GB GPU" if gpus() else "an 80 GB GPU; this machine has no GPU"
    lines = [f"about {_round(training + evaluating)} {unit} hours ({of}):"]
    lines.append(f"  training    {_round(training)}: {why_step}{'' if on_cpu else _on_gpus(at_once)}")
    lines.append(f"  evaluating  {_round(evaluating)}: {why_checkpoint}{'' if on_cpu else _on_gpus(engine)}")
    if "assumed" in why_step + why_checkpoint:
        lines.append(_assumption(train, on_cpu))
    return lines


def _on_gpus(count: int) -> str:
    return f"; on {count} GPU{'s' if count > 1 else ''}"


def _engine_gpus(study: Study) -> int:
    """How many GPUs the engine of one checkpoint takes."""
    sizes = (study.eval.engine_args.get(f"{kind}_parallel_size") for kind in ("tensor", "pipeline", "data"))
    return math.prod(size for size in sizes if isinstance(size, int))


def _saves(arm: Arm) -> int:
    return math.ceil(arm.train.steps / arm.train.save_every)


def _on_cpu(train: TrainConfig) -> bool:
    """Whether it trains on CPUs: because it says so, or because nothing in it needs a GPU and there is none here."""
    if train.trl.get("use_cpu") or train.launch.get("cpu"):
        return True
    return not (train.launch or train.rollout.startswith("vllm") or gpus())


def _step_seconds(study: Study, on_cpu: bool) -> tuple[float, str]:
    found = [row["step_time"] for arm in study.arms for row in read_rows(arm)[1:] if row.get("step_time")]
    if found:
        median = statistics.median(found)
        return median, f"{median:.1f} s a step, the median of {len(found)} measured steps of this study"
    train = study.arms[0].train
    size, _ = _parameters(train.model)
    if size is None:
        return math.nan, UNKNOWN
    work = size * train.prompts * train.group * train.max_response / 2
    if on_cpu:
        seconds = PASSES * work / CPU_FLOPS
    else:
        seconds = work * (PASSES / TRAINING_FLOPS + 2 / GENERATING_FLOPS) / processes(train)
    seconds += train.max_response * TOKEN_SECONDS
    return seconds, f"{seconds:.2g} s a step, assumed"


def _checkpoint_seconds(study: Study, tokens: int, on_cpu: bool) -> tuple[float, str]:
    found = [
        line["seconds"] / line["did"]
        for line in times(study)
        if line.get("stage") == "eval" and line.get("exit") == 0 and line.get("did")
    ]
    if found:
        median = statistics.median(found)
        return median, f"{median:.0f} s a checkpoint, the median of {len(found)} measured evaluations of this study"
    size, _ = _parameters(study.config.model)
    if size is None:
        return math.nan, UNKNOWN
    seconds = START_SECONDS + 2 * size * tokens / 2 / (CPU_FLOPS if on_cpu else GENERATING_FLOPS)
    return seconds, f"{seconds:.0f} s a checkpoint, assumed"


def _parameters(model: str) -> tuple[float | None, str]:
    """A model's parameters, and where that is known from: its weight files where it is here, else its name."""
    folder = user_path(model)
    if not folder.is_dir():
        named = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)([BM])(?![a-z])", folder.name, re.IGNORECASE)
        return (float(named[1]) * {"B": 1e9, "M": 1e6}[named[2].upper()], "by its name") if named else (None, "")
    try:
        return sum(_count(file) for file in weights.weight_files(folder)) or None, "by its weights"
    except BaEvalError:
        return None, ""


def _assumption(train: TrainConfig, on_cpu: bool) -> str:
    size, source = _parameters(train.model)
    if on_cpu:
        speed = f"at {CPU_FLOPS:.2g} FLOP/s"
    else:
        speed = f"at {TRAINING_FLOPS:.2g} FLOP/s, sampling at {GENERATING_FLOPS:.2g}"
    return (
        f"assumed: {size:.2g} parameters ({source}), responses half as long as allowed, {PASSES} FLOP a parameter and "
        f"token {speed}, {TOKEN_SECONDS * 1000:.0f} ms a sampled token at least, {START_SECONDS:.0f} s a start; right "
        f"to a factor of three at best. {TRIAL}"
    )


def _count(file: Path) -> float:
    if file.suffix != ".safetensors":
        return file.stat().st_size / 2
    header = weights.read_header(file)
    shapes = (entry["shape"] for name, entry in header.items() if not name.startswith("__"))
    return float(sum(math.prod(shape) for shape in shapes))


def _round(hours: float) -> str:
    return "?" if math.isnan(hours) else f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
