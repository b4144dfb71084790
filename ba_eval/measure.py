"""How a model was measured: what of different runs may be compared."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.errors import InputError
from ba_eval.records import PlannedModel
from ba_eval.results import Results
from ba_eval.yaml_file import read_mapping

# What of run.yaml decides how a statement became a prompt, besides the model's own chat template.
_PROMPT_SETTINGS = ("template", "template_args", "system")


def measure(results: Results, model: PlannedModel) -> dict[str, Any]:
    """How a model was measured: benchmark -> what decides its score besides the model and chance."""
    components = _keys(results.run)
    settings, _ = read_mapping(results.run / "run.yaml")
    parts_of = {}
    for benchmark in sorted(results.plan.benchmarks, key=lambda benchmark: benchmark.name):
        key = results.plan.keys[model.name][benchmark.name]
        if key not in components:
            raise InputError(f"{results.run / 'keys.json'}: lacks the key of {model.name} on {benchmark.name}")
        parts = components[key]
        parts_of[benchmark.name] = {
            "content": benchmark.content,
            "problems": len(benchmark.problem_ids),
            "apart": len(benchmark.excluded),
            "prompt": parts.get("benchmark prompt"),
            "engine arguments": parts.get("engine arguments") or {},
            **{name: settings.get(name) or None for name in _PROMPT_SETTINGS},
            **(parts.get("sampling") or {}),
            "grader": ", ".join(_graders(results, model.name, benchmark.name)),
        }
    return parts_of


def _graders(results: Results, model: str, benchmark: str) -> tuple[str, ...]:
    # A model without any verdict yet is graded as the others of its run are.
    column = (cell.graders for (_, name), cell in results.cells.items() if name == benchmark and cell.graders)
    return results.cells[model, benchmark].graders or next(column, ())


def _keys(run: Path) -> dict[str, dict[str, Any]]:
    try:
        keys: dict[str, dict[str, Any]] = json.loads((run / "keys.json").read_bytes())
    except (OSError, ValueError):
        raise InputError(f"{run}: has no readable keys.json, which says how its samples were made") from None
    return keys


def differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names what differs between two measures, for a reader."""
    found = [f"no {name}" for name in first if name not in other]
    found += [f"also {name}" for name in other if name not in first]
    for name in (name for name in first if name in other):
        for part in sorted({*first[name], *other[name]}):
            before, after = first[name].get(part), other[name].get(part)
            if before != after and not (part == "grader" and "" in (before, after)):  # not graded at all yet
                short = f" {after}, not {before}" if len(f"{before}{after}") < 80 else " differs"
                found.append(f"{name}: {part}{short}")
    return found


def label(results: Results, model: PlannedModel, runs: Sequence[Results]) -> str:
    """A model's name among those of the runs; where it stands twice with its run's folder name before it, or with the
    folder's path where that name stands twice too."""
    if sum(other.name == model.name for run in runs for other in run.plan.models) == 1:
        return model.name
    twice = sum(run.run.name == results.run.name for run in runs) > 1
    return f"{results.run if twice else results.run.name}/{model.name}"


def remedy(differing: Sequence[str]) -> str:
    """What to do about differences, where something can be done."""
    if any(": grader " in difference for difference in differing):
        return "; `ba-eval regrade RUN` judges a run's samples again with this version's grader"
    return ""


def join(runs: Sequence[Results]) -> Results:
    """The models of several runs beside each other; a name that stands twice gets its run's before it.

    For what compares models problem by problem. Raises InputError where two were not measured in the same way.
    """
    if len(runs) == 1:
        return runs[0]
    first, measured = runs[0], measure(runs[0], runs[0].plan.models[0])
    models, cells = [], {}
    for results in runs:
        for model in results.plan.models:
            differing = differences(measured, measure(results, model))
            if differing:
                raise InputError(
                    f"{model.name} of {results.run} was not measured as {first.plan.models[0].name} of {first.run}: "
                    f"{'; '.join(differing[:5])}; `ba-eval leaderboard` shows them in groups{remedy(differing)}"
                )
            name = label(results, model, runs)
            models.append(msgspec.structs.replace(model, name=name))
            for benchmark in results.plan.benchmarks:
                cells[name, benchmark.name] = replace(results.cells[model.name, benchmark.name], model=models[-1])
    return replace(first, plan=msgspec.structs.replace(first.plan, models=tuple(models)), cells=cells)
