"""The same numbers in every format, and hostile names in none."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest
from markdown_it import MarkdownIt

import ba_eval.tables
from ba_eval.errors import InputError
from ba_eval.results import Results, load
from ba_eval.tables import FORMATS, render, write_summary
from tests.runs import make_run
from tests.tables.test_escape import HOSTILE as NAMES

HOSTILE = "\x1b[31m=evil|<script>\\input{x}&"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    generator = np.random.default_rng(0)
    scores = {
        model: {"aime24": generator.random((30, 8)) < share, "math500": generator.random((50, 4)) < 0.5}
        for model, share in (("ba", 0.3), ("token", 0.2))
    }
    return load(make_run(tmp_path / "run", scores, ks=(1, 4, 8)))


def test_the_text_table(results: Results) -> None:
    text = render(results, "text")
    lines = text.splitlines()
    assert lines[0] == "run: mean accuracy and 95 % interval over problems, in %"
    rows = {line.split()[-4]: line.split()[-3:] for line in lines if len(line.split()) >= 4}
    share = 100 * results.cells["ba", "aime24"].scores.mean()
    first = next(line for line in lines if line.split()[:2] == ["ba", "avg@n"])
    assert first.split()[2] == f"*{share:.1f}"  # the sign of the best, where bold cannot be seen
    assert "bold (*): best" in text
    assert rows["pass@4"][0] != "-"
    assert rows["pass@8"][1:] == ["-", "-"]  # n = 4 on math500: undefined, so is the suite's mean


def test_all_formats_show_the_same_score(results: Results) -> None:
    share = float(results.cells["token", "math500"].scores.mean())
    assert f"| **{100 * share:.1f}**<br>" in render(results, "markdown")  # not separable from the best: bold
    assert f"\\textbf{{{100 * share:.1f}}} &" in render(results, "latex")
    data = json.loads(render(results, "json"))
    assert data["models"][1]["benchmarks"]["math500"]["avg"]["value"] == pytest.approx(share)
    assert data["models"][1]["benchmarks"]["math500"]["pass_at"]["8"]["value"] is None
    line = next(line for line in render(results, "csv").splitlines() if line.startswith("token,,,,math500"))
    assert f"{share:.6g}" in line.split(",")
    table = results.table()
    assert isinstance(table, pandas.DataFrame)
    row = table[(table.model == "token") & (table.benchmark == "math500")]
    assert row["avg"].item() == pytest.approx(share)
    assert np.isnan(row["pass@8"].item())


def test_markdown_is_one_table_of_the_right_shape(results: Results) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(render(results, "markdown"))
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == 1
    assert kinds.count("tr_open") == 3
    assert kinds.count("td_open") == 2 * 5


def test_summary_json_is_written_whole(results: Results) -> None:
    write_summary(results.run, results)
    data = json.loads((results.run / "summary.json").read_text())
    assert data["schema"] == "ba-eval summary 1"
    assert data["complete"] is True


def test_hostile_names_are_text_in_every_format(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        {HOSTILE: {"b": [[1, 0]]}},
        models={HOSTILE: {"marks": (HOSTILE,)}},
        benchmarks={"b": {"excluded": {"p9": HOSTILE}}},
        change=lambda m, b, row, index: {"outcome": "undecided", "reason": HOSTILE},
        marks=(HOSTILE,),
    )
    for format in FORMATS:
        text = render(load(run), format)
        assert "\x1b" not in text
        if format == "markdown":
            assert "<script>" not in text.replace("\\<", "")
        if format == "latex":
            assert "\\input" not in text
        if format == "csv":
            assert "\n=" not in text and ",=" not in text


def test_an_unknown_format_is_bad_input(results: Results) -> None:
    with pytest.raises(InputError, match="unknown table format 'xlsx'; there are: text"):
        render(results, "xlsx")


def test_marks_and_problems_apart_are_told(tmp_path: Path) -> None:
    run = make_run(
        tmp_path,
        {"m": {"b": [[1, 0], [1, 1]]}},
        models={"m": {"marks": ("prompt from training.json",)}},
        benchmarks={"b": {"excluded": {"p1": "interactive"}, "marks": ("content accepted",)}},
        change=lambda m, b, row, index: (
            {"outcome": "error", "reason": "sandbox lost"} if (row, index) == (0, 1) else {}
        ),
        marks=("unsafe",),
    )
    text = render(load(run))
    assert "b: 1 problems apart, not in the score (interactive: 1): m 100.0" in text
    assert "m: prompt from training.json" in text
    assert "b: content accepted" in text
    assert "run: unsafe" in text
    assert "INCOMPLETE: 1 errors" in text
    assert "errors: sandbox lost: 1" in text


def test_a_narrow_terminal_gets_several_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"benchmark{number}" for number in range(6)]
    run = make_run(tmp_path, {"model": {name: [[1, 0], [0, 0]] for name in names}})
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    ba_eval.tables.print_table(load(run))
    lines = capsys.readouterr().out.splitlines()
    headers = [line for line in lines if "model" in line and "%" in line]
    assert len(headers) >= 3
    tables = [line for line in lines if "benchmark" in line]
    assert all(any(name in line for line in tables) for name in names)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex to compile the table")
def test_latex_compiles_with_hostile_names(tmp_path: Path) -> None:
    names = [name.replace("\ud800", "") for name in NAMES]
    run = make_run(tmp_path / "run", {name: {"b": [[1, 0], [1, 1]]} for name in names}, marks=tuple(names))
    packages = "\\usepackage[T1]{fontenc}\\usepackage{booktabs}"
    body = render(load(run), "latex")
    (tmp_path / "t.tex").write_text(f"\\documentclass{{article}}{packages}\\begin{{document}}{body}\\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]


def test_many_cut_responses_are_told_with_the_flag_and_both_scores(tmp_path: Path) -> None:
    """2 of 8 samples are cut and wrong: 4/8 right with them, 4/6 without."""
    scores = {"ba": {"math500": np.array([[1, 1, 0, 0], [1, 1, 0, 0]], dtype=bool)}}
    run = make_run(
        tmp_path / "run", scores, change=lambda m, b, row, index: {"finish_reason": "length"} if index == 3 else {}
    )
    text = " ".join(render(load(run), "text").split())
    assert "math500: more than 5% of the responses were cut at 3,072 tokens (ba); raise --max-tokens" in text
    assert "avg@n 50.0" in text and "uncut 66.7" in text
    whole = render(load(make_run(tmp_path / "whole", scores)), "text")
    assert "--max-tokens" not in whole and "uncut" not in whole and "thinking" not in whole


def test_thinking_is_shown_where_a_response_thinks(tmp_path: Path) -> None:
    """100, 101, 102, 103 tokens of which 40, 0, none counted, and all: the last never stopped thinking."""
    thinking = {0: 40, 1: 0, 3: 103}
    scores = {"ba": {"math500": [[1, 1, 0, 0]], "aime24": [[1, 0]]}}
    run = make_run(
        tmp_path / "run",
        scores,
        change=lambda m, b, row, i: {"thinking_tokens": thinking.get(i)} if b[0] == "m" else {},
    )
    lines = [line.split() for line in render(load(run), "text").splitlines()]
    assert ["thinking", "72", "-", "-"] in lines
    assert ["unclosed", "50.0", "-", "-"] in lines
