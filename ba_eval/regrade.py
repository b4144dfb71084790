"""Verdicts again from the stored samples: no engine, no GPU."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ba_eval.config import RunConfig
from ba_eval.errors import InputError
from ba_eval.grade.verdict import Grader
from ba_eval.grading import Graded, Grading
from ba_eval.plan import Task, load_tasks, make_graders
from ba_eval.progress import RunProgress
from ba_eval.records import VerdictRecord
from ba_eval.store import RunFolder, read_plan
from ba_eval.yaml_file import read_yaml


@dataclass(frozen=True)
class Change:
    """A verdict that the grader of today gives otherwise."""

    model: str
    benchmark: str
    before: VerdictRecord
    after: VerdictRecord


def regrade(
    path: Path, progress: RunProgress, *, data_dir: str | None = None, workers: int | None = None
) -> list[Change]:
    """Grades every stored sample of the plan again and replaces the verdicts; returns those that changed.

    The old verdicts of a model and benchmark stand until all the new ones are there. Raises InputError where the
    folder is no run or the benchmark's content is not that of the run.
    """
    plan = read_plan(path)
    config = read_yaml(path / "run.yaml", RunConfig)
    config = msgspec.structs.replace(
        config, data_dir=data_dir or config.data_dir, workers=workers or config.workers, out=str(path)
    )
    tasks = load_tasks(config)
    contents = {benchmark.name: benchmark.content for benchmark in plan.benchmarks}
    for task in tasks:
        name = task.benchmark.name
        if contents.get(name) != task.benchmark.content:
            raise InputError(
                f"{name}: the benchmark's content is not the one this run was made with ({contents.get(name)}, now "
                f"{task.benchmark.content}); give the same data with --data-dir, or run `ba-eval eval` again"
            )
    graders = make_graders(config, [task.benchmark for task in tasks])
    changes: list[Change] = []
    try:
        with RunFolder(path) as run, progress:
            for model in plan.models:
                progress.begin(model.name, {task.benchmark.name: (task.wanted, task.wanted) for task in tasks})
                for task in tasks:
                    key = plan.keys[model.name][task.benchmark.name]
                    changes += _regrade_task(run, progress, model.name, task, key, graders)
                progress.end(model.name)
    finally:
        for grader in {id(grader): grader for grader in graders.values()}.values():
            grader.close()
    return changes


def _regrade_task(
    run: RunFolder, progress: RunProgress, model: str, task: Task, key: str, graders: dict[str, Grader]
) -> list[Change]:
    name = task.benchmark.name
    after: dict[tuple[str, int], VerdictRecord] = {}

    def keep(finished: list[Graded]) -> None:
        for graded in finished:
            after[graded.record.problem_id, graded.record.index] = graded.record
            progress.verdict(model, name, graded.record.outcome)

    with closing(Grading(keep)) as grading:
        for sample in run.samples(model, name):
            if sample.key == key and sample.problem_id in task.problems and sample.finish_reason != "error":
                grading.submit(model, name, task.problems[sample.problem_id], sample, graders[name])
        grading.drain()
    before = {(old.problem_id, old.index): old for old in run.verdicts(model, name) if old.key == key}
    run.replace_verdicts(model, name, (after[sample] for sample in sorted(after)))
    return [
        Change(model, name, before[sample], after[sample])
        for sample in sorted(after)
        if sample in before and before[sample].outcome != after[sample].outcome
    ]


def summarise(changes: list[Change]) -> list[str]:
    """Counts the changes by model, benchmark and direction, one line each."""
    counts = Counter((c.model, c.benchmark, c.before.outcome, c.after.outcome) for c in changes)
    return [f"{model} on {name}: {n} {old} -> {new}" for (model, name, old, new), n in sorted(counts.items())]
