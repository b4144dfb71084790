"""The sections of a report as HTML. All that others chose (names, reasons, paths) is escaped."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ba_eval.compare import SUITE, Comparison, compare
from ba_eval.json_file import read_if_sound
from ba_eval.report import palette
from ba_eval.report.figures import Figure, Map
from ba_eval.report.samples import LONGEST, Packed
from ba_eval.results import Results
from ba_eval.stats import Estimate
from ba_eval.tables import html, layout
from ba_eval.tables.comparison import comparison_sheet, p_value
from ba_eval.tables.html import text
from ba_eval.tables.numbers import Summary
from ba_eval.tables.sheet import Column, Line, Sheet, cell, interval, percent, signed


def section(name: str, title: str, content: str) -> str:
    """A section with its heading; `name` is its place for links."""
    title = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{title}\n{content}\n</section>'


def head(results: Results, summary: Summary) -> str:
    """Title, what was run, what stands out, and what is not there."""
    problems = sum(facts.problems for facts in summary.benchmarks)
    samples = sum(cell.state.size for cell in results.cells.values())
    facts = [
        _count(len(summary.models), "model"),
        _count(len(summary.benchmarks), "benchmark"),
        _count(problems, "problem"),
        _count(samples, "sample"),
    ]
    found = "".join(f"<li>{one}</li>" for one in _findings(summary))
    lacks = "" if results.complete else _alarm(f"Incomplete: {results.lacks()}. These samples are in no number.")
    marks = "".join(_alarm(f"This run: {mark}") for mark in summary.marks)
    return f"""<p class="eyebrow">ba-eval report</p>
<h1>{text(summary.run)}</h1>
<p class="facts">{" · ".join(facts)}</p>
{lacks}{marks}
{f'<ul class="findings">{found}</ul>' if found else ""}"""


def _alarm(message: str) -> str:
    return f'<p class="alarm" role="note">{text(message, 2000)}</p>'


def _findings(summary: Summary) -> Iterator[str]:
    """The highest mean, and what can be told from it."""
    if len(summary.models) < 2:
        return
    best = [model for model in summary.models if model.suite_standing == "best"]
    tied = [model for model in summary.models if model.suite_standing == "tied"]
    lower = sum(model.suite_standing in ("", "second") and model.suite_avg.defined for model in summary.models)
    for model in best:
        what = "suite mean" if len(summary.benchmarks) > 1 else summary.benchmarks[0].name
        yield (
            f"Highest {text(what)}: <strong>{text(model.name)}</strong>, "
            f"{percent(model.suite_avg.value)} {interval(model.suite_avg)} %."
        )
    if tied:
        names = ", ".join(text(model.name) for model in tied[:6])
        yield f"Not separable from it: {names}{f' and {len(tied) - 6} more' if len(tied) > 6 else ''}."
    if lower:
        yield f"Separably lower: {_count(lower, 'model')}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def scores(summary: Summary, figure_: str) -> str:
    """The summary table, with the figure of the same numbers."""
    table = html.table(layout.sheet(summary), caption=False, sortable=True)
    caption = "Mean accuracy (avg@n) with its 95 % interval over problems, in percent; below, the responses."
    return section("scores", "Scores", f"<p>{caption}</p>\n{table}\n{figure_}")


# Comparisons


def differences(results: Results, baseline: str | None) -> str:
    """The paired comparisons as matrices, with the whole table behind; empty where there is one model.

    Raises InputError where there is no such baseline.
    """
    if len(results.plan.models) < 2 and baseline is None:
        return ""
    found = compare(results, baseline)
    names = list(dict.fromkeys(one.benchmark for one in found))
    names.sort(key=lambda name: name != SUITE)
    if baseline is not None:
        shown = html.table(_against(found, names, baseline), caption=False)
        intro = f"Each model minus {text(baseline)}"
    else:
        first, *rest = names
        shown = _matrix(results, found, first)
        shown += "".join(_folded(name, _matrix(results, found, name)) for name in rest)
        intro = "Row minus column"
    everything = html.table(comparison_sheet(results, found), caption=False)
    more = _folded("All comparisons: p-values, problems won and lost, what would tell", everything)
    intro += (
        ", in points of avg@n, paired by problem, with 95 % interval. better, worse: p below 5 % in a sign-flip "
        "permutation test after Holm over all pairs (on all benchmarks: over pairs and benchmarks); otherwise these "
        "data cannot tell them apart."
    )
    return section("differences", "Differences", f"<p>{intro}</p>\n{shown}\n{more}")


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{text(title)}</summary>{content}</details>"


def _matrix(results: Results, found: Sequence[Comparison], benchmark: str) -> str:
    """All models against all: row minus column."""
    models = [model.name for model in results.plan.models]
    cells: dict[tuple[str, str], str] = {}
    for one in (one for one in found if one.benchmark == benchmark):
        cells[one.model, one.baseline] = _difference(one.difference, one.finding, one.p_adjusted)
        flipped = Estimate(-one.difference.value, -one.difference.high, -one.difference.low)
        finding = {"better": "worse", "worse": "better"}.get(one.finding, one.finding)
        cells[one.baseline, one.model] = _difference(flipped, finding, one.p_adjusted)
    title = "suite mean" if benchmark == SUITE else benchmark
    header = "".join(f'<th scope="col">{text(name)}</th>' for name in models)
    rows = "\n".join(
        f'<tr><th scope="row" class="label"><span>{text(row)}</span></th>'
        + "".join(cells.get((row, column), "<td></td>") for column in models)
        + "</tr>"
        for row in models
    )
    label = f"Differences on {text(title)}, row minus column"
    return f"""<div class="wide matrix" tabindex="0" role="group" aria-label="{label}"><table>
<caption>{text(title)}</caption>
<thead><tr><th scope="col" class="label">minus</th>{header}</tr></thead>
<tbody>
{rows}
</tbody></table></div>"""


def _difference(difference: Estimate, finding: str, p: float) -> str:
    style = finding if finding in ("better", "worse") else ""
    lines = ("-", "") if finding == "undefined" else (finding, f"p {p_value(p)}")
    return (
        f'<td><span class="{style}">{signed(100 * difference.value, 1)}</span>'
        f'<span class="faint">{interval(difference)}</span>'
        f"{''.join(f'<span>{text(line)}</span>' for line in lines)}</td>"
    )


def _against(found: Sequence[Comparison], names: Sequence[str], baseline: str) -> Sheet:
    """One row a model, one column a benchmark, all minus the baseline."""
    models = list(dict.fromkeys(one.model for one in found))
    at = {(one.model, one.benchmark): one for one in found}

    def lines(one: Comparison) -> Any:
        value = signed(100 * one.difference.value, 1)
        return cell(value, Line(interval(one.difference), "faint"), one.finding, f"p {p_value(one.p_adjusted)}")

    rows = [[cell(model), *(lines(at[model, name]) for name in names)] for model in models]
    columns = [Column(("model",), label=True), *(Column((name.strip("()"),)) for name in names)]
    return Sheet(f"Differences from {baseline}", tuple(columns), rows)


# Figures


def figure(one: Figure, panels: Sequence[str]) -> str:
    """A figure of several panels, its legend and caption, and its numbers."""
    drawings = "\n".join(
        f'<div role="img" aria-label="{text(f"{one.title}: {panel.title}")}">{svg}</div>'
        for panel, svg in zip(one.panels, panels, strict=True)
    )
    kind = "panels maps" if any(isinstance(panel, Map) for panel in one.panels) else "panels"
    legend = "".join(f"<li>{_sample(look)}{text(name)}</li>" for name, look in one.legend)
    numbers = _folded("Numbers", html.table(one.numbers, caption=False)) if one.numbers else ""
    return f"""<figure>
<figcaption class="caption">{text(one.caption, 1000)}</figcaption>
{f'<ul class="legend" aria-label="Legend">{legend}</ul>' if legend else ""}
<div class="{kind}">
{drawings}
</div>
</figure>
{numbers}"""


def _sample(look: int) -> str:
    colour, marker, dash = palette.look(look)
    dashes = {"solid": "", "dashed": ' stroke-dasharray="5 2"', "dotted": ' stroke-dasharray="1.5 2"'}
    line = dashes.get(dash, ' stroke-dasharray="6 2 1.5 2"')
    variable = f"var({palette.VARIABLES[colour]})"
    return (
        f'<svg viewBox="0 0 28 10" aria-hidden="true"><path d="M0 5H28" stroke="{variable}" stroke-width="2"{line}/>'
        f'<text x="14" y="8.6" font-size="10" text-anchor="middle" fill="{variable}">{palette.MARKERS[marker]}</text>'
        "</svg>"
    )


def problems(maps: str) -> str:
    """The heat map of problems and models, and the table that leads from it to the samples."""
    table = """<details id="p-details" class="screen"><summary>Table of problems, with their samples</summary>
<div class="filters"><label>Benchmark <select id="p-benchmark"></select></label></div>
<div class="heat" tabindex="0" role="group" aria-label="Scores by problem"><table id="p-table">
<caption class="unseen">Share of correct samples by problem and model, in percent</caption>
<thead></thead><tbody></tbody></table></div>
<div class="pager"><output id="p-range"></output>
<button type="button" class="button" id="p-previous">Previous</button>
<button type="button" class="button" id="p-next">Next</button></div></details>"""
    return section("problems", "Problem by problem", f"{maps}\n{table}")


# Samples


def samples(results: Results, packed: Packed) -> str:
    """The sample browser: its controls and empty places; scripts fill them."""
    return section("samples", "Samples", f"<p>{text(_kept(results, packed), 1000)}</p>\n{_BROWSER}")


def _kept(results: Results, packed: Packed) -> str:
    if packed.kept == packed.total:
        said = f"All {packed.total:,} samples are in this file."
    else:
        said = (
            f"The text of {packed.kept:,} of {packed.total:,} samples is in this file, as many as fit: first sample 0 "
            f"of every problem, then sample 1, and so on, the same for all models; where not all of them fit, "
            f"problems chosen at random. Outcome, reason and length are here for all. The full texts are in the run "
            f"folder: {results.run}/samples."
        )
    if packed.shortened:
        said += f" Of {packed.shortened:,} with more than {LONGEST:,} characters, beginning and end are here."
    return said


_BROWSER = """<form class="filters" id="filters" role="search" aria-label="Filter samples">
<label>Model <select id="f-model"><option value="">any</option></select></label>
<label>Benchmark <select id="f-benchmark"><option value="">any</option></select></label>
<label>Outcome <select id="f-outcome"><option value="">any</option></select></label>
<label>Reason <select id="f-reason"><option value="">any</option></select></label>
<label>Problem <input type="search" id="f-problem" autocomplete="off" spellcheck="false"></label>
<label>Text <input type="search" id="f-text" autocomplete="off" spellcheck="false"></label>
<label class="check"><input type="checkbox" id="f-cut"> only cut</label>
<button type="reset" class="button">Clear</button>
</form>
<p class="unseen" role="status" id="sample-status"></p>
<div class="list" tabindex="0" role="group" aria-label="Samples found"><table id="sample-table">
<caption class="unseen">Samples; arrow keys go to the next and the previous one</caption>
<thead><tr><th scope="col" data-key="outcome">Outcome</th><th scope="col" data-key="model">Model</th>
<th scope="col" data-key="benchmark" aria-sort="ascending">Benchmark</th><th scope="col" data-key="problem">Problem</th>
<th scope="col" data-key="reason">Reason</th><th scope="col" class="number" data-key="tokens">Tokens</th></tr></thead>
<tbody id="sample-rows"></tbody></table></div>
<div class="pager"><output id="sample-range"></output>
<button type="button" class="button" id="sample-previous">Previous</button>
<button type="button" class="button" id="sample-next">Next</button></div>
<div class="filters" role="group" aria-label="How samples are shown">
<label>Side by side with <select id="f-other"><option value="">none</option></select></label>
<label class="check"><input type="checkbox" id="f-differ"> only where the outcomes differ</label>
<label class="check"><input type="checkbox" id="f-plain"> plain text</label>
</div>
<div id="statement"></div>
<div class="panes" id="panes"></div>
<noscript><p class="alarm">The sample browser needs JavaScript; all else on this page does not.</p></noscript>"""


# How it was measured


def method(results: Results, summary: Summary) -> str:
    """Models, benchmarks, sampling and machine, from the run folder."""
    keys = read_if_sound(results.run / "keys.json")
    environment = read_if_sound(results.run / "environment.json")
    models = Sheet(
        "Models",
        tuple(Column((name,), label=True) for name in ("model", "path", "rule", "step", "seed", "weights", "notes")),
        [
            [
                cell(model.name),
                cell(model.path),
                cell(model.aggregation or "-"),
                cell("-" if model.step is None else f"{model.step:,}"),
                cell("-" if model.training_seed is None else str(model.training_seed)),
                cell(planned.weights[:12]),
                cell("; ".join(model.marks)),
            ]
            for model, planned in zip(summary.models, results.plan.models, strict=True)
        ],
    )
    rows = []
    for benchmark, facts in zip(results.plan.benchmarks, summary.benchmarks, strict=True):
        parts = keys.get(results.plan.keys[results.plan.models[0].name][benchmark.name], {})
        sampling = parts.get("sampling") if isinstance(parts, dict) else None
        said = ", ".join(f"{name} {value}" for name, value in sampling.items()) if isinstance(sampling, dict) else "-"
        graders = results.cells[results.plan.models[0].name, benchmark.name].graders
        rows.append(
            [
                cell(facts.name),
                cell(facts.title),
                cell(f"{facts.problems:,} × {facts.n}"),
                cell(said),
                cell(", ".join(graders) or "-"),
                cell(facts.content[:12]),
            ]
        )
    names = ("benchmark", "title", "problems × n", "sampling", "grader", "content")
    benchmarks = Sheet("Benchmarks", tuple(Column((name,), label=True) for name in names), rows)
    lines = [("seed", str(summary.seed)), *_machine(environment)]
    listed = "".join(f"<dt>{text(name)}</dt><dd>{text(value, 500)}</dd>" for name, value in lines)
    intervals = (
        f"Intervals resample problems ({summary.draws:,} resamples, bias-corrected and accelerated), not samples: they "
        "say how far a score could be from that on all problems of this kind. “-”: undefined."
    )
    content = f"<p>{intervals}</p>\n{html.table(benchmarks)}\n{html.table(models)}\n<dl>{listed}</dl>"
    return section("method", "How it was measured", content)


def _machine(environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("ba_eval", "python", "platform"):
        if isinstance(environment.get(name), str):
            yield name.replace("_", "-"), environment[name]
    gpus = environment.get("gpus")
    if isinstance(gpus, list) and gpus:
        yield "GPUs", ", ".join(map(str, gpus))
    versions = environment.get("versions")
    if isinstance(versions, dict):
        yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items())
    git = environment.get("git")
    if isinstance(git, list) and git:
        yield "git", ", ".join(map(str, git))
