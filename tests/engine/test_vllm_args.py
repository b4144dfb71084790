"""Engine arguments: names are checked without importing vLLM, values are passed on as they are."""

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ba_eval.checkpoint import Checkpoint
from ba_eval.engine import vllm_args
from ba_eval.engine.vllm_args import cpu_defaults, known_arguments, model_args, parse_engine_args
from ba_eval.environment import install_line
from ba_eval.errors import InputError

CHECKPOINT = Checkpoint(name="m", path="/m", weights="w", tokenizer_dir="/t", tokenizer_id="t", max_model_len=4096)
needs_vllm = pytest.mark.skipif(not find_spec("vllm"), reason="vLLM is not installed")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.8", 0.8), ("true", True), ("4", 4), ("half", "half"), ("{a: [1, 2]}", {"a": [1, 2]}), ("null", None)],
)
def test_values_are_yaml_scalars(text: str, value: Any) -> None:
    assert parse_engine_args({"--hf-overrides": text}) == {"hf_overrides": value}


@needs_vllm
def test_unknown_names_get_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean 'gpu_memory_utilization'"):
        parse_engine_args({"gpu_memory_utilisation": "0.8"})
    with pytest.raises(InputError, match=r"no such argument$"):
        parse_engine_args({"zzzzzz": "1"})


def test_what_the_harness_sets_itself_is_refused() -> None:
    for name in ("model", "tokenizer", "enable-lora"):
        with pytest.raises(InputError, match="cannot be given here"):
            parse_engine_args({name: "x"})


@needs_vllm
@pytest.mark.engine
def test_the_names_are_those_of_vllm() -> None:
    import dataclasses

    from vllm.engine.arg_utils import EngineArgs

    assert known_arguments() == {field.name for field in dataclasses.fields(EngineArgs)}


def test_without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ba_eval.engine.vllm_args.find_spec", lambda name: None)
    with pytest.raises(InputError, match=re.escape(install_line("vllm"))):
        vllm_args.vllm_folder()


def test_an_unreadable_vllm_says_nothing_about_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vllm_args, "vllm_folder", lambda: tmp_path)
    known_arguments.cache_clear()
    assert parse_engine_args({"whatever": "1"}) == {"whatever": 1}
    known_arguments.cache_clear()


def test_lora_ranks_are_rounded_up_to_what_vllm_has() -> None:
    def rank(value: int) -> Any:
        lora = Checkpoint(**{**CHECKPOINT.__dict__, "base": "/b", "adapter": "/m", "lora_rank": value})
        return model_args(lora, {}, None)

    assert rank(12)["max_lora_rank"] == 16
    assert rank(64) == {
        "model": "/b",
        "tokenizer": "/t",
        "enable_lora": True,
        "max_lora_rank": 64,
        "max_loras": 1,
        "max_model_len": 4096,
    }
    with pytest.raises(InputError, match="LoRA rank 1024"):
        rank(1024)


def test_cpu_settings_never_win_over_the_users() -> None:
    args, variables = cpu_defaults({"max_model_len": 9000}, {})
    assert args == {
        "max_model_len": 9000,
        "dtype": "float32",
        "enforce_eager": True,
        "max_num_seqs": 64,
        "enable_chunked_prefill": False,
        "max_num_batched_tokens": 9000,
    }
    assert variables["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"
    assert 1 <= int(variables["VLLM_CPU_KVCACHE_SPACE"]) <= 8
    user = {
        "max_model_len": 9000,
        "dtype": "bfloat16",
        "enforce_eager": False,
        "enable_chunked_prefill": True,
        "max_num_seqs": 9,
    }
    args, variables = cpu_defaults(user, {"VLLM_CPU_KVCACHE_SPACE": "40", "VLLM_HOST_IP": "10.0.0.1"})
    assert {name: args[name] for name in user} == user
    assert not {"VLLM_CPU_KVCACHE_SPACE", "VLLM_HOST_IP"} & set(variables)
    assert "VLLM_CPU_KVCACHE_SPACE" not in cpu_defaults({"kv_cache_memory_bytes": 2**30}, os.environ)[1]
