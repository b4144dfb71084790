"""One training run: data, prompts, rewards, trainer; goes on from the last whole checkpoint."""

import hashlib
import importlib.metadata
import json
import logging
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from ba_eval import __version__
from ba_eval.benchmark.problem import Problem
from ba_eval.checkpoint import Checkpoint, chat_template_text, resolve
from ba_eval.errors import BaEvalError, InputError, MachineError
from ba_eval.grade.verdict import Grader
from ba_eval.prompt import NAMED_TEMPLATES, Renderer
from ba_eval.store import write_atomically
from ba_eval.train.arguments import refused, rollout_of, settings_of, trl_arguments
from ba_eval.train.checkpoints import RECORD, checkpoints
from ba_eval.train.config import TrainConfig
from ba_eval.train.data import Prepared, drop_long, prepare, user_message
from ba_eval.train.launch import INSTALL

log = logging.getLogger(__name__)


def train(config: TrainConfig, say: Callable[[str], None]) -> Path:
    """Trains, or goes on; returns the folder of the last checkpoint.

    Raises InputError for what cannot work, before any file is written; MachineError where the machine fails: the
    checkpoints that were saved stay, and the same call goes on from the last one.
    """
    try:
        from_trl = importlib.import_module("trl.import_utils")
    except ImportError as error:
        raise InputError(f"training needs {error.name}; {INSTALL.format('train')}") from None
    from accelerate import PartialState

    state = PartialState()
    if rollout_of(config, state.device.type) == "transformers":
        # TRL imports vLLM, which doubles its start, wherever that is installed.
        from_trl.is_vllm_available = lambda *_, **__: False  # type: ignore[attr-defined]
    from ba_eval.train.record import cut_back
    from ba_eval.train.rewards import make_grader

    speak = say if state.is_main_process else _nothing
    out = Path(config.out).expanduser()
    checkpoint = resolve(Path(config.model).name, config.model)
    if checkpoint.adapter:
        raise InputError(f"{config.model}: is a LoRA adapter; merge it into its base first, and train that")
    settings = settings_of(trl_arguments(config, out, state.num_processes, state.device.type))
    asked = _asked(config, checkpoint)
    _check_same_run(out, asked)
    done = checkpoints(out)
    if config.steps in done:
        speak(f"finished already: {done[config.steps]}")
        return done[config.steps]

    renderer = Renderer(checkpoint, config.prompt.template, config.prompt.template_args, config.prompt.system)
    prepared = prepare(config.data)
    prompts = render(prepared, config, renderer, checkpoint)
    for line in prepared.report():
        speak(line)
    if len(prompts) < config.prompts:
        raise InputError(
            f"{prepared.origin}: {len(prompts)} problems are left to train on, fewer than one batch of prompts "
            f"({config.prompts}); give more, or lower prompts"
        )
    speak(f"prompt: {renderer.description}")
    record = _record(config, checkpoint, prepared, asked)
    grader = make_grader(config)  # refuses options that it does not have
    with closing(grader), _alone(out) if state.is_main_process else nullcontext():
        with state.main_process_first():
            if state.is_main_process:
                write_atomically(out / "train.json", [json.dumps(asked, indent=1).encode() + b"\n"])
                write_atomically(out / "data.txt", ["\n".join(prepared.report()).encode() + b"\n"])
                cut_back(out)
        resume = checkpoints(out)
        start = max(resume, default=0)
        speak(f"{config.rule} ({config.scope} scope), seed {config.seed}: step {start} of {config.steps}, into {out}")
        return _run(config, settings, checkpoint, prepared, prompts, record, grader, resume.get(start), out, say)


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Makes the run folder, and keeps other trainings out of it. MachineError where there is one already."""
    from filelock import FileLock, Timeout

    out.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(out / ".lock", timeout=0):
            yield
    except Timeout:
        raise MachineError(
            f"out {out}: another process is training there; wait for it, or name another folder"
        ) from None


def _run(
    config: TrainConfig,
    settings: Any,
    checkpoint: Checkpoint,
    prepared: Prepared,
    prompts: Sequence[str],
    record: dict[str, Any],
    grader: Grader,
    resume: Path | None,
    out: Path,
    say: Callable[[str], None],
) -> Path:
    from datasets import Dataset
    from transformers import AutoTokenizer, PrinterCallback
    from transformers.utils.logging import disable_progress_bar

    from ba_eval.train.record import Recorder
    from ba_eval.train.rewards import reward_functions
    from ba_eval.train.trainer import AggregationTrainer

    disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.tokenizer_dir, local_files_only=True)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    problems: dict[str, Problem] = {problem.id: problem for problem in prepared.problems}
    functions, weights = reward_functions(config, problems, grader, end_tokens(checkpoint, tokenizer))
    settings.reward_weights = weights
    recorder = Recorder(out, record, config.scope, settings.max_grad_norm, say)
    try:
        trainer = AggregationTrainer(
            model=checkpoint.path,
            reward_funcs=functions,
            args=settings,
            train_dataset=Dataset.from_dict({"prompt": list(prompts), "problem_id": list(problems)}),
            processing_class=tokenizer,
            peft_config=_lora(config),
            callbacks=[recorder],
            rule=config.rule,
            scope=config.scope,
            on_batch=recorder.batch,
        )
    except (ValueError, TypeError, ImportError) as error:
        raise refused(error) from error
    trainer.remove_callback(PrinterCallback)  # the recorder's line says it in short
    try:
        trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    except (BaEvalError, OSError):
        raise
    except Exception as error:  # of torch, TRL, vLLM: where it broke is worth reading
        log.exception("training stopped")
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise MachineError(f"training stopped: {reason}; checkpoints stay, the same command goes on") from error
    last = out / f"checkpoint-{config.steps}"
    if trainer.accelerator.is_main_process and not (last / RECORD).is_file():
        raise MachineError(f"{last}: the trainer ended without writing its last checkpoint")
    return last


def render(prepared: Prepared, config: TrainConfig, renderer: Renderer, checkpoint: Checkpoint) -> list[str]:
    """Returns the prompts as text, one per problem that is left, after dropping those that are too long.

    TRL takes the text apart by itself, and may write a BOS: what it will get is made equal to the ids that the
    evaluation asks with. Raises InputError where it cannot be.
    """
    from ba_eval.prompt import load_tokenizer

    tokenizer = load_tokenizer(checkpoint)
    texts = []
    for problem in prepared.problems:
        message = user_message(problem, config.prompt.message)
        text, ids = renderer.text(message), renderer.render(message)
        if tokenizer(text).input_ids != ids:
            text = text.removeprefix(tokenizer.bos_token or "")
            if tokenizer(text).input_ids != ids:
                raise InputError(f"{checkpoint.tokenizer_dir}: the prompt's text and its tokens do not agree (BOS)")
        texts.append((text, len(ids)))
    kept = [text for text, length in texts if length <= config.max_prompt]
    drop_long(prepared, [length for _, length in texts], config.max_prompt)
    longest = max(length for _, length in texts if length <= config.max_prompt)
    if checkpoint.max_model_len is not None and longest + config.max_response > checkpoint.max_model_len:
        raise InputError(
            f"a prompt of {longest} tokens and max_response {config.max_response} do not fit into the "
            f"{checkpoint.max_model_len} tokens that {checkpoint.path} can read; lower max_response or max_prompt"
        )
    return kept


def _nothing(_: str) -> None:
    pass


def end_tokens(checkpoint: Checkpoint, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a response: the tokenizer's own and those of the generation configuration."""
    file = Path(checkpoint.model_dir) / "generation_config.json"
    configured = json.loads(file.read_text(encoding="utf-8")).get("eos_token_id") if file.is_file() else None
    listed = configured if isinstance(configured, list) else [configured]
    return frozenset(token for token in (tokenizer.eos_token_id, tokenizer.pad_token_id, *listed) if token is not None)


def _lora(config: TrainConfig) -> Any:
    if config.lora is None:
        return None
    from peft import LoraConfig

    modules = config.lora.target_modules
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=config.lora.r,
        lora_alpha=config.lora.alpha,
        lora_dropout=config.lora.dropout,
        target_modules=modules if isinstance(modules, str) else list(modules),
    )


def _asked(config: TrainConfig, checkpoint: Checkpoint) -> dict[str, Any]:
    """What makes two runs the same one, as plain data."""
    kept = msgspec.to_builtins(config)
    for name in ("out", "launch", "note", "workers"):  # where and how it runs, not what it is
        kept.pop(name, None)
    asked: dict[str, Any] = json.loads(json.dumps({**kept, "weights": checkpoint.weights}))
    return asked


def _check_same_run(out: Path, asked: dict[str, Any]) -> None:
    """Raises InputError where the run folder holds a run of another configuration."""
    file = out / "train.json"
    if not file.is_file():
        if out.exists() and not out.is_dir():
            raise InputError(f"out {out}: is a file")
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        before = None
    if not isinstance(before, dict):
        raise InputError(f"{file}: is damaged; name another folder as out")
    changed = [name for name in asked if before.get(name) != asked[name]]
    if changed:
        was = {name: before.get(name) for name in changed}
        raise InputError(
            f"out {out}: holds a run with another {', '.join(changed)} (there: {json.dumps(was)[:300]}); "
            "name another folder as out, or put the configuration back to go on"
        )


def _record(config: TrainConfig, checkpoint: Checkpoint, prepared: Prepared, asked: dict[str, Any]) -> dict[str, Any]:
    """What `training.json` says. `ba_eval.checkpoint.TrainingRecord` reads aggregation, step, seed, prompt_template."""
    return {
        "aggregation": config.rule,
        "scope": config.scope,
        "seed": config.seed,
        "prompt_template": {
            "template": _template(config, checkpoint),
            "system": config.prompt.system,
            "args": config.prompt.template_args,
        },
        "message": config.prompt.message or "the evaluation's own",
        "base": {"path": config.model, "weights": checkpoint.weights},
        "data": {
            "source": prepared.origin,
            "content": prepared.content,
            "problems": len(prepared.problems),
            "dropped": dict(prepared.dropped),
            "overlap_checked": prepared.checked,
            "overlap_unchecked": prepared.unchecked,
        },
        "config": asked,
        "config_hash": hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16],
        "note": config.note,
        "engine": "trl",
        "versions": versions(),
    }


def _template(config: TrainConfig, checkpoint: Checkpoint) -> str:
    """The template by name, or its text: a checkpoint is read on another machine than the one it was made on."""
    named = config.prompt.template
    if named is None:
        return chat_template_text(Path(checkpoint.tokenizer_dir)) or "none"
    if named in NAMED_TEMPLATES or "{{" in named or "{%" in named:
        return named
    return Path(named).expanduser().read_text(encoding="utf-8")


def versions() -> dict[str, str]:
    """Versions of what the numbers of a run depend on."""
    found = {"python": platform.python_version(), "ba-eval": __version__}
    for name in ("trl", "transformers", "torch", "accelerate", "peft", "vllm", "deepspeed", "datasets", "numpy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
