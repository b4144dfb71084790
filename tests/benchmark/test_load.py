"""Loading: own benchmarks, pins, limits, and every real copy under its benchmark's name."""

import json
from pathlib import Path
from typing import Any

import pytest

from ba_eval.benchmark import load, names
from ba_eval.benchmark.content import ids_hash
from ba_eval.benchmark.problem import CallTest, EvalplusTest, StdinTest
from ba_eval.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"id": "a", "problem": "What is {x}?", "answer": 1},
    {"id": "b", "problem": "And y?", "answer": "02"},
]


@pytest.fixture(autouse=True)
def _no_data_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BA_EVAL_DATA_DIR", raising=False)


def own(folder: Path, more: str = "", rows: list[dict[str, Any]] | None = None) -> str:
    folder.joinpath("mine.yaml").write_text("title: Mine\nkind: math\nprompt: 'Q: {problem} A in \\boxed{}:'\n" + more)
    write(folder / "mine.jsonl", ROWS if rows is None else rows)
    return str(folder / "mine.yaml")


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_own_benchmark_is_a_yaml_and_a_jsonl(tmp_path: Path) -> None:
    benchmark = load(own(tmp_path, "n: 3\nmax_tokens: 50\ngrader: {seconds: 1}\nexcluded: {b: broken}\n"))
    assert (benchmark.name, benchmark.title, benchmark.kind) == ("mine", "Mine", "math")
    assert (benchmark.n, benchmark.max_tokens, benchmark.rows) == (3, 50, 2)
    assert benchmark.grader == {"seconds": 1}
    assert benchmark.excluded == {"b": "broken"}
    assert [(p.id, p.golds) for p in benchmark.problems] == [("a", ("1",)), ("b", ("2",))]
    assert benchmark.user_message(benchmark.problems[0]) == "Q: What is {x}? A in \\boxed{}:"
    assert benchmark.origin == str(tmp_path / "mine.jsonl")
    assert benchmark.marks == ()


def test_another_file_can_be_named(tmp_path: Path) -> None:
    spec = own(tmp_path, "source: {file: other.jsonl}\n")
    with pytest.raises(InputError, match=r"mine\.yaml: its problems are looked for in .*other\.jsonl"):
        load(spec)
    write(tmp_path / "other.jsonl", ROWS[:1])
    assert load(spec).rows == 1


def test_limit_keeps_the_content(tmp_path: Path) -> None:
    spec = own(tmp_path)
    full, one = load(spec), load(spec, limit=1)
    assert [p.id for p in one.problems] == ["a"]
    assert (one.content, one.rows, one.golds) == (full.content, full.rows, full.golds)
    assert len(load(spec, limit=10).problems) == 2
    with pytest.raises(InputError, match="limit 0"):
        load(spec, limit=0)


def test_pins(tmp_path: Path) -> None:
    golds = load(own(tmp_path)).golds
    assert load(own(tmp_path, f"pins: [{{rows: 2, golds: '{golds}', mark: old}}]\n")).marks == ("old",)
    assert load(own(tmp_path, f"pins: [{{rows: 9}}, {{rows: 2, golds: '{golds}'}}]\n")).marks == ()
    for pin in ("{rows: 3}", "{rows: 2, golds: '0000000000000000'}", "{rows: 2, ids: '0000000000000000'}"):
        spec = own(tmp_path, f"pins: [{pin}]\n")
        with pytest.raises(InputError, match=rf"2 rows, golds {golds}.* but pinned is .*--accept-content mine"):
            load(spec)
        (mark,) = load(spec, accept_content=["mine"]).marks
        assert mark.startswith(f"content accepted: 2 rows, golds {golds}")
        with pytest.raises(InputError):
            load(spec, accept_content=["aime24"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no problems"),
        ('{"problem": "x", "answer": 1}\n{"problem"\n', r"mine\.jsonl:2: not valid JSON"),
        ("[1]\n", r"mine\.jsonl:1: must be a JSON object"),
        ('{"problem": "x", "answer": 1}\n\n{"problem": "x"}\n', r"mine\.jsonl:3: no column holds the answer"),
        ('{"id": "a", "problem": "x", "answer": 1}\n' * 2, "1 ids stand more than once, as 'a'; .*'id: row'"),
        ('{"id": "a", "problem": "x", "answer": 1}\n{"problem": "x", "answer": 1}\n', "row 2 has no id, and others"),
    ],
)
def test_malformed_data(tmp_path: Path, text: str, says: str) -> None:
    spec = own(tmp_path)
    (tmp_path / "mine.jsonl").write_text(text)
    with pytest.raises(InputError, match=says):
        load(spec)


def test_named_id_columns_must_be_unique(tmp_path: Path) -> None:
    rows = [{"key": "k", "problem": "x", "answer": 1}, {"key": "k", "problem": "y", "answer": 1}]
    with pytest.raises(InputError, match="1 ids stand more than once, as 'k'"):
        load(own(tmp_path, "id: key\n", rows))


def test_data_folder_comes_first_and_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "mine.jsonl", ROWS[:1])
    spec = own(tmp_path)
    assert load(spec, data_dir=tmp_path / "data").rows == 1
    monkeypatch.setenv("BA_EVAL_DATA_DIR", str(tmp_path / "data"))
    assert load(spec).rows == 1
    with pytest.raises(InputError, match="there is no such folder"):
        load(spec, data_dir=tmp_path / "none")


def test_selectors_only_where_there_are_releases() -> None:
    with pytest.raises(InputError, match="smoke_math has no releases"):
        load("smoke_math@v6")


def test_smoke_benchmarks_ship_with_the_package() -> None:
    math, code = load("smoke_math"), load("smoke_code")
    assert math.rows == 20 and code.rows == 12
    assert all(p.golds and p.reference for p in math.problems)
    kinds = {type(p.code.tests[0]) for p in code.problems if p.code}  # type: ignore[index]
    assert kinds == {StdinTest, CallTest}
    assert all(p.reference for p in code.problems)


# Every copy under its benchmark's name: file, rows, a problem's id and golds.
COPIES = [
    ("aime24", "aime24", 30, "every-morning-aya-goes-for-a", ("204",)),
    ("aime24", "aime24_qwen", 30, "there-exist-real-numbers-x-and", ("25",)),
    ("aime24", "aime24_verl", 30, "there-exist-real-numbers-x-and", ("25",)),
    ("aime25", "aime25", 30, "find-the-sum-of-all-integer", ("70",)),
    ("aime25", "aime25_verl", 30, "find-the-sum-of-all-integer", ("70",)),
    ("aime26", "aime26", 30, "patrick-started-walking-at-a-constant", ("277",)),
    ("amc23", "amc23", 40, "cities-a-and-b-are-45", ("27",)),
    ("math500", "math500", 500, "test/precalculus/807.json", (r"\left( 3, \frac{\pi}{2} \right)",)),
    ("minerva_math", "minerva_math", 272, "each-of-the-two-magellan-telescopes", ("1.6",)),
    ("minerva_math", "minerva_math_r1zero", 272, "each-of-the-two-magellan-telescopes", ("1.6",)),
    ("olympiadbench", "olympiadbench", 675, "1606", ("2",)),
    ("gsm8k", "gsm8k_test", 1319, "0", ("18",)),
    ("humaneval", "humaneval", 164, "HumanEval/0", ()),
    ("livecodebench", "livecodebench", 342, "abc387_b", ()),
]


def copy(shared: Path, folder: Path, name: str, file: str) -> Path:
    (folder / f"{name}.jsonl").symlink_to(shared / "data" / f"{file}.jsonl")
    return folder


@pytest.mark.parametrize(("name", "file", "rows", "id", "golds"), COPIES)
def test_real_copies(
    shared: Path, tmp_path: Path, name: str, file: str, rows: int, id: str, golds: tuple[str, ...]
) -> None:
    benchmark = load(name, data_dir=copy(shared, tmp_path, name, file))
    assert benchmark.rows == len(benchmark.problems) == rows
    assert {p.id: p.golds for p in benchmark.problems}[id] == golds
    for problem in benchmark.problems:
        assert problem.prompt in benchmark.user_message(problem)
        assert (problem.code is None) == (benchmark.kind == "math")


@pytest.mark.parametrize(
    ("name", "files"),
    [("aime24", ["aime24", "aime24_qwen", "aime24_verl"]), ("aime25", ["aime25", "aime25_verl"])],
)
def test_copies_of_a_set_agree_in_ids_and_golds(shared: Path, tmp_path: Path, name: str, files: list[str]) -> None:
    golds = []
    for file in files:
        (tmp_path / file).mkdir()
        benchmark = load(name, data_dir=copy(shared, tmp_path / file, name, file))
        golds.append({p.id: p.golds for p in benchmark.problems})
    assert all(other == golds[0] for other in golds)


def test_minerva_copies_agree_in_ids(shared: Path, tmp_path: Path) -> None:
    hashes = set()
    for file in ("minerva_math", "minerva_math_r1zero"):
        (tmp_path / file).mkdir()
        hashes.add(
            ids_hash(load("minerva_math", data_dir=copy(shared, tmp_path / file, "minerva_math", file)).problems)
        )
    assert len(hashes) == 1


def test_known_dirt(shared: Path) -> None:
    olympiad = {p.id: p for p in load("olympiadbench", data_dir=shared / "data").problems}
    assert olympiad["2592"].meta["tolerance"] == 0.1 and olympiad["2592"].meta["unit"] == "%"
    assert sum(bool(p.meta.get("multiple")) for p in olympiad.values()) == 94
    assert sum("unit" in p.meta for p in olympiad.values()) == 8
    assert olympiad["1664"].golds == ("$69$,$84$",)
    math500 = {p.id: p.golds[0] for p in load("math500", data_dir=shared / "data").problems}
    for gold in (r"\text{Evelyn}", r"\text{(C)}", r"\frac{270}7\text{ degrees}", r"10,\!080", r"\$32,\!348", "58,500"):
        assert gold in math500.values()


def test_a_changed_gold_is_noticed(shared: Path, tmp_path: Path) -> None:
    lines = (shared / "data" / "aime24.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["expected_answer"] = "74"
    (tmp_path / "aime24.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]))
    with pytest.raises(InputError, match=r"30 rows, golds \w{16}, but pinned is 30 rows, golds 26b2e319e14bdec5"):
        load("aime24", data_dir=tmp_path)
    assert load("aime24", data_dir=tmp_path, accept_content=["aime24"]).marks[0].startswith("content accepted")
    (tmp_path / "aime24.jsonl").write_text("\n".join(lines[1:]))
    with pytest.raises(InputError, match="29 rows"):
        load("aime24", data_dir=tmp_path)


def test_livecodebench_part_with_public_tests(shared: Path) -> None:
    data = shared / "data"
    whole = load("livecodebench", data_dir=data)
    assert whole.marks == ("without v1, v2, v3, v4", "public tests only")
    assert set(whole.excluded) == {"arc185_c", "arc189_a"}
    assert {p.id for p in whole.problems if p.code and p.code.excluded} == set(whole.excluded)
    assert [load(f"livecodebench@{v}", data_dir=data).rows for v in ("v5", "v6")] == [167, 175]
    assert load("livecodebench@v6", data_dir=data).marks == ("public tests only",)
    window = load("livecodebench@2025-01..2025-02", data_dir=data)
    assert window.rows == 102 - sum(p.meta["date"] < "2025-01" for p in window.problems)
    both = {("Starter code" in whole.user_message(p), type(p.code.tests[0])) for p in whole.problems if p.code}  # type: ignore[index]
    assert both == {(True, CallTest), (False, StdinTest)}


@pytest.mark.parametrize(
    ("name", "file", "rows"), [("humaneval_plus", "humaneval_plus", 164), ("mbpp_plus", "mbpp_plus", 378)]
)
def test_evalplus_sets(shared: Path, tmp_path: Path, name: str, file: str, rows: int) -> None:
    pytest.importorskip("evalplus")
    benchmark = load(name, data_dir=shared / "data")
    assert benchmark.rows == rows
    tests = [p.code.tests for p in benchmark.problems if p.code]
    assert all(isinstance(t, EvalplusTest) and t.base_input for t in tests)
    assert set(benchmark.excluded) == ({"Mbpp/255"} if name == "mbpp_plus" else set())


def test_every_math_and_plain_set_has_unique_nonempty_ids(shared: Path) -> None:
    for name in set(names()) - {"humaneval_plus", "mbpp_plus", "gsm8k"}:
        ids = [p.id for p in load(name, data_dir=shared / "data").problems]
        assert len(set(ids)) == len(ids) and all(ids), name


def test_the_example_of_the_documentation_loads(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    yaml, data = (text.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("yaml", "json"))
    (tmp_path / "kinematics.yaml").write_text(yaml)
    (tmp_path / "kinematics.jsonl").write_text(data)
    benchmark = load(str(tmp_path / "kinematics.yaml"))
    assert [(p.id, p.golds, p.meta["unit"]) for p in benchmark.problems] == [
        ("fall", ("2",), "s"),
        ("speed", ("90",), "km/h"),
    ]
    assert (benchmark.n, benchmark.max_tokens, benchmark.top_p) == (8, 2048, 0.7)


def test_a_math_set_in_several_files(tmp_path: Path) -> None:
    spec = own(tmp_path, "source: {hub: org/mine, files: {a: one.jsonl, b: two.jsonl}}\n")
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    write(folder / "one.jsonl", ROWS[:1])
    assert load(spec, data_dir=tmp_path / "data").marks == ("without b",)
    write(folder / "two.jsonl", ROWS[1:])
    both = load(spec, data_dir=tmp_path / "data")
    assert both.rows == 2 and both.marks == ()
    assert both.origin == f"{folder} (2 files)"
