"""The `accelerate launch` line of a training configuration, checked by accelerate's own parser and loader."""

import importlib.util
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ba_eval.engine.devices import gpus
from ba_eval.errors import InputError
from ba_eval.train.config import TrainConfig
from ba_eval.yaml_file import nearest

INSTALL = "in the clone of ba-eval: pip install '.[{}]'"


def launch_line(config: TrainConfig, file: Path, settings: Sequence[str]) -> str:
    """Returns the command that runs this training on several GPUs, from the configuration's `launch`."""
    words = ["accelerate", "launch", *_flags(config), "-m", "ba_eval.train", str(file)]
    for setting in settings:
        words += ["--set", setting]
    return shlex.join(words)


def processes(config: TrainConfig) -> int:
    """How many processes the launch starts: as it says, else one for each GPU here."""
    return int(config.launch.get("num_processes", max(1, len(gpus()))))


def missing_package(config: TrainConfig) -> str | None:
    """Checks `launch` as accelerate will read it; returns what must be installed before it can run, in words.

    Raises InputError for a flag that accelerate does not have, a value that it does not take, and a `config_file` that
    it cannot load.
    """
    try:
        from accelerate.commands.config.config_args import load_config_from_file
        from accelerate.commands.launch import launch_command_parser
    except ImportError as error:
        return f"training needs {error.name}; {INSTALL.format('train')}"
    parser = launch_command_parser()
    known = [word.removeprefix("--") for word in parser._option_string_actions if word.startswith("--")]
    for name in config.launch:
        if name not in known:
            near = nearest(name, known)
            hint = near if "did you mean" in near else " (`accelerate launch --help` lists them)"
            raise InputError(f"launch.{name}: accelerate launch has no such flag{hint}")
    parser.error = _refuse
    asked = parser.parse_args([*_flags(config), "script"])
    sharded_by = "DEEPSPEED" if asked.use_deepspeed else None
    if asked.config_file is not None:
        try:
            sharded_by = load_config_from_file(asked.config_file).distributed_type
        except Exception as error:  # whatever accelerate's reading of that file may end in
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"launch.config_file {asked.config_file}: accelerate cannot load it: {reason}") from None
    if sharded_by == "DEEPSPEED" and importlib.util.find_spec("deepspeed") is None:
        return (
            f"launch asks for DeepSpeed, which is not installed; {INSTALL.format('train,deepspeed')} "
            "(or shard with FSDP, which needs nothing more: docs/training.md)"
        )
    return None


def _flags(config: TrainConfig) -> list[str]:
    words = []
    asked = dict(config.launch)
    if "config_file" not in asked:
        asked.setdefault("num_processes", processes(config))
    for name, value in asked.items():
        if value is True:
            words += [f"--{name}"]
        elif value is not False and value is not None:
            words += [f"--{name}", str(value)]
    return words


def _refuse(message: str) -> NoReturn:
    raise InputError(f"launch: accelerate launch says: {message}")
