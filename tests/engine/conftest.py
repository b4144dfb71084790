"""Real vLLM engines: few, because each takes half a minute to start on a small machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ba_eval.checkpoint import Checkpoint, resolve
from ba_eval.engine.vllm import VllmEngine
from tests.models import tiny_lora, tiny_qwen3


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A random Qwen3 of two layers."""
    pytest.importorskip("vllm", reason="vLLM is not installed")
    return resolve("tiny", str(tiny_qwen3(tmp_path_factory.mktemp("tiny") / "checkpoint-7")))


@pytest.fixture(scope="session")
def lora(tiny: Checkpoint) -> Checkpoint:
    """A LoRA adapter of it."""
    return resolve("lora", str(tiny_lora(Path(tiny.path).parent / "adapter", Path(tiny.path))))


def start(checkpoint: Checkpoint, log: Path, **args: str) -> VllmEngine:
    """Starts an engine on one thread: threads of a model this small wait for each other most of the time."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OMP_NUM_THREADS", "1")
        return VllmEngine(checkpoint, args, 400, log_path=log)


@pytest.fixture(scope="session")
def single(tiny: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmEngine]:
    """An engine that runs one sequence at a time."""
    engine = start(tiny, tmp_path_factory.mktemp("log") / "single.log", max_num_seqs="1")
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def batched(lora: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmEngine]:
    """An engine with the adapter that runs up to 8 sequences at a time."""
    engine = start(lora, tmp_path_factory.mktemp("log") / "batched.log", max_num_seqs="8")
    yield engine
    engine.close()
