"""Tables of runs grouped by aggregation rule: ends of training (`aggregation`) and learning curves (`step`)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ba_eval.by_aggregation import ORDER, Point, Rule, Study
from ba_eval.reference import Reference
from ba_eval.stats import CONFIDENCE, Estimate
from ba_eval.tables.comparison import p_value
from ba_eval.tables.export import csv, flat, json
from ba_eval.tables.formats import RENDERERS
from ba_eval.tables.sheet import Cell, Column, Line, Sheet, Style, cell, interval, number, percent

SCHEMA = "ba-eval study 1"
By = Literal["aggregation", "step"]


def render_studies(
    studies: Sequence[Study], by: By = "aggregation", reference: Reference | None = None, format: str = "text"
) -> str:
    """The studies in one of `tables.FORMATS`. CSV holds the learning curves, whatever `by` is; JSON everything."""
    if format == "json":
        head = {"schema": SCHEMA, "confidence": CONFIDENCE}
        return json({**head, "studies": studies, "reference": reference})
    if format == "csv":
        return csv([row for study in studies for row in curve_records(study)])
    return RENDERERS[format](sheet(studies, by, reference))


def sheet(studies: Sequence[Study], by: By, reference: Reference | None = None) -> Sheet:
    """The table as a sheet."""
    return _ends(studies, reference) if by == "aggregation" else _curves(studies)


def curve_records(study: Study) -> list[dict[str, Any]]:
    """One flat row for each rule, step and benchmark, and for the suite: learning curves as data."""
    rows = []
    for rule in study.rules:
        for point in rule.points:
            head = {
                "run": study.run,
                "aggregation": rule.aggregation,
                "step": point.step,
                "seeds": len(point.seeds),
                "tokens_mean": point.tokens,
                "truncated": point.truncated,
            }
            for name, estimate in [*point.benchmarks.items(), ("(suite mean)", point.suite)]:
                rows.append({**head, "benchmark": name, **flat("avg", estimate)})
    return rows


def _ends(studies: Sequence[Study], reference: Reference | None) -> Sheet:
    names = {rule.aggregation for study in studies for rule in study.rules}
    names |= {name for row in (reference.rows if reference else ()) for name in row.scores}
    columns = sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))
    rows = []
    for study in studies:
        rules = {rule.aggregation: rule for rule in study.rules}
        labels = ("last step", "95 %", "at step", "seeds", "tokens", "cut", "peak", "95 %", "at step", "drop", "95 %")
        labels_cell: Cell = tuple(Line(label, "faint" if label == "95 %" else "") for label in labels)
        rows.append([cell(study.run), labels_cell, *(_end(rules[name]) if name in rules else () for name in columns)])
    if reference:
        for row in reference.rows:
            best = max(row.scores.values())
            scores = [row.scores.get(name, math.nan) for name in columns]
            cells = [cell(percent(score, 2) + ("*" if score == best else "")) for score in scores]
            rows.append([cell(f"{row.model}, {row.data}", Line("published", "faint")), cell("last step"), *cells])
    header = [Column(("run",), label=True), Column(("%",), label=True), *(Column((name,)) for name in columns)]
    title = "Suite mean by aggregation rule, in %"
    return Sheet(title, tuple(header), rows, tuple(_notes(studies, reference)))


def _end(rule: Rule) -> Cell:
    last, peak = rule.last, rule.peak
    return (
        Line(percent(last.suite.value), _style(rule.last_standing)),
        Line(interval(last.suite), "faint"),
        Line(_step(last)),
        Line(str(len(last.seeds))),
        Line(number(last.tokens)),
        Line(percent(last.truncated)),
        Line(percent(peak.suite.value), _style(rule.peak_standing)),
        Line(interval(peak.suite), "faint"),
        Line(_step(peak)),
        Line(percent(rule.drop.value)),
        Line(interval(rule.drop), "faint"),
    )


def _notes(studies: Sequence[Study], reference: Reference | None) -> Iterator[str]:
    yield (
        "bold (*): best, or not separable from the best (Holm over the rules); underlined ('): next. Intervals cover "
        "problems and, with several seeds, training seeds. peak: chosen by the same samples, so flattered by chance."
    )
    for study in studies:
        for one in study.comparisons:
            text = f"{study.run}: {one.aggregation} − {one.baseline} at the last step: "
            text += (
                f"{100 * one.difference.value:+.1f} {interval(one.difference)}, p (Holm) {p_value(one.p_adjusted)}, "
            )
            yield text + one.finding
        if any(1 in one.seeds for one in study.comparisons):
            yield f"{study.run}: a rule with one training seed: nothing is known of how other seeds would differ."
        if study.left_out:
            yield f"{study.run}: left out, name no rule: {', '.join(study.left_out)}"
    if reference:
        yield f"published: {reference.measure}; not measured here, no intervals (*: their best). {reference.source}"


def _curves(studies: Sequence[Study]) -> Sheet:
    names = list(dict.fromkeys(name for study in studies for name in study.rules[0].points[0].benchmarks))
    header = [Column((name,), label=True) for name in ("run", "rule", "step")]
    header += [Column((name,)) for name in ("seeds", *names, "suite mean", "tokens", "cut")]
    rows = [
        [
            cell(study.run),
            cell(rule.aggregation),
            cell(_step(point)),
            cell(str(len(point.seeds))),
            *(_scored(point.benchmarks[name]) if name in point.benchmarks else () for name in names),
            _scored(point.suite),
            cell(number(point.tokens)),
            cell(percent(point.truncated)),
        ]
        for study in studies
        for rule in study.rules
        for point in rule.points
    ]
    note = "Intervals cover problems and, with several seeds, training seeds. cut: share of responses that were cut."
    return Sheet("Learning curves: avg@n over training steps, in %", tuple(header), rows, (note,))


def _scored(estimate: Estimate) -> Cell:
    return cell(percent(estimate.value), Line(interval(estimate), "faint"))


def _step(point: Point) -> str:
    return "-" if point.step is None else f"{point.step:,}"


def _style(standing: str) -> Style:
    return "best" if standing in ("best", "tied") else "second" if standing == "second" else ""
