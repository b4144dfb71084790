"""A training configuration as a verl run: the data in verl's form, and the command."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ba_eval.checkpoint import resolve
from ba_eval.errors import InputError
from ba_eval.prompt import Renderer
from ba_eval.train.config import TrainConfig
from ba_eval.train.data import Prepared, prepare, user_message
from ba_eval.train.run import render

SAME = {
    "temperature": "actor_rollout_ref.rollout.temperature",
    "top_p": "actor_rollout_ref.rollout.top_p",
    "learning_rate": "actor_rollout_ref.actor.optim.lr",
    "max_grad_norm": "actor_rollout_ref.actor.grad_clip",
    "epsilon": "actor_rollout_ref.actor.clip_ratio_low",
    "epsilon_high": "actor_rollout_ref.actor.clip_ratio_high",
}
"""Arguments of TRL that verl has under another name. Others of `trl:` have no meaning there."""

DEFAULTS: dict[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "learning_rate": 1e-6,
    "max_grad_norm": 1.0,
    "epsilon": 0.2,
    "epsilon_high": 0.28,
}


def verl_command(config: TrainConfig, say: Callable[[str], None]) -> str:
    """Writes `<out>/verl_train.parquet` and returns the command that trains on it.

    Raises InputError on what verl cannot do as the rule needs it: KL and entropy terms, other templates than the
    tokenizer's own, code problems, shaped rewards.
    """
    _check(config)
    checkpoint = resolve(Path(config.model).name, config.model)
    renderer = Renderer(checkpoint, None, config.prompt.template_args, config.prompt.system)
    prepared = prepare(config.data)
    render(prepared, config, renderer, checkpoint)
    for line in prepared.report():
        say(line)
    out = Path(config.out).expanduser()
    out.mkdir(parents=True, exist_ok=True)
    file = out / "verl_train.parquet"
    _write(file, prepared, config, renderer)
    overrides = verl_overrides(config, file)
    words = [f"{key}={_value(value)}" for key, value in overrides.items()]
    return " \\\n  ".join(["python -m verl.trainer.main_ppo", *map(shlex.quote, words)])


def verl_overrides(config: TrainConfig, file: Path) -> dict[str, Any]:
    """Returns verl's configuration keys and their values."""
    gpus = int(config.launch.get("num_processes", 8))
    nodes = int(config.launch.get("num_machines", 1))
    chosen: dict[str, Any] = {
        "algorithm.adv_estimator": f"ba_{config.rule}{'_batch' if config.scope == 'batch' else ''}",
        "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-sum",
        "algorithm.use_kl_in_reward": False,
        "actor_rollout_ref.actor.use_kl_loss": False,
        "actor_rollout_ref.actor.entropy_coeff": 0,
        "actor_rollout_ref.model.path": config.model,
        "data.train_files": str(file),
        "data.val_files": str(file),  # verl wants one; it is never read
        "trainer.val_before_train": False,
        "trainer.test_freq": -1,
        "data.train_batch_size": config.prompts,
        "actor_rollout_ref.actor.ppo_mini_batch_size": config.prompts,  # one optimizer step a batch
        "actor_rollout_ref.rollout.n": config.group,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": config.micro_batch,
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": config.micro_batch,
        "data.max_prompt_length": config.max_prompt,
        "data.max_response_length": config.max_response,
        "data.seed": config.seed,
        "actor_rollout_ref.rollout.name": "vllm",
        "reward.custom_reward_function.path": "pkg://ba_eval.train.verl_reward",
        "trainer.total_training_steps": config.steps,
        "trainer.total_epochs": 1_000_000,  # the steps decide
        "trainer.save_freq": config.save_every,
        "trainer.default_local_dir": config.out,
        "trainer.n_gpus_per_node": gpus // nodes,
        "trainer.nnodes": nodes,
    }
    for name, value in {**DEFAULTS, **{k: v for k, v in config.trl.items() if k in SAME}}.items():
        chosen[SAME[name]] = value
    for name, value in config.prompt.template_args.items():
        chosen[f"+data.apply_chat_template_kwargs.{name}"] = value
    if config.lora:
        chosen["actor_rollout_ref.model.lora_rank"] = config.lora.r
        chosen["actor_rollout_ref.model.lora_alpha"] = config.lora.alpha
    return chosen


def _check(config: TrainConfig) -> None:
    for name in ("beta", "entropy_coef"):
        if float(config.trl.get(name) or 0):
            raise InputError(
                f"trl.{name}: KL and entropy terms are not weighted by the rule; verl would sum them over tokens"
            )
    if config.prompt.template is not None:
        raise InputError("prompt.template: verl renders prompts with the tokenizer's own chat template only")
    if config.data.kind != "math":
        raise InputError("data.kind: only math problems have a reward function for verl")
    if config.reward.format or config.reward.overlong or config.reward.grader:
        raise InputError("reward: with verl the reward is the grader's verdict alone; leave its options out")


def _write(file: Path, prepared: Prepared, config: TrainConfig, renderer: Renderer) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = []
    for problem in prepared.problems:
        message = user_message(problem, config.prompt.message)
        rows.append(
            {
                "data_source": Path(prepared.origin).stem,
                "prompt": renderer.messages(message),
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": list(problem.golds)},
                "extra_info": {"index": problem.id},
            }
        )
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)


def _value(value: Any) -> str:
    """A value as hydra reads it on a command line."""
    if isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else json.dumps(value)
