"""YAML errors must name file, line, key and the nearest key."""

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from ba_eval.errors import InputError
from ba_eval.yaml_file import convert, read_yaml


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    revision: str = "main"


class Kind(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["math", "code"] | None = None


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    one: Kind | None = None
    many: list[Kind] = []


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    source: Inner = msgspec.field(default_factory=Inner)
    count: int = 0


def read(tmp_path: Path, text: str) -> Outer:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    return read_yaml(path, Outer)


def test_reads(tmp_path: Path) -> None:
    outer = read(tmp_path, "title: A\nsource: {revision: abc}\n")
    assert (outer.title, outer.source.revision, outer.count) == ("A", "abc", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: A\ncuont: 3\n", "x.yaml:2: unknown key 'cuont'; did you mean 'count'?"),
        ("title: A\nsource:\n  revison: x\n", "x.yaml:3: unknown key 'revison'; did you mean 'revision'?"),
        ("title: A\ncount: many\n", "x.yaml:2: count: Expected `int`, got `str`"),
        ("title: A\nsource:\n  revision: 5\n", "x.yaml:3: source.revision: Expected `str`, got `int`"),
        ("count: 3\n", "missing key `title`"),
        ("title: A\ntitle: B\n", "x.yaml:2: key 'title' stands twice (first in line 1)"),
        ("title: [A\ncount: 3\n", "x.yaml:2: not valid YAML"),
        ("- a\n", "must be a mapping"),
        ("title: \x07\n", "not valid YAML"),
        ("title: &a [*a]\n", "x.yaml: an anchor (&) holds an alias (*) of itself"),
        (f"title: {'[' * 3000}\n", "x.yaml: is nested too deeply"),
        (f"title: {'[' * 3000}{']' * 3000}\n", "x.yaml: is nested too deeply"),
        ("title: A\n1: 2\n", "x.yaml:2: key 1 must be text; write it in quotes: '1'"),
        ("title: A\nTITEL: B\n", "x.yaml:2: unknown key 'TITEL'; did you mean 'title'?"),
    ],
)
def test_errors_say_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert message in str(error.value)
    assert str(error.value).count("\n") == 0


def test_words_that_are_not_known() -> None:
    for data, at in (({"one": {"kind": "mth"}}, "one.kind"), ({"many": [{"kind": "mth"}]}, r"many\[0\].kind")):
        with pytest.raises(InputError, match=rf"f: {at}: 'mth' is none of the values known here; did you mean 'math'"):
            convert(data, Whole, where="f")
    with pytest.raises(InputError, match="known: code, math"):
        convert({"one": {"kind": "zzzz"}}, Whole, where="f")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml", Outer)
