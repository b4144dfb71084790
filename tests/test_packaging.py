"""The wheel: its only top-level name, its data, and what the base package does without torch, elsewhere."""

import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(command: Sequence[object], cwd: Path) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "BA_EVAL_DATA_DIR")}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT]
    done = run(command, folder)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("ba_eval-*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_claims_one_name_and_carries_all_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"ba_eval"}
    for folder, pattern in (("benchmarks", "*.*"), ("sandbox", "*.py")):
        files = {path.name for path in (ROOT / folder).glob(pattern)}
        assert files and {f"ba_eval/_data/{folder}/{name}" for name in files} <= names
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ba_eval").rglob("*.py")}
    assert package <= names and "ba_eval/py.typed" in names


@pytest.mark.slow
def test_the_base_package_works_elsewhere_without_torch(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
    done = run(install, tmp_path)
    assert done.returncode == 0, done.stderr

    listed = run([python, "-m", "pip", "list", "--format=freeze"], tmp_path).stdout
    assert "torch" not in listed and "transformers" not in listed and "math-verify" in listed

    program = tmp_path / "venv" / "bin" / "ba-eval"
    assert "benchmarks" in run([program, "--help"], tmp_path).stdout
    benchmarks = run([program, "benchmarks", "list"], tmp_path)
    assert benchmarks.returncode == 0 and "math500" in benchmarks.stdout and "smoke" in benchmarks.stdout
    doctor = run([program, "doctor"], tmp_path)
    assert doctor.returncode == 3
    assert doctor.stdout.splitlines()[-1] == "cannot evaluate here yet: vllm"
    assert run([program, "benchmarks", "check", "smoke"], tmp_path).returncode == 0


def test_help_imports_nothing_heavy() -> None:
    """Names of modules stand for time: `tests/benchmarks/startup.py` measures it."""
    heavy = "vllm torch transformers datasets sympy pandas httpx numpy math_verify huggingface_hub msgspec rich"
    program = "import sys; from ba_eval.cli import build_parser; build_parser().format_help(); print(*sys.modules)"
    loaded = set(run([sys.executable, "-c", program], ROOT).stdout.split())
    assert "ba_eval.cli.eval" in loaded
    assert not loaded & set(heavy.split())
