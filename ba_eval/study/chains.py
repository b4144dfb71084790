"""Generated problems and a small model that half knows them: a study that a CPU can do, without any download.

    python -m ba_eval.study.chains FOLDER [--steps N]

Each of twelve letters stands for a permutation of the ten digits. A problem names a letter, a digit and how often to go
on, as `q3x7`; the answer is the digit that one arrives at. The model is a Qwen3 of 180,000 parameters, trained from
random weights on worked solutions in three styles, drawn at random: the bare answer, every second digit of the way, and
every digit. So one prompt is answered at very different lengths, short answers are wrong more often, and what a
response's length has to do with its reward is what the aggregation rules differ in.

FOLDER/train.jsonl               problems for reinforcement learning, 2 to 9 times
FOLDER/short.yaml, .jsonl        held-out problems, 2 to 5 times
FOLDER/long.yaml, .jsonl         held-out problems, 6 to 9 times
FOLDER/model/                    the model, as any Hugging Face checkpoint
"""

import argparse
import itertools
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from ba_eval.engine.child import WAITING
from ba_eval.errors import BaEvalError, InputError

SEED = 20260401
LETTERS = "abcdefghjkmn"
SETS = {"short": range(2, 6), "long": range(6, 10)}
"""Held-out sets, and how often their problems go on."""
HELD_OUT = 100
"""Problems in each."""
STYLES = ("answer", "twos", "steps")
STAMP = "chains.json"
CHAT = "{% for message in messages %}{{ message['content'] }}={% endfor %}"
END = "<|end|>"

DEFINITION = """title: {title}
kind: math
prompt: "{{problem}}"
grader: {{extract: [boxed]}}
n: 4
temperature: 1.0
top_p: 1.0
max_tokens: 64
"""


class Chain(NamedTuple):
    """A problem: from this digit, follow the letter's permutation so many times."""

    letter: str
    digit: int
    times: int


def permutations() -> dict[str, list[int]]:
    """What follows each digit, by letter."""
    rng = random.Random(SEED)
    return {letter: rng.sample(range(10), 10) for letter in LETTERS}


def way(chain: Chain) -> list[int]:
    """The digits that one passes, the last of them the answer."""
    after = permutations()[chain.letter]
    passed, digit = [], chain.digit
    for _ in range(chain.times):
        digit = after[digit]
        passed.append(digit)
    return passed


def statement(chain: Chain) -> str:
    """The problem as the model is asked it."""
    return f"{chain.letter}{chain.digit}x{chain.times}"


def solution(chain: Chain, style: str) -> str:
    """A worked solution, ending in the boxed answer."""
    passed = way(chain)
    every = {"answer": chain.times + 1, "twos": 2, "steps": 1}[style]
    lines = [f"{at}:{passed[at - 1]};" for at in range(every, chain.times + 1, every)]
    return "".join(lines) + f"\\boxed{{{passed[-1]}}}"


def write_problems(folder: Path) -> list[Chain]:
    """Writes the problem files and returns the problems that are not held out."""
    rng = random.Random(SEED + 1)
    rest: list[Chain] = []
    for name, times in SETS.items():
        every = [Chain(*parts) for parts in itertools.product(LETTERS, range(10), times)]
        rng.shuffle(every)
        _write_rows(folder / f"{name}.jsonl", every[:HELD_OUT])
        title = f"Chains of {times[0]} to {times[-1]}"
        (folder / f"{name}.yaml").write_text(DEFINITION.format(title=title), encoding="utf-8")
        rest += every[HELD_OUT:]
    rng.shuffle(rest)
    _write_rows(folder / "train.jsonl", rest)
    return rest


def _write_rows(file: Path, chosen: list[Chain]) -> None:
    rows = ({"problem": statement(chain), "answer": str(way(chain)[-1])} for chain in chosen)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_tokenizer(folder: Path) -> Any:
    """Writes a byte-level tokenizer with a token for `\\boxed{` and returns it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoTokenizer

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END, special=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("\\boxed{", normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    return AutoTokenizer.from_pretrained(folder)


def write_model(folder: Path, problems: list[Chain], steps: int, batch: int = 64) -> float:
    """Trains the model on worked solutions of these problems; returns the loss (nats a token)."""
    os.environ.update(WAITING | os.environ)  # before torch is loaded
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = write_tokenizer(folder)
    torch.manual_seed(SEED)
    end = tokenizer.eos_token_id
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=320,
            hidden_size=64,
            intermediate_size=192,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=end,
            pad_token_id=end,
        )
    ).to(torch.float32)
    rng = random.Random(SEED + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps, pct_start=0.1)
    loss = float("nan")
    start = time.monotonic()
    for step in range(1, steps + 1):
        chosen = [rng.choice(problems) for _ in range(batch)]
        asks = tokenizer([f"{statement(chain)}=" for chain in chosen]).input_ids  # all of one length
        answers = tokenizer([solution(chain, rng.choice(STYLES)) for chain in chosen]).input_ids
        width = max(map(len, answers)) + 1
        rest = [[*answer, *[end] * (width - len(answer))] for answer in answers]
        ids = torch.tensor([ask + answer for ask, answer in zip(asks, rest, strict=True)])
        # One end is learned; what stands behind it is padding, which nothing before it attends to.
        told = [[*answer, end, *[-100] * (width - len(answer) - 1)] for answer in answers]
        labels = torch.tensor([[-100] * len(ask) + answer for ask, answer in zip(asks, told, strict=True)])
        found = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        found.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        loss = 0.95 * loss + 0.05 * found.item() if step > 1 else found.item()
        if step % 100 == 0 or step == steps:
            print(f"warm start: step {step}/{steps}, loss {loss:.3f}, {time.monotonic() - start:.0f} s", flush=True)
    model.save_pretrained(folder)
    return loss


def prepare(folder: Path, steps: int) -> str:
    """Writes problems and model into `folder`, unless they are there; returns a line that says so.

    Raises InputError where the folder holds those of another number of steps.
    """
    stamp = folder / STAMP
    asked = {"seed": SEED, "steps": steps}
    if stamp.is_file():
        if json.loads(stamp.read_text(encoding="utf-8")) != asked:
            raise InputError(f"{folder}: was made with other settings ({stamp.read_text().strip()}); name another one")
        return f"{folder}: is there already"
    folder.mkdir(parents=True, exist_ok=True)
    loss = write_model(folder / "model", write_problems(folder), steps)
    stamp.write_text(json.dumps(asked) + "\n", encoding="utf-8")
    return f"{folder}: problems and a model trained for {steps} steps (loss {loss:.3f})"


def main() -> int:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m ba_eval.study.chains", description="Makes problems and a model.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=800, help="steps of the warm start (default: 800)")
    arguments = parser.parse_args()
    try:
        print(prepare(arguments.folder, arguments.steps))
    except BaEvalError as error:
        print(f"chains: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
