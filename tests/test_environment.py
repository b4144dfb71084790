"""The pip line that adds an extra names the place that the installation came from."""

import json
from importlib import metadata
from typing import Any

import pytest

from ba_eval.environment import install_line


class _Installed:
    def __init__(self, origin: str | None) -> None:
        self.origin = origin

    def read_text(self, _: str) -> str | None:
        return self.origin


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ("", "pip install 'ba-eval[vllm]'"),
        ("{not json", "pip install 'ba-eval[vllm]'"),
        (
            {"url": "file:///home/a%20b/ba-eval", "dir_info": {"editable": True}},
            "pip install -e '/home/a b/ba-eval[vllm]'",
        ),
        ({"url": "file:///src/ba-eval", "dir_info": {}}, "pip install '/src/ba-eval[vllm]'"),
        (
            {"url": "file:///wheels/ba_eval-1-py3-none-any.whl", "archive_info": {}},
            "pip install '/wheels/ba_eval-1-py3-none-any.whl[vllm]'",
        ),
        (
            {"url": "git+https://example.org/ba-eval.git", "vcs_info": {}},
            "pip install 'ba-eval[vllm] @ git+https://example.org/ba-eval.git'",
        ),
    ],
)
def test_install_line(origin: str | dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(origin) if isinstance(origin, dict) else origin
    monkeypatch.setattr(metadata, "distribution", lambda _: _Installed(text or None))
    assert install_line("vllm") == line
