"""The table of `ba-eval compare`."""

import math
from collections.abc import Sequence

from ba_eval.compare import Comparison
from ba_eval.results import Results
from ba_eval.stats import CONFIDENCE, POWER, Estimate
from ba_eval.tables.export import csv, flat, json
from ba_eval.tables.formats import RENDERERS
from ba_eval.tables.sheet import Cell, Column, Line, Sheet, cell, interval, number, percent, signed

SCHEMA = "ba-eval comparison 1"
_LABELS = (
    ("difference", ""), ("95 %", "faint"), ("p (Holm)", ""), ("finding", ""), ("won/lost/tied", ""), ("detectable", ""),
    ("problems to tell", ""), ("n to tell", ""), ("tokens", ""), ("95 %", "faint"),
)  # fmt: skip


def render_comparison(results: Results, comparisons: Sequence[Comparison], format: str = "text") -> str:
    """The comparisons in one of `tables.FORMATS`."""
    if format == "csv":
        return csv([_record(one) for one in comparisons])
    if format == "json":
        head = {"schema": SCHEMA, "run": results.run.name, "confidence": CONFIDENCE, "power": POWER}
        return json({**head, "complete": results.complete, "comparisons": comparisons})
    return RENDERERS[format](comparison_sheet(results, comparisons))


def comparison_sheet(results: Results, comparisons: Sequence[Comparison]) -> Sheet:
    """One row a pair, one column a benchmark and the suite."""
    benchmarks = list(dict.fromkeys(one.benchmark for one in comparisons))
    pairs = list(dict.fromkeys((one.model, one.baseline) for one in comparisons))
    cells = {(one.model, one.baseline, one.benchmark): one for one in comparisons}
    labels: Cell = tuple(Line(text, style) for text, style in _LABELS)  # type: ignore[arg-type]
    rows = [
        [cell(a, Line(f"− {b}")), labels, *(_cell(cells[a, b, benchmark]) for benchmark in benchmarks)]
        for a, b in pairs
    ]
    columns = [Column(("models",), label=True), Column(("",), label=True)]
    columns += [Column((benchmark,)) for benchmark in benchmarks]
    title = f"{results.run.name}: differences of avg@n in points, paired by problem"
    return Sheet(title, tuple(columns), rows, _notes(results, comparisons))


def _cell(one: Comparison) -> Cell:
    style = {"better": "best", "worse": "warn"}.get(one.finding, "")
    found = one.finding in ("better", "worse")
    return (
        Line(signed(100 * one.difference.value, 1), style),  # type: ignore[arg-type]
        Line(interval(one.difference), "faint"),
        Line(p_value(one.p_adjusted)),
        Line(one.finding, style),  # type: ignore[arg-type]
        Line(f"{one.won:,}/{one.lost:,}/{one.tied:,}"),
        Line(percent(one.detectable)),
        Line("" if found else _needed(one.problems_needed, one.problems_factor)),
        Line("" if found else _needed(one.samples_needed, one.samples_factor)),
        Line(signed(one.tokens.value, 0)),
        Line("-" if math.isnan(one.tokens.low) else f"[{one.tokens.low:,.0f}, {one.tokens.high:,.0f}]", "faint"),
    )


def _notes(results: Results, comparisons: Sequence[Comparison]) -> list[str]:
    notes = [
        "finding: sign-flip permutation test at 5 % after Holm, "
        "over all pairs on the suite mean, and over all pairs on all benchmarks.",
        f"detectable: the smallest true difference found in {100 * POWER:.0f} % of cases. problems / n to tell: "
        "how many would find the observed one as often (×: times as many; none: no n does, it takes more problems).",
    ]
    left_out: dict[str, int] = {}
    for one in comparisons:
        left_out[one.benchmark] = max(left_out.get(one.benchmark, 0), one.left_out)
    notes += [
        f"{name}: up to {count:,} problems left out, of which only one model has samples"
        for name, count in left_out.items()
        if count
    ]
    return notes + ([] if results.complete else [f"INCOMPLETE: {results.lacks()}; these samples are in no number."])


def p_value(p: float) -> str:
    """A p-value with three decimals."""
    return "-" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _needed(count: float, factor: float) -> str:
    if math.isnan(factor):
        return "-"
    if math.isinf(factor):
        return "none"
    if factor > 1000:
        return "×1000+"
    return f"×{factor:.1f}" if math.isnan(count) else number(count)


def _record(one: Comparison) -> dict[str, object]:
    record: dict[str, object] = {}
    for name, value in vars(one).items():
        record |= flat(name, value) if isinstance(value, Estimate) else {name: value}
    return record
