"""Puts a report together: one HTML file that asks nothing of a network and runs nothing but its own scripts."""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from ba_eval import __version__
from ba_eval.report import draw, sections
from ba_eval.report.figures import Figure
from ba_eval.report.samples import pack
from ba_eval.results import Results
from ba_eval.tables.html import text
from ba_eval.tables.numbers import Summary

LARGEST = 29_000_000
"""Bytes of the whole file; what does not fit of the samples stays in the run folder."""
_FOLDER = Path(__file__).parent
_VENDOR = ("prism.min.js", "temml.min.js")
_SCRIPTS = ("base.js", "text.js", "samples.js", "problems.js", "start.js")
_LINKS = {
    "scores": "Scores",
    "differences": "Differences",
    "pass_at_k": "pass@k",
    "learning": "Learning curves",
    "lengths": "Length",
    "problems": "Problems",
    "samples": "Samples",
    "method": "Method",
}


def page(
    results: Results,
    summary: Summary,
    figures: Sequence[Figure],
    baseline: str | None = None,
    largest: int = LARGEST,
) -> str:
    """The report as HTML, at most about `largest` bytes. Raises InputError where there is no such baseline."""
    comparisons = sections.differences(results, baseline)
    drawn = {one.name: sections.figure(one, list(map(draw.svg, one.panels))) for one in figures}
    body = {
        "scores": sections.scores(summary, drawn.pop("scores")),
        "differences": comparisons,
        "problems": sections.problems(drawn.pop("problems")),
        "method": sections.method(results, summary),
    }
    lengths = drawn.pop("lengths") + drawn.pop("cut", "")
    body["lengths"] = sections.section("lengths", "Response length", lengths)
    body |= {name: sections.section(name, _LINKS[name], content) for name, content in drawn.items()}

    style = _asset("page.css")
    scripts = [_vendor(), "(() => {\n'use strict';\n" + "".join(map(_asset, _SCRIPTS)) + "})();\n"]
    sizes = [*body.values(), style, *scripts]
    packed = pack(results, largest - sum(len(part.encode()) for part in sizes) - 100_000)
    body["samples"] = sections.samples(results, packed)
    index = _data({"index": packed.index, "statements": packed.problems})
    texts = _data({f"block-{number}": block for number, block in enumerate(packed.blocks)})
    shown = [name for name in _LINKS if body.get(name)]
    links = "".join(f'<li><a href="#{name}">{_LINKS[name]}</a></li>' for name in shown)
    main = "\n".join(body[name] for name in shown)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="ba-eval {__version__}">
<title>{text(summary.run)}: ba-eval report</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
{sections.head(results, summary)}
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="main">
{main}
</main>
<footer>Made by ba-eval {__version__} from the records in {text(str(results.run), 500)}.</footer>
{index}
<script>{scripts[0]}</script>
<script>{scripts[1]}</script>
{texts}
</body>
</html>
"""


def _data(blocks: dict[str, str]) -> str:
    """Blocks that no one runs. The texts stand behind the scripts, so that the page works while they are still read."""
    return "\n".join(f'<script type="text/plain" id="{name}">{block}</script>' for name, block in blocks.items())


def _policy(scripts: list[str]) -> str:
    """No request of any kind, no script but these, and no markup made from text at run time."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _asset(name: str) -> str:
    return (_FOLDER / "assets" / name).read_text("utf-8")


def _vendor() -> str:
    """Highlighting and MathML of others (see the licences beside them), which run only when they are called."""
    parts = ["window.Prism = {manual: true};\n"]
    for name in _VENDOR:
        licence = (_FOLDER / "vendor" / f"{name.removesuffix('.min.js')}.LICENSE").read_text("utf-8")
        parts.append(f"/*\n{licence.strip()}\n*/\n{(_FOLDER / 'vendor' / name).read_text('utf-8')}\n")
    return "".join(parts)
