"""`ba-eval sandbox` as a user meets it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ba_eval.execution import check as check_levels

FIELDS = {"status", "exit_code", "signal", "stdout", "stderr", "cpu_seconds", "wall_seconds", "peak_memory_mb", "level"}


def ba_eval(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ba_eval", "sandbox", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=250, env={**os.environ, **more})


@pytest.fixture(scope="module", params=["1", "2"])
def level(request: pytest.FixtureRequest) -> str:
    if check_levels(int(request.param)).level is None:
        pytest.skip(f"level {request.param} does not hold on this machine")
    return str(request.param)


def test_run(level: str, tmp_path: Path) -> None:
    program, stdin = tmp_path / "p.py", tmp_path / "in.txt"
    program.write_text(
        "import os, sys\nprint(input() * 2, 'SECRET' in os.environ)\nprint('err', file=sys.stderr)\nsys.exit(3)"
    )
    stdin.write_text("ab\n")
    done = ba_eval("run", str(program), "--stdin", str(stdin), "--level", level, "--json", SECRET="x")
    result = json.loads(done.stdout)
    assert result.keys() >= FIELDS
    assert (result["status"], result["exit_code"], result["signal"]) == ("error", 3, None)
    assert (result["stdout"], result["stderr"], result["level"]) == ("abab False\n", "err\n", int(level))
    assert done.returncode == 0


def test_limits(level: str, tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text("print('x' * 5000, flush=True)\nwhile True: pass")
    for flags, status in (
        (["--cpu-seconds", "0.5"], "timeout"),
        (["--wall-seconds", "0.5"], "timeout"),
        (["--output-kb", "1"], "output"),
    ):
        done = ba_eval("run", str(program), "--level", level, "--json", *flags)
        assert json.loads(done.stdout)["status"] == status
    program.write_text("x = bytearray(400 << 20)\nwhile True: x[::4096] = b'1' * len(x[::4096])")
    done = ba_eval("run", str(program), "--level", level, "--json", "--memory-mb", "100")
    assert json.loads(done.stdout)["status"] == "memory"


def test_without_json_the_program_speaks(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text("print('hello')")
    done = ba_eval("run", str(program))
    assert done.stdout == "hello\n"
    assert done.stderr.startswith("ok: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "absent.py"),
        ("run", __file__, "--stdin", "absent.txt"),
        ("run", __file__, "--cpu-seconds", "0"),
        ("run", __file__, "--cpu-seconds", "inf"),
        ("run", __file__, "--wall-seconds", "nan"),
        ("run", __file__, "--memory-mb", "-1"),
        ("run", "/dev/zero"),
        ("run", "."),
    ],
)
def test_bad_input(arguments: tuple[str, ...]) -> None:
    done = ba_eval(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("ba-eval: ")
    assert len(done.stderr.splitlines()) == 1


def test_check(level: str) -> None:
    done = ba_eval("check", "--level", level, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["level"]) == (0, int(level))
    assert all(layer["holds"] for layer in report["layers"])
    names = {layer["name"] for layer in report["layers"]}
    assert {"start", "files", "network", "signals", "privileges", "system calls", "cpu", "memory", "disk"} <= names
