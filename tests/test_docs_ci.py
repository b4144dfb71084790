"""The workflows in docs/ci: valid for their services, and calling commands that exist."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ba_eval.cli import build_parser
from tests.conftest import ROOT

WORKFLOWS = {"github-actions.yml": "vendor.github-workflows", "gitlab-ci.yml": "vendor.gitlab-ci"}


def commands(node: Any) -> Iterator[str]:
    """Every `ba-eval` command in the texts of a workflow."""
    if isinstance(node, dict):
        for value in node.values():
            yield from commands(value)
    elif isinstance(node, list):
        for value in node:
            yield from commands(value)
    elif isinstance(node, str):
        yield from (line for line in node.splitlines() if re.match(r"ba-eval (?!\[)", line))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_commands_are_ours(name: str) -> None:
    found = list(commands(yaml.safe_load((ROOT / "docs" / "ci" / name).read_text())))
    assert {line.split()[1] for line in found} == {"eval", "table", "export", "gate"}
    for line in found:
        words = shlex.split(re.split(r" >+ | \|\| ", line)[0])
        build_parser().parse_args(words[1:])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_workflow_fits_its_schema(name: str) -> None:
    pytest.importorskip("check_jsonschema", reason="needs check-jsonschema")
    transform = ["--data-transform", "gitlab-ci"] if "gitlab" in name else []
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", WORKFLOWS[name], *transform]
    done = subprocess.run([*command, str(Path(ROOT, "docs", "ci", name))], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
