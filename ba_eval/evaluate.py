"""The flow of an evaluation: generate what is missing, record it at once, grade while the engine works."""

import asyncio
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from ba_eval.benchmark.problem import Problem
from ba_eval.config import RunConfig
from ba_eval.engine.devices import share
from ba_eval.engine.request import Completion, Engine, Request
from ba_eval.engine.vllm_args import context_length
from ba_eval.environment import environment
from ba_eval.errors import BaEvalError
from ba_eval.grading import Graded, Grading
from ba_eval.json_file import read_if_sound
from ba_eval.lane import Events, Lane, events
from ba_eval.plan import Prepared, Subject, Task, changed_components, fetched, prepare
from ba_eval.prefetch import Fetched, Prefetch
from ba_eval.progress import RunProgress
from ba_eval.prompt import check_fits
from ba_eval.records import Plan, ProblemRecord, Sample, VerdictRecord
from ba_eval.seeds import sample_seed
from ba_eval.store import RunFolder, StoreError, read_plan, refuse_other

Prompts = dict[str, dict[str, dict[str, list[int]]]]
"""Prompt identity -> benchmark -> problem id -> token ids."""
# On Ctrl-C, verdicts that are under way get this long; the rest are graded when the run goes on.
DRAIN_SECONDS = 5.0


class Evaluation:
    """One call of `ba-eval eval` on a prepared run and an open run folder."""

    def __init__(self, prepared: Prepared, run: RunFolder, progress: RunProgress) -> None:
        self.prepared, self.run, self.progress = prepared, run, progress
        self.tasks = {task.benchmark.name: task for task in prepared.tasks}
        self.missing: dict[tuple[str, str], list[tuple[str, int]]] = {}
        self.prompts: Prompts = {}
        self.failures: list[BaEvalError] = []
        self.tokens = self.samples = 0
        self.seconds_waiting = 0.0
        """For verdicts, after the last sample."""
        self._environment = threading.Lock()

    def find_missing(self, subject: Subject) -> None:
        """Compares what is wanted of a model with what the folder holds."""
        model = subject.model.name
        for name, task in self.tasks.items():
            key = self.prepared.plan.keys[model][name]
            present = {
                (sample.problem_id, sample.index)
                for sample in self.run.sample_heads(model, name)
                if sample.key == key and sample.finish_reason != "error"
            }
            wanted = ((problem.id, i) for problem in task.benchmark.problems for i in range(task.n))
            self.missing[model, name] = [sample for sample in wanted if sample not in present]

    def lacks(self, subject: Subject) -> int:
        """How many samples of a model are missing."""
        return sum(len(self.missing[subject.model.name, name]) for name in self.tasks)

    def render(self, subject: Subject) -> None:
        """Renders the prompts of a model that are missing; models with the same tokenizer and template share them.

        Raises InputError where a prompt, or a prompt with max_tokens, does not fit the model's context.
        """
        if subject.renderer is not None:
            shared = self.prompts.setdefault(subject.prompt_identity, {})
            for name, task in self.tasks.items():
                self._render(subject, task, shared.setdefault(name, {}))

    def _render(self, subject: Subject, task: Task, prompts: dict[str, list[int]]) -> None:
        assert subject.renderer is not None and subject.checkpoint is not None
        needed = dict.fromkeys(pid for pid, _ in self.missing[subject.model.name, task.benchmark.name])
        for pid in needed:
            if pid not in prompts:
                prompts[pid] = subject.renderer.render(task.benchmark.user_message(task.problems[pid]))
        check_fits(
            {pid: len(prompts[pid]) for pid in needed},
            task.sampling.max_tokens,
            context_length(subject.checkpoint, self.prepared.config.engine_args),
            where=f"{subject.model.name} on {task.benchmark.name}",
        )

    def ask_servers(self) -> None:
        """Checks that the servers know every model that still needs samples.

        Raises InputError for an address or a model that cannot be, MachineError where a server does not answer.
        """
        from ba_eval.engine.server import ServerClient

        async def ask(model: str | None) -> None:
            async with ServerClient(self.prepared.config.server, model):
                pass

        for subject in self.prepared.subjects:
            if subject.checkpoint is None and self.lacks(subject):
                asyncio.run(ask(subject.model.path))

    def write_plan(self, old_plan: Plan | None) -> None:
        """Writes what is wanted, and says which samples of an earlier run are not reused, and why."""
        for subject in self.prepared.subjects:
            self._tell_changes(old_plan, subject.model.name)
        asked = msgspec.structs.replace(
            self.prepared.config,
            benchmarks=tuple(f"{task.spec}:{task.n}" for task in self.prepared.tasks),
        )
        self.run.write_yaml("run.yaml", msgspec.to_builtins(asked))
        self._write_keys()
        for task in self.prepared.tasks:
            asks = (ProblemRecord(id=p.id, statement=p.prompt, golds=p.golds) for p in task.benchmark.problems)
            self.run.write_problems(task.benchmark.name, asks)
        self.run.write_json("environment.json", environment() | {"engines": self._engines()})

    def _write_keys(self) -> None:
        known = read_if_sound(self.run.path / "keys.json")
        self.run.write_json("keys.json", known | self.prepared.components)
        self.run.write_json("plan.json", self.prepared.plan)

    def _tell_changes(self, old_plan: Plan | None, model: str) -> None:
        for benchmark, key in old_plan.keys.get(model, {}).items() if old_plan else ():
            new = self.prepared.plan.keys.get(model, {}).get(benchmark)
            if key and new and new != key:
                known = read_if_sound(self.run.path / "keys.json")
                changes = changed_components(known.get(key, {}), self.prepared.components[new])
                self.progress.note(
                    f"{model} on {benchmark}: earlier samples are not reused; changed: {'; '.join(changes)}"
                )

    def _engines(self) -> Any:
        return read_if_sound(self.run.path / "environment.json").get("engines", {})

    def note_engine(self, model: str, engine: Engine) -> None:
        """Records what generates a model's samples. Any thread may call it."""
        with self._environment:
            data = read_if_sound(self.run.path / "environment.json")
            data.setdefault("engines", {})[model] = dict(engine.info)
            self.run.write_json("environment.json", data)

    def work(self, lanes: Sequence[Lane], old_plan: Plan | None) -> None:
        """Generates and grades what is missing, each lane one model after the other."""
        ready = deque(subject for subject in self.prepared.subjects if subject.fetched)
        on_hub = [subject.model for subject in self.prepared.subjects if not subject.fetched]
        inbox = events()
        with closing(Prefetch()) as prefetch, closing(Grading(self._record_verdicts)) as grading:
            prefetch.start([(model.name, model.path) for model in on_hub], lambda *result: inbox.put(result))
            free, awaited = deque(lanes), len(on_hub)
            try:
                while True:
                    while free and ready:
                        if self._begin(subject := ready.popleft(), grading):
                            more = bool(awaited) or any(self.lacks(other) for other in ready)
                            self._start(free.popleft(), subject, inbox, more=more)
                    if len(free) == len(lanes) and not awaited:
                        break
                    model, event = inbox.get()
                    if isinstance(event, list):
                        self._take(model, event, grading)
                    elif isinstance(event, Fetched):
                        awaited -= 1
                        ready.extend(self._fetched(model, event, old_plan))
                    else:
                        free.append(event.lane)
                        self._end(model, event.error)
                waited = time.monotonic()
                grading.drain()
                self.seconds_waiting += time.monotonic() - waited
            except (KeyboardInterrupt, BaEvalError):
                self._stop(lanes, inbox, grading)
                raise

    def _begin(self, subject: Subject, grading: Grading) -> bool:
        """Makes a model's records ready to go on; returns whether samples are missing."""
        model = subject.model.name
        for name in self.tasks:
            self._drop_unusable(model, name)
        self.progress.begin(
            model,
            {name: (task.wanted - len(self.missing[model, name]), task.wanted) for name, task in self.tasks.items()},
        )
        self._grade_leftovers(model, grading)
        if self.lacks(subject):
            return True
        self.progress.end(model)
        return False

    def _start(self, lane: Lane, subject: Subject, inbox: Events, *, more: bool) -> None:
        model = subject.model.name
        prompts = self.prompts.get(subject.prompt_identity, {})
        lengths = (
            len(prompts[name][problem_id]) + task.sampling.max_tokens
            for name, task in self.tasks.items()
            for problem_id, _ in self.missing[model, name]
            if subject.checkpoint is not None
        )
        requests = self._requests(subject, prompts)
        lane.start(subject, requests, max(lengths, default=0), more=more, on_engine=self.note_engine, events=inbox)

    def _take(self, model: str, completions: Sequence[Completion], grading: Grading) -> None:
        """Records finished samples and hands them to their graders."""
        samples: defaultdict[str, list[Sample]] = defaultdict(list)
        for completion in completions:
            name, problem_id, index = _unpack(completion.id)
            samples[name].append(self._sample(model, name, problem_id, index, completion))
        for name, finished in samples.items():  # all are recorded before anything else
            self.run.append(model, name, finished)
        for name, finished in samples.items():
            grader, problems = self.prepared.graders[name], self.tasks[name].problems
            for sample in finished:
                self.progress.sample(model, name, sample)
                self.tokens += sample.completion_tokens
                if sample.finish_reason != "error":
                    grading.submit(model, name, problems[sample.problem_id], sample, grader)
        self.samples += len(completions)

    def _end(self, model: str, error: BaseException | None) -> None:
        """A model is done, or failed, which does not stop the others."""
        self.progress.end(model)
        if isinstance(error, BaEvalError) and not isinstance(error, StoreError):
            self.failures.append(error)
            self.progress.note(f"ba-eval: {error}")
        elif error is not None:
            raise error

    def _fetched(self, model: str, event: Fetched, old_plan: Plan | None) -> list[Subject]:
        """A model has come from the hub: now its weights, and so the keys of its samples, are known."""
        try:
            if event.error is not None:
                raise event.error
            self.prepared = fetched(self.prepared, model)
            subject = next(subject for subject in self.prepared.subjects if subject.model.name == model)
            self.find_missing(subject)
            self.render(subject)
        except BaEvalError as error:
            self.failures.append(error)
            self.progress.note(f"ba-eval: {error}")
            return []
        self._tell_changes(old_plan, model)
        self._write_keys()
        return [subject]

    def _stop(self, lanes: Sequence[Lane], inbox: Events, grading: Grading) -> None:
        """Ends all engines, and keeps what they have finished."""
        with ThreadPoolExecutor(len(lanes)) as pool:  # each may take seconds
            list(pool.map(Lane.close, lanes))
        deadline = time.monotonic() + DRAIN_SECONDS
        with suppress(StoreError):  # a full disk may be what ended the run
            while any(not lane.join(0.0) for lane in lanes) or not inbox.empty():
                if time.monotonic() > deadline:
                    break
                with suppress(queue.Empty):
                    model, event = inbox.get(timeout=0.05)
                    if isinstance(event, list):
                        self._take(model, [made for made in event if made.error is None], grading)
            grading.drain(max(0.0, deadline - time.monotonic()))

    def _requests(self, subject: Subject, prompts: Mapping[str, Mapping[str, list[int]]]) -> Iterator[Request]:
        """All missing samples of a model: long benchmarks first, so that the engine is full to the end."""
        for name, task in sorted(self.tasks.items(), key=lambda item: -item[1].sampling.max_tokens):
            for problem_id, index in self.missing[subject.model.name, name]:
                request = Request(
                    id=_pack(name, problem_id, index),
                    seed=sample_seed(self.prepared.config.seed, name, problem_id, index),
                    sampling=task.sampling,
                )
                if subject.checkpoint is not None:
                    yield msgspec.structs.replace(request, prompt_token_ids=prompts[name][problem_id])
                else:
                    messages = self._messages(task, task.problems[problem_id])
                    yield msgspec.structs.replace(request, messages=messages)

    def _messages(self, task: Task, problem: Problem) -> list[dict[str, str]]:
        system = self.prepared.config.system
        user = {"role": "user", "content": task.benchmark.user_message(problem)}
        return [{"role": "system", "content": system}, user] if system else [user]

    def _sample(self, model: str, name: str, problem_id: str, index: int, completion: Completion) -> Sample:
        text = completion.text
        subject = self.prepared.subject(model)
        if subject.renderer is not None and subject.renderer.opens_thinking and completion.error is None:
            text = "<think>" + text  # the prompt opened it; a record must say so by itself
        return Sample(
            key=self.prepared.plan.keys[model][name],
            problem_id=problem_id,
            index=index,
            seed=sample_seed(self.prepared.config.seed, name, problem_id, index),
            finish_reason=completion.finish_reason,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            seconds=round(completion.seconds, 4),
            text=text.encode("utf-8", "replace").decode("utf-8"),
            thinking_tokens=completion.thinking_tokens,
            error=completion.error,
        )

    def _record_verdicts(self, finished: list[Graded]) -> None:
        records: defaultdict[tuple[str, str], list[VerdictRecord]] = defaultdict(list)
        for graded in finished:
            records[graded.model, graded.benchmark].append(graded.record)
        for (model, name), verdicts in records.items():
            self.run.append(model, name, verdicts)
            for verdict in verdicts:
                self.progress.verdict(model, name, verdict.outcome)

    def _drop_unusable(self, model: str, benchmark: str) -> None:
        """Removes failed samples, failed verdicts and verdicts of another grader version, to make them again."""
        self.run.drop(model, benchmark, Sample, lambda sample: sample.finish_reason == "error")
        key = self.prepared.plan.keys[model][benchmark]
        version = self.prepared.graders[benchmark].version
        old = self.run.drop(
            model,
            benchmark,
            VerdictRecord,
            lambda verdict: verdict.outcome == "error" or (verdict.key == key and verdict.grader != version),
        )
        if old:
            self.progress.note(f"{model} on {benchmark}: {old} verdicts are made again (failed, or of an older grader)")

    def _grade_leftovers(self, model: str, grading: Grading) -> None:
        """Grades samples on disk that have no verdict: a run was cut between the two."""
        for name, task in self.tasks.items():
            key = self.prepared.plan.keys[model][name]
            graded = {(v.problem_id, v.index) for v in self.run.verdict_heads(model, name) if v.key == key}
            left = {
                (sample.problem_id, sample.index)
                for sample in self.run.sample_heads(model, name)
                if sample.key == key and sample.problem_id in task.problems and sample.index < task.n
            } - graded
            for sample in self.run.samples(model, name) if left else ():
                if sample.key == key and (sample.problem_id, sample.index) in left:
                    problem = task.problems[sample.problem_id]
                    grading.submit(model, name, problem, sample, self.prepared.graders[name])


def evaluate(config: RunConfig, progress: RunProgress) -> list[BaEvalError]:
    """Runs an evaluation to its end, or goes on with one that was cut.

    Returns the failures of single models, which do not stop the others (an engine that died for good, a model that
    vLLM refuses); `progress` has told of them. Raises InputError before anything is written, StoreError where the run
    folder cannot be written.
    """
    started = time.monotonic()
    refuse_other(Path(config.out))  # before anything that takes its time
    if progress.console.is_terminal:  # elsewhere a refusal is one line and no more
        progress.note("reading models and benchmarks")
    with ExitStack() as stack:
        devices = [{}] * config.parallel_models if config.server else share(config.parallel_models, config.engine_args)
        lanes = [stack.enter_context(closing(Lane(config, variables, progress.note))) for variables in devices]
        if not config.server and not (Path(config.out) / "plan.json").exists():  # a run that goes on may need no engine
            for lane in lanes:
                lane.preload()
        prepared = stack.enter_context(closing(prepare(config)))
        run = stack.enter_context(RunFolder(Path(config.out)))
        stack.enter_context(progress)
        old_plan = read_plan(run.path) if (run.path / "plan.json").exists() else None
        evaluation = Evaluation(prepared, run, progress)
        for subject in prepared.subjects:
            evaluation.find_missing(subject)
            evaluation.render(subject)
        evaluation.ask_servers()
        evaluation.write_plan(old_plan)
        evaluation.work(lanes, old_plan)
        if evaluation.samples:
            progress.note(throughput(evaluation, lanes, time.monotonic() - started))
        return evaluation.failures


def throughput(evaluation: Evaluation, lanes: Sequence[Lane], total: float) -> str:
    """The line at the end of a run that says where the time went. With several lanes, loading and generating are sums
    over them; busy is the share of the run in which the engines generated."""
    loading, generating = (
        sum(getattr(lane, f"seconds_{what}") for lane in lanes) for what in ("loading", "generating")
    )
    gpu_hours = sum(lane.gpu_seconds for lane in lanes) / 3600
    at_once = max(generating / len(lanes), 1e-9)
    return (
        f"{evaluation.samples} samples, {evaluation.tokens} tokens in {total:.0f} s (loading {loading:.0f} s, "
        f"generating {generating:.0f} s, waiting for grading {evaluation.seconds_waiting:.0f} s); "
        f"{evaluation.tokens / at_once:.0f} tokens/s, {evaluation.samples / at_once:.2f} samples/s; "
        f"engines busy {generating / len(lanes) / max(total, 1e-9):.0%}"
        + (f"; {gpu_hours:.2f} GPU hours" if gpu_hours else "")
    )


def _pack(benchmark: str, problem_id: str, index: int) -> str:
    return msgspec.json.encode((benchmark, problem_id, index)).decode()


def _unpack(request_id: str) -> tuple[str, str, int]:
    return msgspec.json.decode(request_id, type=tuple[str, str, int])
