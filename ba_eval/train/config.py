"""What a training run was asked to do: typed, from a YAML file, the name of a ready one, and `--set`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ba_eval.benchmark.problem import Kind
from ba_eval.config import apply_setting
from ba_eval.errors import InputError
from ba_eval.train.aggregation import RULES, Scope
from ba_eval.yaml_file import convert, nearest, read_mapping

READY = Path(__file__).resolve().parent / "configs"


class DataConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which problems to train on."""

    source: str
    """`dapo17k`, `polaris53k`, a JSONL or Parquet file (also beside the YAML file), or a dataset id of the hub."""
    kind: Kind = "math"
    columns: dict[str, str] = {}
    """Names of columns (`problem`, `answer`, `tests`, ...) where they are not found by themselves."""
    config: str | None = None
    split: str = "train"
    revision: str | None = None
    dir: str | None = None
    """A folder read before the hub (BA_EVAL_DATA_DIR): `<source>.jsonl` or `.parquet`, and the benchmarks' files."""
    limit: int | None = None
    """Keep this many problems, the first that pass."""
    overlap: Literal["remove", "report"] = "remove"
    """What to do with problems that stand in a benchmark too."""
    benchmarks: tuple[str, ...] | None = None
    """Benchmarks to look for; default: every built-in one of the kind."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError("limit: must be at least 1")


class PromptConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a problem is asked. The checkpoints carry it, and `ba-eval eval` uses what they carry."""

    message: str | None = None
    """The user message; `{problem}` stands for the statement. Default: the evaluation's own for such a problem."""
    template: str | None = None
    """`qwen-boxed`, `none`, or a .jinja file; default: the tokenizer's own chat template."""
    template_args: dict[str, Any] = {}
    system: str | None = None

    def __post_init__(self) -> None:
        if self.message is not None and "{problem}" not in self.message:
            raise ValueError("message: must contain {problem}")


class OverlongConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """DAPO's soft punishment: 0 up to `max_response - buffer` tokens, then linear down to -weight at the limit."""

    buffer: int
    weight: float = 1.0


class RewardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The grader's verdict is worth 1; what is added to it is off by default."""

    format: float = 0.0
    """Added where a response has a closed \\boxed{} answer, right or wrong."""
    overlong: OverlongConfig | None = None
    grader: dict[str, Any] = {}
    """Options of the math grader, as in a benchmark's YAML file."""


class LoraConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """LoRA instead of full fine-tuning: a checkpoint is then an adapter folder, which `ba-eval eval` takes too."""

    r: int = 32
    alpha: int = 64
    dropout: float = 0.0
    target_modules: str | tuple[str, ...] = "all-linear"

    def __post_init__(self) -> None:
        if self.r < 1 or self.alpha < 1 or not 0 <= self.dropout < 1:
            raise ValueError("r and alpha must be at least 1, dropout at least 0 and below 1")


class TrainConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One arm: a model, a rule, a seed, the data."""

    model: str
    out: str
    data: DataConfig
    rule: str = "balanced"
    scope: Scope = "group"
    seed: int = 0
    steps: int
    """Sampled batches; one optimizer step each."""
    prompts: int = 64
    """Prompts in a batch, over all processes."""
    group: int = 8
    """Responses per prompt."""
    micro_batch: int = 8
    """Responses that one process takes forward at a time."""
    max_prompt: int = 1024
    """Tokens; longer prompts are dropped, and counted."""
    max_response: int = 3072
    save_every: int = 50
    rollout: Literal["auto", "transformers", "vllm-colocate", "vllm-server"] = "auto"
    """What generates; `auto`: vLLM in the same process where there is a GPU and vLLM, else transformers."""
    prompt: PromptConfig = PromptConfig()
    reward: RewardConfig = RewardConfig()
    lora: LoraConfig | None = None
    workers: int | None = None
    """Grading processes; default: the cores."""
    trl: dict[str, Any] = {}
    """Everything else, as TRL's GRPOConfig and transformers' TrainingArguments name it."""
    launch: dict[str, Any] = {}
    """Flags of `accelerate launch` for `--print-launch`."""
    note: str | None = None
    """What a reader of the checkpoints must know of this recipe."""

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"rule: '{self.rule}' is unknown{nearest(self.rule, RULES)}")
        for name in ("steps", "prompts", "micro_batch", "max_prompt", "max_response", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1")
        if not 0 <= self.seed < 2**32:
            raise ValueError("seed: must lie between 0 and 2**32 - 1")
        if self.workers is not None and self.workers < 1:
            raise ValueError("workers: must be at least 1")
        if self.group < 2:
            raise ValueError("group: must be at least 2, or there is no advantage")
        number = self.launch.get("num_processes", 1)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ValueError("launch: num_processes must be a whole number of at least 1")
        if self.reward.overlong and not 0 < self.reward.overlong.buffer <= self.max_response:
            raise ValueError("reward.overlong.buffer: must lie between 1 and max_response")

    def micro_steps(self, processes: int) -> int:
        """Returns how many micro-batches of a process make one optimizer step. InputError where they do not divide."""
        at_once = self.micro_batch * processes
        total = self.prompts * self.group
        if total % at_once:
            raise InputError(
                f"prompts {self.prompts} x group {self.group} = {total} responses do not divide into micro-batches of "
                f"{self.micro_batch} on {processes} process{'es' if processes > 1 else ''}; change micro_batch"
            )
        return total // at_once


def ready() -> list[str]:
    """The names of the configurations that come with the package."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def load_config(name: str, settings: Sequence[str] = ()) -> tuple[TrainConfig, Path]:
    """Reads a file, or the ready configuration of that name, and applies `--set key.sub=value` entries.

    Returns the configuration and its file. InputError names file, line and key of what is wrong.
    """
    path = find_config(name)
    data, lines = read_mapping(path)
    for setting in settings:
        apply_setting(data, setting, lines)
    data_beside(data.get("data"), path)
    return convert(data, TrainConfig, where=str(path), lines=lines), path


def find_config(name: str) -> Path:
    """Returns the file of that path, or the ready configuration of that name. InputError where there is neither."""
    path = Path(name).expanduser()
    if not path.is_file():
        path = READY / f"{name}.yaml"
        if not path.is_file():
            raise InputError(f"training configuration {name}: no such file, and no ready one{nearest(name, ready())}")
    return path


def data_beside(data: Any, file: Path) -> None:
    """Makes a `data.source` that lies beside the YAML file a path from here, in place."""
    if isinstance(data, dict) and isinstance(data.get("source"), str) and (file.parent / data["source"]).is_file():
        data["source"] = str(file.parent / data["source"])
