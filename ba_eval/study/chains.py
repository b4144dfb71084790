"""Generated problems and a small model that half knows them: a study that a CPU can do, without any download.

    python -m ba_eval.study.chains FOLDER [--steps N]

A problem is a chain of lettered digits, as `f3g8h5`; the answer is the last digit of their sum (6). The model is a
Qwen3 of 360,000 parameters, trained from random weights on worked solutions in three styles, drawn at random: the bare
answer, totals two at a time, and running totals. So one prompt is answered at very different lengths, short answers are
wrong more often, and what a response's length has to do with its reward is what the aggregation rules differ in.

FOLDER/train.jsonl                    problems for reinforcement learning, 3 to 8 digits
FOLDER/chains.yaml, .jsonl            held-out problems of the same lengths
FOLDER/long_chains.yaml, .jsonl       held-out problems of 9 to 11 digits, which the worked solutions never had
FOLDER/model/                         the model, as any Hugging Face checkpoint
"""

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from ba_eval.engine.child import WAITING
from ba_eval.errors import BaEvalError, InputError

SEED = 20260401
TRAIN_LENGTHS, LONG_LENGTHS = range(3, 9), range(9, 12)
TRAIN, HELD_OUT, LONG = 3000, 140, 60
STYLES = ("answer", "twos", "totals")
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
max_tokens: {tokens}
"""


Chain = list[tuple[str, int]]
"""Letters that follow each other in the alphabet, each with its digit."""


def draw(length: int, rng: random.Random) -> Chain:
    """A random chain."""
    start = rng.randrange(len(ascii_lowercase) - length + 1)
    return [(letter, rng.randrange(10)) for letter in ascii_lowercase[start : start + length]]


def statement(chain: Chain) -> str:
    """The problem as the model is asked it."""
    return "".join(f"{letter}{digit}" for letter, digit in chain)


def total(chain: Chain) -> int:
    """The answer: the last digit of the sum."""
    return sum(digit for _, digit in chain) % 10


def solution(chain: Chain, style: str) -> str:
    """A worked solution, ending in the boxed answer."""
    lines: list[str] = []
    if style == "twos":
        lines = [f"{letter}:{total(chain[: at + 1])}" for at, (letter, _) in enumerate(chain) if at % 2]
    elif style == "totals":
        lines = [f"{letter}{digit}:{total(chain[: at + 1])}" for at, (letter, digit) in enumerate(chain)]
    return "".join(f"{line};" for line in lines) + f"\\boxed{{{total(chain)}}}"


def problems(count: int, lengths: range, rng: random.Random, taken: set[str]) -> list[Chain]:
    """Draws distinct problems, none of which is in `taken`; adds them there."""
    made: list[Chain] = []
    while len(made) < count:
        chain = draw(rng.choice(lengths), rng)
        if statement(chain) not in taken:
            taken.add(statement(chain))
            made.append(chain)
    return made


def write_problems(folder: Path) -> set[str]:
    """Writes the problem files and returns the statements that are held out."""
    rng = random.Random(SEED)
    held_out: set[str] = set()
    sets = {
        "chains": (problems(HELD_OUT, TRAIN_LENGTHS, rng, held_out), "Chains of 3 to 8", 64),
        "long_chains": (problems(LONG, LONG_LENGTHS, rng, held_out), "Chains of 9 to 11", 96),
    }
    for name, (chosen, title, tokens) in sets.items():
        _write_rows(folder / f"{name}.jsonl", chosen)
        (folder / f"{name}.yaml").write_text(DEFINITION.format(title=title, tokens=tokens), encoding="utf-8")
    _write_rows(folder / "train.jsonl", problems(TRAIN, TRAIN_LENGTHS, rng, set(held_out)))
    return held_out


def _write_rows(file: Path, chosen: list[Chain]) -> None:
    rows = ({"problem": statement(chain), "answer": str(total(chain))} for chain in chosen)
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


def write_model(folder: Path, held_out: set[str], steps: int, batch: int = 64) -> float:
    """Trains the model on worked solutions of problems that are not held out; returns the loss (nats a token)."""
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
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=3,
            num_attention_heads=3,
            num_key_value_heads=3,
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
        length = rng.choice(TRAIN_LENGTHS)  # one in a batch: less padding
        pairs = [_example(rng, length, held_out) for _ in range(batch)]
        asks, answers = ([tokenizer(text).input_ids for text in texts] for texts in zip(*pairs, strict=True))
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


def _example(rng: random.Random, length: int, held_out: set[str]) -> tuple[str, str]:
    while True:
        chain = draw(length, rng)
        if statement(chain) not in held_out:
            return f"{statement(chain)}=", solution(chain, rng.choice(STYLES))


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
    parser.add_argument("--steps", type=int, default=1000, help="steps of the warm start (default: 1000)")
    arguments = parser.parse_args()
    try:
        print(prepare(arguments.folder, arguments.steps))
    except BaEvalError as error:
        print(f"chains: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
