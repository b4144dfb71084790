"""The math grader on real data: golds, reference solutions, published verdicts, reports from trackers."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ba_eval.extract.extraction import Method
from ba_eval.extract.math import extract_answer
from ba_eval.extract.thinking import split_thinking
from ba_eval.grade.math import MathGrader
from ba_eval.grade.math.decide import decide
from tests.grade.math_answers import problem


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def golds(shared: Path) -> Iterator[tuple[str, list[str], str | None]]:
    """Yields (set and problem, accepted golds, reference solution that states the answer)."""
    data = shared / "data"
    for row in rows(data / "math500.jsonl"):
        yield row["unique_id"], [row["answer"]], row["solution"]
    for name in ("aime24", "aime25"):
        for row in rows(data / f"{name}.jsonl"):
            yield f"{name} {row['id']}", [str(row["expected_answer"])], row["reference_solution"] or None
    for row in rows(data / "amc23.jsonl"):
        yield f"amc23 {row['id']}", [str(row["answer"])], None
    for row in rows(data / "minerva_math.jsonl"):
        gold = extract_answer(row["solution"], ("boxed",)).answer
        assert gold
        yield f"minerva {row['idx']}", [gold], row["solution"]
    for i, row in enumerate(rows(data / "minerva_math_r1zero.jsonl")):
        yield f"minerva alternatives {i}", row["answer"], None
    for row in rows(data / "olympiadbench.jsonl"):
        # Its solutions are proofs: most name no final answer.
        yield f"olympiadbench {row['id']}", [", ".join(row["final_answer"])], None
    for i, row in enumerate(rows(data / "gsm8k_test.jsonl")):
        yield f"gsm8k {i}", [row["answer"].split("####")[1].strip()], row["answer"]


def test_every_gold_is_right_against_itself_and_its_solution(shared: Path) -> None:
    off: list[Any] = []
    for name, accepted, solution in golds(shared):
        for gold in accepted:
            found = extract_answer(f"So the answer is $\\boxed{{{gold}}}$.").answer
            if decide(gold, found or "")[0] != "correct":
                off.append((name, gold))
        if solution:
            found = extract_answer(solution).answer
            if not any(decide(gold, found or "")[0] == "correct" for gold in accepted):
                off.append((name, accepted, found))
    assert not off


def test_no_gold_is_right_for_another_problem(shared: Path) -> None:
    """Sampled pairs of golds that differ: each hit must be the same value by its rational or canonical form."""
    every = [(name, gold) for name, accepted, _ in golds(shared) for gold in accepted]
    special = [item for item in every if not item[1].strip().lstrip("-").isdigit()]
    draw = random.Random(20)
    hits = set()
    for k in range(1500):
        (name, gold), (other, answer) = draw.choice(special), draw.choice(every if k % 3 == 0 else special)
        if name != other and "".join(gold.split()).strip("$") != "".join(answer.split()).strip("$"):
            outcome, _, method = decide(gold, answer)
            if outcome == "correct" and method not in ("identical", "integer", "rational", "exact", "form"):
                hits.add((gold, answer, method))
    assert not hits


def test_published_verdicts_of_gsm8k_solutions(shared: Path) -> None:
    off = []
    for row in rows(shared / "verdicts" / "gsm8k_example_model_solutions.jsonl"):
        gold = extract_answer(row["ground_truth"]).answer
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            found = extract_answer(row[model]["solution"]).answer
            if (decide(gold or "", found or "")[0] == "correct") != row[model]["is_correct"]:
                off.append((row["question"][:40], model))
    assert not off


DISPUTED = {
    31: "the answer 9 stands in $ ... $ over three lines; that it is not found there is a limit of the other parser",
    32: "the same with \\( ... \\)",
    187: "[-2, 7] and -2 <= x <= 7 are the same set whichever of them is the gold",
    253: "f(x) is not f(y)",
    263: "1 - 1/e is not 1 + 1/e",
}


def test_pinned_verdicts_of_math_verify(shared: Path) -> None:
    """Every pinned verdict but the disputed ones, each for the reason that stands beside it."""
    off = set()
    for i, row in enumerate(rows(shared / "verdicts" / "math_verify_test_pairs.jsonl")):
        expected = row["expected"] if row.get("expected") is not None else row["result"]
        methods: tuple[Method, ...] = ("boxed", "answer-line", "closing", "bare", "last-number")
        sides = [extract_answer(split_thinking(row[side])[1], methods).answer for side in ("gold", "pred")]
        tolerance = 10.0 ** -row["precision"] if row.get("precision", 6) < 6 else None
        outcome = decide(sides[0] or "", sides[1] or "", absolute=tolerance)[0]
        if (outcome == "correct") != bool(expected):
            off.add(i)
    assert off == set(DISPUTED)


def test_real_reports(shared: Path, math_grader: MathGrader) -> None:
    off = []
    for case in rows(shared / "cases" / "math.jsonl"):
        verdict = math_grader.submit(problem(case["gold"]), case["response"], "stop").result()
        if (verdict.outcome == "correct") != case["expected"]:
            off.append((case["id"], verdict))
    assert not off
