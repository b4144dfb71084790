"""A lane: one engine at a time in a thread of its own, which can be ended at any moment."""

import time
from pathlib import Path
from typing import Any

import pytest

import ba_eval.engine.vllm
from ba_eval.config import RunConfig
from ba_eval.engine.request import Completion
from ba_eval.errors import MachineError
from ba_eval.lane import Ended, Events, Lane, events
from ba_eval.plan import Subject
from ba_eval.records import PlannedModel
from tests.engine.fake_child import DIE, SILENT
from tests.engine.standin import StandIn
from tests.engine.test_child_process import CHECKPOINT, FakeChild, gone, requests


@pytest.fixture
def fake_vllm(monkeypatch: pytest.MonkeyPatch) -> list[FakeChild]:
    """The children that a test starts."""
    children: list[FakeChild] = []

    def preload(engine_args: Any, **options: Any) -> FakeChild:
        children.append(FakeChild(environment=options["environment"]))
        return children[-1]

    monkeypatch.setattr(ba_eval.engine.vllm, "preload", preload)
    return children


def lane_for(out: Path, **options: Any) -> Lane:
    return Lane(RunConfig(models=("m=m",), benchmarks=("b",), out=str(out), **options), {}, lambda text: None)


SUBJECT = Subject(PlannedModel(name="m", path="m", weights="w"), "p", CHECKPOINT)


def taken(inbox: Events, count: int) -> list[Completion | Any]:
    """`count` completions and ends, as they came."""
    found: list[Any] = []
    while len(found) < count:
        event = inbox.get(timeout=20)[1]
        found += event if isinstance(event, list) else [event]
    return found


def start(lane: Lane, inbox: Events, asked: Any, subject: Subject = SUBJECT, *, more: bool = False) -> None:
    lane.start(subject, asked, 100, more=more, on_engine=lambda model, engine: None, events=inbox)


def test_all_come_back_and_then_the_end(fake_vllm: list[FakeChild], tmp_path: Path) -> None:
    lane, inbox = lane_for(tmp_path), events()
    start(lane, inbox, requests(10), more=True)
    *completions, end = taken(inbox, 11)
    assert {completion.id for completion in completions} == {f"r{i}" for i in range(10)}
    assert isinstance(end, Ended)
    assert (end.lane, end.error) == (lane, None)
    assert lane.seconds_loading > 0
    assert len(fake_vllm) == 2  # one of them has nothing to load yet
    lane.close()
    assert all(gone(child.process.pid) for child in fake_vllm)


def test_an_engine_that_dies_for_good_is_an_end_with_its_error(fake_vllm: list[FakeChild], tmp_path: Path) -> None:
    lane, inbox = lane_for(tmp_path, engine_args={"seed": 2}), events()  # dies while it loads
    start(lane, inbox, requests(3))
    (end,) = taken(inbox, 1)
    assert isinstance(end.error, MachineError)
    assert "out of memory" in str(end.error)
    assert len(fake_vllm) == 3  # the first, and two restarts
    lane.close()


def test_closing_keeps_what_was_finished_and_starts_nothing_again(fake_vllm: list[FakeChild], tmp_path: Path) -> None:
    lane, inbox = lane_for(tmp_path), events()
    start(lane, inbox, requests(4, r2=SILENT))  # no answer for ten minutes
    assert {completion.id for completion in taken(inbox, 2)} == {"r0", "r1"}
    started = time.monotonic()
    lane.close()
    assert lane.join(10)
    assert time.monotonic() - started < 15
    assert inbox.empty()
    assert len(fake_vllm) == 1
    assert gone(fake_vllm[0].process.pid)


def test_a_request_that_kills_the_engine_costs_itself_alone(fake_vllm: list[FakeChild], tmp_path: Path) -> None:
    lane, inbox = lane_for(tmp_path), events()
    start(lane, inbox, requests(6, r3=DIE))
    *completions, end = taken(inbox, 7)
    assert end.error is None
    assert sorted(c.id for c in completions if c.error is None) == ["r0", "r1", "r2", "r4", "r5"]
    assert [c.id for c in completions if c.error] == ["r3"]
    lane.close()


def test_a_closed_lane_leaves_its_server(tmp_path: Path) -> None:
    from ba_eval.engine.request import Request, Sampling

    with StandIn(delay=60.0) as server:
        lane, inbox = lane_for(tmp_path, server=(server.url,)), events()
        subject = Subject(PlannedModel(name="m", path="m", weights="w"), "p")
        messages = [{"role": "user", "content": "x"}]
        asked = [Request(id=str(i), seed=i, sampling=Sampling(), messages=messages) for i in range(5)]
        start(lane, inbox, asked, subject)
        while not server.bodies:
            time.sleep(0.01)
        lane.close()
        assert lane.join(10)
        assert inbox.empty()
