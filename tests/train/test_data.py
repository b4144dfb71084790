"""Training data: every row that goes is counted under its reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from ba_eval.benchmark.load import load
from ba_eval.errors import InputError
from ba_eval.train.config import DataConfig
from ba_eval.train.data import Prepared, drop_long, prepare, user_message


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def config(source: str, **changed: Any) -> DataConfig:
    return DataConfig(**{"source": source, "benchmarks": (), **changed})


def test_dapo_rows_are_copies_of_few_prompts(shared: Path, tmp_path: Path) -> None:
    """The original set holds each prompt about a hundred times, under other ids."""
    row = json.loads((shared / "data" / "train_dapo17k_sample1_verl.jsonl").read_text())
    other = json.loads((shared / "data" / "train_dapo17k_sample8_slime.jsonl").read_text().splitlines()[0])
    copies = [{**row, "extra_info": {"index": str(i)}} for i in range(100)]
    made = prepare(config(write(tmp_path / "dapo17k.jsonl", [*copies, other])))
    assert made.rows == 101 and made.dropped == {"repeated rows": 99}
    first = made.problems[0]
    assert first.golds == ("-3",) and first.prompt.startswith("Let $a, b, c$") and first.prompt.endswith("$a + b + c$.")
    assert made.problems[1].golds == ("34",)


def test_the_same_problem_in_another_wrapping_is_one(shared: Path, tmp_path: Path) -> None:
    rows = [json.loads((shared / "data" / "train_dapo17k_sample1_verl.jsonl").read_text())]
    rows += [json.loads(x) for x in (shared / "data" / "train_dapo17k_sample8_slime.jsonl").read_text().splitlines()]
    made = prepare(config(write(tmp_path / "both.jsonl", rows)))
    assert made.rows == 9 and made.dropped == {"with the text of an earlier problem": 1}


def test_dirt_of_polaris(shared: Path, tmp_path: Path) -> None:
    good = json.loads((shared / "data" / "train_polaris53k_sample1.jsonl").read_text())
    rows = [
        good,
        {**good, "problem": good["problem"] + " ", "difficulty": "1/8"},
        {"problem": "Prove that $\\sqrt 2$ is irrational.", "answer": "p^2 = 2 q^2"},
        {"problem": "Show that $n^2 > n$ for $n > 1$, and find the least such $n$.", "answer": "2"},
        {"problem": "What is the area? ![](https://example.org/1.png)", "answer": "3"},
        {"problem": "Who is right?", "answer": "Both of them are right because of this"},
        {"problem": "What is the name of the tallest?", "answer": "\\text{Evelyn}"},
        {"problem": "How much is one and one?", "answer": "2"},
        {"problem": "how much is  one and one?", "answer": "3"},
        {"problem": "How much is one and one?", "answer": "2.0"},
        {"problem": "Nothing to check here", "answer": ""},
        {"problem": "", "answer": "7"},
    ]
    made = prepare(config(write(tmp_path / "polaris53k.jsonl", rows)))
    assert dict(made.dropped) == {
        "without a problem or without an answer": 2,
        "with the text of an earlier problem": 1,
        "with the same text and different answers": 3,
        "ask for a proof": 1,
        "need a picture": 1,
        "have prose for an answer": 1,
    }
    assert made.rows == 12 and [p.golds[0] for p in made.problems] == ["9375", "2", "\\text{Evelyn}"]
    assert made.rows == len(made.problems) + sum(made.dropped.values())
    report = "\n".join(made.report())
    assert "12 rows" in report and "1 ask for a proof" in report and "= 3 problems" in report


def test_what_stands_in_a_benchmark_goes(shared: Path, tmp_path: Path) -> None:
    source = str(shared / "data" / "train_rllm_aime_1983_2023.jsonl")
    asked = {"dir": str(shared / "data"), "benchmarks": ("aime24", "math500")}
    removed = prepare(config(source, **asked))
    assert removed.rows == 975 and removed.dropped["stand in math500 too"] == 10 and len(removed.problems) == 965
    kept = prepare(config(source, overlap="report", **asked))
    assert len(kept.problems) == 975 and len(kept.overlaps) == 10
    assert any("10 problems, 10 of them kept" in line for line in kept.report())


def test_a_benchmark_that_cannot_be_had_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("BA_EVAL_DATA_DIR", raising=False)
    monkeypatch.setattr("ba_eval.train.data._benchmarks", lambda kind: ["math500"])
    source = write(tmp_path / "p.jsonl", [{"problem": "1 + 1?", "answer": "2"}])
    made = prepare(config(source, benchmarks=None))
    assert "math500" in made.unchecked and not made.checked
    assert any("overlap with math500 NOT checked" in line for line in made.report())
    with pytest.raises(InputError, match="math500"):  # asked for by name: not left out in silence
        prepare(config(source, benchmarks=("math500",)))


def test_parquet_and_columns(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [{"q": f"{i} + 1?", "a": i + 1} for i in range(5)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "sums.parquet")
    made = prepare(config("sums", dir=str(tmp_path), columns={"problem": "q", "answer": "a"}, limit=3))
    assert [p.golds for p in made.problems] == [("1",), ("2",), ("3",)]
    assert made.dropped == {"beyond the limit of 3": 2}
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "sums.parquet").read_bytes()[:-20])
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        prepare(config(str(tmp_path / "torn.parquet")))


def test_code_problems(shared: Path) -> None:
    made = prepare(config(str(shared / "data" / "rllm_code_contests.jsonl"), kind="code-stdin", limit=4))
    assert made.rows == 165 and len(made.problems) == 4 and all(p.code is not None for p in made.problems)


def test_a_problem_is_asked_as_the_evaluation_asks_it(shared: Path) -> None:
    made = prepare(config(str(shared / "data" / "math500.jsonl"), limit=1))
    benchmark = load("math500", data_dir=shared / "data", limit=1)
    assert user_message(made.problems[0], None) == benchmark.user_message(benchmark.problems[0])
    code = prepare(config(str(shared / "data" / "rllm_code_contests.jsonl"), kind="code-stdin", limit=1)).problems[0]
    assert "```python" in user_message(code, None) and code.prompt in user_message(code, None)
    assert user_message(code, "Do: {problem}") == f"Do: {code.prompt}"


def test_content_is_of_what_is_trained_on(tmp_path: Path) -> None:
    rows = [{"problem": f"{i} + 1?", "answer": i + 1} for i in range(5)]
    a = prepare(config(write(tmp_path / "a.jsonl", rows)))
    b = prepare(config(write(tmp_path / "b.jsonl", [*rows[:4], {"problem": "4 + 1?", "answer": 6}])))
    assert a.content == prepare(config(write(tmp_path / "c.jsonl", rows))).content != b.content


def test_long_prompts_go(tmp_path: Path) -> None:
    made: Prepared = prepare(config(write(tmp_path / "a.jsonl", [{"problem": f"{i}?", "answer": i} for i in range(3)])))
    drop_long(made, [5, 11, 10], 10)
    assert [p.golds[0] for p in made.problems] == ["0", "2"] and made.dropped["prompts of more than 10 tokens"] == 1
    with pytest.raises(InputError, match="every prompt"):
        drop_long(made, [11, 12], 10)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", "{not json}\n", "not valid JSON"),
        ("a.jsonl", '{"text": "x"}\n', "no column holds the answer"),
        ("a.jsonl", '{"problem": "Prove it is so.", "answer": "1"}\n', "no problem is left"),
        ("a.jsonl", "", "no problem is left"),
    ],
)
def test_nothing_to_train_on(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        prepare(config(str(tmp_path / name)))


def test_unknown_source(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such file; known by name: dapo17k, polaris53k"):
        prepare(config("nowhere.jsonl"))
