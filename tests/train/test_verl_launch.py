"""A configuration as a verl command; where verl is installed, its own configuration must know every key."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="prompts need transformers")

from ba_eval.cli import main
from ba_eval.errors import InputError
from ba_eval.train.config import load_config
from ba_eval.train.verl_launch import verl_command, verl_overrides
from ba_eval.train.verl_reward import compute_score
from tests.models import tiny_qwen3


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verl")
    tiny_qwen3(folder / "model")
    rows = [{"problem": f"What is {i} + 1?", "answer": [str(i + 1), f"{i}+1"]} for i in range(3)]
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "c.yaml").write_text(
        f"model: {folder / 'model'}\nout: {folder / 'my out'}\ndata: {{source: p.jsonl, benchmarks: []}}\n"
        "rule: balanced\nsteps: 7\nprompts: 2\ngroup: 4\nmax_response: 1024\ntrl: {learning_rate: 2.0e-6, beta: 0.0}\n"
        "launch: {num_processes: 16, num_machines: 2}\n"
    )
    return file_of(folder)


def file_of(folder: Path) -> Path:
    return folder / "c.yaml"


def test_the_command_and_its_data(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet

    assert main(["train", str(file), "--engine", "verl", "--print-launch"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("python -m verl.trainer.main_ppo \\\n")
    for part in (
        "algorithm.adv_estimator=ba_balanced ",
        "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum ",
        "actor_rollout_ref.actor.use_kl_loss=False ",
        "actor_rollout_ref.actor.optim.lr=2e-06 ",
        "actor_rollout_ref.actor.ppo_mini_batch_size=2 ",
        f"'data.train_files={file.parent / 'my out'}/verl_train.parquet' ",
        "trainer.n_gpus_per_node=8 ",
    ):
        assert part in printed.out
    assert "3 problems" in printed.err
    table = pyarrow.parquet.read_table(file.parent / "my out" / "verl_train.parquet").to_pylist()
    assert len(table) == 3 and table[0]["reward_model"]["ground_truth"] == ["1", "0+1"]
    assert table[0]["prompt"][-1]["role"] == "user" and "What is 0 + 1?" in table[0]["prompt"][-1]["content"]


def test_verl_knows_every_key(file: Path) -> None:
    verl = pytest.importorskip("verl", reason="verl is not installed")
    from hydra import compose, initialize_config_dir

    config, _ = load_config(str(file), ["scope=batch", "lora.r=8", "prompt.template_args={enable_thinking: false}"])
    overrides = [f"{k}={v}" for k, v in verl_overrides(config, Path("x.parquet")).items()]
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer" / "config"), version_base=None):
        composed: Any = compose("ppo_trainer", overrides)
    assert composed.algorithm.adv_estimator == "ba_balanced_batch"
    assert composed.actor_rollout_ref.rollout.n == 4 and composed.actor_rollout_ref.model.lora_rank == 8
    assert composed.data.apply_chat_template_kwargs.enable_thinking is False


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("trl.beta=0.01", "KL and entropy"),
        ("trl.entropy_coef=0.01", "KL and entropy"),
        ("prompt.template=qwen-boxed", "chat template only"),
        ("data.kind=code-stdin", "only math"),
        ("reward.format=0.1", "verdict alone"),
    ],
)
def test_what_verl_cannot_do_is_refused(file: Path, setting: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        verl_command(load_config(str(file), [setting])[0], print)


def test_verl_does_not_start_here(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(file), "--engine", "verl"]) == 2
    assert "--print-launch" in capsys.readouterr().err


def test_the_score_is_the_verdict() -> None:
    assert compute_score("dapo", "so \\boxed{0.5}", ["\\frac12", "7"]) == {"score": 1.0, "acc": 1.0, "undecided": 0.0}
    assert compute_score("dapo", "so \\boxed{8}", "7")["score"] == 0.0
