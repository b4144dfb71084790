"""What a run was asked to do: typed, from a YAML file and flags."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.errors import InputError
from ba_eval.resources import user_path
from ba_eval.yaml_file import convert, nearest, read_mapping


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One evaluation, as `ba-eval eval --config` reads it. The flags of `ba-eval eval` have the same names."""

    models: tuple[str, ...] | dict[str, str]
    """`name=path` entries, or a mapping of name to path. A path may be a glob."""
    benchmarks: tuple[str, ...]
    """`name` or `name:n`; names of suites stand for their benchmarks."""
    out: str
    """The run folder."""
    n: int | None = None
    """Samples per problem where the benchmark's entry has no `:n`; default: the benchmark's own."""
    k: tuple[int, ...] = (1,)
    limit: int | None = None
    seed: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    template: str | None = None
    template_args: dict[str, Any] = {}
    system: str | None = None
    data_dir: str | None = None
    accept_content: tuple[str, ...] = ()
    engine_args: dict[str, Any] = {}
    server: tuple[str, ...] = ()
    parallel_models: int = 1
    """Models evaluated at the same time, each on devices of its own."""
    deterministic: bool = False
    """Results that do not depend on what else is in the batch: vLLM's batch-invariant kernels; on the CPU, one sequence
    at a time."""
    aggregation: dict[str, str] = {}
    """Model (or the name before `@step`) -> the loss aggregation it was trained with; wins over its training record,
    as the next two do."""
    step: dict[str, int] = {}
    training_seed: dict[str, int] = {}
    workers: int | None = None
    """Grading processes; default: the cores."""
    sandbox_level: int | None = None
    unsafe: bool = False
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models: name at least one")
        if not self.benchmarks:
            raise ValueError("benchmarks: name at least one")
        for name, low, high in (
            ("n", 1, None),
            ("limit", 1, None),
            ("max_tokens", 1, 2**31 - 1),
            ("workers", 1, 1024),
            ("parallel_models", 1, 1024),
            ("temperature", 0, 100),
            ("top_k", -1, 2**31 - 1),
            ("top_p", 0, 1),
            ("min_p", 0, 1),
            ("seed", 0, 2**63 - 1),
        ):
            value = getattr(self, name)
            # `not >=` so that NaN is refused too
            if value is not None and (not value >= low or (high is not None and value > high)):
                shown = f"{value:g}" if isinstance(value, float) else value
                raise ValueError(f"{name}: {shown} is out of range ({low} to {'any' if high is None else high})")
        for name in ("step", "training_seed"):
            for model, value in getattr(self, name).items():
                if not 0 <= value < 2**63:
                    raise ValueError(f"{name}: {value} of {model} is out of range (0 to {2**63 - 1})")
        if self.top_p == 0:
            raise ValueError("top_p: must be above 0")
        if not self.out:
            raise ValueError("out: must name a folder")
        if not self.k or min(self.k) < 1:
            raise ValueError("k: each must be at least 1")
        if self.temperature == 0 and max(self.k) > 1:
            raise ValueError("k: pass@k above 1 needs a temperature above 0 (greedy samples are all the same)")

    def model_specs(self) -> list[str]:
        """The models as `name=path` entries."""
        if isinstance(self.models, dict):
            return [f"{name}={path}" for name, path in self.models.items()]
        return list(self.models)


def load_config(path: Path | None, settings: Sequence[str], flags: Mapping[str, Any]) -> RunConfig:
    """Merges the YAML file (if any), `--set key=value` entries and the flags that were given; later ones win.

    Raises InputError for unknown keys, wrong types and values out of range, naming file and line where there is one.
    """
    data: dict[str, Any] = {}
    lines: dict[str, int] = {}
    where = "the command line"
    if path is not None:
        data, lines = read_mapping(path)
        where = str(path)
    for setting in settings:
        apply_setting(data, setting, lines)
    for name, value in flags.items():
        if isinstance(value, dict) and isinstance(data.get(name), dict):
            value = {**data[name], **value}
        data[name] = value
        for at in [a for a in lines if a == f"$.{name}" or a.startswith((f"$.{name}.", f"$.{name}["))]:
            del lines[at]
    for name, flag in (("models", "--model NAME=PATH"), ("benchmarks", "--benchmarks"), ("out", "--out")):
        if name not in data:
            known = [field.name for field in msgspec.structs.fields(RunConfig)]
            for key in data:
                if key not in known:
                    line = f":{lines[f'$.{key}']}" if f"$.{key}" in lines else ""
                    raise InputError(f"{where}{line}: unknown key '{key}'{nearest(key, known)}")
            raise InputError(f"{name} not given: add {flag}" + (f", or '{name}:' in {path}" if path else ""))
    for name in ("benchmarks", "server", "accept_content"):  # a single one needs no list
        if isinstance(data.get(name), str):
            data[name] = data[name].split(",") if name == "benchmarks" else [data[name]]
    if isinstance(data.get("models"), str):
        data["models"] = [data["models"]]
    if isinstance(data.get("k"), int):
        data["k"] = [data["k"]]
    elsewhere = f"{where} and the command line" if path and (settings or flags) else ""
    for name in ("out", "data_dir"):  # a shell does not expand `--out=~/run`, nor what stands in a file
        if isinstance(data.get(name), str) and data[name]:
            data[name] = str(user_path(data[name]))
    return convert(data, RunConfig, where=where, lines=lines, elsewhere=elsewhere)


def apply_setting(data: dict[str, Any], setting: str, lines: dict[str, int]) -> None:
    """Sets `key=value` or `key.sub=value` (the value is YAML) in place."""
    key, equals, value = setting.partition("=")
    if not equals or not key:
        raise InputError(f"--set {setting}: must be key=value")
    *parents, last = key.split(".")
    target = data
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise InputError(f"--set {setting}: '{parent}' is not a mapping")
    target[last] = yaml_value(value)
    lines.pop(f"$.{key}", None)


def yaml_value(text: str) -> Any:
    """Reads a command-line value as YAML does: numbers, true/false, lists and mappings, else the text itself."""
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def pairs(entries: Sequence[str], flag: str) -> dict[str, Any]:
    """Turns repeated `key=value` entries of a flag into a mapping; values are read as YAML."""
    result: dict[str, Any] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not key:
            raise InputError(f"{flag} {entry}: must be key=value")
        if key in result and result[key] != yaml_value(value):
            raise InputError(f"{flag} {entry}: {key} is {result[key]} already, by an earlier {flag}")
        result[key] = yaml_value(value)
    return result
