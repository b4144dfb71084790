"""Overlap with a benchmark: real repeats are found, shared phrases are not repeats."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.train.overlap import Index, plain, words


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (r"Find $\dfrac{1}{2}+x$.", r"find  $\frac 1 2 + x$"),
        (r"$\left( a,b \right)$ is $10,\!080$", r"$(a, b)$ is $10,080$"),
        (r"\text{Let } x", "let x"),
    ],
)
def test_the_same_problem_in_another_dress(a: str, b: str) -> None:
    assert plain(a) == plain(b)


def test_an_operator_makes_another_problem() -> None:
    assert plain("What is $3+4$?") != plain("What is $3-4$?")


@given(st.text(max_size=300))
def test_any_text_can_be_looked_up(text: str) -> None:
    index = Index()
    index.add("b", [("1", text)])
    match = index.find(text)
    assert match is not None and match.share == 1.0
    assert all(word == word.lower() for word in words(text))


def test_real_repeats_and_none_invented(shared: Path) -> None:
    """AIME 1983-2023 against MATH-500: ten problems stand in both, four of them reworded."""

    def read(name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (shared / "data" / f"{name}.jsonl").read_text().splitlines()]

    index = Index()
    index.add("math500", [(row["unique_id"], row["problem"]) for row in read("math500")])
    index.add("aime24", [(row["id"], row["problem"]) for row in read("aime24")])
    aime = [(row, index.find(row["problem"])) for row in read("train_rllm_aime_1983_2023")]
    found = [(row["problem"], match) for row, match in aime if match]
    assert len(found) == 10 and {match.benchmark for _, match in found} == {"math500"}
    copies = [index.find(row["question"]) for row in read("aime24_qwen")]
    assert all(match and match.benchmark == "aime24" for match in copies)
    assert not [row for row in read("gsm8k_test")[:400] if index.find(row["question"])]
