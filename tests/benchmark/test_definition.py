"""Definitions, specs and suites."""

from pathlib import Path

import pytest

from ba_eval.benchmark.definition import expand_suites, find, names, parse_spec, read_definition, suites
from ba_eval.errors import InputError

MINIMAL = "title: Mine\nkind: math\nprompt: '{problem}'\n"


def test_the_built_in_names() -> None:
    wanted = "math500 aime24 aime25 olympiadbench minerva_math livecodebench humaneval humaneval_plus mbpp_plus amc23"
    assert set(names()) == {*wanted.split(), "aime26", "gsm8k", "smoke_math", "smoke_code"}


def test_every_built_in_definition_is_pinned_and_every_suite_names_benchmarks() -> None:
    for name in names():
        definition = read_definition(find(name).path)
        assert definition.pins, name
    assert set(suites()) == {"paper", "math", "code", "smoke"}
    for members in suites().values():
        for member in members:
            find(parse_spec(member)[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aime24", ("aime24", None)),
        ("math500:4", ("math500", 4)),
        ("livecodebench@2024-08..2025-02:16", ("livecodebench@2024-08..2025-02", 16)),
        ("sub/mine.yaml:2", ("sub/mine.yaml", 2)),
    ],
)
def test_parse_spec(text: str, expected: tuple[str, int | None]) -> None:
    assert parse_spec(text) == expected


@pytest.mark.parametrize("text", ["math500:", "math500:x", "math500:0", "math500:-1", ":4", "math500:1.5"])
def test_parse_spec_refuses(text: str) -> None:
    with pytest.raises(InputError, match="name:n"):
        parse_spec(text)


def test_suites_expand_with_their_n_and_count_once() -> None:
    assert expand_suites(["smoke:2", "aime24", "smoke_math:2"]) == ["smoke_math:2", "smoke_code:2", "aime24"]
    assert expand_suites(["paper"])[:2] == ["math500", "aime24:32"]
    assert "aime24:1" in expand_suites(["paper:1"])


def test_one_benchmark_with_two_n_is_refused() -> None:
    with pytest.raises(InputError, match="aime24 is asked for twice, with n = 32 and 4"):
        expand_suites(["aime24:32", "aime24:4"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("aime2024", "did you mean 'aime24'"),
        ("livecodebnch", "did you mean 'livecodebench'"),
        ("smok", "did you mean 'smoke'"),
        ("paper", "is a suite"),
        ("nowhere/mine.yaml", "there is no such file"),
        ("livecodebench@v6/../x", "must be a release or a date window"),
        ("../aime24", "unknown benchmark"),
    ],
)
def test_unknown_names(name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        find(name)


def test_names_of_own_files_are_safe(tmp_path: Path) -> None:
    (tmp_path / "my set@2:1.yaml").write_text(MINIMAL)
    assert find(str(tmp_path / "my set@2:1.yaml")).name == "my_set_2_1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (MINIMAL + "promt: x\n", r"mine\.yaml:4: unknown key 'promt'; did you mean 'prompt'"),
        (MINIMAL + "source: {huub: a/b}\n", r"mine\.yaml:4: unknown key 'huub'; did you mean 'hub'"),
        (MINIMAL + "n: many\n", r"mine\.yaml:4: n: "),
        (MINIMAL + "n: 0\n", r"mine\.yaml:4: n: 0 is out of range"),
        (MINIMAL + "source: {hub: a/b, file: c}\n", "one of file, hub and evalplus"),
        ("title: Mine\nkind: math\nprompt: solve it\n", r"mine\.yaml:3: prompt: must contain \{problem\}"),
        ("title: Mine\nkind: maths\nprompt: '{problem}'\n", r"mine\.yaml:2: kind"),
        ("title: Mine\nkind: math\n", "prompt"),
        ("title: [Mine\nkind: math\n", r"mine\.yaml:2: not valid YAML"),
        ("- a\n", "must be a mapping"),
    ],
)
def test_malformed_definitions(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_definition(path)
