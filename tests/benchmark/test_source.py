"""The hub, for real: its clients against a stand-in server, and what is said when it is away."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark.hub_server import COMMIT, hub

# In a process of its own: the hub's clients read their settings when they are imported.
LOAD = """
import json, sys
from pathlib import Path
from ba_eval.benchmark import load
from ba_eval.errors import InputError
for spec in sys.argv[1:]:
    try:
        b = load(spec)
        print(json.dumps([b.rows, b.origin, [[p.id, list(p.golds)] for p in b.problems],
                          [list(map(str, p.code.tests)) for p in b.problems if p.code], list(b.marks)]))
    except InputError as error:
        print(json.dumps(str(error)))
"""


def load_apart(*specs: str, home: Path, **settings: str) -> list[Any]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "BA_EVAL_"))}
    env |= {"HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **settings}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *specs], env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def definition(folder: Path, name: str, source: str, more: str = "") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(f"title: {name}\nkind: math\nprompt: '{{problem}}'\nsource: {source}\n{more}")
    return str(path)


@pytest.fixture
def datasets_folder(tmp_path: Path) -> Path:
    """A dataset as JSONL, one as parquet under a named config, one of files that a loader script hides."""
    import pyarrow
    import pyarrow.parquet

    root = tmp_path / "hub"
    plain = root / "org" / "plain"
    plain.mkdir(parents=True)
    plain.joinpath("test.jsonl").write_text('{"problem": "1+1?", "answer": "2", "unique_id": "a"}\n')
    table = root / "org" / "table"
    (table / "deep").mkdir(parents=True)
    rows = [{"id": 7, "question": "Which?", "final_answer": ["$1$"], "error": None, "solution": ["So."]}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), table / "deep" / "train.parquet")
    table.joinpath("README.md").write_text(
        "---\nconfigs:\n- config_name: one\n  data_files:\n  - {split: train, path: 'deep/*.parquet'}\n---\n"
    )
    script = root / "org" / "script"
    script.mkdir()
    script.joinpath("script.py").write_text("raise SystemExit('the loader script was run')\n")
    test = {"input": "1", "output": "2", "testtype": "stdin"}
    for number, name in enumerate(("test.jsonl", "test2.jsonl"), 1):
        row = {
            "question_content": "Do.", "question_id": f"q{number}", "contest_date": f"2024-0{number}-01T00:00:00",
            "public_test_cases": json.dumps([test]), "private_test_cases": json.dumps([test | {"input": str(number)}]),
            "metadata": "{}", "starter_code": "",
        }  # fmt: skip
        script.joinpath(name).write_text(json.dumps(row) + "\n")
    return root


def test_the_hub_is_read_at_the_pinned_revision_and_again_without_it(tmp_path: Path, datasets_folder: Path) -> None:
    plain = definition(tmp_path, "plain", f"{{hub: org/plain, revision: {COMMIT}}}")
    table = definition(tmp_path, "table", f"{{hub: org/table, config: one, split: train, revision: {COMMIT}}}")
    missing = definition(tmp_path, "missing", "{hub: org/missing}")
    home = tmp_path / "home"
    with hub(datasets_folder) as server:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        read, tabled, none = load_apart(plain, table, missing, home=home, HF_ENDPOINT=endpoint)
        asked = [path for path in server.asked if "/org/plain/" in path]
    assert read == [1, f"hub org/plain@{COMMIT[:8]}", [["a", ["2"]]], [], []]
    assert tabled[:3] == [1, f"hub org/table@{COMMIT[:8]}", [["7", ["1"]]]]
    assert "cannot read org/missing@main from the hub" in none and "--data-dir" in none
    assert asked and all(COMMIT in path for path in asked)  # no question about any other revision
    again, away = load_apart(plain, missing, home=home, HF_ENDPOINT=endpoint, HF_HUB_OFFLINE="1")
    assert again == read
    assert "unset HF_HUB_OFFLINE" in away


def test_sets_behind_a_loader_script_are_read_file_by_file(tmp_path: Path, datasets_folder: Path) -> None:
    from ba_eval.benchmark.definition import Source, Spec
    from ba_eval.benchmark.releases import wanted_releases

    source = f"{{hub: org/script, revision: {COMMIT}, files: {{v1: test.jsonl, v2: test2.jsonl}}}}"
    path = definition(tmp_path, "files", source)
    Path(path).write_text(Path(path).read_text().replace("kind: math", "kind: code-stdin"))
    home = tmp_path / "home"
    with hub(datasets_folder) as server:
        (whole,) = load_apart(path, home=home, HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
    assert whole[0] == 2
    assert whole[2] == [["q1", []], ["q2", []]]
    assert [len(tests) for tests in whole[3]] == [2, 2] and "stdin='2'" in whole[3][1][1]
    assert whole[4] == []  # the hidden tests are there: no mark
    # a commit's files are fixed: once here, they need no hub
    (again,) = load_apart(path, home=home, HF_ENDPOINT="http://127.0.0.1:9")
    assert again == whole
    assert wanted_releases(Spec("files@v2", Path(path), ("v2",)), Source(files={"v1": "a", "v2": "b"})) == ["v2"]


def test_an_unreachable_hub_names_what_to_do_at_once(tmp_path: Path) -> None:
    plain = definition(tmp_path, "plain", "{hub: org/plain}")
    said = load_apart(plain, "livecodebench@v6", home=tmp_path / "home", HF_ENDPOINT="http://127.0.0.1:9")
    for text, name in zip(said, ("plain", "livecodebench"), strict=True):
        assert "no answer from http://127.0.0.1:9" in text
        assert f"put {name}.jsonl into a folder and give it as --data-dir" in text
        assert "HF_HUB_OFFLINE=1" in text


def test_files_of_the_hub_in_a_local_folder(
    tmp_path: Path, datasets_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ba_eval.benchmark.definition import Source
    from ba_eval.benchmark.source import local_files

    folder = tmp_path / "data"
    (folder / "lcb").mkdir(parents=True)
    source = Source(hub="org/script", files={"v1": "test.jsonl", "v2": "test2.jsonl"})
    assert local_files("lcb", source, folder) == {}
    (folder / "lcb" / "test2.jsonl").write_text("{}\n")
    assert local_files("lcb", source, folder) == {folder / "lcb" / "test2.jsonl": "v2"}
    (folder / "lcb.jsonl").write_text("{}\n")
    assert local_files("lcb", source, folder) == {folder / "lcb.jsonl": None}
    assert local_files("lcb", source, None) == {}
