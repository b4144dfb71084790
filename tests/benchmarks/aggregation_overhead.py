"""What the rule and its records cost of a training step, against TRL alone in the same run.

    python -m tests.benchmarks.aggregation_overhead [STEPS]

The model is tiny, so its step is thousands of times shorter than a real one: the share printed is an upper bound.
"""

import contextlib
import io
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import AutoTokenizer, PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from ba_eval.train.aggregation import diagnostics, divisors, group_rows
from ba_eval.train.record import Recorder
from ba_eval.train.trainer import AggregationTrainer
from tests.models import tiny_qwen3

PROMPTS, GROUP, TOKENS = 8, 8, 32


def reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [float(sum(ids) % 3 == 0) for ids in completion_ids]


reward.__name__ = "accuracy"


class Timed(GRPOTrainer):  # type: ignore[misc]
    """Stock TRL, with the time that its own sampling takes."""

    stock_seconds = 0.0

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        start = time.perf_counter()
        output = super()._generate_and_score_completions(inputs)
        self.stock_seconds += time.perf_counter() - start
        return output


class Compared(AggregationTrainer, Timed):
    """The rule on top of it, with the time of both."""

    seconds = 0.0

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        start = time.perf_counter()
        output = super()._generate_and_score_completions(inputs)
        self.seconds += time.perf_counter() - start
        return output


def in_a_run(steps: int) -> tuple[float, float]:
    """Seconds a step, and seconds of it that the rule, its diagnostics and its records take."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tiny_qwen3(folder / "model")
        arguments = GRPOConfig(
            output_dir=str(folder / "out"),
            per_device_train_batch_size=32,
            gradient_accumulation_steps=PROMPTS * GROUP // 32,
            num_generations=GROUP,
            max_completion_length=TOKENS,
            max_steps=steps,
            loss_type="dapo",
            bf16=False,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            logging_steps=1,
            disable_tqdm=True,
        )
        (folder / "out").mkdir()
        recorder = Recorder(folder / "out", {}, "group", 1.0, lambda _: None)
        logging = 0.0
        plain = recorder.on_log

        def timed_log(*positional: Any, **named: Any) -> None:
            nonlocal logging
            start = time.perf_counter()
            plain(*positional, **named)
            logging += time.perf_counter() - start

        recorder.on_log = timed_log  # type: ignore[method-assign]
        trainer = Compared(
            model=str(folder / "model"),
            reward_funcs=reward,
            args=arguments,
            train_dataset=Dataset.from_dict({"prompt": [f"Item {i}" for i in range(64)]}),
            processing_class=AutoTokenizer.from_pretrained(folder / "model"),
            callbacks=[recorder],
            rule="balanced",
            on_batch=recorder.batch,
        )
        trainer.remove_callback(PrinterCallback)
        with contextlib.redirect_stdout(io.StringIO()):
            start = time.perf_counter()
            trainer.train()
            whole = time.perf_counter() - start
        return whole / steps, (trainer.seconds - trainer.stock_seconds + logging) / steps


def alone(prompts: int, group: int) -> float:
    """Seconds of the pure functions on one batch of a real size."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(100, 3000, prompts * group)
    labels = np.arange(prompts * group) // group
    rewards = rng.integers(0, 2, prompts * group).astype(float)
    mean = np.repeat(rewards.reshape(prompts, group).mean(1), group)
    advantages = (rewards - mean) / 0.5
    times = []
    for _ in range(20):
        start = time.perf_counter()
        divisors("balanced", lengths, advantages, labels)
        diagnostics(lengths, advantages, labels, correct=rewards == 1, truncated=lengths > 2900)
        group_rows(lengths, advantages, labels, rewards, lengths > 2900)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    torch.set_num_threads(1)
    step, rule = in_a_run(steps)
    found = {
        "responses": PROMPTS * GROUP,
        "seconds_a_step": round(step, 3),
        "seconds_of_the_rule": round(rule, 5),
        "share": f"{rule / step:.2%}",
        "pure_functions_64x8_ms": round(1000 * alone(64, 8), 2),
        "pure_functions_512x16_ms": round(1000 * alone(512, 16), 2),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
