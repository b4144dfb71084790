"""The parent's side of the vLLM engine: streaming, deaths, silence, orphans. The child is real, its model is not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ba_eval.checkpoint import Checkpoint
from ba_eval.engine.child import CLOSE_SECONDS, Child
from ba_eval.engine.request import Request, Sampling
from ba_eval.engine.vllm import VllmEngine
from ba_eval.errors import InputError, MachineError
from tests.engine import fake_child
from tests.engine.completions import generate
from tests.engine.fake_child import DIE, FAIL, PULSE, SILENT, TORN

CHECKPOINT = Checkpoint(name="m", path="/m", weights="w", tokenizer_dir="/m", tokenizer_id="t", max_model_len=1000)


class FakeChild(Child):
    module = "tests.engine.fake_child"


def start(checkpoint: Checkpoint, *args: Any, **options: Any) -> VllmEngine:
    """The engine with the other child."""
    return VllmEngine(checkpoint, *args, child=FakeChild(), **options)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[VllmEngine]:
    engine = start(CHECKPOINT, log_path=tmp_path / "logs" / "m.log", stall_seconds=0.5)
    yield engine
    engine.close()


def requests(count: int, **special: int) -> Iterator[Request]:
    """`count` requests; `r3=DIE` makes the third do that."""
    for i in range(count):
        yield Request(id=f"r{i}", seed=i, sampling=Sampling(), prompt_token_ids=[special.get(f"r{i}", 0)])


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether a process ends (or is only a zombie) within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


def test_every_request_comes_back_once(engine: VllmEngine) -> None:
    completions = generate(engine, requests(500))
    assert sorted((c.id, c.text) for c in completions) == sorted((f"r{i}", f"seed {i}") for i in range(500))


def test_requests_are_taken_as_they_are_needed(engine: VllmEngine) -> None:
    source = requests(1000)
    stream = engine.generate(source)
    next(stream)
    assert next(source).id == f"r{2 * fake_child.SLOTS}"
    stream.close()
    # What was under way is forgotten: the same ids come back with the new requests' answers.
    again = generate(engine, requests(3))
    assert sorted(c.text for c in again) == ["seed 0", "seed 1", "seed 2"]


def test_death_keeps_what_was_finished_and_shows_the_last_lines(engine: VllmEngine) -> None:
    done = []
    with pytest.raises(MachineError) as error:
        for completions in engine.generate(requests(100, r50=DIE)):
            done += [completion.id for completion in completions]
    assert done == [f"r{i}" for i in range(50)]
    message = str(error.value)
    assert message.startswith("m: the engine died (killed by SIGKILL; out of memory?)")
    assert "| fatal: the device is gone" in message
    assert "| a line of the engine's log" in message  # without the colours
    assert "m.log" in message


def test_a_failure_that_the_engine_reports(engine: VllmEngine) -> None:
    with pytest.raises(MachineError, match="the engine failed: RuntimeError: step failed"):
        generate(engine, requests(3, r1=FAIL))


def test_a_torn_message_is_no_sample(engine: VllmEngine) -> None:
    done = []
    with pytest.raises(MachineError, match="the engine died"):
        for completions in engine.generate(requests(9, r3=TORN)):
            done += [completion.id for completion in completions]
    assert done == ["r0", "r1", "r2"]


def test_silence_is_a_stall_and_a_pulse_is_none(engine: VllmEngine) -> None:
    assert len(generate(engine, requests(3, r1=PULSE))) == 3
    with pytest.raises(MachineError, match="made no token for 0 s"):
        generate(engine, requests(3, r1=SILENT))


def test_close_leaves_no_process(engine: VllmEngine) -> None:
    pids = engine.info["pids"]
    assert not gone(pids[0], 0.05)
    engine.close()
    assert all(gone(pid) for pid in pids)
    engine.close()  # a second time does nothing


def test_close_ends_an_engine_that_hangs(engine: VllmEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ba_eval.engine.child.CLOSE_SECONDS", 0.2)
    with pytest.raises(MachineError):
        generate(engine, requests(1, r0=SILENT))
    engine.close()
    assert all(gone(pid) for pid in engine.info["pids"])


def test_the_death_of_the_child_takes_its_own_children_with_it(engine: VllmEngine) -> None:
    child, grandchild = engine.info["pids"]
    os.kill(child, signal.SIGKILL)
    assert gone(grandchild)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_death_of_the_parent_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    script = (
        "import time; from pathlib import Path\n"
        "from tests.engine.completions import generate\n"
        "from tests.engine.test_child_process import CHECKPOINT, requests, start\n"
        f"engine = start(CHECKPOINT, log_path=Path({str(tmp_path / 'log')!r}))\n"
        "print(*engine.info['pids'], flush=True)\n"
        "generate(engine, requests(1, r0=2))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.send_signal(how)
    parent.wait(10)
    parent.stdout.close()
    assert all(gone(pid) for pid in pids)


def test_starts_that_fail(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"m: vLLM refuses: ValueError: seed 1 .*x\.log"):
        start(CHECKPOINT, {"seed": 1}, log_path=tmp_path / "x.log")
    with pytest.raises(MachineError, match="the engine died") as error:
        start(CHECKPOINT, {"seed": 2}, log_path=tmp_path / "x.log")
    assert "RuntimeError: out of memory" in str(error.value)


def test_the_log_of_an_earlier_engine_is_kept_and_not_shown(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("an older engine's line\n")
    engine = start(CHECKPOINT, log_path=log)
    with pytest.raises(MachineError) as error:
        generate(engine, requests(1, r0=DIE))
    engine.close()
    assert "older" not in str(error.value)
    assert log.read_text().startswith("an older engine's line\n")


def test_the_context_is_what_the_run_needs(tmp_path: Path) -> None:
    def length(asked: int | None, **args: Any) -> Any:
        engine = start(CHECKPOINT, args, asked, log_path=tmp_path / "x.log")
        engine.close()
        return engine.info["args"]["max_model_len"]

    assert [length(300), length(5000), length(None), length(300, max_model_len="700")] == [300, 1000, 1000, 700]


def test_a_child_that_was_started_early_and_is_not_needed(tmp_path: Path) -> None:
    child = FakeChild()
    begun = time.monotonic()
    child.close()
    assert time.monotonic() - begun < CLOSE_SECONDS
    assert gone(child.process.pid)


def test_what_a_child_printed_before_it_knew_its_log_is_kept(tmp_path: Path) -> None:
    child = FakeChild()
    end = time.monotonic() + 60
    while "printed early" not in child.printed() and time.monotonic() < end:
        time.sleep(0.05)
    engine = VllmEngine(CHECKPOINT, log_path=tmp_path / "x.log", child=child)
    engine.close()
    assert (tmp_path / "x.log").read_text().startswith("printed early\n\x1b[31ma line")
