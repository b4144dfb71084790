"""A model as the user names it: a local checkpoint folder, a hub id, or a LoRA adapter folder, made ready to load."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ba_eval import weights
from ba_eval.errors import InputError, MachineError
from ba_eval.json_file import read_object
from ba_eval.model_specs import step_of
from ba_eval.resources import user_path
from ba_eval.unmerged import explain_unmerged

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tekken.json", "spiece.model")
"""One of these makes a folder a tokenizer's."""
_TOKENIZER_EXTRAS = (
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "chat_template.json",
    "chat_template.jinja",
)
_HUB_FILES = ("*.json", "*.jinja", "*.model", "*.txt", "*.py", "merges.txt", "tekken.json")
_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)


class TrainedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt that a checkpoint was trained with."""

    template: str
    """A named template (`qwen-boxed`, `none`) or the text of a Jinja chat template."""
    system: str | None = None
    args: dict[str, Any] = {}


class TrainingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`training.json` of a checkpoint folder or of the run folder above it. Other keys are ignored."""

    aggregation: str | None = None
    step: int | None = None
    seed: int | None = None
    prompt_template: TrainedPrompt | None = None


@dataclass(frozen=True)
class Checkpoint:
    """A model that is known to be complete on this machine."""

    name: str
    path: str
    """The folder: of the model, or of the LoRA adapter."""
    weights: str
    """Identity: a hash over weight files and configuration; moving or copying the folder does not change it.

    Empty where the weights are still on the hub.
    """
    tokenizer_dir: str
    tokenizer_id: str
    """Hash over the tokenizer's files, chat template included."""
    max_model_len: int | None
    """Context length by the model's configuration; None where it does not say."""
    base: str | None = None
    """The base model's folder where `path` is a LoRA adapter."""
    adapter: str | None = None
    lora_rank: int | None = None
    step: int | None = None
    aggregation: str | None = None
    training_seed: int | None = None
    prompt: TrainedPrompt | None = None
    thinking: bool = False
    """Whether the chat template knows a <think> block."""
    trust_remote_code: bool = False

    @property
    def model_dir(self) -> str:
        """The folder whose weights the engine loads first: the base of an adapter, else the checkpoint."""
        return self.base or self.path


def resolve(name: str, path: str, *, trust_remote_code: bool = False, fetch: bool = True) -> Checkpoint:
    """Finds a model and checks that it can be loaded; fetches a hub id first.

    `fetch` False: of a hub id whose weights are not here yet, only the other files are fetched, and `weights` is
    empty: resolve it again before it is loaded.
    Raises InputError where there is no such model, where weights, configuration or tokenizer are missing or torn,
    or where a sharded training checkpoint must be merged first; MachineError where a download fails half-way.
    """
    folder, whole = _locate(path, fetch=fetch)
    unmerged = explain_unmerged(folder)
    if unmerged:
        raise InputError(unmerged)
    if (folder / "adapter_config.json").is_file():
        base, adapter_rank = _adapter_base(folder)
        files = _checked_weights(base) + _checked_adapter(folder)
        tokenizer = folder if _has_tokenizer(folder) else base
        model = base
    else:
        base, adapter_rank, model, tokenizer = None, None, folder, folder
        files = _checked_weights(folder) if whole else []
    if not _has_tokenizer(tokenizer):
        raise InputError(
            f"{tokenizer}: no tokenizer (none of {', '.join(TOKENIZER_FILES[:3])}); "
            "copy the tokenizer files of the model that the training started from into it"
        )
    config = read_object(model / "config.json")
    if not config.get("model_type") and not config.get("architectures"):
        raise InputError(
            f"{model / 'config.json'}: names no model (neither model_type nor architectures); "
            "copy it from the model that the training started from"
        )
    record = _training_record(folder)
    template = chat_template_text(tokenizer) or ""
    return Checkpoint(
        name=name,
        path=str(folder),
        weights=_weights_identity(files, model, config) if whole else "",
        tokenizer_dir=str(tokenizer),
        tokenizer_id=_tokenizer_identity(tokenizer),
        max_model_len=_context_length(config, tokenizer),
        base=str(base) if base else None,
        adapter=str(folder) if base else None,
        lora_rank=adapter_rank,
        step=record.step if record.step is not None else step_of(folder),
        aggregation=record.aggregation,
        training_seed=record.seed,
        prompt=record.prompt_template,
        thinking="<think>" in template or "enable_thinking" in template,
        trust_remote_code=trust_remote_code,
    )


# Finding the folder


def _locate(path: str, *, fetch: bool = True) -> tuple[Path, bool]:
    """The folder, and whether the weights are in it."""
    folder = user_path(path)
    if folder.is_dir():
        return folder.resolve(), True
    if folder.exists():
        raise InputError(f"{path}: is a file; give the checkpoint's folder")
    hub_id = re.fullmatch(r"[\w.-]+(/[\w.-]+)?", path)
    if not hub_id or path.startswith(".") or (folder.parent != Path() and folder.parent.is_dir()):
        raise InputError(f"{path}: no such folder; give a checkpoint's folder or a hub id (organisation/model)")
    return _from_hub(path, fetch=fetch)


def _from_hub(repo: str, *, fetch: bool) -> tuple[Path, bool]:
    """Fetches the files that a model needs (safetensors where there are some), or finds them in the hub's cache."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    from ba_eval import hub

    # Asked once, briefly: the client itself retries an unreachable hub for a long time.
    unreachable = hub.why_unreachable()
    try:
        for weight_pattern in ("*.safetensors", "*.bin"):
            wanted = [*_HUB_FILES, weight_pattern]
            if not fetch and not unreachable:
                files = snapshot_download(repo, allow_patterns=wanted, dry_run=True, tqdm_class=_no_bar())
                if any(file.will_download and file.filename.endswith(weight_pattern[1:]) for file in files):
                    return Path(snapshot_download(repo, allow_patterns=list(_HUB_FILES))), False
            folder = Path(snapshot_download(repo, allow_patterns=wanted, local_files_only=bool(unreachable)))
            if list(folder.glob(weight_pattern)):
                break
        return folder, True
    except HFValidationError:
        raise InputError(f"{repo}: no such folder, and no hub id either") from None
    except GatedRepoError:
        raise InputError(f"{repo}: gated on the hub; accept its terms there, then run: hf auth login") from None
    except RepositoryNotFoundError:
        raise InputError(
            f"{repo}: no such folder, and no such model on the hub (private? run: hf auth login)"
        ) from None
    except (LocalEntryNotFoundError, OfflineModeIsEnabled):
        raise InputError(
            f"{repo}: no such folder, not in the hub's cache, and the hub cannot be asked "
            f"({unreachable or 'it does not answer'}); copy the model here and give its folder"
        ) from None
    except HfHubHTTPError as error:
        raise MachineError(f"{repo}: the hub failed: {str(error).splitlines()[0]}; run the command again") from None
    except OSError as error:
        raise MachineError(f"{repo}: download failed: {error}; mend that and run the command again") from None


def _no_bar() -> Any:
    """A progress bar that is not shown."""
    import tqdm.asyncio as bars

    class Hidden(bars.tqdm):  # type: ignore[misc, unused-ignore]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})

    return Hidden


def _adapter_base(folder: Path) -> tuple[Path, int]:
    """The base model's folder and the rank of a LoRA adapter."""
    config = read_object(folder / "adapter_config.json")
    if config.get("peft_type") != "LORA":
        kind = config.get("peft_type") or "nameless"
        raise InputError(
            f"{folder}: a {kind} adapter (peft_type in adapter_config.json); only LoRA adapters can be served: {_MERGE}"
        )
    if config.get("use_dora") or config.get("modules_to_save"):
        what = "DoRA" if config.get("use_dora") else f"modules_to_save {config['modules_to_save']}"
        raise InputError(f"{folder}: the adapter has {what}, which vLLM cannot serve: {_MERGE}")
    named = config.get("base_model_name_or_path")
    if not isinstance(named, str) or not named:
        raise InputError(f"{folder}/adapter_config.json: names no base model (base_model_name_or_path)")
    # A relative base is relative to where the training ran; beside the adapter is the next best guess.
    candidates = [user_path(named), folder / named, folder.parent / named, folder.parent.parent / named]
    base = next((candidate for candidate in candidates if (candidate / "config.json").is_file()), None)
    try:
        return base.resolve() if base else _locate(named)[0], _rank(folder, config)
    except InputError as error:
        raise InputError(
            f"{folder}: base model of the LoRA adapter: {error} (base_model_name_or_path in adapter_config.json)"
        ) from None


_MERGE = "merge it into its base first (peft: merge_and_unload, then save_pretrained)"


def _rank(folder: Path, config: Mapping[str, Any]) -> int:
    largest = 0
    for rank in (config.get("r"), *(config.get("rank_pattern") or {}).values()):
        if not isinstance(rank, int) or rank < 1:
            raise InputError(f"{folder}/adapter_config.json: rank {rank!r} (r, rank_pattern) must be a whole number")
        largest = max(largest, rank)
    return largest


# Checking what is there


def _checked_weights(folder: Path) -> list[Path]:
    files = weights.weight_files(folder)
    if not files:
        what = "no weights (*.safetensors or *.bin); give the folder of a saved checkpoint, or save it again"
        if not (folder / "config.json").is_file():
            what = "no model: neither weights (*.safetensors) nor config.json"
            below = sorted(p.parent.name for p in folder.glob("*/config.json"))
            if below:
                what += f"; did you mean one of its folders: {', '.join(below[:4])}"
        raise InputError(f"{folder}: {what}")
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: no config.json; copy it from the model that the training started from")
    for file in files:
        if file.suffix == ".safetensors":
            weights.read_header(file)
    return files


def _checked_adapter(folder: Path) -> list[Path]:
    for name in ("adapter_model.safetensors", "adapter_model.bin"):
        file = folder / name
        if file.is_file():
            if file.suffix == ".safetensors":
                weights.read_header(file)
            return [file]
    raise InputError(f"{folder}: a LoRA adapter without weights (adapter_model.safetensors)")


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def _weights_identity(files: list[Path], model: Path, config: Mapping[str, Any]) -> str:
    """Weights, and the parts of the configuration that change what they compute or where generation ends."""
    volatile = ("transformers_version", "_name_or_path", "_from_model_config")
    total = hashlib.sha256(weights.identity(files).encode())
    generation = model / "generation_config.json"
    for data in (config, read_object(generation) if generation.is_file() else {}):
        kept = {key: value for key, value in data.items() if key not in volatile}
        total.update(json.dumps(kept, sort_keys=True).encode())
    adapter = files[-1].parent / "adapter_config.json"
    if files[-1].name.startswith("adapter_"):
        kept = {k: v for k, v in read_object(adapter).items() if k != "base_model_name_or_path"}
        total.update(json.dumps(kept, sort_keys=True).encode())
    return total.hexdigest()


def _tokenizer_identity(folder: Path) -> str:
    total = hashlib.sha256()
    extra = sorted(folder.glob("additional_chat_templates/*.jinja"))
    for file in [folder / name for name in (*TOKENIZER_FILES, *_TOKENIZER_EXTRAS)] + extra:
        if file.is_file():
            total.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def chat_template_text(folder: Path) -> str | None:
    """Returns the chat template of a tokenizer folder as its files hold it, or None (no code is run)."""
    jinja = folder / "chat_template.jinja"
    if jinja.is_file():
        return jinja.read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            template = read_object(folder / name).get("chat_template")
            if isinstance(template, list):  # several named templates
                named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
                template = named.get("default")
            if isinstance(template, str):
                return template
    return None


def _context_length(config: Mapping[str, Any], tokenizer: Path) -> int | None:
    """The longest prompt + response, as vLLM derives it: the smallest length named, times a linear RoPE factor."""
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    assert isinstance(text, Mapping)
    lengths = [text[key] for key in _LENGTH_KEYS if isinstance(text.get(key), int)]
    tokenizer_config = tokenizer / "tokenizer_config.json"
    if tokenizer_config.is_file():
        longest = read_object(tokenizer_config).get("model_max_length")
        if isinstance(longest, int) and 0 < longest < 10**9:
            lengths.append(longest)
    if not lengths:
        return None
    rope = text.get("rope_parameters") or text.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type")) if isinstance(rope, dict) else None
    factor = rope.get("factor") if kind in ("linear", "dynamic") else None
    return int(min(lengths) * (factor if isinstance(factor, int | float) else 1))


def _training_record(folder: Path) -> TrainingRecord:
    for file in (folder / "training.json", folder.parent / "training.json"):
        if file.is_file():
            try:
                record = msgspec.json.decode(file.read_bytes(), type=TrainingRecord)
            except msgspec.MsgspecError as error:
                raise InputError(f"{file}: {error}") from None
            # The step of a run folder's record is that of its last checkpoint.
            return record if file.parent == folder else msgspec.structs.replace(record, step=None)
    return TrainingRecord()
