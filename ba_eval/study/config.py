"""What a study was asked to do: typed, from a YAML file and `--set`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.benchmark import expand_suites, parse_spec
from ba_eval.benchmark.definition import find, read_definition
from ba_eval.config import RunConfig, apply_setting
from ba_eval.errors import InputError
from ba_eval.gate import SUITE, Gate, parse_gate
from ba_eval.resources import user_path
from ba_eval.store import read_plan
from ba_eval.train.config import TrainConfig, data_beside, find_config
from ba_eval.yaml_file import convert, nearest, read_mapping

BASE = "base"
"""The name of the model that all arms start from, in the tables."""


class GateConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the last checkpoint of every arm must reach, as `ba-eval gate` checks it."""

    min: tuple[str, ...] = ()
    """`BENCHMARK:METRIC=SHARE`, as in `--min`."""
    max_drop: tuple[str, ...] = ()
    """As in `--max-drop`; measured from the base model, or from `baseline`."""
    baseline: str | None = None
    """A run folder to measure drops from."""
    confidence: float = 0.95
    strict: bool = False

    def parsed(self) -> list[Gate]:
        """The gates. InputError where one is not of the form."""
        return [parse_gate("min", text) for text in self.min] + [parse_gate("max-drop", text) for text in self.max_drop]

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise ValueError("confidence: must be at least 0.5 and below 1")


class StudyConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One study, as `ba-eval study` reads it."""

    out: str
    """The study's folder."""
    model: str
    """The base model: a folder (also beside the YAML file) or a hub id."""
    data: dict[str, Any]
    """As in a training configuration."""
    rules: tuple[str, ...] = ("sequence", "token", "balanced")
    seeds: tuple[int, ...]
    """Training seeds; every rule is trained with each."""
    train: dict[str, Any]
    """The rest of a training configuration. `from` names a ready one, or a file, that it changes."""
    eval: dict[str, Any]
    """As `ba-eval eval --config`: benchmarks and sampling."""
    gates: GateConfig = GateConfig()

    def __post_init__(self) -> None:
        for name in ("rules", "seeds"):
            values = getattr(self, name)
            if not values:
                raise ValueError(f"{name}: name at least one")
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: one stands twice")


@dataclass(frozen=True)
class Arm:
    """One training of the study: a rule and a seed."""

    name: str
    train: TrainConfig

    @property
    def folder(self) -> Path:
        """Where its checkpoints are."""
        return Path(self.train.out)


@dataclass(frozen=True)
class Study:
    """A study, ready to start."""

    config: StudyConfig
    eval: RunConfig
    """With the base as its only model."""
    out: Path
    arms: tuple[Arm, ...]
    file: Path

    def pick(self, names: Sequence[str]) -> list[Arm]:
        """The arms of these names or numbers (from 0, as of a job array); all where none is named. InputError."""
        if not names:
            return list(self.arms)
        known = {arm.name: arm for arm in self.arms} | {str(i): arm for i, arm in enumerate(self.arms)}
        for name in names:
            if name not in known:
                near = f"; by number: 0 to {len(self.arms) - 1}" if name.isdigit() else nearest(name, known)
                raise InputError(f"--arm {name}: no such arm of {self.file}{near}")
        return list({known[name].name: known[name] for name in names}.values())


def load_study(path: Path, settings: Sequence[str] = ()) -> Study:
    """Reads a study file and applies `--set key.sub=value` entries. InputError names file, line and key."""
    data, lines = read_mapping(path)
    for setting in settings:
        apply_setting(data, setting, lines)
    if isinstance(data.get("seeds"), int) and not isinstance(data["seeds"], bool):
        data["seeds"] = list(range(data["seeds"]))  # how many
    if isinstance(data.get("rules"), str):
        data["rules"] = [data["rules"]]  # a single one needs no list
    if isinstance(data.get("model"), str) and (path.parent / data["model"]).is_dir():
        data["model"] = str(path.parent / data["model"])
    data_beside(data.get("data"), path)
    _refuse(data, lines, path, "eval", {"models": "the study's arms are", "out": "the study has its own"})
    owned = {"rule": "'rules' lists them", "seed": "'seeds' lists them"}
    owned |= {name: f"'{name}' of the study says it" for name in ("model", "data", "out")}
    _refuse(data, lines, path, "train", owned)
    config = convert(data, StudyConfig, where=str(path), lines=lines)

    evaluate = _eval_config(config, path, lines)
    given = dict(config.data)
    if "benchmarks" not in given:
        given["benchmarks"] = _same_kind(evaluate.benchmarks, str(given.get("kind", "math")))
    out = user_path(config.out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{_at(path, lines, '$.out')}: out {out}: is a file; name a folder")
    start = _training_start(config, path, lines)
    arms = []
    for seed in config.seeds:  # seed by seed: a study that is cut has whole seeds
        for rule in config.rules:
            name = f"{rule}-{seed}"
            asked = {"model": config.model, "data": given, "rule": rule, "seed": seed, "out": str(out / "arms" / name)}
            where = {**_below(lines, "train"), **{k: v for k, v in lines.items() if k.startswith("$.data")}}
            where |= {"$.rule": lines.get("$.rules", 0), "$.seed": lines.get("$.seeds", 0)}
            arms.append(Arm(name, convert({**start, **asked}, TrainConfig, where=str(path), lines=where)))
    _check_gates(config, evaluate, path, lines)
    return Study(config, evaluate, out, tuple(arms), path)


def _refuse(data: dict[str, Any], lines: Mapping[str, int], path: Path, part: str, owned: Mapping[str, str]) -> None:
    inside = data.get(part)
    for name, instead in owned.items():
        if isinstance(inside, dict) and name in inside:
            raise InputError(f"{_at(path, lines, f'$.{part}.{name}')}: {part}.{name}: leave it out; {instead}")


def _at(path: Path, lines: Mapping[str, int], key: str) -> str:
    return f"{path}:{lines[key]}" if key in lines else str(path)


def _below(lines: Mapping[str, int], part: str) -> dict[str, int]:
    """The lines of the keys inside a part of the file, as if it were a file of its own."""
    start = f"$.{part}."
    return {f"$.{at.removeprefix(start)}": line for at, line in lines.items() if at.startswith(start)}


def _training_start(config: StudyConfig, path: Path, lines: Mapping[str, int]) -> dict[str, Any]:
    """The training configuration without what differs between arms."""
    changes = dict(config.train)
    name = changes.pop("from", None)
    start: dict[str, Any] = {}
    if name is not None:
        beside = path.parent / str(name)
        try:
            start = read_mapping(beside if beside.is_file() else find_config(str(name)))[0]
        except InputError as error:
            raise InputError(f"{_at(path, lines, '$.train.from')}: train.from: {error}") from None
    for key, value in changes.items():
        old = start.get(key)
        start[key] = {**old, **value} if isinstance(value, dict) and isinstance(old, dict) else value
    return start


def _eval_config(config: StudyConfig, path: Path, lines: Mapping[str, int]) -> RunConfig:
    """The evaluation without its models; benchmarks beside the file are paths from here."""
    given = dict(config.eval)
    asked = given.get("benchmarks", [])
    found = []
    for entry in asked.split(",") if isinstance(asked, str) else asked if isinstance(asked, list) else []:
        name, n = parse_spec(str(entry))
        beside = path.parent / name
        name = str(beside) if name.endswith((".yaml", ".yml")) and beside.is_file() else name
        found.append(name if n is None else f"{name}:{n}")
    if found:
        given["benchmarks"] = found
    for name in ("k", "server", "accept_content"):  # a single one needs no list
        if name in given and not isinstance(given[name], list):
            given[name] = [given[name]]
    given |= {"models": {BASE: config.model}, "out": "."}
    made = convert(given, RunConfig, where=str(path), lines=_below(lines, "eval"))
    try:
        for entry in expand_suites(made.benchmarks):
            find(parse_spec(entry)[0])
    except InputError as error:
        raise InputError(f"{_at(path, lines, '$.eval.benchmarks')}: eval.benchmarks: {error}") from None
    return made


def _same_kind(benchmarks: Sequence[str], kind: str) -> list[str]:
    """Those of the study's benchmarks that training problems of this kind may repeat."""
    names = [parse_spec(entry)[0] for entry in expand_suites(benchmarks)]
    is_math = {name: read_definition(find(name).path).kind == "math" for name in names}
    return [name for name in names if is_math[name] == (kind == "math")]


def _check_gates(config: StudyConfig, evaluate: RunConfig, path: Path, lines: Mapping[str, int]) -> None:
    names = [find(parse_spec(entry)[0]).name for entry in expand_suites(evaluate.benchmarks)]
    try:
        if config.gates.baseline is not None:
            read_plan(user_path(config.gates.baseline))
        for gate in config.gates.parsed():
            if gate.benchmark not in (*names, SUITE):
                raise InputError(f"--{gate}: no benchmark of the study{nearest(gate.benchmark, [*names, SUITE])}")
    except InputError as error:
        raise InputError(f"{_at(path, lines, '$.gates')}: gates: {error}") from None
