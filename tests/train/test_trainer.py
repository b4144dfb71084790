"""Gradients of one TRL step against plain loops over the formulas, in float64."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("trl", reason="training needs the train extra")

from trl import GRPOTrainer

from ba_eval.errors import InputError, MachineError
from ba_eval.train.aggregation import RULES
from ba_eval.train.trainer import AggregationTrainer, SampledBatch, check_arguments
from tests.train import one_step

TOLERANCE = 1e-6
"""TRL takes log-probabilities in float32 whatever the model is: 1.2e-7 of the gradient. The rest is float64."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the model is tiny: threads only wait for each other
    yield
    torch.set_num_threads(before)


def step(micro_batch: int, rule: str, scope: str, clip: bool = False) -> tuple[one_step.Gradients, SampledBatch]:
    seen: list[SampledBatch] = []

    def keep(batch: SampledBatch) -> dict[str, float]:
        seen.append(batch)
        return {"aggregation/probe": 1.0}

    trainer = one_step.clipped(AggregationTrainer) if clip else AggregationTrainer
    gradients, _ = one_step.trl_step(trainer, micro_batch, rule=rule, scope=scope, on_batch=keep)
    assert len(seen) == 1
    return gradients, seen[0]


@pytest.mark.parametrize("micro_batch", [1, 2, 4, 12])
@pytest.mark.parametrize("rule", RULES)
def test_gradient_is_that_of_the_formula(rule: str, micro_batch: int) -> None:
    found, batch = step(micro_batch, rule, "group", clip=True)
    expected = one_step.plain_step(rule, "group", batch.advantages.tolist(), clip=True)
    assert one_step.relative_error(found, expected) < TOLERANCE


@pytest.mark.parametrize("rule", RULES)
def test_gradient_on_policy(rule: str) -> None:
    found, batch = step(2, rule, "group")
    expected = one_step.plain_step(rule, "group", batch.advantages.tolist(), clip=False)
    assert one_step.relative_error(found, expected) < TOLERANCE


@pytest.mark.parametrize("rule", RULES)
def test_gradient_at_batch_scope(rule: str) -> None:
    found, batch = step(2, rule, "batch", clip=True)
    expected = one_step.plain_step(rule, "batch", batch.advantages.tolist(), clip=True)
    assert one_step.relative_error(found, expected) < TOLERANCE


def test_thirty_percent_of_the_tokens_are_clipped() -> None:
    _, batch = step(12, "token", "group")
    outside = [
        (x > np.log1p(one_step.EPSILON) and a > 0) or (x < np.log1p(-one_step.EPSILON) and a < 0)
        for ratios, a in zip(one_step.log_ratios(), batch.advantages, strict=True)
        if abs(a) > 0.01
        for x in ratios
    ]
    assert 0.2 < np.mean(outside) < 0.4


def test_the_batch_is_seen_whole() -> None:
    """Lengths, truncation and rewards per response, and A = (r - mean) / (std + 1e-4) per group."""
    _, batch = step(1, "balanced", "group")
    assert batch.step == 1 and batch.lengths.tolist() == one_step.LENGTHS
    assert batch.truncated.tolist() == [float(n % 2 == 0 or n == 1) for n in one_step.LENGTHS]
    rewards = np.array(one_step.REWARDS, dtype=float).reshape(-1, one_step.GROUP)
    expected = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)
    assert batch.advantages == pytest.approx(expected.ravel(), abs=1e-6)
    assert batch.groups.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert batch.rewards["accuracy"].tolist() == one_step.REWARDS


@pytest.mark.parametrize("micro_batch", [2, 12])
def test_token_at_batch_scope_is_stock_dapo_to_the_bit(micro_batch: int) -> None:
    found, _ = step(micro_batch, "token", "batch")
    stock, _ = one_step.trl_step(GRPOTrainer, micro_batch, loss_type="dapo")
    assert all(np.array_equal(found[name], stock[name]) for name in stock)


@pytest.mark.parametrize("micro_batch", [1, 4])
def test_sequence_is_stock_grpo(micro_batch: int) -> None:
    found, _ = step(micro_batch, "sequence", "group")
    stock, _ = one_step.trl_step(GRPOTrainer, micro_batch, loss_type="grpo")
    assert one_step.relative_error(found, stock) < 1e-8


@pytest.mark.parametrize("micro_batch", [1, 2, 4])
def test_splitting_the_signs_inside_a_micro_batch_would_be_noticed(micro_batch: int) -> None:
    _, batch = step(12, "balanced", "group")
    expected = one_step.plain_step("balanced", "group", batch.advantages.tolist(), clip=False)
    wrong, _ = one_step.trl_step(one_step.SplitInsideMicroBatch, micro_batch)
    assert one_step.relative_error(wrong, expected) > 0.05


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_group_across_two_processes(tmp_path: Path) -> None:
    """Twelve responses in groups of four, six to a process: the second group is cut in two."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"]
    done = subprocess.run(
        [*command, "tests.train.one_step", str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for rule in RULES:
        for micro_batch in (2, 3, 6):
            with np.load(tmp_path / f"{rule}-{micro_batch}.npz") as saved:
                found: dict[str, Any] = dict(saved)
            assert found.pop("lengths").tolist() == one_step.LENGTHS
            expected = one_step.plain_step(rule, "group", found.pop("advantages").tolist(), clip=False)
            assert one_step.relative_error(found, expected) < TOLERANCE


def arguments(**changed: Any) -> Any:
    from types import SimpleNamespace

    stock = dict(
        loss_type="dapo",
        use_liger_kernel=False,
        top_entropy_quantile=1.0,
        use_vllm=True,
        vllm_importance_sampling_correction=True,
        vllm_importance_sampling_mode="token_truncate",
        num_iterations=1,
        steps_per_generation=4,
        gradient_accumulation_steps=4,
        mask_truncated_completions=False,
        beta=0.0,
        entropy_coef=0.0,
    )
    return SimpleNamespace(**(stock | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"loss_type": "grpo"},
        {"use_liger_kernel": True},
        {"top_entropy_quantile": 0.2},
        {"vllm_importance_sampling_mode": "sequence_mask"},
    ],
    ids=str,
)
def test_arguments_that_break_the_rule_are_refused(changed: dict[str, Any]) -> None:
    assert check_arguments(arguments()) == []
    with pytest.raises(InputError, match=next(iter(changed))):
        check_arguments(arguments(**changed))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"steps_per_generation": 8}, "2 optimizer steps"),
        ({"num_iterations": 3}, "3 optimizer steps"),
        ({"mask_truncated_completions": True}, "step size"),
        ({"beta": 0.1}, "KL"),
        ({"entropy_coef": 0.1}, "entropy"),
    ],
    ids=str,
)
def test_what_weakens_the_rule_is_said(changed: dict[str, Any], said: str) -> None:
    (warning,) = check_arguments(arguments(**changed))
    assert said in warning


def test_a_trainer_that_counts_other_tokens_is_stopped() -> None:
    class Other(GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            return {**output, "num_items_in_batch": output["num_items_in_batch"] + 1}

    broken = type("Broken", (AggregationTrainer, Other), {})
    with pytest.raises(MachineError, match="72 tokens where the batch has 71"):
        one_step.trl_step(broken, 12, rule="token")
