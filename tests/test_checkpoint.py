"""Finding checkpoints: what is accepted, what is refused and how, and what identifies weights."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from safetensors.numpy import save_file

from ba_eval import checkpoint, weights
from ba_eval.checkpoint import resolve
from ba_eval.errors import InputError
from ba_eval.model_specs import expand_models
from tests.benchmark import hub_server
from tests.models import byte_tokenizer


def tensors(seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """A few tensors, one of them much longer than three content samples."""
    values = np.random.default_rng(seed)
    return {
        "embed": values.normal(size=(320, 64)).astype(np.float32),
        "layer.weight": values.normal(size=(64, 64)).astype(np.float32),
        "norm": np.ones(64, np.float32),
    }


def model(folder: Path, *, seed: int = 0, **config: Any) -> Path:
    """A complete checkpoint folder, as far as files go."""
    byte_tokenizer(folder)
    save_file(tensors(seed), folder / "model.safetensors")
    settings = {"model_type": "qwen3", "max_position_embeddings": 1024, "transformers_version": "5.0", **config}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def adapter(folder: Path, base: str, **config: Any) -> Path:
    """A LoRA adapter folder."""
    folder.mkdir(parents=True)
    save_file({"lora": np.ones((8, 64), np.float32)}, folder / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "base_model_name_or_path": base, "r": 8, **config}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


def refusal(folder: Path | str) -> str:
    """The error that a folder gets, which is one line."""
    with pytest.raises(InputError) as error:
        resolve("m", str(folder))
    assert "\n" not in str(error.value)
    return str(error.value)


# Identity


def test_identity_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    first = resolve("m", str(model(tmp_path / "a")))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copied = resolve("m", str(tmp_path / "b"))
    (tmp_path / "a").rename(tmp_path / "c")
    moved = resolve("other", str(tmp_path / "c"))
    assert first.weights == copied.weights == moved.weights
    assert first.tokenizer_id == copied.tokenizer_id == moved.tokenizer_id
    save_file(tensors(seed=1), tmp_path / "c" / "model.safetensors")
    assert resolve("m", str(tmp_path / "c")).weights != first.weights


def test_identity_includes_configuration_that_changes_results(tmp_path: Path) -> None:
    first = resolve("m", str(model(tmp_path, rope_theta=10000)))
    assert resolve("m", str(model(tmp_path, rope_theta=10000, transformers_version="5.1"))).weights == first.weights
    assert resolve("m", str(model(tmp_path, rope_theta=1000000))).weights != first.weights
    model(tmp_path, rope_theta=10000)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 5}')
    assert resolve("m", str(tmp_path)).weights != first.weights


def test_tokenizer_identity_includes_the_chat_template(tmp_path: Path) -> None:
    first = resolve("m", str(model(tmp_path)))
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }}")
    second = resolve("m", str(tmp_path))
    assert second.tokenizer_id != first.tokenizer_id
    assert second.weights == first.weights


@pytest.mark.parametrize("name", ["embed", "layer.weight", "norm"])
def test_samples_of_a_large_file_see_a_change_in_any_tensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(weights, "WHOLE_FILE", 0)
    file = tmp_path / "model.safetensors"
    values = tensors()
    save_file(values, file)
    before = weights.identity([file])
    # A step in bfloat16 changes few elements; a hundredth of them is far below what training does.
    changed = np.random.default_rng(1).random(values[name].shape) < 0.01
    changed.flat[0] = True
    values[name] = np.where(changed, values[name] * 1.01, values[name]).astype(np.float32)
    save_file(values, file)
    assert weights.identity([file]) != before


def test_samples_of_a_large_torch_file_see_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "WHOLE_FILE", 0)
    file = tmp_path / "pytorch_model.bin"
    content = bytearray(np.random.default_rng(0).bytes(3_000_000))
    file.write_bytes(content)
    before = weights.identity([file])
    content[2_999_000] ^= 1
    file.write_bytes(content)
    assert weights.identity([file]) != before


def test_an_adapter_is_identified_with_its_base(tmp_path: Path) -> None:
    model(tmp_path / "base")
    first = resolve("m", str(adapter(tmp_path / "lora", "base")))
    assert (first.base, first.adapter) == (str(tmp_path / "base"), str(tmp_path / "lora"))
    assert first.weights != resolve("b", str(tmp_path / "base")).weights
    save_file({"lora": np.zeros((8, 64), np.float32)}, tmp_path / "lora" / "adapter_model.safetensors")
    second = resolve("m", str(tmp_path / "lora"))
    assert second.weights != first.weights
    save_file(tensors(seed=1), tmp_path / "base" / "model.safetensors")
    assert resolve("m", str(tmp_path / "lora")).weights != second.weights


# What is known of a checkpoint


def test_context_length(tmp_path: Path) -> None:
    assert resolve("m", str(model(tmp_path))).max_model_len == 1024
    assert resolve("m", str(model(tmp_path, max_position_embeddings=4096))).max_model_len == 2048  # the tokenizer's
    linear = {"rope_type": "linear", "factor": 2.0}
    assert resolve("m", str(model(tmp_path, rope_scaling=linear))).max_model_len == 2048
    nested: dict[str, Any] = {"text_config": {"max_position_embeddings": 512}, "max_position_embeddings": None}
    assert resolve("m", str(model(tmp_path, **nested))).max_model_len == 512


def test_the_training_record_tells_step_rule_seed_and_prompt(tmp_path: Path) -> None:
    model(tmp_path / "ba" / "checkpoint-300")
    assert resolve("m", str(tmp_path / "ba" / "checkpoint-300")).step == 300
    record = {
        "aggregation": "batch-aware",
        "step": 450,
        "seed": 7,
        "prompt_template": {"template": "qwen-boxed", "system": "s"},
        "loss": 0.1,
    }
    (tmp_path / "ba" / "training.json").write_text(json.dumps(record))
    found = resolve("m", str(tmp_path / "ba" / "checkpoint-300"))
    assert (found.aggregation, found.training_seed, found.step) == ("batch-aware", 7, 300)
    assert found.prompt == checkpoint.TrainedPrompt(template="qwen-boxed", system="s")
    (tmp_path / "ba" / "checkpoint-300" / "training.json").write_text(json.dumps({**record, "step": 299}))
    assert resolve("m", str(tmp_path / "ba" / "checkpoint-300")).step == 299
    (tmp_path / "ba" / "checkpoint-300" / "training.json").write_text('{"step": "last"}')
    assert "training.json" in refusal(tmp_path / "ba" / "checkpoint-300")


@pytest.mark.parametrize(
    ("folder", "step"), [("checkpoint-10", 10), ("global_step_20", 20), ("step40", 40), ("iter_0000050", 50), ("x", 60)]
)
def test_steps_by_the_name_or_the_trainers_state(tmp_path: Path, folder: str, step: int) -> None:
    model(tmp_path / folder)
    (tmp_path / folder / "trainer_state.json").write_text('{"global_step": 60}')
    assert resolve("m", str(tmp_path / folder)).step == step


def test_thinking_models_are_known_by_their_template(tmp_path: Path) -> None:
    assert not resolve("m", str(model(tmp_path))).thinking
    (tmp_path / "chat_template.jinja").write_text("{% if enable_thinking %}<think>{% endif %}")
    assert resolve("m", str(tmp_path)).thinking


# What is refused


def test_missing_parts(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nowhere")
    assert "no model" in refusal(tmp_path)
    model(tmp_path / "m")
    assert "did you mean one of its folders: m" in refusal(tmp_path)
    (tmp_path / "m" / "tokenizer.json").unlink()
    assert "no tokenizer" in refusal(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    assert "no weights" in refusal(tmp_path / "m")
    model(tmp_path / "m")
    (tmp_path / "m" / "config.json").unlink()
    assert "no config.json" in refusal(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text("{")
    assert "not valid JSON" in refusal(tmp_path / "m")
    assert "is a file" in refusal(tmp_path / "m" / "config.json")


def test_torch_weights_are_fine(tmp_path: Path) -> None:
    model(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "training_args.bin").write_bytes(b"x")
    assert "no weights" in refusal(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"x" * 100)
    assert resolve("m", str(tmp_path)).weights


def test_torn_weights(tmp_path: Path) -> None:
    file = model(tmp_path) / "model.safetensors"
    whole = file.read_bytes()
    for length in (0, 5, 100, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert "truncated" in refusal(tmp_path)
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "git lfs pull" in refusal(tmp_path)
    file.write_bytes((20).to_bytes(8, "little") + b"x" * 20)
    assert "header" in refusal(tmp_path)


def test_missing_shards(tmp_path: Path) -> None:
    model(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00002.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    index.write_text(json.dumps({"weight_map": names}))
    message = refusal(tmp_path)
    assert "1 of 2" in message
    assert "model-00002-of-00002.safetensors" in message
    save_file(tensors(), tmp_path / "model-00002-of-00002.safetensors")
    assert resolve("m", str(tmp_path)).weights
    index.write_text(json.dumps({"weight_map": {"a": "../../etc/passwd"}}))
    assert "outside" in refusal(tmp_path)
    index.write_text("[]")
    assert "not a weight index" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("files", "at", "command"),
    [
        (["zero_to_fp32.py", "latest", "global_step300/bf16_zero_pp_rank_0_optim_states.pt"], "", "zero_to_fp32.py"),
        (["global_step300/mp_rank_00_model_states.pt", "zero_to_fp32.py"], "global_step300", "zero_to_fp32.py"),
        (["pytorch_model_fsdp_0/.metadata", "pytorch_model_fsdp_0/__0_0.distcp"], "", "accelerate merge-weights"),
        ([".metadata", "__0_0.distcp", "__1_0.distcp"], "", "accelerate merge-weights"),
        (["actor/model_world_size_2_rank_0.pt", "actor/huggingface/config.json"], "", "--backend fsdp"),
        (["model_world_size_2_rank_0.pt", "huggingface/config.json"], "", "python -m verl.model_merger merge"),
        (["model_world_size_2_rank_0.pt", "huggingface/config.json"], "huggingface", "verl.model_merger"),
        (["actor/dist_ckpt/__0_0.distcp", "actor/huggingface/config.json"], "", "--backend megatron"),
        (["actor/dist_ckpt/__0_0.distcp", "actor/dist_ckpt/common.pt"], "", "--backend megatron"),
        (["global_step_7/actor/dist_ckpt/__0_0.distcp"], "", "its last step: "),
        (["global_step_9/x", "global_step_20/actor/model_world_size_2_rank_0.pt"], "", "global_step_20/actor"),
        (["global_step5/zero_pp_rank_0_mp_rank_00_model_states.pt"], "", "python -m deepspeed.utils.zero_to_fp32"),
        (["zero_pp_rank_0_mp_rank_00_optim_states.pt"], "", "python -m deepspeed.utils.zero_to_fp32"),
    ],
)
def test_sharded_training_checkpoints_name_the_command_that_merges(
    tmp_path: Path, files: list[str], at: str, command: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    message = refusal(tmp_path / at if at else tmp_path)
    assert command in message
    assert "merge them first" in message


def test_a_configuration_that_names_no_model(tmp_path: Path) -> None:
    model(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert "config.json: names no model" in refusal(tmp_path)


def test_merged_weights_beside_shards_are_used(tmp_path: Path) -> None:
    model(tmp_path)
    (tmp_path / "zero_to_fp32.py").write_text("")
    assert resolve("m", str(tmp_path)).weights


def test_adapters_that_cannot_be_served(tmp_path: Path) -> None:
    model(tmp_path / "base")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"peft_type": "IA3"}, "IA3"),
        ({"peft_type": "LORA", "r": "x"}, "rank 'x'"),
        ({"use_dora": True}, "DoRA"),
        ({"modules_to_save": ["lm_head"]}, "lm_head"),
        ({"base_model_name_or_path": str(tmp_path / "gone")}, "base model"),
        ({"base_model_name_or_path": None}, "names no base model"),
    ]
    for i, (config, word) in enumerate(cases):
        assert word in refusal(adapter(tmp_path / f"lora{i}", str(tmp_path / "base"), **config))
    adapter(tmp_path / "bare", str(tmp_path / "base"))
    (tmp_path / "bare" / "adapter_model.safetensors").unlink()
    assert "without weights" in refusal(tmp_path / "bare")


# The hub


class ModelHandler(hub_server._Handler):
    """The stand-in hub serves datasets; a model's addresses lack the word."""

    def _answer(self, body: str = "") -> None:
        path = urlsplit(self.path).path
        if path.startswith("/api/models/"):
            self.path = self.path.replace("/api/models/", "/api/datasets/", 1)
        elif "/resolve/" in path and not path.startswith(("/api/", "/datasets/")):
            self.path = f"/datasets{self.path}"
        super()._answer(body)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A hub with the folder it serves, and an empty cache."""
    from huggingface_hub import constants

    with hub_server.hub(tmp_path / "hub") as server:
        server.RequestHandlerClass = ModelHandler
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield tmp_path / "hub"


def test_a_hub_id_is_fetched_and_then_found_in_the_cache(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(hub / "org" / "net")
    (hub / "org" / "net" / "net.gguf").write_bytes(b"x" * 1000)
    found = resolve("m", "org/net")
    assert found.weights == resolve("m", str(hub / "org" / "net")).weights
    assert not (Path(found.path) / "net.gguf").exists()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert resolve("m", "org/net") == found


def test_weights_may_wait_on_the_hub(hub: Path) -> None:
    model(hub / "org" / "net")
    waiting = resolve("m", "org/net", fetch=False)
    assert waiting.weights == ""
    assert not list(Path(waiting.path).glob("*.safetensors"))
    whole = resolve("m", "org/net")
    assert replace(waiting, weights=whole.weights) == whole
    assert resolve("m", "org/net", fetch=False) == whole  # they are here now


def test_what_the_hub_does_not_have(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.mkdir(exist_ok=True)
    assert "no such model on the hub" in refusal("org/none")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    message = refusal("org/none")
    assert "HF_HUB_OFFLINE is set" in message
    assert "give its folder" in message


# --model


def test_globs_expand_to_one_model_a_step(tmp_path: Path) -> None:
    for step in (1000, 200, 30):
        (tmp_path / "ba" / f"checkpoint-{step}").mkdir(parents=True)
    (tmp_path / "ba" / "checkpoint-9.tar").write_text("")
    pattern = str(tmp_path / "ba" / "checkpoint-*")
    steps = [(f"x@{step}", str(tmp_path / "ba" / f"checkpoint-{step}")) for step in (30, 200, 1000)]
    assert expand_models([f"x={pattern}"]) == steps
    assert [name for name, _ in expand_models([pattern])] == ["ba@30", "ba@200", "ba@1000"]
    assert [name for name, _ in expand_models([str(tmp_path / "ba" / "checkpoint-30")])] == ["ba@30"]


def test_names(tmp_path: Path) -> None:
    assert expand_models(["a=x/y", "Qwen/Qwen3-0.6B", "runs/m=1"]) == [
        ("a", "x/y"),
        ("Qwen3-0.6B", "Qwen/Qwen3-0.6B"),
        ("m-1", "runs/m=1"),
    ]
    for models, word in [
        (["a=x", "a=y"], "two models are named 'a'"),
        (["a=x", "A=y"], "two models are named"),
        (["=x"], "no name"),
        (["a="], "no path"),
        (["a b=x"], "a name may hold"),
        (["..=x"], "a name may hold"),
        ([f"a={tmp_path}/none-*"], "no folder matches"),
    ]:
        with pytest.raises(InputError, match=word):
            expand_models(models)


def test_looking_at_a_checkpoint_needs_no_torch(tmp_path: Path) -> None:
    model(tmp_path)
    code = (
        "import sys; from ba_eval.checkpoint import resolve; "
        f"resolve('m', {str(tmp_path)!r}); print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
