"""Ranking models of many runs: only what was measured the same way, ties as ties."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from ba_eval.cli import main
from ba_eval.errors import InputError
from ba_eval.leaderboard import leaderboard
from ba_eval.results import Results, load
from ba_eval.tables.board import render_board
from tests.runs import make_run


def run_of(folder: Path, shares: dict[str, float], seed: int = 0, **more: object) -> Results:
    generator = np.random.default_rng(seed)
    chances = {name: np.random.default_rng(7).uniform(-0.2, 0.2, 120)[:, None] for name in ("x", "y")}
    scores = {
        model: {name: generator.random((120, 4)) < chance + share for name, chance in chances.items()}
        for model, share in shares.items()
    }
    return load(make_run(folder, scores, **more))  # type: ignore[arg-type]


def edit_keys(results: Results, **changes: object) -> None:
    path = results.run / "keys.json"
    keys = json.loads(path.read_bytes())
    for parts in keys.values():
        parts |= changes
    path.write_text(json.dumps(keys))


def test_ranks_are_intervals_and_ties_are_ties(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / "a", {"low": 0.25, "best": 0.7}), run_of(tmp_path / "b", {"tie1": 0.45, "tie2": 0.45}, 1)]
    [group] = leaderboard(runs)
    assert group.differs == ()
    assert group.entries[0].label == "best"
    ranks = {entry.label: entry.rank for entry in group.entries}
    assert ranks == {"best": (1, 1), "tie1": (2, 3), "tie2": (2, 3), "low": (4, 4)}
    best = group.entries[0]
    assert best.suite.value == pytest.approx(
        np.mean([cell.scores.mean() for cell in runs[0].only("best").cells.values()])
    )


def test_what_was_measured_otherwise_stands_apart_with_the_reason(tmp_path: Path) -> None:
    main_runs = [run_of(tmp_path / name, {name: 0.5}) for name in ("a", "b", "c")]
    hot = run_of(tmp_path / "hot", {"hot": 0.9})
    edit_keys(hot, sampling={"temperature": 0.6, "top_p": 0.7, "max_tokens": 3072})
    prompt = run_of(tmp_path / "prompt", {"prompt": 0.9})
    edit_keys(prompt, **{"benchmark prompt": "Think hard. {problem}"})
    content = run_of(tmp_path / "content", {"content": 0.9}, benchmarks={"y": {"content": "other"}})
    grader = run_of(tmp_path / "grader", {"grader": 0.9}, change=lambda m, b, r, i: {"grader": "math 2"})
    few = load(make_run(tmp_path / "few", {"few": {"x": [[1, 0]]}}))
    system = run_of(tmp_path / "system", {"system": 0.9})
    (system.run / "run.yaml").write_text("system: Be brief.\n")
    groups = leaderboard([hot, *main_runs, prompt, content, grader, few, system])
    assert [len(group.entries) for group in groups] == [3, 1, 1, 1, 1, 1, 1]
    reasons = {group.entries[0].label: group.differs for group in groups[1:]}
    assert reasons["hot"] == ("x: temperature 0.6, not 1.0", "y: temperature 0.6, not 1.0")
    assert reasons["prompt"][0] == "x: prompt Think hard. {problem}, not {problem}"
    assert reasons["content"] == ("y: content other, not c-y",)
    assert reasons["grader"][0] == "x: grader math 2, not math 1"
    assert reasons["few"][0] == "no y"
    assert "x: problems 1, not 120" in reasons["few"]
    assert reasons["system"][0] == "x: system Be brief., not None"


def test_n_may_differ(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    runs = [load(make_run(tmp_path / str(n), {f"n{n}": {"x": generator.random((50, n)) < 0.5}})) for n in (4, 16)]
    assert len(leaderboard(runs)) == 1


def test_models_of_one_name_are_told_apart_by_their_run(tmp_path: Path) -> None:
    [group] = leaderboard([run_of(tmp_path / name, {"ba": 0.5, name: 0.2}) for name in ("r1", "r2")])
    assert {entry.label for entry in group.entries} == {"r1/ba", "r2/ba", "r1", "r2"}
    runs = [run_of(tmp_path / name / "run", {"ba": 0.5}) for name in ("r3", "r4")]
    [group] = leaderboard(runs)
    assert {entry.label for entry in group.entries} == {f"{tmp_path}/r3/run/ba", f"{tmp_path}/r4/run/ba"}


def test_an_incomplete_model_is_told_and_an_unmeasured_one_has_no_rank(tmp_path: Path) -> None:
    results = run_of(
        tmp_path / "r",
        {"whole": 0.5, "part": 0.5, "none": 0.5},
        seed=4,
        change=lambda m, b, row, i: None if m == "none" or (m, b, row, i) == ("part", "x", 0, 0) else {},
    )
    [group] = leaderboard([results])
    found = {entry.label: entry for entry in group.entries}
    assert found["part"].lacks == "1 samples missing"
    assert (found["whole"].rank, found["part"].rank, found["none"].rank) == ((1, 2), (1, 2), None)
    assert group.entries[-1].label == "none"


def test_what_is_not_graded_yet_has_no_other_grader(tmp_path: Path) -> None:
    graded = [run_of(tmp_path / name, {name: 0.5}) for name in ("a", "b")]
    waiting = run_of(tmp_path / "c", {"c": 0.5}, change=lambda m, b, row, i: {"verdict": None})
    edit_keys(waiting, sampling={"temperature": 0.6, "top_p": 0.7, "max_tokens": 3072})
    groups = leaderboard([*graded, waiting])
    assert groups[1].differs == ("x: temperature 0.6, not 1.0", "y: temperature 0.6, not 1.0")


def test_a_run_without_its_keys_is_bad_input(tmp_path: Path) -> None:
    results = run_of(tmp_path / "r", {"a": 0.5})
    (results.run / "keys.json").unlink()
    with pytest.raises(InputError, match=r"no readable keys\.json"):
        leaderboard([results])


class Page(HTMLParser):
    """Collects the tags and the texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {name for name, _ in attrs} & {"onclick", "onerror", "onload", "src", "href"}

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_hostile_names_are_text_in_html_and_markdown(tmp_path: Path) -> None:
    name = "<script>alert(1)</script><img src=x onerror=alert(1)>|\x1b[0m"
    groups = leaderboard(
        [run_of(tmp_path / "r", {name: 0.5, "b": 0.5}, marks=(name,), models={name: {"marks": (name,)}})]
    )
    page = Page()
    page.feed(render_board(groups, "html"))
    assert "script" not in page.tags and "img" not in page.tags
    assert name.replace("\x1b", "\\x1b") in page.texts
    assert page.tags.count("table") == 1
    assert "<script>" not in render_board(groups, "markdown").replace("\\<", "")


def test_the_command_writes_what_the_name_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(run_of(tmp_path / name, {name: share}).run) for name, share in (("a", 0.3), ("b", 0.6))]
    assert main(["leaderboard", *runs]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", "b"] in [line[:2] for line in lines] and ["2", "a"] in [line[:2] for line in lines]
    for suffix in (".md", ".html", ".json"):
        assert main(["leaderboard", *runs, "-o", str(tmp_path / f"board{suffix}")]) == 0
        assert f"board{suffix}" in capsys.readouterr().out
    data = json.loads((tmp_path / "board.json").read_text())
    assert [entry["label"] for entry in data["groups"][0]["entries"]] == ["b", "a"]
    assert "| 1 | b |" in (tmp_path / "board.md").read_text()
    assert main(["leaderboard", *runs, "-o", str(tmp_path / "board.pdf")]) == 2
    assert ".md, .html, .json" in capsys.readouterr().err


def test_an_incomplete_run_exits_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path / "r", {"a": 0.5}, change=lambda m, b, row, i: None if row == 0 else {}).run
    assert main(["leaderboard", str(run)]) == 3
    assert "INCOMPLETE" in capsys.readouterr().out
