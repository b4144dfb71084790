"""Advantage estimators for verl, which loads them by the `verl.plugins` entry point: `ba_<rule>`, `ba_<rule>_batch`.

verl's loss never sees which responses form a group, and its list of aggregation modes is closed. Its advantage
estimators see the whole batch with its groups. With `loss_agg_mode=seq-mean-token-sum` the loss is
(1/N) sum_i sum_t l_it over the N responses, so an advantage scaled by w_i N gives sum_i w_i sum_t l_it:

    algorithm.adv_estimator=ba_balanced actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum

Terms that are not scaled by the advantage (KL, entropy) would be summed over tokens by that mode: they must be off.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, register_adv_est

from ba_eval.errors import InputError
from ba_eval.train.aggregation import RULES, Scope, divisors

EQUAL = 1e-5
"""Rewards of a group that differ by no more than this are equal: verl divides by std + 1e-6, which would turn the
rounding of their mean into advantages of 0.2."""


def estimate(
    rule: str,
    scope: Scope,
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns (advantages, returns) as verl's estimators do, both of shape (N, tokens): GRPO's, scaled by w_i N.

    `index` holds the group (verl's uid) of each response. Raises InputError where verl puts KL into the reward.
    """
    get = getattr(config, "get", lambda name, default: default)
    if get("use_kl_in_reward", False):
        raise InputError(f"ba_{rule}: set algorithm.use_kl_in_reward=False; a KL penalty is not an outcome reward")
    plain, _ = compute_grpo_outcome_advantage(
        token_level_rewards=token_level_rewards,
        response_mask=response_mask,
        index=index,
        norm_adv_by_std_in_grpo=get("norm_adv_by_std_in_grpo", True),
    )
    lengths = response_mask.sum(-1).double().cpu().numpy()
    scores = token_level_rewards.sum(-1).double().cpu().numpy()
    groups = np.unique(np.asarray(index), return_inverse=True)[1]
    first = response_mask.argmax(-1, keepdim=True)  # the same value stands at every token of a response
    advantages = plain.gather(1, first).squeeze(1).double().cpu().numpy()
    advantages[_all_equal(scores, groups)] = 0.0
    divide = divisors(rule, lengths, advantages, groups, scope)
    factors = np.divide(len(lengths), divide, out=np.zeros_like(divide), where=divide != 0)
    scaled = torch.from_numpy(advantages * factors).to(plain).unsqueeze(-1) * response_mask
    return scaled, scaled


def _all_equal(scores: np.ndarray[Any, Any], groups: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Tells of each response whether all rewards of its group are equal, shape (N,)."""
    high, low = np.full(groups.max() + 1, -np.inf), np.full(groups.max() + 1, np.inf)
    np.maximum.at(high, groups, scores)
    np.minimum.at(low, groups, scores)
    equal: np.ndarray[Any, Any] = (high - low <= EQUAL)[groups]
    return equal


def _register() -> None:
    scopes: dict[str, Scope] = {"": "group", "_batch": "batch"}
    for rule in RULES:
        for suffix, scope in scopes.items():
            function: Callable[..., Any] = partial(estimate, rule, scope)
            register_adv_est(f"ba_{rule}{suffix}")(function)


_register()
