"""The page as a file: what it allows, what it escapes, how large it gets, what it says of what is not there."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from ba_eval.errors import InputError
from ba_eval.report import draw
from ba_eval.report.figures import figures
from ba_eval.report.page import LARGEST
from ba_eval.report.page import page as make_page
from ba_eval.results import Results, load
from ba_eval.tables import summarise
from tests.runs import make_run

HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'&\u202e\u2028\x00\x1b[31m"


def page(results: Results, baseline: str | None = None, largest: int = LARGEST) -> str:
    summary = summarise(results)
    return make_page(results, summary, figures(results, summary), baseline, largest)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawings take most of the time; `test_figures` looks at them."""
    if request.node.name != "test_the_page_is_one_file":
        monkeypatch.setattr(draw, "svg", lambda panel: "<svg></svg>")


class Elements(HTMLParser):
    """Which elements and attributes a page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]


def study(folder: Path, names: tuple[str, ...] = ("a", "b", "c")) -> Path:
    generator = np.random.default_rng(0)
    scores = {
        name: {"x": generator.random((12, 4)) < share, "y": generator.random((10, 2)) < share}
        for name, share in zip(names, (0.2, 0.25, 0.9), strict=False)
    }
    return make_run(folder, scores)


def test_the_policy_allows_these_scripts_and_nothing_else(tmp_path: Path) -> None:
    text = page(load(study(tmp_path / "run")))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy[1] and "http" not in policy[1]
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy[1]
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}
    allowed = re.search(r"script-src ([^;]*);", policy[1])
    assert allowed is not None and hashes == set(allowed[1].split()) and len(hashes) == 2
    assert "MIT" in scripts[0] and "Copyright" in scripts[0]


def test_the_page_is_one_file(tmp_path: Path) -> None:
    text = page(load(study(tmp_path / "run")))
    elements = Elements(text)
    assert not {"link", "iframe", "object", "embed", "base"} & set(elements.tags)
    assert not re.search(r'\b(?:src|href|xlink:href|action)="(?!#|data:image/png;base64,)', text)
    assert "@import" not in text and "@font-face" not in text
    assert elements.tags.count("h1") == elements.tags.count("main") == elements.tags.count("nav") == 1
    assert len(elements.ids) == len(set(elements.ids))
    assert not [name for name in elements.attributes if name.startswith("on")]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    grid = np.eye(2)
    run = make_run(
        tmp_path / "run",
        {HOSTILE: {HOSTILE: grid, "y": grid}, "b": {HOSTILE: np.ones((2, 2)), "y": grid}},
        models={HOSTILE: {"path": HOSTILE, "marks": (HOSTILE,), "aggregation": HOSTILE, "step": 3}},
        benchmarks={HOSTILE: {"title": HOSTILE, "marks": (HOSTILE,), "excluded": {"p1": HOSTILE}}},
        change=lambda *_: {"reason": HOSTILE, "outcome": "undecided"},
        marks=(HOSTILE,),
        suite=HOSTILE,
    )
    plain = Elements(page(load(study(tmp_path / "plain", ("a", "b")))))
    text = page(load(run))
    hostile = Elements(text)
    assert "img" not in hostile.tags
    assert hostile.tags.count("script") == plain.tags.count("script")
    assert not [name for name in hostile.attributes if name.startswith("on")]
    assert "\u202e" not in text and "\x00" not in text and "\x1b" not in text


def test_undefined_numbers_are_dashes(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run",
        {"a": {"x": [[1], [0]]}, "b": {"x": [[1], [1]]}},
        change=lambda m, *_: {} if m == "a" else None,
    )
    text = page(load(run))
    body = text[: text.index("<script")]
    assert "nan" not in re.sub(r"<[^>]*>", " ", body).lower().split()
    assert "Incomplete: 2 samples missing" in body
    assert re.search(r'<span class="">-</span><span class="faint">-</span>', body)


def test_the_file_stays_below_its_limit_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    run = make_run(
        tmp_path / "run",
        {"a": {"x": np.ones((100, 20))}, "b": {"x": np.ones((100, 20))}},
        change=lambda *_: {"text": generator.bytes(500).hex()},
    )
    results = load(run)
    whole = page(results)
    assert "All 4,000 samples are in this file." in whole
    limit = len(whole) - 1_500_000
    small = page(results, largest=limit)
    assert limit - 400_000 < len(small.encode()) <= limit
    kept = re.search(r"The text of ([\d,]+) of 4,000 samples is in this file", small)
    assert kept is not None and 1500 < int(kept[1].replace(",", "")) < 3000
    assert str(run) in small


def test_a_baseline_is_compared_with_all_others(tmp_path: Path) -> None:
    results = load(study(tmp_path / "run"))
    text = page(results, "a")
    section = text[text.index('<section id="differences"') : text.index('<section id="pass_at_k"')]
    assert "Each model minus a" in section
    assert section.count('<th scope="row" class="label"><span>c</span>') >= 1
    with pytest.raises(InputError, match="has no model 'd'"):
        page(results, "d")


def test_one_model_has_no_comparison(tmp_path: Path) -> None:
    text = page(load(make_run(tmp_path / "run", {"a": {"x": [[1, 0], [0, 0]]}})))
    assert 'id="differences"' not in text and 'href="#differences"' not in text


def test_the_matrix_shows_a_pair_from_both_sides(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"low": {"x": np.zeros((40, 2))}, "high": {"x": np.ones((40, 2))}})
    text = page(load(run))
    assert '<span class="better">+100.0</span>' in text and '<span class="worse">-100.0</span>' in text
    assert (
        "<span>better</span><span>p &lt;0.001</span>" in text and "<span>worse</span><span>p &lt;0.001</span>" in text
    )
    assert "Highest x: <strong>high</strong>, 100.0" in text


def test_run_files_that_are_not_there_or_damaged_are_left_out(tmp_path: Path) -> None:
    run = study(tmp_path / "run")
    (run / "keys.json").write_text("{")
    (run / "environment.json").write_text("[]")
    assert 'id="method"' in page(load(run))
    (run / "keys.json").unlink()
    assert 'id="method"' in page(load(run))
