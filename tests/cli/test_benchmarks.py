"""`ba-eval benchmarks`, end to end."""

import subprocess
import sys
from pathlib import Path

import pytest

from ba_eval.cli import main


def test_list_names_every_benchmark_and_suite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "list"]) == 0
    out = capsys.readouterr().out
    for line in (
        "math500",
        "AIME 2024",
        "code-stdin",
        "1055",
        "suite paper: math500, aime24:32",
        "Hothan/OlympiadBench",
    ):
        assert line in out


def test_list_imports_nothing_heavy() -> None:
    script = (
        "import sys; from ba_eval.cli import main; main(['benchmarks', 'list']); "
        "heavy = {'datasets', 'torch', 'vllm', 'sympy', 'pandas', 'httpx', 'huggingface_hub', 'evalplus', 'numpy'}; "
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "show", "livecodebench"]) == 0
    out = capsys.readouterr().out
    assert "0fe84c3912ea0c4d4a78037083943e8f0c4dd505" in out
    assert "interactive: abc337_e, abc355_e" in out
    assert "{problem}" in out and "n 4, temperature 1.0, top_p 0.7, max_tokens 3072" in out


def test_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "show", "aime2024"]) == 2
    assert "unknown benchmark 'aime2024'; did you mean 'aime24'?" in capsys.readouterr().err


def test_check_of_the_smoke_suite_with_math_references(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmarks", "check", "smoke_math", "--references"]) == 0
    out = capsys.readouterr().out
    assert "ok     smoke_math: 20 problems; golds" in out and "references: 20 of 20 pass" in out


def test_check_finds_a_wrong_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text("title: Mine\nkind: math\nprompt: '{problem}'\n")
    (tmp_path / "mine.jsonl").write_text(
        '{"id": "a", "problem": "1+1?", "answer": 2, "solution": "\\\\boxed{3}"}\n'
        '{"id": "b", "problem": "1+2?", "answer": 3, "solution": "\\\\boxed{3}"}\n'
        '{"id": "c", "problem": "1+3?", "answer": 4, "solution": "states no answer, 5"}\n'
    )
    assert main(["benchmarks", "check", str(tmp_path / "mine.yaml"), "--references"]) == 0
    out = capsys.readouterr().out
    assert "references: 1 of 2 pass" in out
    assert "a: wrong (not equal): took '3', gold '2'" in out


def test_check_goes_on_after_a_fault_and_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "aime24.jsonl").write_text('{"problem": "x", "answer": 1}\n')
    assert main(["benchmarks", "check", "aime24", "smoke_code", "--data-dir", str(tmp_path)]) == 2
    out = capsys.readouterr().out
    assert "fails  benchmark aime24" in out and "--accept-content aime24" in out
    assert "ok     smoke_code: 12 problems" in out
    assert main(["benchmarks", "check", "aime24", "--data-dir", str(tmp_path), "--accept-content", "aime24"]) == 0
    assert "content accepted: 1 rows" in capsys.readouterr().out


def test_check_of_real_copies(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["benchmarks", "check", "math500", "aime25", "livecodebench@v6", "--data-dir", str(shared / "data")]) == 0
    )
    out = capsys.readouterr().out
    assert "math500: 500 problems; golds aa253d39c4d8c269" in out
    assert "livecodebench@v6: 175 problems" in out and "public tests only" in out


def test_check_runs_the_reference_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text("title: Mine\nkind: code-function\nprompt: '{problem}'\n")
    (tmp_path / "mine.jsonl").write_text(
        '{"id": "a", "problem": "Add.", "entry_point": "f", "tests": [{"args": [1, 2], "expected": 3}],'
        ' "reference": "def f(a, b):\\n    return a + b\\n"}\n'
        '{"id": "b", "problem": "Add.", "tests": [{"stdin": "1 2\\n", "stdout": "3\\n"}],'
        ' "reference": "print(12)\\n"}\n'
    )
    assert main(["benchmarks", "check", "smoke_code", str(tmp_path / "mine.yaml"), "--references"]) == 0
    out = capsys.readouterr().out
    assert "references: 12 of 12 pass" in out
    assert "references: 1 of 2 pass" in out and "\n       b: " in out
