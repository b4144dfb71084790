"""The study: its plan, its flow with stand-ins for the long children, and for real with kills in every stage."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ba_eval.cli import main
from ba_eval.errors import InputError
from ba_eval.report import write_report
from ba_eval.study import estimate, findings
from ba_eval.study import run as study_run
from ba_eval.study.config import load_study
from ba_eval.study.plots import write_plots

ROOT = Path(__file__).resolve().parent.parent
STAND_IN = ROOT / "tests" / "study_child.py"

STUDY = """
out: {out}
model: base
data: {{source: train.jsonl}}
rules: [token, balanced]
seeds: [0]
train: {{steps: 4, save_every: 2, prompts: 2, group: 4, micro_batch: 8, trl: {{use_cpu: true}}}}
eval: {{benchmarks: ["held.yaml:2"], temperature: 1.0, max_tokens: 32}}
gates: {{max_drop: ["held:avg=0.1"]}}
"""
BENCHMARK = 'title: Held out\nkind: math\nprompt: "{problem}"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of two arms on a model that is a few bytes."""
    from tests.study_child import write_model

    write_model(tmp_path / "base", 0)
    rows = [{"id": str(i), "problem": f"{i}+{i}", "answer": str(2 * i)} for i in range(6)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("train", "held"):
        (tmp_path / f"{name}.jsonl").write_text(text)
    (tmp_path / "held.yaml").write_text(BENCHMARK)
    (tmp_path / "study.yaml").write_text(STUDY.format(out=tmp_path / "out"))
    return tmp_path


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that leave what a training and an evaluation leave, without a model: real processes, in moments."""

    def words(stage: str) -> Any:
        return lambda *given: [sys.executable, str(STAND_IN), stage, str(given[-1])]

    monkeypatch.setattr(study_run, "train_words", words("train"))
    monkeypatch.setattr(study_run, "eval_words", words("eval"))
    for name in ("write_plots", "write_report"):  # seconds each; made in one test
        monkeypatch.setattr(findings, name, lambda *_: [])


def study(folder: Path, *more: str) -> int:
    return main(["study", str(folder / "study.yaml"), *more])


def calls(folder: Path) -> list[tuple[str, str]]:
    return [(line["arm"], line["stage"]) for line in map(json.loads, (folder / "out/times.jsonl").open())]


ARMS = ("token-0", "balanced-0")


def test_all_of_it(
    folder: Path, stand_in: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(findings, "write_plots", write_plots)
    monkeypatch.setattr(findings, "write_report", write_report)
    assert study(folder, "--set", "seeds=2") == 0  # how many
    said = capsys.readouterr()
    arms = (*ARMS, "token-1", "balanced-1")
    assert calls(folder) == [("base", "eval"), *((arm, stage) for arm in arms for stage in ("train", "eval"))]
    out = folder / "out"
    assert (out / "plots/learning.png").read_bytes().startswith(b"\x89PNG")
    assert "balanced-1@4" in (out / "report.html").read_text()
    for name in ("table.md", "table.csv", "rules.md", "curves.md", "curves.csv", "from_base.md", "training.md"):
        assert (out / "tables" / name).stat().st_size > 0, name
    plan = json.loads((out / "run" / "plan.json").read_text())
    assert [model["name"] for model in plan["models"]][:3] == ["base", "token-0@2", "token-0@4"]
    # The stand-ins answer by step: half right from the start, all right at the end.
    curves = (out / "tables" / "curves.csv").read_text().splitlines()
    assert any(line.startswith("run,token,4,2,") and ",1" in line for line in curves)
    assert ElementTree.parse(out / "gates.xml").getroot().get("failures") == "0"
    assert "ok   balanced-1@4: max-drop held:avg=0.1" in said.err
    assert main(["table", str(out / "run")]) == 0


def test_what_is_done_is_not_done_again(folder: Path, stand_in: None) -> None:
    assert study(folder) == 0
    before = calls(folder)
    assert study(folder) == 0
    assert calls(folder) == before
    # Another n is more to evaluate and nothing to train; another seed is two more arms.
    assert study(folder, "--set", "eval.benchmarks=[held.yaml:4]", "--set", "seeds=[0, 3]") == 0
    more = calls(folder)[len(before) :]
    assert [call for call in more if call[1] == "train"] == [("token-3", "train"), ("balanced-3", "train")]
    assert sum(stage == "eval" for _, stage in more) == 5


def test_changed_weights_or_problems_are_evaluated_again(folder: Path, stand_in: None) -> None:
    from tests.study_child import write_model

    assert study(folder) == 0
    before = len(calls(folder))
    write_model(folder / "out/arms/token-0/checkpoint-2", 99)
    assert study(folder, "--stage", "eval") == 0
    assert calls(folder)[before:] == [("token-0", "eval")]
    (folder / "held.jsonl").write_text('{"id": "0", "problem": "1+0", "answer": "1"}\n')
    assert study(folder, "--stage", "eval") == 0
    assert len(calls(folder)) == before + 1 + 3


def test_one_arm_by_number_or_name(folder: Path, stand_in: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(folder, "--arm", "1") == 0
    assert calls(folder) == [("balanced-0", "train"), ("balanced-0", "eval")]
    assert not (folder / "out/run").exists()
    assert study(folder, "--arm", "balanced-0", "--stage", "report") == 3
    said = capsys.readouterr().err
    assert "incomplete: token-0: step 0 of 4, not evaluated" in said and "base: not evaluated" in said
    assert "balanced" in (folder / "out/tables/rules.md").read_text()
    for wrong, what in (("2", "by number: 0 to 1"), ("balanced_0", "did you mean 'balanced-0'")):
        assert study(folder, "--arm", wrong) == 2
        assert what in capsys.readouterr().err


def test_an_array_of_tasks(folder: Path, stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each arm in its own process at the same time, two processes for each, and the report after them."""
    command = [sys.executable, str(STAND_IN), "study", str(folder / "study.yaml"), "--arm"]
    tasks = [subprocess.Popen([*command, str(i % 2)], cwd=ROOT, stderr=subprocess.PIPE) for i in range(4)]
    codes = []
    for task in tasks:
        _, said = task.communicate(timeout=120)
        assert task.returncode == 0 or b"another process is at it" in said, said
        codes.append(task.returncode)
    assert set(codes) <= {0, 3}
    assert sorted(calls(folder)) == sorted((arm, stage) for arm in ARMS for stage in ("train", "eval"))
    assert study(folder) == 0
    assert calls(folder)[-1] == ("base", "eval")


def test_one_process_at_a_time_writes_what_was_found(
    folder: Path, stand_in: None, capsys: pytest.CaptureFixture[str]
) -> None:
    from filelock import FileLock

    assert study(folder) == 0
    (folder / "out/tables/rules.md").unlink()
    with FileLock(folder / "out/locks/report.lock"):
        assert study(folder) == 3
        assert "report: another process is at it" in capsys.readouterr().err
        assert not (folder / "out/tables/rules.md").exists()
    assert study(folder, "--stage", "report") == 0
    assert (folder / "out/tables/rules.md").exists()


@pytest.mark.parametrize("stage", ["train", "eval"])
def test_a_dead_arm_does_not_stop_the_others(
    folder: Path, stand_in: None, stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STAND_IN_DIES", f"{stage} balanced-0")
    assert study(folder) == 3
    assert f"ba-eval: balanced-0: {stage} was ended by SIGKILL" in capsys.readouterr().err
    assert {arm for arm, did in calls(folder) if did == "eval"} >= {"base", "token-0"}
    monkeypatch.delenv("STAND_IN_DIES")
    before = len(calls(folder))
    assert study(folder) == 0
    expected = [("balanced-0", "train"), ("balanced-0", "eval")]
    assert calls(folder)[before:] == (expected if stage == "train" else expected[1:])


@pytest.mark.parametrize("stage", ["train", "eval", "report"])
def test_killed_in_a_stage_and_run_again(folder: Path, stand_in: None, stage: str) -> None:
    """kill -9 of the study itself: its child goes with it, and the next one goes on."""
    environment = os.environ | {"STAND_IN_WAITS": f"{stage} balanced-0"}
    command = [sys.executable, str(STAND_IN), "study", str(folder / "study.yaml")]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    mark = folder / "out" / f"waiting-{stage}"
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    child = int(mark.read_text())
    while _is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    before = calls(folder)
    assert study(folder) == 0
    done = calls(folder)
    assert done[: len(before)] == before
    trained = [arm for arm, did in done if did == "train"]
    assert sorted(trained) == sorted(ARMS)  # each once: a cut one has no line of its own
    assert (folder / "out/tables/rules.md").is_file()


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def test_bad_input_of_a_child_stops_the_study(
    folder: Path, stand_in: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STAND_IN_REFUSES", "train token-0")
    assert study(folder) == 2
    assert "token-0: train refused its input" in capsys.readouterr().err
    assert calls(folder) == [("base", "eval"), ("token-0", "train")]


def test_a_failing_gate_exits_1(folder: Path, stand_in: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(folder, "--set", "gates={min: ['held:avg=1.0']}") == 0
    assert study(folder, "--stage", "gates", "--set", "gates={min: ['held:pass@2=1.0']}") == 0
    capsys.readouterr()
    (folder / "worse").mkdir()
    assert study(folder, "--set", f"out={folder / 'worse'}", "--set", "train.steps=2", "--set",
                 "gates={min: ['held:avg=0.9']}") == 1  # fmt: skip
    assert "FAIL token-0@2: min held:avg=0.9" in capsys.readouterr().err


def test_dry_run(folder: Path, stand_in: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(folder, "--dry-run") == 0
    said = capsys.readouterr().out
    assert not (folder / "out").exists()
    assert "0  token-0     step 0 of 4, not evaluated" in said
    assert "left: 8 training steps, 5 checkpoints to evaluate (12 samples each)" in said
    assert "CPU hours (this machine's CPU" in said and "s a step, assumed" in said and "(by its weights)" in said
    assert study(folder, "--arm", "0") == 0
    capsys.readouterr()
    assert study(folder, "--dry-run") == 0
    said = capsys.readouterr().out
    assert "0  token-0     trained, evaluated" in said
    assert "left: 4 training steps, 3 checkpoints" in said
    # 3.0 s a step is what the stand-in logs.
    assert "3.0 s a step, the median of 3 measured steps" in said
    assert study(folder) == 0
    capsys.readouterr()
    assert study(folder, "--dry-run") == 0
    assert "left: 0 training steps, 0 checkpoints" in capsys.readouterr().out


def test_dry_run_of_a_part_counts_that_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(folder, "--dry-run", "--set", "seeds=2", "--arm", "token-1") == 0
    said = capsys.readouterr().out
    assert said.startswith("  2  token-1  step 0 of 4, not evaluated\nleft: 4 training steps, 2 checkpoints")
    assert "base" not in said
    assert study(folder, "--dry-run", "--stage", "train") == 0
    assert "left: 8 training steps, 0 checkpoints" in capsys.readouterr().out
    assert study(folder, "--dry-run", "--stage", "eval") == 0  # nothing is trained: the base alone
    assert "left: 0 training steps, 1 checkpoints" in capsys.readouterr().out


def test_hours_are_of_the_device_that_trains(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*settings: str, gpus: int) -> str:
        monkeypatch.setattr(estimate, "gpus", lambda: [str(i) for i in range(gpus)])
        assert study(folder, "--dry-run", *(word for setting in settings for word in ("--set", setting))) == 0
        return capsys.readouterr().out

    auto = "train.trl={}"
    assert "CPU hours (this machine's CPU" in said(auto, gpus=0)
    assert "GPU hours (an 80 GB GPU):" in said(auto, gpus=1)
    assert "GPU hours (an 80 GB GPU; this machine has no GPU)" in said(auto, "train.rollout=vllm-colocate", gpus=0)
    large = said(auto, "train.launch.num_processes=8", "model=some/Model-1.7B-Instruct", gpus=0)
    assert "1.7e+09 parameters (by its name)" in large and "; on 8 GPUs" in large
    assert "not known" in said("model=some/model", gpus=0)
    assert "CPU hours" in said(gpus=4)  # use_cpu


def test_a_trial_in_a_folder_of_its_own_measures_for_the_plan(
    folder: Path, stand_in: None, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = ("--set", f"out={folder / 'trial'}")
    assert study(folder, *trial, "--arm", "0", "--set", "train.steps=2") == 0
    capsys.readouterr()
    assert study(folder, *trial, "--dry-run") == 0
    said = capsys.readouterr().out
    assert "3.0 s a step, the median of 1 measured steps" in said and "assumed" not in said
    assert not (folder / "out").exists()


def test_a_missing_package_is_told_before_anything_is_trained(
    folder: Path, stand_in: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_run, "missing_package", lambda _: "DeepSpeed is missing")
    sharded = ("--set", "train.launch={use_deepspeed: true}")
    assert study(folder, *sharded, "--dry-run") == 0
    assert capsys.readouterr().out.endswith("before you run it: DeepSpeed is missing\n")
    assert study(folder, *sharded) == 2
    assert "DeepSpeed is missing" in capsys.readouterr().err and not (folder / "out").exists()


def test_the_study_in_the_documentation_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs/study.md").read_text()
    file = tmp_path / "study.yaml"
    file.write_text(text.partition("```yaml\n")[2].partition("```")[0])
    made = load_study(file)
    assert len(made.arms) == 15 and made.arms[0].train.trl["learning_rate"] == 2e-6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("seeds: [0]", "seedz: [0]"), r"study.yaml:6: unknown key 'seedz'; did you mean 'seeds'"),
        (("seeds: [0]", "seeds: [1, 1]"), r"study.yaml:6: seeds: one stands twice"),
        (("rules: [token, balanced]", "rules: [token, balancd]"), r"study.yaml:5: .*did you mean 'balanced'"),
        (("steps: 4", "stepz: 4"), r"study.yaml:7: .*unknown key 'stepz'; did you mean 'steps'"),
        (("steps: 4", "seed: 1, steps: 4"), r"study.yaml:7: train.seed: leave it out; 'seeds' lists them"),
        (("steps: 4", "from: nowhere, steps: 4"), r"study.yaml:7: train.from: training configuration nowhere"),
        (("temperature: 1.0", "temprature: 1.0"), r"study.yaml:8: unknown key 'temprature'"),
        (("temperature: 1.0", "out: x"), r"study.yaml:8: eval.out: leave it out"),
        (("held.yaml:2", "held.yml:2"), r"study.yaml:8: eval.benchmarks: benchmark held.yml: there is no such file"),
        (("held.yaml:2", "math5000"), r"study.yaml:8: .*did you mean 'math500'"),
        (("held:avg=0.1", "hold:avg=0.1"), r"study.yaml:9: gates: .*did you mean 'held'"),
        (("held:avg=0.1", "held:avg=10"), r"study.yaml:9: gates: .*between 0 and 1"),
        (('["held:avg=0.1"]', '["held:avg=0.1"], baseline: /nowhere'), r"study.yaml:9: gates: /nowhere"),
        (("seeds: [0]", "seeds: [-1]"), r"study.yaml:6: seed: must lie between 0 and"),
        (("rules: [token, balanced]", "rules: tokn"), r"study.yaml:5: rule: 'tokn' is unknown; did you mean 'token'"),
        (("source: train.jsonl", "sauce: train.jsonl"), r"study.yaml:4: .*unknown key 'sauce'"),
        (("model: base", "mode: base"), r"unknown key 'mode'"),
    ],
)
def test_mistakes_are_named(folder: Path, change: tuple[str, str], said: str) -> None:
    file = folder / "study.yaml"
    text = file.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change))
    with pytest.raises(InputError, match=said):
        load_study(file)
    assert not (folder / "out").exists()


def test_out_must_be_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(folder, "--set", f"out={folder / 'train.jsonl'}") == 2
    assert "train.jsonl: is a file" in capsys.readouterr().err


def test_a_start_from_a_ready_configuration(folder: Path) -> None:
    settings: Sequence[str] = ["train={from: qwen3-1.7b-dapo17k, steps: 7, trl: {learning_rate: 2.0e-6}}"]
    arm = load_study(folder / "study.yaml", settings).arms[1]
    assert (arm.train.steps, arm.train.prompts, arm.train.rule, arm.train.seed) == (7, 64, "balanced", 0)
    assert arm.train.trl["learning_rate"] == 2e-6 and arm.train.trl["epsilon_high"] == 0.28
    assert arm.train.model == str(folder / "base")
    # What is evaluated is what training problems are kept apart from.
    assert arm.train.data.benchmarks == (str(folder / "held.yaml"),)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(2400)
def test_for_real_with_kills(tmp_path: Path) -> None:
    """A tiny model, real training and vLLM; kill -9 in training and while evaluating.

    The rewards and gradient norms are those of an arm that nobody killed.
    """
    pytest.importorskip("trl", reason="training needs the train extra")
    pytest.importorskip("vllm", reason="needs vLLM")
    from tests.models import tiny_qwen3

    tiny_qwen3(tmp_path / "base")
    rows = [{"problem": f"Name digit {i % 10} of the list of item {i}.", "answer": str(i % 10)} for i in range(24)]
    for name, chosen in (("train", rows[:16]), ("held", rows[16:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chosen))
    (tmp_path / "held.yaml").write_text(BENCHMARK)
    file = tmp_path / "study.yaml"
    file.write_text(
        STUDY.format(out=tmp_path / "out")
        .replace("held.yaml:2", "held.yaml:24")  # more than are finished when it is killed
        .replace(
            "prompts: 2, group: 4, micro_batch: 8,",
            "prompts: 4, group: 4, micro_batch: 8, max_prompt: 300, max_response: 48, workers: 1, "
            "reward: {grader: {extract: [boxed, last-number]}},",
        )
    )
    out = tmp_path / "out"
    command = [sys.executable, "-m", "ba_eval", "study", str(file)]

    def kill_when(ready: Path, lines: int) -> None:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 900
        while not (ready.is_file() and len(ready.read_text().splitlines()) >= lines):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()

    kill_when(out / "eval/base/samples/base/held.jsonl", 3)
    kill_when(out / "arms/token-0/diagnostics.jsonl", 3)
    kill_when(out / "eval/token-0/samples/token-0@4/held.jsonl", 3)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [arm for arm, stage in calls(tmp_path) if stage == "train"] == ["token-0", "balanced-0"]
    alone = tmp_path / "alone"
    words = [sys.executable, "-m", "ba_eval.train", str(out / "arms/token-0.yaml"), "--set", f"out={alone}"]
    subprocess.run(words, cwd=ROOT, check=True, timeout=600, stdout=subprocess.DEVNULL)
    logs = [[json.loads(line) for line in (at / "diagnostics.jsonl").open()] for at in (out / "arms/token-0", alone)]
    assert [row["step"] for row in logs[0]] == [1, 2, 3, 4]
    for name in ("reward", "grad_norm", "loss", "length/mean"):
        assert [row[name] for row in logs[0]] == [row[name] for row in logs[1]], name
    plan = json.loads((out / "run/plan.json").read_text())
    for model in (model["name"] for model in plan["models"]):
        samples = [json.loads(line) for line in (out / f"run/samples/{model}/held.jsonl").open()]
        assert sorted((s["problem_id"], s["index"]) for s in samples) == sorted(
            (problem, i) for problem in plan["benchmarks"][0]["problem_ids"] for i in range(24)
        )
    assert (out / "report.html").stat().st_size > 10_000
