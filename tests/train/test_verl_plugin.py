"""The verl estimators against plain loops, through verl's own `compute_advantage` and policy loss, in float64."""

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs the train extra")
pytest.importorskip("verl", reason="verl is not installed (it pins its own torch and transformers)")

from omegaconf import OmegaConf  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla  # noqa: E402
from verl.trainer.ppo.ray_trainer import compute_advantage  # noqa: E402

from ba_eval.errors import InputError  # noqa: E402
from ba_eval.train import verl_plugin  # noqa: E402, F401  (registers the estimators)
from ba_eval.train.aggregation import RULES  # noqa: E402

LENGTHS = [3, 9, 1, 14, 6, 1, 11, 2, 5, 8, 7, 4]
REWARDS = [0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1]
UIDS = np.array([f"g{i // 4}" for i in range(12)], dtype=object)
ORDER = np.random.default_rng(5).permutation(12)
"""verl balances lengths over workers: the responses of a group do not stand side by side."""
LOW, HIGH = 0.2, 0.28


def batch(rewards: list[float] | None = None) -> Any:
    width = max(LENGTHS)
    lengths = torch.tensor(LENGTHS)[ORDER]
    mask = (torch.arange(width)[None, :] < lengths[:, None]).to(torch.float64)
    scores = torch.zeros(12, width, dtype=torch.float64)
    scores[torch.arange(12), lengths - 1] = torch.tensor(rewards or REWARDS, dtype=torch.float64)[ORDER]
    return DataProto.from_dict(
        tensors={"token_level_rewards": scores, "response_mask": mask}, non_tensors={"uid": UIDS[ORDER]}
    )


def advantages_of(name: str, data: Any, **config: Any) -> Any:
    return compute_advantage(data, adv_estimator=name, config=OmegaConf.create(config)).batch["advantages"]


def log_probs() -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    now = torch.tensor(rng.normal(-2, 1, (12, max(LENGTHS))))
    shift = rng.choice([-1, 1], now.shape) * np.where(rng.random(now.shape) < 0.6, 0.5, 0.05)
    return now.clone().requires_grad_(), now - torch.tensor(shift)


def verl_gradient(advantages: Any, mask: Any, micro_batch: int) -> Any:
    now, old = log_probs()
    actor = OmegaConf.create(
        {"clip_ratio": LOW, "clip_ratio_low": LOW, "clip_ratio_high": HIGH, "global_batch_info": {}}
    )
    for start in range(0, 12, micro_batch):
        rows = slice(start, start + micro_batch)
        actor.global_batch_info = {"global_batch_size": 12, "dp_size": 1}
        loss, _ = compute_policy_loss_vanilla(
            old[rows], now[rows], advantages[rows], mask[rows], "seq-mean-token-sum", actor
        )
        loss.backward()
    return now.grad


def plain_gradient(rule: str, scope: str) -> Any:
    now, old = log_probs()
    rewards, lengths, uids = np.array(REWARDS, dtype=float)[ORDER], np.array(LENGTHS)[ORDER], UIDS[ORDER]
    terms: dict[int, Any] = {}
    sign: dict[int, float] = {}
    for i in range(12):
        same = rewards[uids == uids[i]]
        advantage = (rewards[i] - same.mean()) / (same.std(ddof=1) + 1e-6)
        ratio = torch.exp(now[i, : lengths[i]] - old[i, : lengths[i]])
        bounded = ratio.clamp(1 - LOW, 1 + HIGH)
        terms[i] = -torch.minimum(ratio * advantage, bounded * advantage)
        sign[i] = math.copysign(1, advantage) if abs(advantage) > 1e-3 else 0
    groups = [list(range(12))] if scope == "batch" else [[i for i in range(12) if uids[i] == u] for u in set(uids)]
    losses = []
    for group in groups:
        if rule == "sequence":
            losses.append(sum(terms[i].mean() for i in group) / len(group))
        elif rule == "token":
            losses.append(sum(terms[i].sum() for i in group) / sum(lengths[i] for i in group))
        else:
            loss = 0.0 * now.sum()
            for s in (1, -1):
                chosen = [i for i in group if sign[i] == s]
                if chosen:
                    tokens = sum(lengths[i] for i in chosen)
                    loss = loss + len(chosen) / len(group) * sum(terms[i].sum() for i in chosen) / tokens
            losses.append(loss)
    (sum(losses) / len(losses)).backward()
    return now.grad


@pytest.mark.parametrize("scope", ["group", "batch"])
@pytest.mark.parametrize("micro_batch", [1, 2, 4, 12])
@pytest.mark.parametrize("rule", RULES)
def test_gradient_is_that_of_the_formula(rule: str, micro_batch: int, scope: str) -> None:
    data = batch()
    advantages = advantages_of(f"ba_{rule}{'_batch' if scope == 'batch' else ''}", data)
    found, expected = verl_gradient(advantages, data.batch["response_mask"], micro_batch), plain_gradient(rule, scope)
    assert float((found - expected).norm() / expected.norm()) < 1e-12


def test_equal_rewards_are_no_advantage() -> None:
    """0.1 + 0.9 in float32, seven times: verl's own advantages are noise of up to 0.2 there."""
    data = batch([0.1 + 0.9] * 4 + [1, 0, 0, 0] + [0.3] * 4)
    data.batch["token_level_rewards"] = data.batch["token_level_rewards"].float()
    advantages = advantages_of("ba_balanced", data)
    assert (advantages[torch.tensor(UIDS[ORDER] != "g1")] == 0).all() and (advantages != 0).any()


def test_kl_in_the_reward_is_refused() -> None:
    with pytest.raises(InputError, match="use_kl_in_reward=False"):
        advantages_of("ba_token", batch(), use_kl_in_reward=True)


def test_without_std() -> None:
    scaled = advantages_of("ba_sequence", batch(), norm_adv_by_std_in_grpo=False)
    lengths = torch.tensor(LENGTHS)[ORDER]
    mean = torch.tensor([0.25, 0.75, 1.0]).repeat_interleave(4)[ORDER]
    expected = (torch.tensor(REWARDS)[ORDER] - mean) / lengths
    assert torch.allclose(scaled[:, 0], expected.double(), rtol=1e-12)
