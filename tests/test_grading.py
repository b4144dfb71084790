"""Verdicts are recorded as they come, and no fault of a grader or of the disk is lost."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ba_eval import grading as grading_module
from ba_eval.benchmark.problem import Problem
from ba_eval.grade.verdict import Verdict
from ba_eval.grading import Graded, Grading
from ba_eval.records import Sample


class PoolGrader:
    """Grades in threads: right where the response is the gold; `boom` breaks the grader."""

    version = "pool 1"

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(4)
        self.under_way = 0
        self.most = 0
        self.lock = threading.Lock()

    def submit(self, problem: Problem, response: str, finish_reason: str) -> Future[Verdict]:
        with self.lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        return self.pool.submit(self.grade, problem, response)

    def grade(self, problem: Problem, response: str) -> Verdict:
        time.sleep(0.001)
        with self.lock:
            self.under_way -= 1
        if response == "boom":
            raise RuntimeError("broken")
        return Verdict("correct" if response in problem.golds else "wrong", "equal")

    def close(self) -> None:
        self.pool.shutdown()


def sample(index: int, text: str) -> Sample:
    return Sample(
        key="k", problem_id="p", index=index, seed=0, finish_reason="stop",
        prompt_tokens=1, completion_tokens=1, seconds=0.0, text=text,
    )  # fmt: skip


def run(texts: list[str]) -> tuple[list[Graded], PoolGrader]:
    records: list[Graded] = []
    grading, grader = Grading(records.extend), PoolGrader()
    for i, text in enumerate(texts):
        grading.submit("m", "b", Problem("p", "?", golds=("1",)), sample(i, text), grader)
    assert grading.drain() == 0
    grading.close()
    return records, grader


def test_each_sample_gets_one_verdict() -> None:
    records, _ = run(["1", "2", "boom"] * 50)
    outcomes = {graded.record.index: graded.record.outcome for graded in records}
    assert len(records) == 150
    assert [outcomes[i] for i in range(3)] == ["correct", "wrong", "error"]
    assert "broken" in next(g.record.reason for g in records if g.record.outcome == "error")


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading_module, "MAX_WAITING", 8)
    records, grader = run(["1"] * 200)
    assert len(records) == 200
    assert grader.most <= 8


def test_a_full_disk_reaches_the_caller() -> None:
    def record(finished: list[Graded]) -> None:
        raise OSError(28, "No space left on device")

    grading, grader = Grading(record), PoolGrader()
    grading.submit("m", "b", Problem("p", "?", golds=("1",)), sample(0, "1"), grader)
    with pytest.raises(OSError, match="No space left"):
        grading.drain()
    grading.close()


def test_drain_gives_up_in_time() -> None:
    grading, grader = Grading(lambda finished: None), PoolGrader()
    gate = threading.Event()
    grader.grade = lambda problem, response: (gate.wait(10), Verdict("wrong", "x"))[1]  # type: ignore[method-assign]
    grading.submit("m", "b", Problem("p", "?"), sample(0, "1"), grader)
    assert grading.drain(timeout=0.2) == 1
    gate.set()
    assert grading.drain() == 0
    grading.close()
