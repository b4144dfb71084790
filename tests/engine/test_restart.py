"""An engine that dies must cost no sample and no night: restarts, smaller batches, and poison put aside.

The engine here is a stand-in that dies as told, so that hundreds of deaths can be tried; the real engine is killed in
tests/engine/test_vllm.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_eval.engine.request import Completion, Request, Sampling
from ba_eval.engine.restart import generate
from ba_eval.errors import InputError, MachineError


def requests(count: int) -> list[Request]:
    return [Request(id=str(i), seed=i, sampling=Sampling(), prompt_token_ids=(1,)) for i in range(count)]


class DyingEngine:
    """Finishes what it was handed in batches, newest first; dies when a poison is in a batch, or the batch is large."""

    def __init__(self, max_num_seqs: int, poison: set[str], most: int, life: list[int]) -> None:
        self.info: Mapping[str, Any] = {"max_num_seqs": max_num_seqs}
        self.poison, self.most, self.life = poison, most, life

    def generate(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        source, running = iter(requests), list[Request]()
        while True:
            running += islice(source, int(self.info["max_num_seqs"]) - len(running))
            if not running:
                return
            if self.life and self.life[0] == 0:
                self.life.pop(0)
                raise MachineError("killed")
            if self.poison & {r.id for r in running} or len(running) > self.most:
                raise MachineError("died: last lines")
            if self.life:
                self.life[0] -= 1
            done = running.pop()
            completion = Completion(
                id=done.id, text="x", prompt_tokens=1, completion_tokens=1, finish_reason="stop", seconds=0.0
            )
            yield [completion]

    def close(self) -> None: ...


class Starter:
    def __init__(self, slots: int = 16, poison: Iterable[str] = (), most: int = 999, life: Iterable[int] = ()) -> None:
        self.slots, self.poison, self.most, self.life = slots, set(poison), most, list(life)
        self.starts: list[int | None] = []

    def __call__(self, batch: int | None) -> DyingEngine:
        self.starts.append(batch)
        return DyingEngine(batch or self.slots, self.poison, self.most, self.life)


def run(starter: Starter, count: int) -> dict[str, Completion]:
    completions = list(chain.from_iterable(generate(starter, requests(count), lambda text: None)))
    by_id = {completion.id: completion for completion in completions}
    assert len(by_id) == len(completions), "a sample was made twice"
    return by_id


def test_a_healthy_engine_starts_once() -> None:
    starter = Starter()
    assert len(run(starter, 100)) == 100
    assert starter.starts == [None]


def test_an_engine_out_of_memory_goes_on_with_smaller_batches() -> None:
    starter = Starter(slots=16, most=5)
    assert all(c.error is None for c in run(starter, 100).values())
    assert starter.starts == [None, 8, 4]


def test_a_dead_engine_is_given_up_after_two_restarts() -> None:
    starter = Starter(most=0)
    with pytest.raises(MachineError, match="last lines"):
        run(starter, 100)
    assert len(starter.starts) == 3


def test_an_engine_that_does_not_start_is_given_up_after_two_restarts() -> None:
    starts = []

    def start(batch: int | None) -> DyingEngine:
        starts.append(batch)
        raise MachineError("no memory")

    with pytest.raises(MachineError, match="no memory"):
        list(generate(start, requests(3), lambda text: None))
    assert len(starts) == 3


def test_bad_input_is_not_tried_again() -> None:
    starts = []

    def start(batch: int | None) -> DyingEngine:
        starts.append(batch)
        raise InputError("unknown argument")

    with pytest.raises(InputError):
        list(generate(start, requests(3), lambda text: None))
    assert len(starts) == 1


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 80),
    slots=st.sampled_from([1, 2, 7, 16, 64]),
    poison=st.sets(st.integers(0, 79), max_size=2),
    life=st.lists(st.integers(1, 30), max_size=2),
)
def test_every_request_ends_once(count: int, slots: int, poison: set[int], life: list[int]) -> None:
    """Kills at any moment and up to two poisons: each request is finished once, and the poisons are the errors."""
    bad = {str(i) for i in poison if i < count}
    if len(bad) * 2 > count:  # nothing proves that the engine is sound
        return
    if len(bad) == 2:  # with a kill before them, these may be three deaths in a row: given up, as tested above
        life = []
    done = run(Starter(slots, bad, life=life), count)
    assert len(done) == count
    assert {c.id for c in done.values() if c.error} == bad


def test_a_single_request_that_kills_is_an_error() -> None:
    done = run(Starter(poison=["0"]), 1)
    assert done["0"].finish_reason == "error"
    assert "died each time" in (done["0"].error or "")
