"""A benchmark's definition: the YAML file, the names that are known, and what a spec on the command line means."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from ba_eval.benchmark.problem import Kind
from ba_eval.errors import InputError
from ba_eval.resources import data_folder, user_path
from ba_eval.yaml_file import nearest, read_yaml

SUITES_FILE = "suites.yaml"


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the rows come from: one of `file`, `hub` and `evalplus`; by default `<name>.jsonl` beside the YAML file."""

    file: str | None = None
    """A JSONL file, relative to the YAML file."""
    hub: str | None = None
    """A dataset id on the Hugging Face hub."""
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    files: dict[str, str] = {}
    """JSONL files of the hub's dataset by release (`v1: test.jsonl`), for sets that are read file by file."""
    evalplus: Literal["humaneval", "mbpp"] | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.file, self.hub, self.evalplus)) > 1:
            raise ValueError("give one of file, hub and evalplus")


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the rows must be: all that is given must agree. A benchmark may have several, one a known copy."""

    rows: int
    golds: str | None = None
    """See `content.golds_hash`."""
    ids: str | None = None
    """See `content.ids_hash`."""
    mark: str | None = None
    """What tables must say of this copy."""

    def __str__(self) -> str:
        parts = [f"{self.rows} rows", self.golds and f"golds {self.golds}", self.ids and f"ids {self.ids}"]
        return ", ".join(part for part in parts if part)


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark's YAML file."""

    title: str
    kind: Kind
    prompt: str
    """The user message; `{problem}` stands for the statement."""
    prompt_function: str | None = None
    """The user message of the rows that ask for a function, in a set that mixes both kinds."""
    source: Source = Source()
    columns: dict[Literal["id", "problem", "answer", "solution", "tests", "entry_point"], str] = {}
    """Names of columns, where they are not found by themselves."""
    id: str | None = None
    """`words` (first words of the statement), `row` (ordinal) or a column; default: a unique id column, else `row`."""
    grader: dict[str, Any] = {}
    """Options of the math grader, as `{extract: [boxed, last-number]}`: see `MathOptions`."""
    n: int = 4
    temperature: float = 1.0
    top_p: float = 0.7
    max_tokens: int = 3072
    pins: tuple[Pin, ...] = ()
    excluded: dict[str, str] = {}
    """Problem id to the reason why it is reported apart."""

    def __post_init__(self) -> None:
        for name in ("prompt", "prompt_function"):
            text = getattr(self, name)
            if text is not None and "{problem}" not in text:
                raise ValueError(f"{name}: must contain {{problem}}, which stands for the statement")
        for name, fits in (
            ("n", self.n >= 1),
            ("temperature", self.temperature >= 0),
            ("top_p", 0 < self.top_p <= 1),
            ("max_tokens", self.max_tokens >= 1),
        ):
            if not fits:
                raise ValueError(f"{name}: {getattr(self, name)} is out of range")


class Spec(msgspec.Struct, frozen=True):
    """A benchmark as asked for: `livecodebench@release_v5@2024-08..2025-02` or the path of a YAML file."""

    name: str
    """As asked and safe as a file name; of a path, its stem."""
    path: Path
    """The YAML file."""
    selectors: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The name without selectors."""
        return self.name.partition("@")[0]


def names() -> list[str]:
    """The built-in benchmarks, by name."""
    return sorted(path.stem for path in data_folder("benchmarks").glob("*.yaml") if path.name != SUITES_FILE)


@cache
def suites() -> dict[str, list[str]]:
    """The built-in suites: name to benchmark specs."""
    path = data_folder("benchmarks") / SUITES_FILE
    return read_yaml(path, dict[str, list[str]]) if path.is_file() else {}


def read_definition(path: Path) -> Definition:
    """Reads a benchmark's YAML file. InputError names file, line and key of what is wrong."""
    return read_yaml(path, Definition)


def find(spec: str) -> Spec:
    """Finds the definition that a spec (without `:n`) names. InputError names the nearest one that exists."""
    if spec.endswith((".yaml", ".yml")):
        path = user_path(spec)
        if not path.is_file():
            raise InputError(f"benchmark {spec}: there is no such file")
        return Spec(re.sub(r"[^\w.-]", "_", path.stem), path)
    base, *selectors = spec.split("@")
    known = names()
    if base not in known:
        if base in suites():
            raise InputError(f"'{base}' is a suite, not a benchmark: {', '.join(suites()[base])}")
        raise InputError(f"unknown benchmark '{base}'{nearest(base, [*known, *suites()])}")
    if not all(re.fullmatch(r"[\w.-]+", selector) for selector in selectors):
        raise InputError(f"benchmark {spec}: what follows @ must be a release or a date window, as in {base}@v6")
    return Spec(spec, data_folder("benchmarks") / f"{base}.yaml", tuple(selectors))


def parse_spec(text: str) -> tuple[str, int | None]:
    """Splits `name:n` into the name and the samples per problem (None where not given)."""
    name, colon, count = text.strip().rpartition(":")
    if not colon:
        return text.strip(), None
    if not name or not re.fullmatch(r"\d{1,6}", count) or int(count) < 1:
        raise InputError(f"benchmark {text}: write name or name:n, n the samples per problem (1 or more)")
    return name, int(count)


def expand_suites(specs: Iterable[str]) -> list[str]:
    """Replaces names of suites by their benchmarks (`paper:4` gives each `:4`); repeated specs count once.

    A benchmark that is named twice with different n is an InputError.
    """
    expanded: dict[str, int | None] = {}
    for text in specs:
        name, n = parse_spec(text)
        for member in suites().get(name, [name]):
            member_name, member_n = parse_spec(member)
            wanted = member_n if n is None else n
            if expanded.setdefault(member_name, wanted) != wanted:
                raise InputError(
                    f"benchmark {member_name} is asked for twice, with n = {expanded[member_name]} and {wanted}"
                )
    return [name if n is None else f"{name}:{n}" for name, n in expanded.items()]
