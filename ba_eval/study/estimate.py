"""What a study would still do, and how long that may take."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from ba_eval import weights
from ba_eval.errors import BaEvalError
from ba_eval.resources import user_path
from ba_eval.study.config import Arm, Study
from ba_eval.study.curves import read_rows
from ba_eval.study.state import Progress, times

TRAINING_FLOPS, GENERATING_FLOPS = 1.5e14, 5e13
"""Assumed of a GPU where nothing was measured: what an 80 GB GPU keeps up in bf16 over a step, and in sampling."""
CPU_FLOPS = 5e10
"""Assumed of a CPU."""
START_SECONDS = 60.0
"""Assumed for the start of a training or an engine."""


def plan_lines(study: Study, arms: Sequence[Progress], base_done: bool, samples: int, tokens: int) -> list[str]:
    """The plan for people: what each arm is at, what is left, and the hours that it may take.

    `samples` and `tokens`: what one checkpoint is evaluated with, at the most tokens.
    """
    width = max(len(now.arm.name) for now in arms)
    lines = [f"{number:>3}  {now.arm.name:<{width}}  {now}" for number, now in enumerate(arms)]
    lines.append(f"     {'base':<{width}}  {'evaluated' if base_done else 'not evaluated'}")
    steps = sum(now.wanted - now.step for now in arms if not now.trained)
    folders = sum(_saves(now.arm) for now in arms if not now.evaluated) + (not base_done)
    lines.append(f"left: {steps} training steps, {folders} checkpoints to evaluate ({samples} samples each)")
    if steps or folders:
        unit, processes = _unit(study.arms[0])
        step, why_training = _step_seconds(study.arms)
        checkpoint, why_evaluating = _checkpoint_seconds(study, tokens)
        training = steps * step * processes / 3600
        evaluating = folders * checkpoint * _engine_gpus(study) / 3600
        lines.append(f"about {_round(training + evaluating)} {unit} hours:")
        lines.append(f"  training    {_round(training)}: {why_training}")
        lines.append(f"  evaluating  {_round(evaluating)}: {why_evaluating}")
    return lines


def _engine_gpus(study: Study) -> int:
    """How many GPUs the engine of one checkpoint takes."""
    sizes = (study.eval.engine_args.get(f"{kind}_parallel_size") for kind in ("tensor", "pipeline", "data"))
    return math.prod(size for size in sizes if isinstance(size, int))


def _saves(arm: Arm) -> int:
    return math.ceil(arm.train.steps / arm.train.save_every)


def _unit(arm: Arm) -> tuple[str, int]:
    """GPU or CPU, and how many a training takes at a time."""
    processes = int(arm.train.launch.get("num_processes", 1))
    return ("CPU", 1) if _on_cpu(arm) else ("GPU", processes)


def _on_cpu(arm: Arm) -> bool:
    return bool(arm.train.trl.get("use_cpu")) or (arm.train.rollout == "transformers" and not arm.train.launch)


def _step_seconds(arms: Sequence[Arm]) -> tuple[float, str]:
    found = [row["step_time"] for arm in arms for row in read_rows(arm)[1:] if row.get("step_time")]
    if found:
        median = statistics.median(found)
        return median, f"{median:.1f} s a step, the median of {len(found)} measured steps of this study"
    train = arms[0].train
    size = _parameters(train.model)
    tokens = train.prompts * train.group * train.max_response / 2
    if size is None:
        return math.nan, "not known: nothing was measured yet, and the model is not on this machine"
    if _on_cpu(arms[0]):
        return 8 * size * tokens / CPU_FLOPS, _assumed(size, f"{CPU_FLOPS:.2g} FLOP/s")
    seconds = size * tokens * (8 / TRAINING_FLOPS + 2 / GENERATING_FLOPS)
    speed = f"{TRAINING_FLOPS:.2g} FLOP/s in training and {GENERATING_FLOPS:.2g} in sampling on each GPU"
    return seconds / _unit(arms[0])[1], _assumed(size, speed)


def _assumed(size: float, speed: str) -> str:
    return (
        f"nothing was measured yet; from {size:.2g} parameters, responses of half max_response, {speed}: "
        "right to a factor of three at best. Train one arm for a few steps to know"
    )


def _checkpoint_seconds(study: Study, tokens: int) -> tuple[float, str]:
    found = [
        line["seconds"] / line["did"]
        for line in times(study)
        if line.get("stage") == "eval" and line.get("exit") == 0 and line.get("did")
    ]
    if found:
        median = statistics.median(found)
        return median, f"{median:.0f} s a checkpoint, the median of {len(found)} measured evaluations of this study"
    size = _parameters(study.config.model)
    if size is None:
        return math.nan, "not known: nothing was measured yet, and the model is not on this machine"
    speed = CPU_FLOPS if _on_cpu(study.arms[0]) else GENERATING_FLOPS
    return START_SECONDS + 2 * size * tokens / 2 / speed, _assumed(size, f"{speed:.2g} FLOP/s")


def _parameters(model: str) -> float | None:
    """The parameters of a local model, from the sizes that its weight files tell."""
    folder = user_path(model)
    if not folder.is_dir():
        return None
    try:
        files = weights.weight_files(folder)
        return sum(_count(file) for file in files) or None
    except BaEvalError:
        return None


def _count(file: Path) -> float:
    if file.suffix != ".safetensors":
        return file.stat().st_size / 2
    header = weights.read_header(file)
    shapes = (entry["shape"] for name, entry in header.items() if not name.startswith("__"))
    return float(sum(math.prod(shape) for shape in shapes))


def _round(hours: float) -> str:
    return "?" if math.isnan(hours) else f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
