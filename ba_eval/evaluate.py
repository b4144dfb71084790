"""The flow of an evaluation: generate what is missing, record it at once, grade while the engine works."""

import signal
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from ba_eval.benchmark.problem import Problem
from ba_eval.config import RunConfig
from ba_eval.engine import restart
from ba_eval.engine.child import Child
from ba_eval.engine.request import Completion, Engine, Request
from ba_eval.engine.vllm_args import context_length
from ba_eval.environment import environment
from ba_eval.errors import BaEvalError
from ba_eval.grading import Graded, Grading
from ba_eval.plan import Prepared, Subject, Task, changed_components, prepare
from ba_eval.progress import RunProgress
from ba_eval.prompt import check_fits
from ba_eval.records import Plan, Sample, VerdictRecord
from ba_eval.seeds import sample_seed
from ba_eval.store import RunFolder, StoreError, read_plan

# On Ctrl-C, verdicts that are under way get this long; the rest are graded when the run goes on.
DRAIN_SECONDS = 5.0


class Spare:
    """A vLLM child that imports (many seconds) before its model is known or needed; at most one."""

    def __init__(self) -> None:
        self._child: Child | None = None

    def start(self, config: RunConfig) -> None:
        """Raises InputError where vLLM is not installed."""
        from ba_eval.engine.vllm import preload

        if self._child is None:
            self._child = preload(config.engine_args, trust_remote_code=config.trust_remote_code)

    def take(self) -> Child | None:
        """Hands the child over, if there is one."""
        child, self._child = self._child, None
        return child

    def close(self) -> None:
        """Ends a child that was not taken."""
        if self._child is not None:
            self._child.close()


class Evaluation:
    """One call of `ba-eval eval` on a prepared run and an open run folder."""

    def __init__(self, prepared: Prepared, run: RunFolder, progress: RunProgress, spare: Spare) -> None:
        self.prepared, self.run, self.progress, self.spare = prepared, run, progress, spare
        self.missing: dict[tuple[str, str], list[tuple[str, int]]] = {}
        self.failures: list[BaEvalError] = []
        self.tokens = self.samples = 0
        self.seconds = {"loading": 0.0, "generating": 0.0, "waiting for grading": 0.0}

    def find_missing(self) -> None:
        """Compares what is wanted with what the folder holds, and checks that every missing prompt fits."""
        for subject in self.prepared.subjects:
            model = subject.model.name
            for task in self.prepared.tasks:
                name = task.benchmark.name
                key = self.prepared.plan.keys[model][name]
                present = {
                    (sample.problem_id, sample.index)
                    for sample in self.run.samples(model, name)
                    if sample.key == key and sample.finish_reason != "error"
                }
                wanted = ((problem.id, i) for problem in task.benchmark.problems for i in range(task.n))
                self.missing[model, name] = [sample for sample in wanted if sample not in present]

    def render(self, subject: Subject, task: Task, prompts: dict[str, list[int]]) -> None:
        """Adds the token ids of the problems that still need samples to `prompts` (problem id -> token ids).

        Raises InputError where a prompt, or a prompt with max_tokens, does not fit the model's context.
        """
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
        from ba_eval.engine.server import ServerEngine

        for subject in self.prepared.subjects:
            model = subject.model
            if subject.checkpoint is None and any(
                missing for (name, _), missing in self.missing.items() if name == model.name
            ):
                ServerEngine(self.prepared.config.server, model=model.path).close()

    def write_plan(self, old_plan: Plan | None) -> None:
        """Writes what is wanted, and says which samples of an earlier run are not reused, and why."""
        known = _read_json(self.run.path / "keys.json")
        if old_plan is not None:
            for model, keys in old_plan.keys.items():
                for benchmark, key in keys.items():
                    new = self.prepared.plan.keys.get(model, {}).get(benchmark)
                    if new and new != key:
                        changes = changed_components(known.get(key, {}), self.prepared.components[new])
                        self.progress.note(
                            f"{model} on {benchmark}: earlier samples are not reused; changed: {'; '.join(changes)}"
                        )
        asked = msgspec.structs.replace(
            self.prepared.config,
            benchmarks=tuple(f"{task.spec}:{task.n}" for task in self.prepared.tasks),
        )
        self.run.write_json("keys.json", known | self.prepared.components)
        self.run.write_yaml("run.yaml", msgspec.to_builtins(asked))
        self.run.write_json("plan.json", self.prepared.plan)
        self.run.write_json("environment.json", environment() | {"engines": self._engines()})

    def _engines(self) -> Any:
        return _read_json(self.run.path / "environment.json").get("engines", {})

    def evaluate_model(self, subject: Subject, prompts: dict[str, dict[str, list[int]]]) -> None:
        """Generates and grades what one model misses. Raises MachineError where its engine fails for good."""
        model = subject.model.name
        tasks = {task.benchmark.name: task for task in self.prepared.tasks}
        for name in tasks:
            self._drop_unusable(model, name)
        self.progress.begin(
            model, {name: (task.wanted - len(self.missing[model, name]), task.wanted) for name, task in tasks.items()}
        )
        with closing(Grading(self._record_verdict)) as grading:
            self._grade_leftovers(model, grading)
            missing = sum(len(self.missing[model, name]) for name in tasks)
            try:
                if missing:
                    self._generate(subject, tasks, prompts, grading)
                waited = time.monotonic()
                grading.drain()
                self.seconds["waiting for grading"] += time.monotonic() - waited
            except (KeyboardInterrupt, BaEvalError):
                grading.drain(DRAIN_SECONDS)
                raise

    def _generate(
        self, subject: Subject, tasks: dict[str, Task], prompts: dict[str, dict[str, list[int]]], grading: Grading
    ) -> None:
        model = subject.model.name
        started, loading = time.monotonic(), self.seconds["loading"]
        try:
            with closing(self._completions(subject, tasks, prompts)) as completions:
                for completion in completions:
                    name, problem_id, index = _unpack(completion.id)
                    sample = self._sample(subject, name, problem_id, index, completion)
                    self.run.append(model, name, sample)
                    self.progress.sample(name, completion)
                    self.samples += 1
                    self.tokens += completion.completion_tokens
                    if sample.finish_reason != "error":
                        problem = tasks[name].problems[problem_id]
                        grading.submit(model, name, problem, sample, self.prepared.graders[name])
        finally:
            self.seconds["generating"] += time.monotonic() - started - (self.seconds["loading"] - loading)

    def _completions(
        self, subject: Subject, tasks: dict[str, Task], prompts: dict[str, dict[str, list[int]]]
    ) -> Generator[Completion, None, None]:
        """The missing samples of a model as they finish, from its server or from vLLM, restarted where it dies."""
        config = self.prepared.config
        requests = self._requests(subject, tasks, prompts)
        if subject.checkpoint is None:
            from ba_eval.engine.server import ServerEngine

            server = ServerEngine(config.server, model=subject.model.path, template_args=dict(config.template_args))
            with closing(server):
                self._note_engine(subject.model.name, server)
                yield from server.generate(requests)
            return
        needed = max(
            len(prompts[name][problem_id]) + task.sampling.max_tokens
            for name, task in tasks.items()
            for problem_id, _ in self.missing[subject.model.name, name]
        )

        def start(max_num_seqs: int | None) -> Engine:
            return self._start_vllm(subject, needed, max_num_seqs)

        yield from restart.generate(start, requests, self.progress.note)

    def _start_vllm(self, subject: Subject, max_model_len: int, max_num_seqs: int | None) -> Engine:
        from ba_eval.engine.vllm import VllmEngine

        assert subject.checkpoint is not None
        started = time.monotonic()
        name = subject.model.name
        self.progress.note(f"{name}: loading {subject.checkpoint.path} into vLLM")
        smaller = {} if max_num_seqs is None else {"max_num_seqs": max_num_seqs}
        engine = VllmEngine(
            subject.checkpoint,
            {**self.prepared.config.engine_args, **smaller},
            max_model_len=max_model_len,
            log_path=self.run.path / "logs" / f"{quote(name, safe='@+=, ')}.log",
            child=self.spare.take(),
        )
        if any(missing for (model, _), missing in self.missing.items() if model in self._models_after(name)):
            self.spare.start(self.prepared.config)
        self.seconds["loading"] += time.monotonic() - started
        self._note_engine(name, engine)
        return engine

    def _models_after(self, name: str) -> list[str]:
        names = [subject.model.name for subject in self.prepared.subjects]
        return names[names.index(name) + 1 :]

    def _note_engine(self, model: str, engine: Engine) -> None:
        data = _read_json(self.run.path / "environment.json")
        data.setdefault("engines", {})[model] = dict(engine.info)
        self.run.write_json("environment.json", data)

    def _requests(
        self, subject: Subject, tasks: dict[str, Task], prompts: dict[str, dict[str, list[int]]]
    ) -> Iterator[Request]:
        """All missing samples of a model: long benchmarks first, so that the engine is full to the end."""
        for name, task in sorted(tasks.items(), key=lambda item: -item[1].sampling.max_tokens):
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

    def _sample(self, subject: Subject, name: str, problem_id: str, index: int, completion: Completion) -> Sample:
        text = completion.text
        if subject.renderer is not None and subject.renderer.opens_thinking and completion.error is None:
            text = "<think>" + text  # the prompt opened it; a record must say so by itself
        return Sample(
            key=self.prepared.plan.keys[subject.model.name][name],
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

    def _record_verdict(self, graded: Graded) -> None:
        self.run.append(graded.model, graded.benchmark, graded.record)
        self.progress.verdict(graded.benchmark, graded.record.outcome)

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
        for task in self.prepared.tasks:
            name = task.benchmark.name
            key = self.prepared.plan.keys[model][name]
            graded = {(v.problem_id, v.index) for v in self.run.verdicts(model, name) if v.key == key}
            for sample in self.run.samples(model, name):
                wanted = sample.key == key and sample.problem_id in task.problems and sample.index < task.n
                if wanted and (sample.problem_id, sample.index) not in graded:
                    problem = task.problems[sample.problem_id]
                    grading.submit(model, name, problem, sample, self.prepared.graders[name])


def evaluate(config: RunConfig, progress: RunProgress) -> list[BaEvalError]:
    """Runs an evaluation to its end, or goes on with one that was cut.

    Returns the failures of single models, which do not stop the others (an engine that died for good, a model that
    vLLM refuses); `progress` has told of them. Raises InputError before anything is written, StoreError where the run
    folder cannot be written.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(_sigterm_interrupts())
        spare = stack.enter_context(closing(Spare()))
        if not config.server and not (Path(config.out) / "plan.json").exists():  # a run that goes on may need no engine
            spare.start(config)
        prepared = stack.enter_context(closing(prepare(config)))
        run = stack.enter_context(RunFolder(Path(config.out)))
        stack.enter_context(progress)
        old_plan = read_plan(run.path) if (run.path / "plan.json").exists() else None
        evaluation = Evaluation(prepared, run, progress, spare)
        evaluation.find_missing()
        prompts = _render_all(evaluation)
        evaluation.ask_servers()
        evaluation.write_plan(old_plan)
        for subject in prepared.subjects:
            try:
                evaluation.evaluate_model(subject, prompts.get(subject.prompt_identity, {}))
            except StoreError:
                raise
            except BaEvalError as error:  # a checkpoint that fails does not stop the others
                evaluation.failures.append(error)
                progress.note(f"ba-eval: {error}")
        if evaluation.samples:
            progress.note(throughput(evaluation, time.monotonic() - started))
        return evaluation.failures


def _render_all(evaluation: Evaluation) -> dict[str, dict[str, dict[str, list[int]]]]:
    """prompt identity -> benchmark -> problem id -> token ids, for all that is missing; checkpoints share them."""
    prompts: dict[str, dict[str, dict[str, list[int]]]] = {}
    for subject in evaluation.prepared.subjects:
        if subject.renderer is not None:
            shared = prompts.setdefault(subject.prompt_identity, {})
            for task in evaluation.prepared.tasks:
                evaluation.render(subject, task, shared.setdefault(task.benchmark.name, {}))
    return prompts


def throughput(evaluation: Evaluation, total: float) -> str:
    """The line at the end of a run that says where the time went."""
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in evaluation.seconds.items())
    generating = max(evaluation.seconds["generating"], 1e-9)
    return (
        f"{evaluation.samples} samples, {evaluation.tokens} tokens in {total:.0f} s ({spent}); "
        f"{evaluation.tokens / generating:.0f} tokens/s, {evaluation.samples / generating:.2f} samples/s"
    )


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM (a job scheduler's warning) ends the run as Ctrl-C does."""

    def interrupt(signum: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        return data
    except (OSError, msgspec.DecodeError):
        return {}


def _pack(benchmark: str, problem_id: str, index: int) -> str:
    return msgspec.json.encode((benchmark, problem_id, index)).decode()


def _unpack(request_id: str) -> tuple[str, str, int]:
    return msgspec.json.decode(request_id, type=tuple[str, str, int])
