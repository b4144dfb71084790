"""The main job for real: a real model in real vLLM, real grading, a real sandbox, a table at the end."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark import hub_server
from tests.models import tiny_qwen3
from tests.test_checkpoint import ModelHandler

MODEL = Path(__file__).resolve().parent.parent / ".cache" / "models" / "SmolLM2-135M-Instruct"

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not MODEL.is_dir(), reason="needs the demo model: make demo-model"),
]


def command(out: Path, *more: str) -> list[str]:
    base = [sys.executable, "-m", "ba_eval", "eval", "--model", f"smollm2={MODEL}", "--out", str(out)]
    return [*base, "--benchmarks", "smoke:2", "--limit", "4", "--max-tokens", "48", *more]


def records(out: Path, what: str) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted((out / what).rglob("*.jsonl")) for line in path.open()]


def check_exactly_once(out: Path) -> None:
    plan = json.loads((out / "plan.json").read_text())
    wanted = Counter((pid, i) for b in plan["benchmarks"] for pid in b["problem_ids"] for i in range(b["n"]))
    for what in ("samples", "verdicts"):
        assert Counter((r["problem_id"], r["index"]) for r in records(out, what)) == wanted
    assert {v["outcome"] for v in records(out, "verdicts")} <= {"correct", "wrong", "undecided"}


def test_from_a_checkpoint_to_a_table(tmp_path: Path) -> None:
    out = tmp_path / "run"
    # From another folder, as an installed package is used.
    first = subprocess.run(command(out), capture_output=True, text=True, cwd=tmp_path, timeout=1500, check=False)
    assert first.returncode == 0, first.stderr
    check_exactly_once(out)
    assert "smoke_math" in first.stdout
    assert "smollm2" in first.stdout
    engine = json.loads((out / "environment.json").read_text())["engines"]["smollm2"]
    assert engine["engine"] == "vllm"
    assert all(s["prompt_tokens"] > 0 and s["completion_tokens"] > 0 for s in records(out, "samples"))

    second = subprocess.run(command(out), capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert "loading" not in second.stderr


@pytest.mark.slow
def test_a_killed_engine_is_started_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    environment = out / "environment.json"
    while process.poll() is None and not (environment.exists() and "smollm2" in environment.read_text()):
        time.sleep(0.1)
    os.kill(_engine_of(process.pid), signal.SIGKILL)
    _, errors = process.communicate(timeout=1500)
    assert process.returncode == 0, errors
    assert "starting the engine again" in errors
    check_exactly_once(out)


@pytest.mark.slow
def test_the_next_checkpoint_comes_from_the_hub_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    with hub_server.hub(tmp_path / "hub") as server:
        server.RequestHandlerClass = ModelHandler
        for seed, name in enumerate("abc"):
            tiny_qwen3(tmp_path / "hub" / "org" / name, seed=seed)
        (tmp_path / "hub" / "org" / "c" / "model.safetensors").write_bytes(b"torn")
        for key, value in {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}",
            "HF_HUB_CACHE": str(tmp_path / "cache"),
            "OMP_NUM_THREADS": "1",
        }.items():
            monkeypatch.setenv(key, value)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        models = [option for name in "abc" for option in ("--model", f"{name}=org/{name}")]
        base = [sys.executable, "-m", "ba_eval", "eval", *models, "--out", str(out), "--benchmarks", "smoke_math:2"]
        done = subprocess.run(
            [*base, "--limit", "3", "--max-tokens", "8"], capture_output=True, text=True, timeout=900, check=False
        )
    assert done.returncode == 2, done.stderr  # of the third, nothing is usable; the others are whole
    assert "dry-run" not in done.stderr
    assert "truncated or no safetensors file" in done.stderr
    assert "incomplete: 6 samples missing; mend what was refused" in done.stderr
    for name in "ab":
        assert len((out / "samples" / name / "smoke_math.jsonl").read_text().splitlines()) == 6
    plan = json.loads((out / "plan.json").read_text())
    assert [bool(model["weights"]) for model in plan["models"]] == [True, True, False]
    assert plan["keys"]["c"]["smoke_math"] == ""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_samples_one_at_a_time(tmp_path: Path) -> None:
    texts = []
    for run, limit in (("one", 2), ("two", 4)):  # what else is asked makes no difference
        out = tmp_path / run
        done = subprocess.run(
            command(out, "--deterministic", "--limit", str(limit)), capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stderr
        engine = json.loads((out / "environment.json").read_text())["engines"]["smollm2"]
        assert (engine["deterministic"], engine["max_num_seqs"]) == ("one sequence at a time", 1)
        texts.append({(r["problem_id"], r["index"]): r["text"] for r in records(out, "samples")})
    assert len(texts[0]) == 8
    assert texts[0] == {sample: texts[1][sample] for sample in texts[0]}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_20_times(tmp_path: Path) -> None:
    """Parent or engine, at any moment of loading and generating."""
    out = tmp_path / "run"
    randomness = random.Random(0)
    hit = Counter[str]()
    for turn in range(20):
        process = subprocess.Popen(command(out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(randomness.uniform(1, 25))
        if process.poll() is None:
            with contextlib.suppress(AssertionError, ProcessLookupError):
                victim = "parent" if turn % 2 else "engine"
                os.kill(process.pid if turn % 2 else _engine_of(process.pid), signal.SIGKILL)
                hit[victim] += 1
            if turn % 2 == 0:  # it starts the engine again; that start is cut as well
                time.sleep(randomness.uniform(0, 15))
                process.kill()
        process.wait(60)
    last = subprocess.run(command(out), capture_output=True, text=True, timeout=1500, check=False)
    assert last.returncode == 0, last.stderr
    print(hit)
    check_exactly_once(out)


def _engine_of(parent: int) -> int:
    """The process of the parent that holds vLLM."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                started_by = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if started_by == parent and b"vllm_child" in (entry / "cmdline").read_bytes():
                    return int(entry.name)
            except (OSError, ValueError):
                continue
    raise AssertionError("no engine process")
