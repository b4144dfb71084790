"""The generated problems of the CPU study."""

import json
import random
from pathlib import Path

import pytest

from ba_eval.benchmark import load
from ba_eval.grade.math import grade
from ba_eval.study import chains


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("answer", r"\boxed{6}"),
        ("twos", r"g:1;i:6;\boxed{6}"),
        ("totals", r"f3:3;g8:1;h5:6;i0:6;\boxed{6}"),
    ],
)
def test_solutions_by_hand(style: str, text: str) -> None:
    """3, 11, 16, 16: last digits 3, 1, 6, 6."""
    chain = [("f", 3), ("g", 8), ("h", 5), ("i", 0)]
    assert chains.statement(chain) == "f3g8h5i0" and chains.total(chain) == 6
    assert chains.solution(chain, style) == text


def test_every_solution_is_graded_right_and_styles_differ_in_length() -> None:
    rng = random.Random(0)
    for _ in range(50):
        chain = chains.draw(rng.choice(chains.TRAIN_LENGTHS), rng)
        answer = str(sum(int(c) for c in chains.statement(chain) if c.isdigit()) % 10)
        texts = [chains.solution(chain, style) for style in chains.STYLES]
        assert all(grade([answer], text).outcome == "correct" for text in texts)
        assert len(set(map(len, texts))) == len(texts)


def test_files(tmp_path: Path) -> None:
    held_out = chains.write_problems(tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    assert chains.write_problems(again) == held_out
    for name in ("train.jsonl", "chains.jsonl", "long_chains.jsonl"):
        assert (tmp_path / name).read_bytes() == (again / name).read_bytes()
    trained = {json.loads(line)["problem"] for line in (tmp_path / "train.jsonl").open()}
    assert len(trained) == chains.TRAIN and not trained & held_out
    usual, long = (load(str(tmp_path / f"{name}.yaml")) for name in ("chains", "long_chains"))
    assert {p.prompt for p in (*usual.problems, *long.problems)} == held_out
    assert max(len(p.prompt) for p in usual.problems) < min(len(p.prompt) for p in long.problems)
    assert usual.user_message(usual.problems[0]) == usual.problems[0].prompt
