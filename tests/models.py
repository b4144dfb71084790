"""Small random models and tokenizers, built on the spot: real files for the tests, without a hub."""

import json
from pathlib import Path
from typing import Any

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_tokenizer(
    folder: Path,
    *,
    special: tuple[str, ...] = ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    plain: tuple[str, ...] = ("<think>", "</think>"),
    bos: str | None = None,
    eos: str = "<|im_end|>",
    adds_bos: bool = False,
    chat_template: str | None = CHATML,
    **config: Any,
) -> Path:
    """Writes a byte-level tokenizer (256 bytes + special + added tokens) in the files of a fast tokenizer.

    `adds_bos`: encoding writes BOS by itself, as Llama's tokenizers do.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    vocabulary = {symbol: i for i, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in plain])
    if adds_bos:
        assert bos is not None
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": eos,
        "pad_token": eos,
        "model_max_length": 2048,
        "clean_up_tokenization_spaces": False,
        **config,
    }
    if bos is not None:
        settings["bos_token"] = bos
    if chat_template is not None:
        settings["chat_template"] = chat_template
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
    return folder


def tiny_qwen3(folder: Path, *, seed: int = 0, tokenizer: bool = True, **config: Any) -> Path:
    """Writes a random Qwen3 (2 layers, hidden 64, head_dim 32, byte-level tokenizer; about 400 kB) to `folder`."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vocab_size": 320,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "initializer_range": 0.2,  # peaked enough that greedy decoding has no ties
        "bos_token_id": None,
        "eos_token_id": 258,
        "pad_token_id": 258,
        **config,
    }
    model = Qwen3ForCausalLM(Qwen3Config(**settings)).to(torch.float32)
    model.save_pretrained(folder)
    if tokenizer:
        byte_tokenizer(folder)
    return folder


def tiny_lora(folder: Path, base: Path, *, rank: int = 8, seed: int = 1) -> Path:
    """Writes a random LoRA adapter of a `tiny_qwen3` model, strong enough to change what it says."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen3ForCausalLM

    torch.manual_seed(seed)
    model = Qwen3ForCausalLM.from_pretrained(base, dtype=torch.float32)
    adapted = get_peft_model(model, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=["q_proj", "v_proj"]))
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    adapted.save_pretrained(folder)
    return folder
