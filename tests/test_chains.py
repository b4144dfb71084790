"""The generated problems of the CPU study."""

import json
from pathlib import Path

import pytest

from ba_eval.benchmark import load
from ba_eval.grade.math import grade
from ba_eval.study import chains
from ba_eval.study.chains import Chain


@pytest.mark.parametrize(
    ("style", "text"),
    [("answer", r"\boxed{2}"), ("twos", r"2:0;4:2;\boxed{2}"), ("steps", r"1:9;2:0;3:1;4:2;\boxed{2}")],
)
def test_solutions_by_hand(style: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "permutations", lambda: {"q": [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]})
    chain = Chain("q", 8, 4)
    assert chains.statement(chain) == "q8x4" and chains.way(chain) == [9, 0, 1, 2]
    assert chains.solution(chain, style) == text


def test_permutations() -> None:
    found = chains.permutations()
    assert list(found) == list(chains.LETTERS) and all(sorted(p) == list(range(10)) for p in found.values())


def test_every_solution_is_graded_right_and_styles_differ_in_length(tmp_path: Path) -> None:
    for chain in chains.write_problems(tmp_path)[:60]:
        answer, after = chain.digit, chains.permutations()[chain.letter]
        for _ in range(chain.times):
            answer = after[answer]
        texts = [chains.solution(chain, style) for style in chains.STYLES]
        assert all(grade([str(answer)], text).outcome == "correct" for text in texts)
        assert len(texts[0]) < len(texts[1]) < len(texts[2])


def test_files(tmp_path: Path) -> None:
    rest = chains.write_problems(tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    assert chains.write_problems(again) == rest
    names = ("train", "short", "long")
    rows = {name: [json.loads(line) for line in (tmp_path / f"{name}.jsonl").open()] for name in names}
    for name in names:
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (again / f"{name}.jsonl").read_bytes()
    statements = [row["problem"] for name in names for row in rows[name]]
    assert len(set(statements)) == len(statements) == 12 * 10 * 8
    assert len(rows["train"]) == len(rest) and len(rows["short"]) == len(rows["long"]) == chains.HELD_OUT
    short = load(str(tmp_path / "short.yaml"))
    assert {int(p.prompt.partition("x")[2]) for p in short.problems} == {2, 3, 4, 5}
    assert short.user_message(short.problems[0]) == short.problems[0].prompt
