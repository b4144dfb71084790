"""The audit: what it lists, in which order, from hostile and from large records."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ba_eval.audit import WEIGHTS, audit
from ba_eval.audit_report import as_json, as_text, pointer
from ba_eval.benchmark.problem import Problem
from ba_eval.cli import main
from ba_eval.errors import InputError
from ba_eval.grade.math import MathGrader
from ba_eval.grade.math.suspicion import _numerals, _stands
from ba_eval.records import Sample, VerdictRecord
from tests.runs import append_records, make_run

GOLD = "\\frac{1}{2}"
RESPONSES = [
    ("\\boxed{1/2}", "stop"),  # right, nothing to see
    ("\\boxed{3}", "stop"),  # plainly wrong
    ("It is 1 or 2.\n\\boxed{7}", "stop"),  # the gold's numbers in the final lines
    ("The answer is \\boxed{9^{9^{9^9}}}", "stop"),  # undecided
    ("Thus there are 5 of them.", "stop"),  # outside the expected format
    ("so it is \\boxed{\\frac{3}{4", "length"),  # cut inside the box
    ("Thus there are 0.5 of them.", "stop"),  # right, outside the expected format
    ("", "stop"),
]


def graded_run(folder: Path, gold: str = GOLD, responses: list[tuple[str, str]] = RESPONSES) -> Path:
    """A run whose verdicts are the math grader's own."""
    with MathGrader() as grader:
        verdicts = [grader.submit(Problem("p0", "", golds=(gold,)), *given).result() for given in responses]

    def change(model: str, benchmark: str, row: int, index: int) -> dict[str, Any]:
        verdict, (text, finish) = verdicts[index], responses[index]
        fields = ("outcome", "reason", "extracted", "method", "details")
        return {"text": text, "finish_reason": finish, **{name: getattr(verdict, name) for name in fields}}

    return make_run(folder, {"m": {"b": [[0] * len(responses)]}}, change=change)


def test_most_likely_wrong_first(tmp_path: Path) -> None:
    found = audit(graded_run(tmp_path))
    assert (found.verdicts, found.suspicious) == (8, 5)
    assert [finding.verdict.index for finding in found.findings] == [2, 3, 4, 5, 6]
    assert found.findings[0].signals == ("gold's numbers in the final lines",)
    assert found.findings[0].tail == RESPONSES[2][0]
    assert found.findings[0].verdict.details["golds"] == [GOLD]
    assert found.signals == {
        "gold's numbers in the final lines": 1,
        "undecided": 1,
        "found outside the expected format": 2,
        "cut inside the box": 1,
    }


def test_a_verdict_without_golds_shows_those_of_the_problem(tmp_path: Path) -> None:
    run = graded_run(tmp_path)
    path = next((run / "verdicts").rglob("*.jsonl"))
    verdicts = [json.loads(line) for line in path.read_text().splitlines()]
    for verdict in verdicts:
        verdict.get("details", {}).pop("golds", None)
    path.write_text("".join(json.dumps(verdict) + "\n" for verdict in verdicts))
    assert "   gold " not in "\n".join(as_text(audit(run)))
    problems = run / "problems" / "b.jsonl"
    problems.parent.mkdir()
    problems.write_text(json.dumps({"id": "p0", "statement": "half", "golds": ["0.5", GOLD]}) + "\n")
    assert f"   gold       0.5 | {GOLD}" in "\n".join(as_text(audit(run)))


def test_every_signal_comes_from_a_real_verdict(tmp_path: Path) -> None:
    wanted = {
        "gold's numbers in the final lines": ("5", "5 + 2 = 7\n\\boxed{7}", "stop"),
        "gold's words in the final lines": (
            "\\text{Evelyn}",
            "Evelyn wins.\n\\boxed{\\text{E. is the fastest}}",
            "stop",
        ),
        "second method disagrees": ("1 - \\frac{1}{\\mathrm{e}}", "\\boxed{1 + \\frac{1}{\\mathrm{e}}}", "stop"),
        "undecided": ("5", "\\boxed{9^{9^{9^9}}}", "stop"),
        "answer not read": ("5", "\\boxed{5 ? ? 6}", "stop"),
        "found outside the expected format": ("5", "Thus there are 6 of them.", "stop"),
        "cut inside the box": ("5", "so \\boxed{12", "length"),
    }
    for name, (gold, *given) in wanted.items():
        found = audit(graded_run(tmp_path / name, gold, [tuple(given)]))  # type: ignore[list-item]
        assert name in found.findings[0].signals, name
    assert set(WEIGHTS) - set(wanted) == {"not graded: an error", "no code found"}


def test_numbers_in_other_spellings_are_seen(tmp_path: Path) -> None:
    run = graded_run(
        tmp_path, "58,500", [("That makes $58{,}500$ in all, or \\boxed{58 thousand and five hundred}", "stop")]
    )
    assert "gold's numbers in the final lines" in audit(run).findings[0].signals


def test_no_answer_but_the_gold_is_named(tmp_path: Path) -> None:
    run = graded_run(
        tmp_path,
        "42",
        [("and 42 it would be\n\nor maybe something else", "stop"), ("I have no idea what to say here", "stop")],
    )
    found = audit(run)
    assert [(f.verdict.index, f.verdict.reason) for f in found.findings] == [(0, "no answer")]


def test_code_verdicts(tmp_path: Path) -> None:
    reasons = [
        ("error", "sandbox failed: no space"),
        ("wrong", "no code"),
        ("wrong", "failed test"),
        ("correct", "passed"),
    ]
    run = make_run(
        tmp_path,
        {"m": {"b": [[0] * 4]}},
        benchmarks={"b": {"kind": "code-stdin"}},
        change=lambda m, b, row, index: {"outcome": reasons[index][0], "reason": reasons[index][1], "extracted": None},
    )
    assert [f.signals for f in audit(run).findings] == [("not graded: an error",), ("no code found",)]


def test_only_what_the_plan_wants_and_the_last_verdict_count(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": [[0, 0]]}})
    place = {"problem_id": "p0", "reason": "r", "grader": "math 1"}
    doubt = {"outcome": "undecided", **place}
    append_records(
        run,
        "m",
        "b",
        [
            VerdictRecord(key="m-b", index=0, **doubt),  # type: ignore[arg-type]
            VerdictRecord(key="m-b", index=1, **doubt),  # type: ignore[arg-type]
            VerdictRecord(key="m-b", index=1, outcome="wrong", **place),  # type: ignore[arg-type]
            VerdictRecord(key="other", index=0, outcome="error", **place),  # type: ignore[arg-type]
            VerdictRecord(key="m-b", index=7, **doubt),  # type: ignore[arg-type]
        ],
    )
    found = audit(run)
    assert (found.verdicts, found.suspicious) == (2, 1)
    assert [(f.verdict.index, f.verdict.outcome) for f in found.findings] == [(0, "undecided")]


def test_choice_of_model_and_benchmark(tmp_path: Path) -> None:
    grid = np.zeros((2, 2), dtype=bool)
    run = make_run(
        tmp_path, {"m": {"a": grid, "b": grid}, "n": {"a": grid, "b": grid}}, change=lambda *_: {"outcome": "undecided"}
    )
    assert audit(run).suspicious == 16
    chosen = audit(run, model="n", benchmark="b", limit=3)
    assert chosen.suspicious == 4
    assert {(f.model, f.benchmark) for f in chosen.findings} == {("n", "b")} and len(chosen.findings) == 3
    with pytest.raises(InputError, match="did you mean 'a'"):
        audit(run, benchmark="A")


def test_what_a_model_wrote_is_escaped(tmp_path: Path) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07 \u202egnorw\u2069\r5\n\\boxed{\x1b[31m7\u200b}"
    text = "\n".join(as_text(audit(graded_run(tmp_path, "5", [(hostile, "stop")]))))
    assert "\x1b" not in text and "\u202e" not in text and "\r" not in text and "\u200b" not in text
    assert "\\x1b[2J" in text and "\\u202e" in text


def test_a_missing_sample_is_no_obstacle(tmp_path: Path) -> None:
    run = make_run(tmp_path, {"m": {"b": [[0]]}}, change=lambda *_: {"outcome": "undecided"})
    (run / "samples" / "m" / "b.jsonl").unlink()
    assert "(no response)" in "\n".join(as_text(audit(run)))


def test_memory_does_not_grow_with_the_responses(tmp_path: Path) -> None:
    n = 4000
    run = make_run(tmp_path, {"m": {"b": np.zeros((1, n), dtype=bool)}}, change=lambda *_: {"outcome": "undecided"})
    (run / "samples" / "m" / "b.jsonl").unlink()
    for index in range(n):
        sample = Sample(
            key="m-b",
            problem_id="p0",
            index=index,
            seed=0,
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=1,
            seconds=0.0,
            text="x" * 10_000,
        )
        append_records(run, "m", "b", [sample])
    tracemalloc.start()
    found = audit(run, limit=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.suspicious == n and len(found.findings) == 5
    assert peak < 3_000_000


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = graded_run(tmp_path)
    assert main(["audit", str(run), "--limit", "2"]) == 0
    shown = capsys.readouterr().out
    assert "1. m on b, p0 #2: wrong (not equal)" in shown and f"gold       {GOLD}" in shown
    assert "5 of 8 verdicts are suspicious" in shown and "the first 2" in shown
    assert main(["audit", str(run), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["suspicious"] == len(data["findings"]) == 5
    assert data["findings"][0]["golds"] == [GOLD] and data["findings"][0]["tail"] == RESPONSES[2][0]
    assert data == json.loads(as_json(audit(run)))
    assert main(["audit", str(tmp_path / "none")]) == 2
    assert main(["audit", str(run), "--model", "x"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert "is not a run folder" in told[0] and "x: is not in this run; known: m" in told[1]


def test_the_line_at_the_end_of_a_run(tmp_path: Path) -> None:
    line = pointer(audit(graded_run(tmp_path), limit=0), "ba-eval audit results/x")
    assert line.startswith("5 of 8 verdicts are suspicious (1 gold's numbers in the final lines, 1 undecided")
    assert line.endswith("`ba-eval audit results/x` lists them, most likely wrong first")


@pytest.mark.parametrize(
    ("numeral", "text", "there"),
    [
        ("204", "so the sum is 204.", True),
        ("204", "so the sum is 2040", False),
        ("204", "so the sum is 1204", False),
        ("204", "1,204 of them", False),
        ("204", "204,000 of them", False),
        ("204", "204, 205 and 206", True),
        ("204", "204.5", False),
        ("204", "0.204", False),
        ("1204", "1,204 of them", True),
        ("1204", "1{,}204 of them", True),
        ("1204", "1\\,204 of them", True),
        ("1204", "11,204 of them", False),
        ("3.14", "about 3.14", True),
        ("3.14", "about 3.141", False),
        ("204", "2040 and 204", True),
    ],
)
def test_a_number_in_the_final_lines(numeral: str, text: str, there: bool) -> None:
    assert _stands(numeral, text) is there
    assert (numeral in _numerals(text)) is there
