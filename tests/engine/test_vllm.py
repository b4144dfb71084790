"""Real vLLM in its child process, with tiny random models."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from ba_eval.checkpoint import Checkpoint
from ba_eval.engine.request import Completion, Request, Sampling
from ba_eval.engine.vllm import VllmEngine
from ba_eval.errors import InputError, MachineError
from ba_eval.prompt import Renderer
from ba_eval.seeds import sample_seed
from tests.engine.completions import generate

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

WORDS = ["one", "two words", "three more words", "x" * 100]


def requests(checkpoint: Checkpoint, count: int = 8, **sampling: Any) -> list[Request]:
    """`count` requests over a few prompts, each with its own seed."""
    renderer = Renderer(checkpoint)
    prompts = [renderer.render(word) for word in WORDS]
    settings = Sampling(**{"max_tokens": 40, **sampling})
    return [
        Request(
            id=f"r{i}",
            seed=sample_seed(0, "b", str(i % len(WORDS)), i // len(WORDS)),
            sampling=settings,
            prompt_token_ids=prompts[i % len(WORDS)],
        )
        for i in range(count)
    ]


def texts(completions: list[Completion]) -> dict[str, tuple[str, int, str]]:
    return {c.id: (c.text, c.completion_tokens, c.finish_reason) for c in completions}


def transformers_greedy(folder: str, prompt: list[int], max_tokens: int, adapter: str | None = None) -> list[int]:
    """The reference: transformers' own greedy decoding. Returns the new ids, EOS included."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, adapter)
    ids = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=max_tokens)
    return [int(i) for i in ids[0, len(prompt) :]]


def assert_greedy_matches(engine: VllmEngine, checkpoint: Checkpoint) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint.tokenizer_dir)
    asked = requests(checkpoint, 4, temperature=0.0)
    answers = texts(generate(engine, asked))
    for request in asked:
        wanted = transformers_greedy(checkpoint.model_dir, list(request.prompt_token_ids or ()), 40, checkpoint.adapter)
        text, tokens, _ = answers[request.id]
        assert tokens == len(wanted)
        # vLLM leaves out the bytes of a character that was never finished.
        assert text.rstrip("\ufffd") == tokenizer.decode(wanted, skip_special_tokens=True).rstrip("\ufffd")


def test_greedy_decoding_is_that_of_transformers(single: VllmEngine, tiny: Checkpoint) -> None:
    assert_greedy_matches(single, tiny)


def test_an_adapter_is_applied_exactly(batched: VllmEngine, lora: Checkpoint, tiny: Checkpoint) -> None:
    assert_greedy_matches(batched, lora)
    asked = requests(lora, 4, temperature=0.0)
    plain = transformers_greedy(tiny.path, list(asked[0].prompt_token_ids or ()), 40)
    adapted = transformers_greedy(tiny.path, list(asked[0].prompt_token_ids or ()), 40, lora.adapter)
    assert plain != adapted


def test_the_same_seed_gives_the_same_sample_whatever_else_is_asked(single: VllmEngine, tiny: Checkpoint) -> None:
    asked = requests(tiny, 8, temperature=1.0, top_p=0.9)
    first = texts(generate(single, asked))
    second = texts(generate(single, reversed(asked[2:7])))
    assert len(set(first.values())) == 8
    assert second == {f"r{i}": first[f"r{i}"] for i in range(2, 7)}


def test_samples_of_one_prompt_differ(batched: VllmEngine, lora: Checkpoint) -> None:
    answers = texts(generate(batched, requests(lora, 80)))
    assert len(answers) == 80
    assert len(set(answers.values())) > 60
    assert {reason for _, _, reason in answers.values()} <= {"stop", "length"}
    assert all(tokens == 40 for _, tokens, reason in answers.values() if reason == "length")


def test_long_prompts_of_seeded_requests(batched: VllmEngine, lora: Checkpoint) -> None:
    """Prompts that fill a step several times over: vLLM's CPU engine dies of parts of them."""
    prompt = Renderer(lora).render("y" * 330)
    asked = [
        Request(id=f"r{i}", seed=i, sampling=Sampling(max_tokens=4), prompt_token_ids=[*prompt, i]) for i in range(60)
    ]
    assert len(generate(batched, asked)) == 60


def test_requests_that_vllm_refuses_end_alone(batched: VllmEngine, lora: Checkpoint) -> None:
    good = requests(lora, 2)
    bad = [
        Request(id="word", seed=0, sampling=Sampling(), prompt_token_ids=[10**6]),
        Request(id="long", seed=0, sampling=Sampling(), prompt_token_ids=[5] * 1000),
        Request(id="empty", seed=0, sampling=Sampling(), prompt_token_ids=[]),
        Request(id="hot", seed=0, sampling=Sampling(temperature=-1.0), prompt_token_ids=[5]),
    ]
    completions = {c.id: c for c in generate(batched, [good[0], *bad, good[1]])}
    assert len(completions) == 6
    for request in bad:
        assert completions[request.id].error
        assert completions[request.id].finish_reason == "error"
    assert completions["r0"].error is None
    assert completions["r1"].error is None


def test_stop_strings_cut_outside_thinking_alone(batched: VllmEngine, lora: Checkpoint) -> None:
    (request,) = requests(lora, 1, temperature=1.0, max_tokens=200)
    (whole,) = generate(batched, [request])
    stop = whole.text[10:12]
    at = whole.text.index(stop)
    stopping = requests(lora, 1, temperature=1.0, max_tokens=200, stop=(stop, "never there"))
    (cut,) = generate(batched, stopping)
    assert (cut.text, cut.finish_reason) == (whole.text[:at], "stop")
    assert cut.completion_tokens < whole.completion_tokens

    # The same inside a <think> block that the prompt opened and nothing closes.
    opened = [*Renderer(lora).render("hi"), *_encode(lora, "<think>\n")]
    thinking = Request(id="t", seed=1, sampling=Sampling(max_tokens=60), prompt_token_ids=opened)
    (whole,) = generate(batched, [thinking])
    assert whole.thinking_tokens == whole.completion_tokens
    stops = Sampling(max_tokens=60, stop=(whole.text[10:12],))
    (kept,) = generate(batched, [Request(id="t", seed=1, sampling=stops, prompt_token_ids=opened)])
    assert kept.text == whole.text


def _encode(checkpoint: Checkpoint, text: str) -> list[int]:
    from transformers import AutoTokenizer

    ids: list[int] = AutoTokenizer.from_pretrained(checkpoint.tokenizer_dir)(text).input_ids
    return ids


def test_what_the_engine_says_of_itself(single: VllmEngine, batched: VllmEngine) -> None:
    info = dict(single.info)
    assert info["engine"] == "vllm"
    assert info["max_model_len"] == 400
    assert info["max_num_seqs"] == 1
    assert info["attention_backend"]
    assert info["device"] != "cpu" or info["dtype"] == "float32"
    assert batched.info["args"]["max_lora_rank"] == 8


def test_arguments_that_vllm_refuses_are_bad_input(tiny: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tiny: vLLM refuses") as error:
        VllmEngine(tiny, {"dtype": "float99"}, 400, log_path=tmp_path / "log")
    assert "float99" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_death_of_a_real_engine(batched: VllmEngine, lora: Checkpoint) -> None:
    """Last in this file: it ends the shared engine."""
    stream = batched.generate(requests(lora, 1000, max_tokens=100))
    next(stream)
    os.kill(batched._child.process.pid, signal.SIGKILL)
    with pytest.raises(MachineError, match="the engine died"):
        list(stream)
    assert not [pid for pid in _group(batched._child.process.pid) if pid != batched._child.process.pid]


def _group(leader: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found
