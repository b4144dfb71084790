"""One GRPO step on given responses, through TRL and by plain loops; also a program, for several processes.

torchrun --nproc-per-node 2 -m tests.train.one_step FOLDER
"""

import contextlib
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from ba_eval.train.aggregation import RULES, weights
from ba_eval.train.trainer import AggregationTrainer, SampledBatch

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout_func is TRL's experimental interface

VOCABULARY = 24
END, PAD = 1, 0
GROUP = 4
PROMPTS = ["w3 w4", "w5 w6 w7", "w8"]
# Groups: one right of four, three right of four, all right. Those of odd length end, one-token ones do not.
LENGTHS = [3, 9, 1, 14, 6, 1, 11, 2, 5, 8, 7, 4]
REWARDS = [0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1]
EPSILON = 0.2
Gradients = dict[str, np.ndarray[Any, Any]]


def responses() -> list[list[int]]:
    rng = np.random.default_rng(7)
    made = [rng.integers(2, VOCABULARY, n).tolist() for n in LENGTHS]
    for tokens in made:
        if len(tokens) % 2 and len(tokens) > 1:
            tokens[-1] = END
    assert len({tuple(t) for t in made}) == len(made)  # responses are told apart by their tokens
    return made


def log_ratios() -> list[list[float]]:
    """How far each token's probability is from where it was sampled: about 30 % lie outside the clipping range."""
    rng = np.random.default_rng(8)
    return [(rng.choice([-1, 1], n) * np.where(rng.random(n) < 0.6, 0.5, 0.05)).tolist() for n in LENGTHS]


def tokenizer() -> PreTrainedTokenizerFast:
    words = {"<pad>": PAD, "<end>": END} | {f"w{i}": i for i in range(2, VOCABULARY)}
    made = Tokenizer(WordLevel(words, unk_token="w2"))
    made.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<end>", unk_token="w2")


def model() -> Qwen3ForCausalLM:
    torch.manual_seed(3)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        eos_token_id=END,
        pad_token_id=PAD,
    )
    made = Qwen3ForCausalLM(config).double()
    made.generation_config.eos_token_id = END
    return made


class _Keep(TrainerCallback):  # type: ignore[misc]
    gradients: Gradients

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        self.gradients = {name: p.grad.detach().numpy().copy() for name, p in model.named_parameters()}


def _rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
    first = trainer.accelerator.process_index * len(prompts)
    tokens = responses()[first : first + len(prompts)]
    return {
        "prompt_ids": [trainer.processing_class(p)["input_ids"] for p in prompts],
        "completion_ids": tokens,
        "logprobs": [[0.0] * len(t) for t in tokens],
    }


def _reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
    return [float(REWARDS[responses().index(list(ids))]) for ids in completion_ids]


_reward.__name__ = "accuracy"


def clipped(base: type) -> type:
    """Returns the trainer with tokens whose ratio to the sampling policy is not 1."""

    class Clipped(base):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            ids, mask = output["completion_ids"], output["completion_mask"]
            width = ids.size(1)
            with torch.no_grad():
                now, _, _ = self._get_per_token_logps_and_entropies(
                    self.model,
                    torch.cat([output["prompt_ids"], ids], 1),
                    torch.cat([output["prompt_mask"], mask], 1),
                    width,
                )
            shift = torch.zeros_like(now)
            for row, (tokens, kept) in enumerate(zip(ids, mask, strict=True)):
                values = log_ratios()[responses().index(tokens[kept.bool()].tolist())]
                shift[row, : len(values)] = torch.tensor(values, dtype=now.dtype)
            output["old_per_token_logps"] = now - shift
            return output

    return Clipped


def trl_step(trainer_class: type, micro_batch: int, processes: int = 1, **options: Any) -> tuple[Gradients, Any]:
    """Returns the gradients of one optimizer step, and the trainer."""
    loss_type = options.pop("loss_type", "dapo")
    keep = _Keep()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        arguments = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=micro_batch,
            gradient_accumulation_steps=len(LENGTHS) // (micro_batch * processes),
            num_generations=GROUP,
            max_steps=1,
            loss_type=loss_type,
            max_completion_length=max(LENGTHS),
            max_grad_norm=0.0,
            epsilon=EPSILON,
            shuffle_dataset=False,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            logging_steps=1,
        )
        trainer = trainer_class(
            model=model(),
            reward_funcs=_reward,
            args=arguments,
            train_dataset=Dataset.from_dict({"prompt": PROMPTS}),
            processing_class=tokenizer(),
            callbacks=[keep],
            rollout_func=_rollout,
            **options,
        )
        trainer.train()
    return keep.gradients, trainer


def plain_step(rule: str, scope: str, advantages: list[float], clip: bool) -> Gradients:
    """The gradients of the loss as the formulas stand, one response at a time, in float64."""
    policy, tokens, prompt_ids = model(), responses(), tokenizer()
    terms = []
    for i, response in enumerate(tokens):
        prompt = prompt_ids(PROMPTS[i // GROUP])["input_ids"]
        logits = policy(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
        logps = torch.log_softmax(logits, -1)[range(len(response)), response]
        shift = torch.tensor(log_ratios()[i] if clip else [0.0] * len(response), dtype=torch.float64)
        ratio = torch.exp(logps - logps.detach() + shift)
        bounded = ratio.clamp(1 - EPSILON, 1 + EPSILON)
        terms.append(-torch.minimum(ratio * advantages[i], bounded * advantages[i]))
    everything = list(range(len(tokens)))
    groups = [everything] if scope == "batch" else [everything[g : g + GROUP] for g in everything[::GROUP]]
    losses = []
    for group in groups:
        if rule == "sequence":
            loss = sum(terms[i].sum() / len(tokens[i]) for i in group) / len(group)
        elif rule == "token":
            loss = sum(terms[i].sum() for i in group) / sum(len(tokens[i]) for i in group)
        else:
            loss = torch.zeros((), dtype=torch.float64)
            for sign in (1, -1):
                same = [i for i in group if abs(advantages[i]) > 1e-2 and math.copysign(1, advantages[i]) == sign]
                if same:
                    length = sum(len(tokens[i]) for i in same)
                    loss = loss + len(same) / len(group) * sum(terms[i].sum() for i in same) / length
        losses.append(loss)
    total: Any = sum(losses) / len(losses)
    total.backward()
    return {name: p.grad.numpy() for name, p in policy.named_parameters()}


def relative_error(found: Gradients, expected: Gradients) -> float:
    difference = math.sqrt(sum(float(((found[k] - expected[k]) ** 2).sum()) for k in expected))
    return difference / math.sqrt(sum(float((expected[k] ** 2).sum()) for k in expected))


class SplitInsideMicroBatch(GRPOTrainer):  # type: ignore[misc]
    """The mistake: the signs are told apart where the loss is computed, and the micro-batch taken for the group."""

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        lengths, advantages = inputs["completion_mask"].sum(1).numpy(), inputs["advantages"]
        own = weights("balanced", lengths, advantages.numpy(), np.zeros(len(lengths)))
        share = len(lengths) / len(LENGTHS)
        factor = torch.from_numpy(own * share) * inputs["num_items_in_batch"]
        return super()._compute_loss(model, {**inputs, "advantages": advantages.double() * factor})


def main(folder: str) -> None:
    for rule in RULES:
        for micro_batch in (2, 3, 6):
            seen: list[SampledBatch] = []

            def keep(batch: SampledBatch, seen: list[SampledBatch] = seen) -> dict[str, float]:
                seen.append(batch)
                return {}

            gradients, trainer = trl_step(AggregationTrainer, micro_batch, processes=2, rule=rule, on_batch=keep)
            assert trainer.accelerator.num_processes == 2
            if trainer.accelerator.is_main_process:
                (batch,) = seen
                out = Path(folder) / f"{rule}-{micro_batch}.npz"
                arrays: dict[str, Any] = {"advantages": batch.advantages, "lengths": batch.lengths, **gradients}
                np.savez(out, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
