"""What of a run folder's records counts."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from ba_eval.errors import InputError
from ba_eval.records import Sample, VerdictRecord, records_path
from ba_eval.results import State, load
from tests.runs import append_records, make_run

GRID = [[1, 0, 1], [0, 0, 0], [1, 1, 1]]


def sample(**fields: object) -> Sample:
    base = {
        "key": "m-b", "problem_id": "p0", "index": 0, "seed": 0, "finish_reason": "stop",
        "prompt_tokens": 5, "completion_tokens": 10, "seconds": 0.1, "text": "",
    }  # fmt: skip
    return msgspec.convert({**base, **fields}, Sample)


def verdict(**fields: object) -> VerdictRecord:
    base = {"key": "m-b", "problem_id": "p0", "index": 0, "outcome": "correct", "reason": "equal", "grader": "math 1"}
    return msgspec.convert({**base, **fields}, VerdictRecord)


def test_every_sample_lands_in_its_place(tmp_path: Path) -> None:
    cell = load(make_run(tmp_path, {"m": {"b": GRID}})).cells["m", "b"]
    assert (cell.state == np.where(GRID, State.CORRECT, State.WRONG)).all()
    assert cell.scores == pytest.approx([2 / 3, 0, 1])
    assert (cell.tokens == [[100, 101, 102]] * 3).all()
    assert not cell.truncated.any()
    assert cell.reasons(State.CORRECT) == {"equal": 5}


def test_other_keys_unwanted_problems_and_indices_do_not_count(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}})
    before = load(run).cells["m", "b"]
    strays: list[dict[str, object]] = [{"key": "older"}, {"problem_id": "p99"}, {"index": 3}, {"index": -1}]
    append_records(run, "m", "b", [sample(completion_tokens=9999, finish_reason="length", **stray) for stray in strays])
    append_records(run, "m", "b", [verdict(outcome="error", **stray) for stray in strays])
    after = load(run).cells["m", "b"]
    assert (after.state == before.state).all()
    assert (after.tokens == before.tokens).all()
    assert not after.truncated.any()


def test_the_last_line_for_a_sample_counts(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}})
    append_records(
        run, "m", "b", [verdict(outcome="undecided", reason="timeout"), verdict(outcome="wrong", reason="x")]
    )
    append_records(run, "m", "b", [sample(completion_tokens=7), sample(completion_tokens=8, finish_reason="length")])
    cell = load(run).cells["m", "b"]
    assert cell.state[0, 0] == State.WRONG
    assert cell.tokens[0, 0] == 8
    assert cell.truncated[0, 0]
    assert cell.reasons(State.WRONG)["x"] == 1


def test_missing_ungraded_and_failed_samples_are_told_apart_and_not_scored(tmp_path: Path) -> None:
    changes = {
        (0, 0): None,
        (0, 1): {"verdict": None},
        (1, 0): {"finish_reason": "error", "error": "engine died"},
        (1, 1): {"outcome": "error", "reason": "sandbox failed"},
        (1, 2): {"outcome": "undecided", "reason": "timeout"},
        (2, 0): {"finish_reason": "length"},
    }
    results = load(
        make_run(tmp_path, {"m": {"b": GRID}}, change=lambda m, b, row, index: changes.get((row, index), {}))
    )
    cell = results.cells["m", "b"]
    assert cell.state.tolist() == [
        [State.MISSING, State.UNGRADED, State.CORRECT],
        [State.ERROR, State.ERROR, State.UNDECIDED],
        [State.CORRECT, State.CORRECT, State.CORRECT],
    ]
    assert cell.scored.tolist() == [1, 1, 3]
    assert cell.scores == pytest.approx([1, 0, 1])
    assert cell.tokens.tolist() == [[-1, 101, 102], [-1, 101, 102], [100, 101, 102]]
    assert cell.truncated.sum() == 1 and cell.truncated[2, 0]
    assert cell.reasons(State.ERROR) == {"engine died": 1, "sandbox failed": 1}
    assert cell.reasons(State.UNDECIDED) == {"timeout": 1}
    assert not results.complete
    assert results.lacks() == "1 samples missing, 1 not graded, 2 with errors"


def test_a_verdict_without_its_sample_does_not_count(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}}, change=lambda m, b, row, index: None if row == 0 else {})
    append_records(run, "m", "b", [verdict()])
    assert (load(run).cells["m", "b"].state[0] == State.MISSING).all()


def test_no_record_at_all_is_missing_not_zero(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}})
    records_path(run, "samples", "m", "b").unlink()
    records_path(run, "verdicts", "m", "b").unlink()
    results = load(run)
    assert results.total(State.MISSING) == 9
    assert np.isnan(results.cells["m", "b"].scores).all()


@pytest.mark.parametrize("what", ["samples", "verdicts"])
def test_a_torn_last_line_is_left_out(tmp_path: Path, what: str) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}})
    path = records_path(run, what, "m", "b")  # type: ignore[arg-type]
    path.write_bytes(path.read_bytes()[:-5])
    state = load(run).cells["m", "b"].state
    assert state[2, 2] == (State.MISSING if what == "samples" else State.UNGRADED)
    assert (state.ravel()[:-1] >= State.WRONG).all()


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}})
    path = records_path(run, "verdicts", "m", "b")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b'{"key": "m-b"}\n'
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"b\.jsonl:5: is not a record"):
        load(run)


def test_blocks_are_joined_where_a_line_crosses_their_border(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = np.random.default_rng(0).random((20, 8)) < 0.5
    run = make_run(tmp_path, {"m": {"b": grid}})
    for block in (1, 50, 1000):
        monkeypatch.setattr("ba_eval.store._BLOCK", block)
        assert (load(run).cells["m", "b"].state == np.where(grid, State.CORRECT, State.WRONG)).all()


def test_problems_reported_apart(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": GRID}}, benchmarks={"b": {"excluded": {"p1": "several accepted outputs"}}})
    cell = load(run).cells["m", "b"]
    assert cell.in_score.problem_ids == ("p0", "p2")
    assert cell.apart.problem_ids == ("p1",)
    assert cell.in_score.scores == pytest.approx([2 / 3, 1])


def test_answers_are_numbered_within_their_problem(tmp_path: Path) -> None:
    answers = {(0, 0): "7", (0, 1): "8", (0, 2): "7", (1, 0): None}
    run = make_run(
        tmp_path,
        {"m": {"b": GRID}},
        change=lambda m, b, row, index: {"extracted": answers.get((row, index), "9")},
    )
    assert load(run).cells["m", "b"].answers is None
    cell = load(run, answers=True).cells["m", "b"]
    assert cell.answers is not None
    assert cell.answers.tolist() == [[0, 1, 0], [-1, 0, 0], [0, 0, 0]]
    assert cell.answer_texts == (("7", "8"), ("9",), ("9",))


def test_a_folder_that_is_no_run_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run folder"):
        load(tmp_path)
