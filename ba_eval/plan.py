"""Turns what was asked into what is wanted: checkpoints, benchmarks, graders, and the key of each sample.

All that can be wrong with the input is found here, before anything is written.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.benchmark import Benchmark, expand_suites, load, names, parse_spec
from ba_eval.benchmark.problem import Problem
from ba_eval.checkpoint import Checkpoint, resolve
from ba_eval.config import RunConfig
from ba_eval.engine.request import Sampling
from ba_eval.errors import InputError
from ba_eval.grade.verdict import Grader
from ba_eval.model_specs import expand_models
from ba_eval.prompt import Renderer
from ba_eval.records import Plan, PlannedBenchmark, PlannedModel
from ba_eval.yaml_file import convert, nearest

# Engine arguments that change which tokens come out; the others only change how fast.
NUMERIC_ENGINE_ARGS = ("dtype", "quantization", "kv_cache_dtype", "hf_overrides", "load_format")


@dataclass(frozen=True)
class Subject:
    """One model under test: a checkpoint with its prompt renderer, or a model behind a server."""

    model: PlannedModel
    prompt_identity: str
    checkpoint: Checkpoint | None = None
    renderer: Renderer | None = None

    @property
    def fetched(self) -> bool:
        """Whether its weights are on this machine, or behind a server."""
        return self.checkpoint is None or bool(self.checkpoint.weights)


@dataclass(frozen=True)
class Task:
    """One benchmark of the run, with the sampling it will be run with."""

    benchmark: Benchmark
    spec: str
    """What names it from any folder: its name, or the absolute path of its YAML file."""
    n: int
    sampling: Sampling

    @cached_property
    def problems(self) -> dict[str, Problem]:
        """The problems by id."""
        return {problem.id: problem for problem in self.benchmark.problems}

    @property
    def wanted(self) -> int:
        """How many samples the run wants of each model."""
        return self.n * len(self.benchmark.problems)


@dataclass(frozen=True)
class Prepared:
    """A run, ready to start: nothing is left that bad input could break."""

    config: RunConfig
    subjects: tuple[Subject, ...]
    tasks: tuple[Task, ...]
    plan: Plan
    components: dict[str, dict[str, Any]]
    """key -> what went into it, so that a later run can say what changed."""
    graders: dict[str, Grader] = field(default_factory=dict)
    """benchmark name -> grader; benchmarks of one kind and options share one."""

    def subject(self, name: str) -> Subject:
        """The model of this name."""
        return next(subject for subject in self.subjects if subject.model.name == name)

    def close(self) -> None:
        """Ends the grading processes."""
        for grader in {id(grader): grader for grader in self.graders.values()}.values():
            grader.close()


def prepare(config: RunConfig) -> Prepared:
    """Resolves a run. Raises InputError for everything that cannot be run as asked."""
    for name, value in msgspec.to_builtins(config).items():
        try:
            msgspec.json.encode(value)
        except UnicodeEncodeError:
            raise InputError(f"{name}: holds bytes that are not UTF-8: {value!a}") from None
    tasks = load_tasks(config)
    subjects = _server_subjects(config) if config.server else _checkpoint_subjects(config)
    for name in ("aggregation", "step", "training_seed"):
        _check_names(name, getattr(config, name), subjects)
    graders = make_graders(config, [task.benchmark for task in tasks])
    return _assemble(config, tuple(subjects), tuple(tasks), graders)


def fetched(prepared: Prepared, name: str) -> Prepared:
    """The run with a model whose weights have come from the hub meanwhile: its samples have keys now.

    Raises what `resolve` raises where they are not as they should be.
    """
    config = prepared.config
    paths = {subject.model.name: subject.model.path for subject in prepared.subjects}
    subjects = tuple(
        _checkpoint_subject(config, name, paths[name], fetch=True) if subject.model.name == name else subject
        for subject in prepared.subjects
    )
    return _assemble(config, subjects, prepared.tasks, prepared.graders)


def _assemble(
    config: RunConfig, subjects: tuple[Subject, ...], tasks: tuple[Task, ...], graders: dict[str, Grader]
) -> Prepared:
    components: dict[str, dict[str, Any]] = {}
    keys: dict[str, dict[str, str]] = {}
    for subject in subjects:
        for task in tasks:
            if not subject.fetched:  # no sample has this key
                keys.setdefault(subject.model.name, {})[task.benchmark.name] = ""
                continue
            parts = _key_components(config, subject, task)
            key = hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:16]
            components[key] = parts
            keys.setdefault(subject.model.name, {})[task.benchmark.name] = key
    plan = Plan(
        models=tuple(subject.model for subject in subjects),
        benchmarks=tuple(_planned_benchmark(task) for task in tasks),
        keys=keys,
        ks=config.k,
        seed=config.seed,
        marks=("code ran without a sandbox (--unsafe)",) if config.unsafe else (),
    )
    return Prepared(config, subjects, tasks, plan, components, graders)


def load_tasks(config: RunConfig) -> list[Task]:
    """Loads the benchmarks that the configuration names, suites expanded."""
    tasks: dict[str, Task] = {}
    for entry in expand_suites(config.benchmarks):
        name, n = parse_spec(entry)
        benchmark = load(
            name,
            data_dir=Path(config.data_dir) if config.data_dir else None,
            accept_content=config.accept_content,
            limit=config.limit,
        )
        if benchmark.name in tasks:
            raise InputError(f"benchmark {benchmark.name} is asked for twice")
        n = n or config.n or benchmark.n
        spec = name if name == benchmark.name else str(Path(name).expanduser().resolve())
        if n < max(config.k):
            raise InputError(
                f"{benchmark.name}: pass@{max(config.k)} needs at least {max(config.k)} samples per problem, "
                f"but n is {n}; write {benchmark.name}:{max(config.k)} or lower -k"
            )
        tasks[benchmark.name] = Task(benchmark, spec, n, _sampling(config, benchmark))
    known = {*names(), *tasks, *(name.partition("@")[0] for name in tasks)}
    for name in config.accept_content:
        if name not in known:
            raise InputError(f"--accept-content {name}: there is no such benchmark{nearest(name, sorted(known))}")
    return list(tasks.values())


def make_graders(config: RunConfig, benchmarks: list[Benchmark]) -> dict[str, Grader]:
    """Makes the graders, one for each kind and options. Raises InputError where code has no sandbox to run in."""
    made: dict[bytes, Grader] = {}
    graders: dict[str, Grader] = {}
    for benchmark in benchmarks:
        key = msgspec.json.encode(dict(benchmark.grader), order="sorted") if benchmark.kind == "math" else b"code"
        if key not in made:
            made[key] = math_grader(benchmark, config.workers) if benchmark.kind == "math" else _code_grader(config)
        graders[benchmark.name] = made[key]
    return graders


def math_grader(benchmark: Benchmark, workers: int | None) -> Grader:
    """Makes the grader of a math benchmark, with the benchmark's own options."""
    from ba_eval.grade.math import MathGrader, MathOptions

    options = convert(dict(benchmark.grader), MathOptions, where=f"benchmark {benchmark.name}, grader")
    return MathGrader(options, workers=workers or os.cpu_count() or 1)


def _code_grader(config: RunConfig) -> Grader:
    from ba_eval.grade.code import CodeGrader

    return CodeGrader(workers=config.workers, level=config.sandbox_level, unsafe=config.unsafe)


def _sampling(config: RunConfig, benchmark: Benchmark) -> Sampling:
    """The run's sampling parameters, or the benchmark's own where the run gives none."""
    asked = {name: getattr(config, name) for name in ("temperature", "top_p", "top_k", "min_p", "max_tokens")}
    own = {"temperature": benchmark.temperature, "top_p": benchmark.top_p, "max_tokens": benchmark.max_tokens}
    return Sampling(**{**own, **{name: value for name, value in asked.items() if value is not None}})


def _checkpoint_subjects(config: RunConfig) -> list[Subject]:
    """The first model is fetched now, where it is on the hub; the others while it runs."""
    models = expand_models(config.model_specs())
    return [_checkpoint_subject(config, name, path, fetch=i == 0) for i, (name, path) in enumerate(models)]


def _checkpoint_subject(config: RunConfig, name: str, path: str, *, fetch: bool) -> Subject:
    checkpoint = resolve(name, path, trust_remote_code=config.trust_remote_code, fetch=fetch)
    renderer = Renderer(checkpoint, config.template, dict(config.template_args), config.system)
    model = PlannedModel(
        name=name,
        path=path,
        weights=checkpoint.weights,
        aggregation=_given(config.aggregation, name, checkpoint.aggregation),
        step=_given(config.step, name, checkpoint.step),
        training_seed=_given(config.training_seed, name, checkpoint.training_seed),
        marks=(renderer.description,),
    )
    return Subject(model, renderer.identity, checkpoint, renderer)


def _given(flag: Mapping[str, Any], name: str, recorded: Any) -> Any:
    """What a flag says of a model by its own name, or by its name before `@step`; else what its record says."""
    return flag.get(name, flag.get(name.partition("@")[0], recorded))


def _check_names(option: str, values: Mapping[str, Any], subjects: list[Subject]) -> None:
    names = [subject.model.name for subject in subjects]
    known = {*names, *(name.partition("@")[0] for name in names)}
    for name in values:
        if name not in known:
            raise InputError(
                f"--{option.replace('_', '-')} {name}: there is no such model{nearest(name, sorted(known))}"
            )


def _server_subjects(config: RunConfig) -> list[Subject]:
    """Models behind `--server`: the server applies its own chat template; its weights are known by name alone."""
    if config.template:
        raise InputError("--template has no effect with --server: the server applies its own chat template")
    if config.engine_args:
        raise InputError("--engine-arg has no effect with --server: give the arguments to the server")
    if config.deterministic:
        raise InputError("--deterministic has no effect with --server: start the server with VLLM_BATCH_INVARIANT=1")
    prompt = msgspec.json.encode({"system": config.system, "template_args": config.template_args}, order="sorted")
    subjects = []
    for name, served in expand_models(config.model_specs()):
        model = PlannedModel(
            name=name,
            path=served,
            weights=f"server:{config.server[0]}:{served}",
            aggregation=_given(config.aggregation, name, None),
            step=_given(config.step, name, None),
            training_seed=_given(config.training_seed, name, None),
            marks=("behind a server",),
        )
        subjects.append(Subject(model, f"server:{hashlib.sha256(prompt).hexdigest()[:16]}"))
    return subjects


def _key_components(config: RunConfig, subject: Subject, task: Task) -> dict[str, Any]:
    """All that a sample depends on, besides problem and index."""
    engine = {name: config.engine_args[name] for name in NUMERIC_ENGINE_ARGS if name in config.engine_args}
    if config.deterministic:
        engine["deterministic"] = True
    return {
        "weights": subject.model.weights,
        "tokenizer and prompt template": subject.prompt_identity,
        "benchmark": task.benchmark.name,
        "benchmark content": task.benchmark.content,
        "benchmark prompt": [task.benchmark.prompt, task.benchmark.prompt_function],
        "sampling": msgspec.to_builtins(task.sampling),
        "seed": config.seed,
        "engine arguments": engine,
    }


def _planned_benchmark(task: Task) -> PlannedBenchmark:
    benchmark = task.benchmark
    return PlannedBenchmark(
        name=benchmark.name,
        title=benchmark.title,
        kind=benchmark.kind,
        n=task.n,
        problem_ids=tuple(task.problems),
        content=benchmark.content,
        excluded={pid: reason for pid, reason in benchmark.excluded.items() if pid in task.problems},
        max_tokens=task.sampling.max_tokens,
        marks=tuple(benchmark.marks),
    )


def changed_components(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Names what differs between two keys' components, with both values where they are short."""
    changes = []
    for name in new:
        before, after = old.get(name), new[name]
        if before != after:
            short = f" ({before} -> {after})" if len(f"{before}{after}") < 100 else ""
            changes.append(f"{name}{short}")
    return changes
