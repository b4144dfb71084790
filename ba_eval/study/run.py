"""The flow of a study: each arm trained and evaluated in child processes, then what was found.

A child's memory is free when it ends, and one that dies does not stop the others. What is done is read from the files
(`state`), so a study that was killed anywhere goes on with the same command, and several processes, as the tasks of a
job array, can work on one study: each arm has a lock.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from ba_eval.engine.child import WAITING
from ba_eval.errors import InputError
from ba_eval.gate import check
from ba_eval.gate_report import annotations, junit
from ba_eval.plan import load_tasks
from ba_eval.results import Results, load
from ba_eval.store import write_atomically
from ba_eval.study.config import BASE, Arm, Study
from ba_eval.study.estimate import plan_lines
from ba_eval.study.findings import gate_baseline, last_steps, report
from ba_eval.study.gather import gather
from ba_eval.study.state import (
    base,
    eval_config,
    eval_folder,
    is_evaluated,
    models,
    note_time,
    progress,
    write_config,
)
from ba_eval.tables.escape import plain
from ba_eval.train.checkpoints import checkpoints
from ba_eval.train.launch import launch_line, missing_package

STAGES = ("train", "eval", "report", "gates")
REPORT = "report"
"""What the lock on the findings is called, beside those of the arms."""
END_SECONDS = 60.0
"""On Ctrl-C and SIGTERM a child gets this long to end by itself."""

Say = Callable[[str], None]


def run_study(study: Study, stages: Collection[str], arms: Sequence[Arm], say: Say) -> int:
    """Runs these stages of these arms, and what concerns all arms; returns the exit code.

    0 done, 1 a gate failed, 3 incomplete. Raises InputError for what cannot work.
    """
    found = contents(study)
    lacking: list[str] = []
    if {"train", "eval"} & set(stages):
        lacking = run_arms(study, stages, arms, found, say)
    passed = True
    if {"report", "gates"} & set(stages):

        def conclude() -> list[str]:
            nonlocal passed
            missing = unfinished(study, found)
            for line in missing:
                say(f"incomplete: {line}")
            results = report(study, say) if "report" in stages else load(gather(study))
            if "gates" in stages and not missing:
                passed = _check_gates(study, results, say)
            return missing

        lacking = _locked(study, REPORT, conclude)
        if lacking == [_busy(REPORT)]:
            say(f"ba-eval: {lacking[0]}")
    if lacking:
        say("ba-eval: incomplete; run the same command again to go on")
        return 3
    return 0 if passed else 1


def dry_run(study: Study, stages: Collection[str], arms: Sequence[Arm]) -> list[str]:
    """What these stages would do, in lines."""
    tasks = load_tasks(study.eval)
    found = {task.benchmark.name: task.benchmark.content for task in tasks}
    now = [progress(study, arm, found) for arm in arms]
    samples = sum(task.wanted for task in tasks)
    tokens = sum(task.wanted * task.sampling.max_tokens for task in tasks)
    base_done = is_evaluated(study, BASE, base(study), found) if _with_base(study, arms) else None
    lacking = missing_package(arms[0].train) if arms[0].train.launch else None
    notes = [f"before you run it: {lacking}"] if lacking else []
    return [*plan_lines(study, now, stages, base_done, samples, tokens), *notes]


def _with_base(study: Study, arms: Sequence[Arm]) -> bool:
    """Whether the base is evaluated too: not by a task that has arms of its own."""
    return len(arms) == len(study.arms)


def contents(study: Study) -> dict[str, str]:
    """Loads the study's benchmarks: name to content hash. InputError where one cannot be had."""
    return {task.benchmark.name: task.benchmark.content for task in load_tasks(study.eval)}


def _check_gates(study: Study, results: Results, say: Say) -> bool:
    """Checks the gates of the last checkpoints; writes `gates.xml`; tells whether all passed."""
    asked = study.config.gates
    gates = asked.parsed()
    if not gates:
        return True
    last = last_steps(study, results)
    trained = tuple(model for model in last.plan.models if model.name != BASE)
    last = replace(last, plan=msgspec.structs.replace(last.plan, models=trained))
    findings = check(last, gates, gate_baseline(study), confidence=asked.confidence, strict=asked.strict)
    for finding in findings:
        say(plain(f"{'ok  ' if finding.passed else 'FAIL'} {finding.model}: {finding.gate}: {finding.message}", 1000))
    write_atomically(study.out / "gates.xml", [junit(str(results.run), findings)])
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(*annotations(findings), sep="\n")
    return all(finding.passed for finding in findings)


def run_arms(
    study: Study, stages: Collection[str], arms: Sequence[Arm], found: Mapping[str, str], say: Say
) -> list[str]:
    """Trains and evaluates what is missing of the arms, and evaluates the base; returns what failed, in words.

    Raises InputError where a child refuses its input: the other arms would have the same.
    """
    if "train" in stages and arms[0].train.launch and any(_last_step(arm) < arm.train.steps for arm in arms):
        lacking = missing_package(arms[0].train)
        if lacking:
            raise InputError(f"{study.file}: {lacking}")
    study.out.mkdir(parents=True, exist_ok=True)
    work: dict[str, Callable[[], list[str]]] = {}
    if _with_base(study, arms) and "eval" in stages:
        work[BASE] = lambda: _evaluate(study, BASE, base(study), found, say)
    for arm in arms:
        work[arm.name] = partial(_advance, study, arm, stages, found, say)
    failed: list[str] = []
    for name, do in work.items():
        for line in _locked(study, name, do):
            failed.append(line)
            say(f"ba-eval: {line}")
    return failed


def _advance(study: Study, arm: Arm, stages: Collection[str], found: Mapping[str, str], say: Say) -> list[str]:
    if "train" in stages:
        failed = _train(study, arm, say)
        if failed:
            return failed
    if "eval" in stages:
        if arm.train.steps not in checkpoints(arm.folder):
            return [f"{arm.name}: not evaluated, because its training is not finished"]
        return _evaluate(study, arm.name, models(arm), found, say)
    return []


def _train(study: Study, arm: Arm, say: Say) -> list[str]:
    before = _last_step(arm)
    if before >= arm.train.steps:
        say(f"{arm.name}: trained already")
        return []
    file = arm.folder.with_suffix(".yaml")
    write_config(file, arm.train)
    say(f"{arm.name}: training from step {before} to {arm.train.steps}")
    done = _child(study, arm.name, "train", train_words(arm, file), lambda: _last_step(arm) - before)
    return done or ([] if _last_step(arm) >= arm.train.steps else [f"{arm.name}: training left no last checkpoint"])


def _last_step(arm: Arm) -> int:
    return max(checkpoints(arm.folder), default=0)


def _evaluate(study: Study, name: str, named: dict[str, str], found: Mapping[str, str], say: Say) -> list[str]:
    if is_evaluated(study, name, named, found):
        say(f"{name}: evaluated already")
        return []
    config = eval_config(study, name, named)
    file = eval_folder(study, name).with_suffix(".yaml")
    write_config(file, config)
    say(f"{name}: evaluating {', '.join(named)}")
    return _child(study, name, "eval", eval_words(file), lambda: len(named))


def train_words(arm: Arm, file: Path) -> list[str]:
    """The command that trains an arm: on one process, or as its `launch` says."""
    if not arm.train.launch:
        return [sys.executable, "-m", "ba_eval.train", str(file)]
    return [sys.executable, "-m", "accelerate.commands.launch", *shlex.split(launch_line(arm.train, file, []))[2:]]


def eval_words(file: Path) -> list[str]:
    """The command that evaluates an arm."""
    return [sys.executable, "-m", "ba_eval", "eval", "--config", str(file)]


def _child(study: Study, name: str, stage: str, words: Sequence[str], did: Callable[[], int]) -> list[str]:
    """Runs one child to its end; notes its time. InputError where it refused its input (exit 2)."""
    start = time.monotonic()
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, env=WAITING | os.environ, preexec_fn=_die_with(os.getpid())
    )
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    note_time(study, name, stage, time.monotonic() - start, code, did())
    if code == 2:
        raise InputError(f"{name}: {stage} refused its input (see above); by itself: {shlex.join(words[1:])}")
    if code < 0:
        return [f"{name}: {stage} was ended by {signal.Signals(-code).name}"]
    return [f"{name}: {stage} failed (exit {code})"] if code else []


def _die_with(parent: int) -> Callable[[], None] | None:
    """A child must not outlive a study that was killed: it would write where the next one does."""
    if not sys.platform.startswith("linux"):
        return None
    from sandbox import linux

    def bind() -> None:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)

    return bind


def _locked(study: Study, name: str, work: Callable[[], list[str]]) -> list[str]:
    """Does the work on an arm, unless another process is at it."""
    from filelock import FileLock, Timeout

    file = study.out / "locks" / f"{name}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(file, timeout=0):
            return work()
    except Timeout:
        return [_busy(name)]


def _busy(name: str) -> str:
    return f"{name}: another process is at it"


def unfinished(study: Study, found: Mapping[str, str]) -> list[str]:
    """What a report on the whole study lacks, in words."""
    lacking = [f"{arm.name}: {now}" for arm in study.arms if not (now := progress(study, arm, found)).evaluated]
    if not is_evaluated(study, BASE, base(study), found):
        lacking.append(f"{BASE}: not evaluated")
    return lacking
