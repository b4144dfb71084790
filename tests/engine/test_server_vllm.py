"""The server engine against vLLM's own OpenAI-compatible server."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ba_eval.checkpoint import Checkpoint
from ba_eval.engine.request import Request, Sampling
from ba_eval.engine.vllm import VllmEngine
from ba_eval.prompt import Renderer
from tests.engine.completions import generate
from tests.engine.standin import Client

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def url(tiny: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with the tiny model, one sequence at a time."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_HOST_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", tiny.path, "--port", str(port)]
    command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--max-num-seqs", "1", "--max-model-len", "400"]
    command += ["--enforce-eager", "--dtype", "float32"]
    log = tmp_path_factory.mktemp("server") / "log"
    with log.open("wb") as output:
        environment = {**os.environ, **variables, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        server = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        end = time.monotonic() + 800
        while time.monotonic() < end and server.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(1)
        else:
            pytest.fail(log.read_text()[-3000:])
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def test_the_server_gives_the_samples_of_the_engine(url: str, single: VllmEngine, tiny: Checkpoint) -> None:
    sampling = Sampling(max_tokens=30, temperature=1.0, top_p=0.9, top_k=40, min_p=0.01)
    renderer = Renderer(tiny)
    messages = [renderer.messages(f"question {i}") for i in range(4)]
    asked = [Request(id=str(i), seed=100 + i, sampling=sampling, messages=messages[i % 4]) for i in range(8)]
    served = Client([url])
    assert served.info["model"] == "tiny"
    answers = {c.id: c for c in served.generate(asked)}
    too_long = Request(id="long", seed=0, sampling=Sampling(max_tokens=10**6), messages=messages[0])
    (refused,) = served.generate([too_long])
    served.close()

    prompts = [renderer.render(f"question {i}") for i in range(4)]
    same = [Request(id=str(i), seed=100 + i, sampling=sampling, prompt_token_ids=prompts[i % 4]) for i in range(8)]
    for completion in generate(single, same):
        answer = answers[completion.id]
        assert (answer.text, answer.finish_reason) == (completion.text, completion.finish_reason)
        assert (answer.prompt_tokens, answer.completion_tokens) == (
            completion.prompt_tokens,
            completion.completion_tokens,
        )
    assert refused.finish_reason == "error"


def test_an_error_names_the_model_that_is_there(url: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="has no model 'other'; it has: tiny"):
        Client([url], model="other")
