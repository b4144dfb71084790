"""What of the samples goes into a page."""

import base64
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ba_eval.records import ProblemRecord, Sample, VerdictRecord
from ba_eval.report import samples
from ba_eval.report.samples import LONGEST, pack
from ba_eval.results import load
from ba_eval.store import RunFolder
from tests.runs import append_records, make_run


def unpack(block: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(block)))


def texts(run: Path, budget: int = 10**8) -> dict[tuple[str, str, int, int], dict[str, Any]]:
    """(model, benchmark, row, index) -> entry, read from the packed blocks as the page does."""
    packed = pack(load(run), budget)
    index = unpack(packed.index)
    places = [
        (benchmark["name"], row, number)
        for benchmark in index["benchmarks"]
        for row in range(len(benchmark["problems"]))
        for number in range(benchmark["n"])
    ]
    found = {}
    for units, block in zip(index["blocks"], packed.blocks, strict=True):
        for unit, entries in zip(units, unpack(block), strict=True):
            for model, entry in zip(index["models"], entries, strict=True):
                if entry is not None:
                    found[(model, *places[unit])] = entry
    assert len(found) == packed.kept
    return found


def named(model: str, benchmark: str, row: int, index: int) -> Mapping[str, Any]:
    return {"text": f"{model} {benchmark} {row} {index}", "extracted": f"{row}"}


def test_every_sample_is_where_the_index_says(tmp_path: Path) -> None:
    scores = {"a": {"x": np.ones((5, 3)), "y": np.zeros((4, 2))}, "b": {"x": np.zeros((5, 3)), "y": np.ones((4, 2))}}
    found = texts(make_run(tmp_path / "run", scores, change=named))
    assert len(found) == 2 * (15 + 8)
    for place, entry in found.items():
        assert entry["text"] == " ".join(map(str, place))
        assert entry["extracted"] == str(place[2])
        assert entry["grader"] == "math 1"


def test_the_last_record_counts_and_older_keys_do_not(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": {"x": [[1, 0]]}})
    fields: dict[str, Any] = {"problem_id": "p0", "seed": 0, "finish_reason": "stop", "prompt_tokens": 1}
    fields |= {"completion_tokens": 1, "seconds": 0.1}
    append_records(run, "a", "x", [Sample(key="a-x", index=0, text="new", **fields)])
    append_records(run, "a", "x", [Sample(key="other", index=1, text="of another key", **fields)])
    verdict = VerdictRecord(key="a-x", problem_id="p0", index=0, outcome="wrong", reason="r", grader="math 2")
    append_records(run, "a", "x", [verdict])
    with (run / "samples" / "a" / "x.jsonl").open("a") as file:
        file.write('{"key":"a-x","problem_id":"p0","index":1,"te')  # torn
    found = texts(run)
    assert found["a", "x", 0, 0]["text"] == "new"
    assert found["a", "x", 0, 0]["grader"] == "math 2"
    assert found["a", "x", 0, 1]["text"] == "The answer is \\boxed{1}."


def test_a_small_budget_keeps_the_first_samples_of_all_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    noise = {place: generator.bytes(150).hex() for place in np.ndindex(2, 40, 8)}
    names = {"a": 0, "b": 1}
    run = make_run(
        tmp_path / "run",
        {"a": {"x": np.ones((40, 8))}, "b": {"x": np.ones((40, 8))}},
        change=lambda m, b, row, index: {"text": noise[names[m], row, index]},
    )
    monkeypatch.setattr(samples, "BLOCK", 2000)
    whole = pack(load(run), 10**8)
    assert (whole.kept, whole.total, whole.whole_levels) == (640, 640, 8)
    budget = sum(map(len, whole.blocks)) // 2
    packed = pack(load(run), budget)
    assert sum(map(len, packed.blocks)) <= budget
    assert 250 < packed.kept < 330
    found = texts(run, budget)
    assert all(("b", b, row, index) in found for (m, b, row, index) in found if m == "a")
    levels = [sum(place[3] == index for place in found) for index in range(8)]
    assert levels[: packed.whole_levels] == [80] * packed.whole_levels
    assert levels[packed.whole_levels + 1 :] == [0] * (7 - packed.whole_levels)
    assert pack(load(run), 0).kept == 0


def test_long_texts_keep_their_beginning_and_end(tmp_path: Path) -> None:
    text = "begin " + "x" * 1_000_000 + " end"
    run = make_run(tmp_path / "run", {"a": {"x": [[1]]}}, change=lambda *_: {"text": text})
    entry = texts(run)["a", "x", 0, 0]
    assert entry["text"].startswith("begin xxx") and entry["text"].endswith("xxx end")
    assert len(entry["text"]) < LONGEST + 100
    assert entry["left_out"] == len(text) - LONGEST
    assert pack(load(run), 10**8).shortened == 1


def test_thinking_stands_apart_also_where_the_prompt_opened_it(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {"text": "<think>hm</think>so 4", "thinking_tokens": 3},
        {"text": "hm</think>so 4", "thinking_tokens": 3},
        {"text": "hm, and on", "thinking_tokens": 103, "completion_tokens": 103},
        {"text": "no thoughts"},
    ]
    run = make_run(tmp_path / "run", {"a": {"x": [[1, 1, 0, 0]]}}, change=lambda m, b, row, index: changes[index])
    found = [{name: entry.get(name) for name in ("thinking", "open", "text")} for entry in texts(run).values()]
    assert found == [
        {"thinking": "hm", "open": None, "text": "so 4"},
        {"thinking": "hm", "open": None, "text": "so 4"},
        {"thinking": "hm, and on", "open": True, "text": ""},
        {"thinking": None, "open": None, "text": "no thoughts"},
    ]


def test_missing_ungraded_and_failed_samples_are_in_the_index(tmp_path: Path) -> None:
    changes: list[dict[str, Any] | None] = [
        None,
        {"verdict": None},
        {"finish_reason": "error", "error": "engine died", "text": "", "verdict": None},
        {"outcome": "undecided", "reason": "interval", "finish_reason": "length"},
    ]
    run = make_run(tmp_path / "run", {"a": {"x": [[0, 0, 0, 0]]}}, change=lambda m, b, row, index: changes[index])
    packed = pack(load(run), 10**8)
    assert (packed.kept, packed.total) == (3, 3)
    cell = unpack(packed.index)["cells"][0][0]
    assert cell["state"] == "0123"
    assert cell["cut"] == "0001"
    assert cell["tokens"][0] == -1
    assert [cell["reasons"][at] if at >= 0 else None for at in cell["reason"]] == [
        None,
        None,
        "engine died",
        "interval",
    ]
    assert cell["file"] == "samples/a/x.jsonl"
    assert texts(run)["a", "x", 0, 2]["error"] == "engine died"


def test_problems_are_packed_in_the_order_of_the_plan(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": {"x": [[0], [0], [0]], "y": [[0]]}})
    assert pack(load(run), 10**8).problems == ""
    with RunFolder(run) as writer:
        asks = [ProblemRecord(id="p2", statement="third"), ProblemRecord(id="p0", statement="first", golds=("1", "2"))]
        writer.write_problems("x", asks)
    assert unpack(pack(load(run), 10**8).problems) == [[["first", "1", "2"], None, ["third"]], [None]]


def test_a_run_without_any_sample(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"a": {"x": [[0, 0]]}}, change=lambda *_: None)
    packed = pack(load(run), 10**8)
    assert (packed.kept, packed.total) == (0, 0)
