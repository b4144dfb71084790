"""The main job for real: a real model in real vLLM, real grading, a real sandbox, a table at the end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

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
