"""Whole runs of a tiny model on the CPU: what they leave, going on after a kill, and what is refused."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="training needs the train extra")

from ba_eval.checkpoint import resolve
from ba_eval.errors import InputError, MachineError
from ba_eval.prompt import Renderer
from ba_eval.train.arguments import trl_arguments
from ba_eval.train.checkpoints import checkpoints
from ba_eval.train.config import load_config
from ba_eval.train.run import train
from tests.models import tiny_lora, tiny_qwen3

CONFIG = """
data: {source: problems.jsonl, benchmarks: []}
steps: 4
save_every: 2
prompts: 4
group: 4
micro_batch: 8
max_prompt: 300
max_response: 64
reward: {format: 0.1, overlong: {buffer: 60}, grader: {extract: [boxed, last-number]}}
seed: 5
workers: 1
trl: {learning_rate: 1e-3, use_cpu: true}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, problems and a configuration."""
    folder = tmp_path_factory.mktemp("train")
    tiny_qwen3(folder / "model")
    rows = [{"problem": f"Name digit {i % 10} of the list of item {i}.", "answer": str(i % 10)} for i in range(24)]
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "run.yaml").write_text(f"model: {folder / 'model'}\nout: {folder / 'out'}\n{CONFIG}")
    return folder


def start(folder: Path, *settings: str) -> tuple[Path, list[str]]:
    said: list[str] = []
    config, _ = load_config(str(folder / "run.yaml"), settings)
    return train(config, said.append), said


@pytest.fixture(scope="module")
def finished(folder: Path) -> tuple[Path, list[str]]:
    return start(folder)


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "diagnostics.jsonl").read_text().splitlines()]


def test_every_step_is_recorded(finished: tuple[Path, list[str]]) -> None:
    last, said = finished
    out = last.parent
    assert last.name == "checkpoint-4" and list(checkpoints(out)) == [2, 4]
    recorded = rows(out)
    assert [row["step"] for row in recorded] == [1, 2, 3, 4]
    assert all(row["grad_norm"] >= 0 and row["length/mean"] <= 64 for row in recorded)
    assert any(row["grad_norm"] > 0 for row in recorded)
    for rule in ("token", "sequence", "balanced"):
        assert all(f"{rule}/push_net" in row for row in recorded)
    assert sum(line.startswith("step ") for line in said) == 4
    assert "24 rows" in said[0] and "24 problems" in said[1]


def test_rows_per_group(finished: tuple[Path, list[str]]) -> None:
    import pyarrow.parquet

    files = sorted((finished[0].parent / "groups").iterdir())
    assert [file.name for file in files] == ["step-000002.parquet", "step-000004.parquet"]
    table = pyarrow.parquet.read_table(files[1]).to_pydict()
    assert table["step"] == [3] * 4 + [4] * 4 and table["responses"] == [4] * 8
    assert sum(table["tokens"][:4]) == pytest.approx(16 * rows(finished[0].parent)[2]["length/mean"])


def test_a_checkpoint_is_one_that_the_evaluation_reads(finished: tuple[Path, list[str]], folder: Path) -> None:
    record = json.loads((finished[0] / "training.json").read_text())
    assert (record["aggregation"], record["scope"], record["step"], record["seed"]) == ("balanced", "group", 4, 5)
    assert record["data"]["problems"] == 24 and len(record["data"]["content"]) == 64
    assert record["versions"]["trl"] and record["config"]["trl"]["learning_rate"] == "1e-3"
    checkpoint = resolve("ba", str(finished[0]))
    assert (checkpoint.aggregation, checkpoint.step, checkpoint.training_seed) == ("balanced", 4, 5)
    assert checkpoint.weights != resolve("base", str(folder / "model")).weights
    trained = Renderer(resolve("base", str(folder / "model")))
    assert Renderer(checkpoint).render("What is 1 + 1?") == trained.render("What is 1 + 1?")


def test_a_finished_run_is_not_trained_again(finished: tuple[Path, list[str]], folder: Path) -> None:
    before = (finished[0] / "training.json").stat().st_mtime_ns
    last, said = start(folder)
    assert last == finished[0] and "finished already" in said[0]
    assert (last / "training.json").stat().st_mtime_ns == before


def test_another_configuration_does_not_go_into_the_same_folder(finished: tuple[Path, list[str]], folder: Path) -> None:
    with pytest.raises(InputError, match=r"another rule \(there: .*balanced"):
        start(folder, "rule=token")


def test_a_half_written_checkpoint_is_made_again_as_it_would_have_been(
    finished: tuple[Path, list[str]], folder: Path
) -> None:
    """The machine dies while checkpoint 4 is written, and in the middle of a line of the diagnostics."""
    whole = rows(finished[0].parent)
    out = folder / "cut"
    start(folder, f"out={out}", "seed=6")
    reference = rows(out)
    assert [row["reward"] for row in reference] != [row["reward"] for row in whole]  # the seed counts
    (out / "checkpoint-4" / "training.json").unlink()
    with (out / "diagnostics.jsonl").open("a") as log:
        log.write('{"step": 5, "rew')
    _, said = start(folder, f"out={out}", "seed=6")
    assert "step 2 of 4" in said[-3]
    again = rows(out)
    assert [row["step"] for row in again] == [1, 2, 3, 4]
    for name in ("reward", "grad_norm", "loss", "length/mean", "balanced/push_positive"):
        assert [row[name] for row in again] == [row[name] for row in reference], name
    assert resolve("a", str(out / "checkpoint-4")).step == 4


def test_going_on_after_the_first_epoch_keeps_the_order_of_problems(folder: Path) -> None:
    """Four problems, four to a batch: each step is an epoch, and each has its own order."""
    import shutil

    out = folder / "epochs"
    settings = (f"out={out}", "data.limit=4")
    start(folder, *settings)
    reference = rows(out)
    shutil.rmtree(out / "checkpoint-4")
    start(folder, *settings)
    for name in ("reward", "grad_norm", "length/mean"):
        assert [row[name] for row in rows(out)] == [row[name] for row in reference], name


def test_a_lora_checkpoint_is_an_adapter_of_the_base(folder: Path) -> None:
    pytest.importorskip("peft")
    last, _ = start(folder, f"out={folder / 'lora'}", "lora.r=4", "steps=1", "reward.overlong=null")
    checkpoint = resolve("lora", str(last))
    assert checkpoint.base == str((folder / "model").resolve()) and checkpoint.lora_rank == 4
    assert checkpoint.aggregation == "balanced" and checkpoint.step == 1


def test_code_is_rewarded_by_the_judge(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of the responses run in the sandbox: some responses are made right, and those alone are rewarded."""
    from ba_eval.errors import BaEvalError
    from ba_eval.train import rewards as train_rewards

    tests = [{"input": "3\n", "output": "6\n"}, {"input": "-1\n", "output": "-2\n"}]
    asked = [{"problem": f"Print twice the number. ({i})", "tests": tests} for i in range(8)]
    source = tmp_path / "code.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in asked))
    right, wrong = "```python\nprint(2 * int(input()))\n```", "```python\nprint(3 * int(input()))\n```"
    make = train_rewards.make_grader
    seen: list[str] = []

    class Answering:
        """The judge, given a program in the place of what a random model says."""

        def __init__(self, config: Any) -> None:
            self.judge = make(config)

        def submit(self, problem: Any, text: str, finish_reason: str) -> Any:
            seen.append(right if len(seen) % 2 else wrong)
            return self.judge.submit(problem, seen[-1], "stop")

        def close(self) -> None:
            self.judge.close()

    monkeypatch.setattr(train_rewards, "make_grader", Answering)
    settings = [f"data={{source: {source}, kind: code-stdin, benchmarks: []}}", "reward={}", "steps=1", "save_every=1"]
    try:
        last, said = start(folder, f"out={tmp_path / 'code'}", *settings)
    except BaEvalError as error:
        if "sandbox" in str(error):
            pytest.skip(f"no sandbox here: {error}")
        raise
    (row,) = rows(last.parent)
    assert len(seen) == 16 and row["rewards/accuracy/mean"] == 0.5 and row["grad_norm"] > 0
    assert "8 problems" in said[1]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_kill_in_the_middle_and_go_on(finished: tuple[Path, list[str]], folder: Path) -> None:
    """After kill -9 the next steps give the rewards and gradient norms of the run that was not killed."""
    out = folder / "killed"
    command = [sys.executable, "-m", "ba_eval.train", str(folder / "run.yaml"), "--set", f"out={out}"]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = out / "diagnostics.jsonl"
    deadline = time.monotonic() + 600
    while not (log.is_file() and len(log.read_text().splitlines()) >= 3):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "step 2 of 4" in done.stdout or "step 4 of 4" in done.stdout
    for name in ("reward", "grad_norm", "loss"):
        assert [r[name] for r in rows(out)] == [r[name] for r in rows(finished[0].parent)], name


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("trl.loss_type=grpo", "trl.loss_type: is fixed"),
        ("trl.num_generations=4", "set that"),
        ("trl.learning_rat=1", "did you mean 'learning_rate'"),
        ("micro_batch=7", "do not divide"),
        ("group=1", "no advantage"),
        ("rule=ballanced", "did you mean 'balanced'"),
        ("promts=4", "did you mean 'prompts'"),
        ("data.source=nowhere.jsonl", "no such file"),
        ("max_prompt=3", "longer than max_prompt 3"),
        ("data.limit=3", "3 problems are left to train on, fewer than one batch of prompts"),
        ("prompt.message=hello", "must contain"),
        ("model=/nowhere/at/all", "no such folder"),
        ("prompt.template=qwen-boxt", "qwen-boxed"),
        ("data.columns.answer=gold", "no column 'gold'"),
        ("data.limit=-1", "limit: must be at least 1"),
        ("data.dir=/nowhere", "no such folder"),
        ("seed=-1", "seed: must lie between 0 and"),
        ("workers=0", "workers: must be at least 1"),
        ("lora.r=0", "r and alpha must be at least 1"),
        ("max_response=100000", "do not fit into the 2048 tokens"),
        ("reward.grader={nope: 1}", "unknown key 'nope'"),
        ("trl.learning_rate=fast", "trl.learning_rate: must be a number, and is 'fast'"),
        ("trl.learning_rate=-1", "must not be negative"),
        ("trl.beta=abc", "trl.beta: must be a number"),
        ("trl.temperature=0", "must be above 0"),
        ("trl.optim=adam_nope", "adam_nope is not a valid"),
        ("trl.report_to=nonsense", "nonsense is not supported"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(folder: Path, setting: str, said: str) -> None:
    out = folder / "refused"
    with pytest.raises(InputError, match=said):
        start(folder, f"out={out}", setting)
    assert not out.exists()


def test_what_the_model_cannot_take_is_one_line(folder: Path) -> None:
    with pytest.raises(InputError, match="refuses this configuration: Target modules nope not found"):
        start(folder, f"out={folder / 'no-such-layer'}", "lora.target_modules=nope")


def test_a_tracker_that_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ba_eval.train import arguments

    monkeypatch.setattr(arguments, "TRACKERS", {"tensorboard": ("no_such_package",)})
    with pytest.raises(InputError, match="report_to: tensorboard is not installed: pip install tensorboard"):
        start(folder, f"out={folder / 'untracked'}", "trl.report_to=[tensorboard]")
    assert not (folder / "untracked").exists()


def test_vllm_in_the_same_process_needs_a_gpu(folder: Path) -> None:
    config, _ = load_config(str(folder / "run.yaml"), ["rollout=vllm-colocate"])
    with pytest.raises(InputError, match="needs a GPU"):
        trl_arguments(config, Path("out"), 1, "cpu")


def test_two_trainings_do_not_share_a_folder(folder: Path) -> None:
    from filelock import FileLock

    out = folder / "shared"
    out.mkdir()
    with FileLock(out / ".lock"), pytest.raises(MachineError, match="another process is training there"):
        start(folder, f"out={out}")
    assert [file.name for file in out.iterdir()] == [".lock"]


def test_a_failure_of_the_machine_is_one_and_the_run_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ba_eval.train.trainer import AggregationTrainer

    settings = [f"out={folder / 'oom'}", "steps=2", "save_every=1", "max_response=16", "reward.overlong=null"]
    check = AggregationTrainer._check

    def fails(self: Any, *given: Any) -> None:
        if self.state.global_step == 1:
            raise RuntimeError("out of memory")
        check(self, *given)

    monkeypatch.setattr(AggregationTrainer, "_check", fails)
    with pytest.raises(MachineError, match="training stopped: RuntimeError: out of memory; checkpoints stay"):
        start(folder, *settings)
    monkeypatch.setattr(AggregationTrainer, "_check", check)
    last, said = start(folder, *settings)
    assert last.name == "checkpoint-2" and any("step 1 of 2" in line for line in said)


def test_arguments_of_trl(folder: Path) -> None:
    config, _ = load_config(str(folder / "run.yaml"), ["trl.epsilon_high=0.3"])
    found = trl_arguments(config, Path("out"), 2, "cpu")
    assert found["gradient_accumulation_steps"] == 1 and found["learning_rate"] == 1e-3
    assert found["epsilon_high"] == 0.3 and found["beta"] == 0 and found["loss_type"] == "dapo"


def test_an_adapter_can_be_no_start(folder: Path) -> None:
    pytest.importorskip("peft")
    tiny_lora(folder / "adapter", folder / "model")
    with pytest.raises(InputError, match="merge"):
        start(folder, f"out={folder / 'refused'}", f"model={folder / 'adapter'}")
