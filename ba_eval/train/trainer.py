"""TRL's GRPO trainer with the aggregation rule folded into the advantages. Imports torch and trl: import it late.

TRL's `dapo` loss divides the token sum by T, all loss tokens of the sampled batch, whatever the micro-batches and
processes are. An advantage scaled by w_i T therefore gives sum_i w_i sum_t l_it exactly, and the loss code stays TRL's.
The weights must be found here, where whole groups are together: TRL shuffles the batch before it cuts it up.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from trl import GRPOConfig, GRPOTrainer

from ba_eval.errors import InputError, MachineError
from ba_eval.train.aggregation import Floats, Ints, Scope, divisors

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SampledBatch:
    """What one sampling step gave, over all processes; arrays of shape (N,), responses of a group side by side."""

    step: int
    """The optimizer step that it is sampled for, from 1."""
    lengths: Floats
    advantages: Floats
    groups: Ints
    truncated: Floats
    rewards: Mapping[str, Floats]
    """By the name of the reward function; NaN where one does not apply."""


class AggregationTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPO whose loss is aggregated by `rule`.

    Args:
        rule: a name of `aggregation.RULES`.
        scope: whether the rule holds in each group, or over the batch as one group.
        on_batch: called on the main process with each `SampledBatch`; returns metrics to log with TRL's own.
        Everything else is GRPOTrainer's. `args.loss_type` must be "dapo".
    """

    def __init__(
        self,
        *args: Any,
        rule: str,
        scope: Scope = "group",
        on_batch: Callable[[SampledBatch], Mapping[str, float]] | None = None,
        **kwargs: Any,
    ) -> None:
        self.rule, self.scope, self.on_batch = rule, scope, on_batch
        super().__init__(*args, **kwargs)
        divisors(rule, [1], [0], [0], scope)  # an unknown rule or scope is refused before anything is sampled
        for warning in check_arguments(self.args):
            log.warning("%s", warning)

    def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
        """TRL's, with an order of problems that is a function of the epoch.

        Its generator goes on from epoch to epoch and is in no checkpoint: a run that is resumed after its first epoch
        would see the problems in another order than one that was not cut.
        """
        sampler = super()._get_train_sampler(*args, **kwargs)
        generator, seed = getattr(sampler, "generator", None), self.args.seed
        if generator is not None:
            sampler.set_epoch = lambda epoch: generator.manual_seed(seed + epoch)  # called before each epoch
        return sampler

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if not self.model.training:
            return output
        missing = {"advantages", "completion_mask", "completion_ids", "num_items_in_batch"} - output.keys()
        if missing or output["advantages"].dim() != 1:
            raise MachineError(
                f"this TRL returns no {', '.join(missing) or 'advantage per response'}: use trl>=1.10,<2"
            )
        advantages, mask = output["advantages"], output["completion_mask"]
        loss_mask = mask * output["tool_mask"] if "tool_mask" in output else mask
        own = torch.stack([loss_mask.sum(1), advantages, self._truncated(output)], dim=1)
        lengths, all_advantages, truncated = self.accelerator.gather(own.float()).cpu().double().numpy().T
        groups = np.arange(len(lengths)) // self.num_generations
        total = lengths.sum()
        divide = divisors(self.rule, lengths, all_advantages, groups, self.scope)
        factors = np.divide(total, divide, out=np.zeros_like(divide), where=divide != 0)
        self._check(factors, lengths, float(output["num_items_in_batch"]))

        start = self.accelerator.process_index * len(advantages)
        # TRL's advantages are float32; only a float64 model, as tests use, has digits to lose by that.
        precision = torch.float64 if next(self.model.parameters()).dtype == torch.float64 else advantages.dtype
        own_factors = torch.from_numpy(factors[start : start + len(advantages)]).to(precision).to(advantages.device)
        output["advantages"] = advantages.to(precision) * own_factors

        if self.on_batch is not None and self.accelerator.is_main_process:
            rewards = {name: np.array(list(values)[-len(lengths) :]) for name, values in self._logs["rewards"].items()}
            step = self.state.global_step + 1
            batch = SampledBatch(step, lengths, all_advantages, groups, truncated, rewards)
            for name, value in self.on_batch(batch).items():
                self._metrics["train"][name].append(value)
        return output

    def _truncated(self, output: Mapping[str, Any]) -> torch.Tensor:
        """Returns for each response of this process whether it was cut before it ended, shape (B,)."""
        ids, mask = output["completion_ids"], output["completion_mask"]
        ends = self.processing_class.eos_token_id, self.processing_class.pad_token_id
        config = getattr(self.model, "generation_config", None)
        more = getattr(config, "eos_token_id", None)
        stop = {e for e in (*ends, *(more if isinstance(more, list) else [more])) if e is not None}
        last = ids.gather(1, (mask.sum(1, keepdim=True).long() - 1).clamp(min=0)).squeeze(1)
        return ~torch.isin(last, torch.tensor(sorted(stop), device=ids.device))

    def _check(self, factors: Floats, lengths: Floats, items: float) -> None:
        """Raises MachineError where TRL does not divide by what the factors take for granted."""
        if self.loss_type != "dapo":
            raise MachineError(f"loss_type became {self.loss_type!r} during the run; the weights hold for dapo only")
        if len(lengths) % self.num_generations:
            raise MachineError(f"{len(lengths)} responses are not whole groups of {self.num_generations}")
        total = float(lengths.sum())
        if items != total:
            raise MachineError(f"TRL divides by {items:.0f} tokens where the batch has {total:.0f}: use trl>=1.10,<2")
        if lengths.all() and abs(float(factors @ lengths) / total - 1) > 1e-9:
            raise MachineError(f"the weights of rule {self.rule!r} do not sum to 1 over the batch")


def check_arguments(args: GRPOConfig) -> list[str]:
    """Returns what should be said of these arguments; raises InputError on those under which a rule does not hold."""
    if args.loss_type != "dapo":
        raise InputError(f"loss_type {args.loss_type!r}: the weights of a rule hold for 'dapo' only")
    if args.use_liger_kernel:
        raise InputError("use_liger_kernel: its fused loss aggregates by itself; turn it off")
    if args.top_entropy_quantile < 1.0:
        raise InputError("top_entropy_quantile: it drops tokens that the weights count; leave it at 1.0")
    correction = args.use_vllm and args.vllm_importance_sampling_correction
    if correction and args.vllm_importance_sampling_mode.startswith("sequence"):
        raise InputError(
            f"vllm_importance_sampling_mode {args.vllm_importance_sampling_mode!r} depends on the response length "
            "and would swamp the rule; use 'token_truncate'"
        )
    said = []
    per_batch = args.num_iterations * args.steps_per_generation / args.gradient_accumulation_steps
    if per_batch != 1:
        said.append(f"{per_batch:g} optimizer steps per sampled batch: signs balance over the batch, not in each step")
    if args.mask_truncated_completions:
        said.append("mask_truncated_completions: masked tokens make the step size depend on the rule")
    if args.beta:
        said.append(f"beta {args.beta:g}: the KL term is not weighted by the rule; it stays the batch's token mean")
    entropy = getattr(args, "entropy_coef", 0.0)  # not in every TRL
    if entropy:
        said.append(f"entropy_coef {entropy:g}: the entropy term is not weighted by the rule")
    return said
