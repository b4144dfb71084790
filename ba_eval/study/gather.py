"""Puts the evaluations of all arms together as one run folder, which every other command reads."""

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.errors import InputError, MachineError
from ba_eval.json_file import read_object
from ba_eval.records import RECORDS, Plan, problems_path, records_path
from ba_eval.store import RunFolder, read_plan
from ba_eval.study.config import BASE, Study
from ba_eval.study.state import eval_folder

RUN = "run"


def gather(study: Study) -> Path:
    """Makes `<out>/run` of every arm that has been evaluated; returns it.

    Records are linked, not copied, where the file system can. Raises MachineError where nothing has been evaluated,
    InputError where arms were evaluated on other problems than the others.
    """
    names = [BASE, *(arm.name for arm in study.arms)]
    plans = {name: read_plan(eval_folder(study, name)) for name in names if _has_plan(eval_folder(study, name))}
    if not plans:
        raise MachineError(f"{study.out}: no arm has been evaluated yet; run the stages train and eval first")
    _check_alike(study, plans)
    first = next(iter(plans.values()))
    whole = msgspec.structs.replace(
        first,
        models=tuple(model for plan in plans.values() for model in plan.models),
        keys={model: keys for plan in plans.values() for model, keys in plan.keys.items()},
        marks=tuple(dict.fromkeys(mark for plan in plans.values() for mark in plan.marks)),
    )
    with RunFolder(study.out / RUN) as run:
        for name, plan in plans.items():
            source = eval_folder(study, name)
            for benchmark in plan.benchmarks:
                _link(problems_path(source, benchmark.name), problems_path(run.path, benchmark.name))
                for model in plan.models:
                    for what in RECORDS:
                        place = (what, model.name, benchmark.name)
                        _link(records_path(source, *place), records_path(run.path, *place))
        asked = msgspec.structs.replace(
            study.eval, models={model.name: model.path for model in whole.models}, out=str(run.path)
        )
        run.write_yaml("run.yaml", msgspec.to_builtins(asked))
        run.write_json("keys.json", _merged(study, plans, "keys.json"))
        environment = _merged(study, plans, "environment.json")
        environment.pop("command", None)  # of one arm's evaluation
        engines = {
            model: engine
            for name in plans
            for model, engine in _read(eval_folder(study, name) / "environment.json").get("engines", {}).items()
        }
        run.write_json("environment.json", {**environment, "engines": engines})
        run.write_json("plan.json", whole)
    return study.out / RUN


def _has_plan(folder: Path) -> bool:
    return (folder / "plan.json").is_file()


def _check_alike(study: Study, plans: dict[str, Plan]) -> None:
    names = list(plans)
    for name in names[1:]:
        if plans[name].benchmarks != plans[names[0]].benchmarks:
            raise InputError(
                f"{eval_folder(study, name)}: was evaluated on other problems, or with another n, than "
                f"{names[0]}; run the stage eval again"
            )


def _link(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    new.unlink(missing_ok=True)
    if old.is_file():
        try:
            os.link(old, new)
        except OSError:
            shutil.copyfile(old, new)


def _merged(study: Study, plans: dict[str, Plan], file: str) -> dict[str, Any]:
    return {key: value for name in plans for key, value in _read(eval_folder(study, name) / file).items()}


def _read(file: Path) -> dict[str, Any]:
    return read_object(file) if file.is_file() else {}
