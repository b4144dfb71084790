"""Rewards: the evaluation's own graders, so that what is trained is what is measured, and optional shaping.

TRL calls each function with parallel lists, one entry per response, and takes None as "cannot be scored".
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ba_eval.benchmark.problem import Problem
from ba_eval.errors import MachineError
from ba_eval.extract.math import extract_answer
from ba_eval.extract.thinking import split_thinking
from ba_eval.grade.verdict import Grader
from ba_eval.train.config import TrainConfig

Reward = Callable[..., list[float | None]]


def reward_functions(
    config: TrainConfig, problems: Mapping[str, Problem], grader: Grader, ends: Collection[int]
) -> tuple[list[Reward], list[float]]:
    """Returns the reward functions of a run and their weights. The first one, `accuracy`, is the verdict: 1 or 0.

    `problems` is by id, as the data set's column `problem_id` names them; `ends` are the tokens that end a response.
    `undecided` is worth 0, and its share is logged. A response whose grading failed has no reward at all, of any
    function; raises MachineError where that is so for a whole batch.
    """
    failed: list[bool] = []  # of the batch in hand: accuracy is called first

    def accuracy(
        completions: Sequence[str],
        completion_ids: Sequence[Sequence[int]],
        problem_id: Sequence[str],
        log_metric: Callable[[str, float], None],
        **_: Any,
    ) -> list[float | None]:
        waiting = [
            grader.submit(problems[id], text, _finish_reason(ids, ends, config.max_response))
            for text, ids, id in zip(completions, completion_ids, problem_id, strict=True)
        ]
        verdicts = [future.result() for future in waiting]
        failed[:] = [verdict.outcome == "error" for verdict in verdicts]
        if all(failed):
            first = verdicts[0]
            detail = f" ({first.details['message']})" if "message" in first.details else ""
            raise MachineError(f"the grader failed on all {len(failed)} responses of a batch: {first.reason}{detail}")
        log_metric("grader/undecided", sum(v.outcome == "undecided" for v in verdicts) / len(verdicts))
        log_metric("grader/failed", sum(failed) / len(failed))
        return [None if bad else float(v.outcome == "correct") for v, bad in zip(verdicts, failed, strict=True)]

    def format(completions: Sequence[str], **_: Any) -> list[float | None]:
        return [None if bad else float(_is_boxed(text)) for text, bad in zip(completions, failed, strict=True)]

    def overlong(completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float | None]:
        assert config.reward.overlong is not None
        buffer = config.reward.overlong.buffer
        return [
            None if bad else overlong_penalty(len(ids), config.max_response, buffer)
            for ids, bad in zip(completion_ids, failed, strict=True)
        ]

    functions: list[Reward] = [accuracy]
    weights = [1.0]
    if config.reward.format:
        functions.append(format)
        weights.append(config.reward.format)
    if config.reward.overlong:
        functions.append(overlong)
        weights.append(config.reward.overlong.weight)
    return functions, weights


def overlong_penalty(length: int, longest: int, buffer: int) -> float:
    """DAPO's soft punishment (arXiv 2503.14476, eq. 13): 0 up to longest - buffer, then linear to -1 at longest."""
    return -min(1.0, max(0.0, (length - (longest - buffer)) / buffer))


def make_grader(config: TrainConfig) -> Grader:
    """Makes the grader of the run's kind of problem. InputError where code has no sandbox to run in."""
    import os

    from ba_eval.grade.math import MathGrader, MathOptions
    from ba_eval.yaml_file import convert

    # Each process on a machine has its own grader: together they take the cores once.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = config.workers or max(1, math.ceil(cores / int(os.environ.get("LOCAL_WORLD_SIZE", "1"))))
    if config.data.kind == "math":
        return MathGrader(convert(config.reward.grader, MathOptions, where="reward.grader"), workers)
    from ba_eval.grade.code import CodeGrader

    return CodeGrader(workers=workers, level=None, unsafe=False)


def _finish_reason(ids: Sequence[int], ends: Collection[int], longest: int) -> str:
    return "length" if len(ids) >= longest and ids[-1] not in ends else "stop"


def _is_boxed(text: str) -> bool:
    _, answer, closed = split_thinking(text)
    found = extract_answer(answer, ("boxed",)) if closed else None
    return found is not None and found.answer is not None and found.closed
