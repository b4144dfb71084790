"""`ba-eval doctor` as it is typed."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "ba_eval", "doctor"]


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "HF_HUB_OFFLINE": "1", **environment}
    return subprocess.run([*COMMAND, *arguments], env=env, capture_output=True, text=True, check=False, timeout=120)


def test_json_and_exit_code_agree() -> None:
    done = run("--json", BA_EVAL_DATA_DIR="")
    report = json.loads(done.stdout)
    states = {finding["name"]: finding["state"] for finding in report["findings"]}
    assert set(states) >= {"python", "gpu", "torch", "vllm", "sandbox", "hub", "data folder", "math-verify", "disk"}
    assert report["ready"] == ("lack" not in states.values())
    assert done.returncode == (0 if report["ready"] else 3)
    assert states["hub"] == "warn"
    assert done.stderr == ""


def test_text_says_how_to_mend(tmp_path: Path) -> None:
    done = run("--data-dir", str(tmp_path / "gone"))
    assert done.returncode == 3
    assert "-> unset BA_EVAL_DATA_DIR" in done.stdout
    assert "-> unset HF_HUB_OFFLINE" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("cannot evaluate here yet: ")
    assert "Traceback" not in done.stdout + done.stderr
