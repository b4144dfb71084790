"""TRL's arguments, from a training configuration; refused where they cannot work or a rule would not hold."""

import importlib.util
from dataclasses import fields
from pathlib import Path
from typing import Any

from ba_eval.errors import InputError
from ba_eval.train.config import TrainConfig
from ba_eval.train.launch import INSTALL
from ba_eval.yaml_file import nearest

OWN = {
    "output_dir": "out",
    "seed": "seed",
    "max_steps": "steps",
    "num_generations": "group",
    "per_device_train_batch_size": "micro_batch",
    "gradient_accumulation_steps": "prompts",
    "generation_batch_size": "prompts",
    "max_completion_length": "max_response",
    "save_steps": "save_every",
    "use_vllm": "rollout",
    "vllm_mode": "rollout",
    "reward_weights": "reward",
}
"""Arguments of TRL that follow from keys of the configuration."""

FIXED = ("loss_type", "logging_steps", "logging_strategy", "save_strategy", "resume_from_checkpoint", "data_seed")
"""Arguments of TRL that the rule and its records depend on."""

TRACKERS = {"tensorboard": ("tensorboard", "tensorboardX"), "wandb": ("wandb",), "trackio": ("trackio",)}
"""Where a run can be logged to, and the packages that do it."""

NO_GPU = ("cpu", "mps")
"""Devices that vLLM and bf16 are not used on."""


def settings_of(arguments: dict[str, Any]) -> Any:
    """The arguments as TRL's own. Raises InputError where TRL refuses them, or a rule would not hold under them."""
    from transformers.integrations import get_reporting_integration_callbacks
    from trl import GRPOConfig

    from ba_eval.train.trainer import check_arguments

    try:
        settings = GRPOConfig(**arguments)
        get_reporting_integration_callbacks(settings.report_to)
    except (ValueError, TypeError, ImportError) as error:
        raise refused(error) from error
    check_arguments(settings)
    if not settings.learning_rate >= 0:
        raise InputError(f"trl.learning_rate {settings.learning_rate:g}: must not be negative")
    if not settings.temperature > 0:
        raise InputError(
            f"trl.temperature {settings.temperature:g}: must be above 0, or a group is one response many times"
        )
    for name in settings.report_to:
        if name in TRACKERS and not any(importlib.util.find_spec(package) for package in TRACKERS[name]):
            raise InputError(f"trl.report_to: {name} is not installed: pip install {name}")
    return settings


def refused(error: Exception) -> InputError:
    return InputError(f"the trainer refuses this configuration: {' '.join(str(error).split())[:500]}")


def trl_types(config: TrainConfig) -> dict[str, str]:
    """TRL's arguments with their types. InputError where the configuration sets one that is unknown, owned or fixed."""
    from trl import GRPOConfig

    known = {field.name: str(field.type) for field in fields(GRPOConfig) if field.init}
    for name in config.trl:
        if name in OWN:
            raise InputError(f"trl.{name}: follows from '{OWN[name]}'; set that")
        if name in FIXED:
            raise InputError(f"trl.{name}: is fixed; the rule or its records depend on it")
        if name not in known:
            raise InputError(f"trl.{name}: GRPOConfig has no such argument{nearest(name, known)}")
    return known


def trl_arguments(config: TrainConfig, out: Path, processes: int, device: str) -> dict[str, Any]:
    """Returns the keyword arguments of GRPOConfig. InputError on one that is unknown, owned or fixed."""
    known = trl_types(config)
    gpu = device not in NO_GPU
    rollout = rollout_of(config, device)
    vllm: dict[str, Any] = {}
    if rollout == "vllm-colocate" and not gpu:
        raise InputError("rollout vllm-colocate: needs a GPU, and there is none here; rollout: transformers needs none")
    if rollout.startswith("vllm"):
        if importlib.util.find_spec("vllm") is None:
            raise InputError(f"rollout {rollout}: vllm is not installed; {INSTALL.format('train,vllm')}")
        vllm = {
            "use_vllm": True,
            "vllm_mode": rollout.removeprefix("vllm-"),
            # sequence-level modes weigh long responses down by themselves
            "vllm_importance_sampling_mode": "token_truncate",
        }
    chosen: dict[str, Any] = {
        "learning_rate": 1e-6,
        "lr_scheduler_type": "constant",
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "beta": 0.0,
        "epsilon": 0.2,
        "epsilon_high": 0.28,
        "scale_rewards": "group",
        "temperature": 1.0,
        "top_p": 1.0,
        "bf16": gpu,
        "report_to": [],
        "disable_tqdm": True,
        **vllm,
        **{name: _number(name, value, known[name]) for name, value in config.trl.items()},
        "output_dir": str(out),
        "seed": config.seed,
        "max_steps": config.steps,
        "num_generations": config.group,
        "per_device_train_batch_size": config.micro_batch,
        "gradient_accumulation_steps": config.micro_steps(processes),
        "max_completion_length": config.max_response,
        "save_strategy": "steps",
        "save_steps": config.save_every,
        "logging_strategy": "steps",
        "logging_steps": 1,
        "loss_type": "dapo",
    }
    if not gpu:
        chosen["use_cpu"] = device == "cpu"
    return {name: value for name, value in chosen.items() if name in known}


def _number(name: str, value: Any, type: str) -> Any:
    """YAML 1.1 reads 1e-6 as text; an argument that is a number gets one. InputError where it is none."""
    if isinstance(value, str) and "str" not in type and ("float" in type or "int" in type):
        try:
            return float(value) if "float" in type else int(value)
        except ValueError:
            raise InputError(f"trl.{name}: must be a number, and is '{value}'") from None
    return value


def rollout_of(config: TrainConfig, device: str) -> str:
    """What generates on this kind of device: `transformers`, `vllm-colocate` or `vllm-server`."""
    if config.rollout != "auto":
        return config.rollout
    return "vllm-colocate" if device not in NO_GPU and importlib.util.find_spec("vllm") is not None else "transformers"
