"""Lays out a run's numbers: one row a checkpoint, one column a benchmark, what a reader must know below."""

from collections import Counter
from collections.abc import Callable, Iterator

from ba_eval.compare import Standing
from ba_eval.stats import Estimate
from ba_eval.tables.numbers import BenchmarkFacts, CellNumbers, ModelNumbers, Summary
from ba_eval.tables.sheet import Cell, Column, Line, Sheet, Style, cell, interval, number, percent

# Reasons named in one note; the JSON has all of them.
_REASONS = 3
# Cells named in one note.
_NAMED = 4
# Share of cut responses above which a note says what that does to the score.
_CUT = 0.05
_PROBLEMS = ("missing", "ungraded", "errors", "undecided")


def sheet(summary: Summary) -> Sheet:
    """The table of `ba-eval table`."""
    has_suite = len(summary.benchmarks) > 1
    columns = [Column(("model",), label=True), Column(("%",), label=True)]
    columns += [Column((facts.name, f"{facts.problems:,} × {facts.n}")) for facts in summary.benchmarks]
    if has_suite:
        columns.append(Column((summary.suite or "suite", "mean")))
    title = f"{summary.run}: mean accuracy and {100 * summary.confidence:.0f} % interval over problems, in %"
    rows = [_row(summary, model, has_suite) for model in summary.models]
    return Sheet(title, tuple(columns), rows, tuple(_notes(summary)))


def _row(summary: Summary, model: ModelNumbers, has_suite: bool) -> list[Cell]:
    cells = [model.benchmarks[facts.name] for facts in summary.benchmarks]
    ks = () if summary.ks == (1,) else summary.ks
    faults = [name for name in _PROBLEMS if any(getattr(numbers, name) for numbers in cells)]
    labels = [Line("avg@n"), Line("95 %", "faint"), *(Line(f"pass@{k}") for k in ks)]
    labels += [*(Line(f"maj@{k}") for k in summary.maj), Line("cut"), Line("tokens")]
    labels += [Line(name, "warn") for name in faults]
    row = [cell(model.name), tuple(labels)]
    for numbers in cells:
        more = [*(numbers.pass_at[k] for k in ks), *numbers.maj_at.values()]
        lines = _lines(numbers.avg, numbers.standing, more, numbers.truncated, numbers.tokens_mean)
        counts = [getattr(numbers, name) for name in faults]
        row.append((*lines, *(Line(number(count) if count else "", "warn") for count in counts)))
    if has_suite:
        more = [*(model.suite_pass_at[k] for k in ks), *model.suite_maj_at.values()]
        row.append(_lines(model.suite_avg, model.suite_standing, more, model.suite_truncated, model.suite_tokens_mean))
    return row


def _lines(avg: Estimate, standing: Standing, more: list[Estimate], truncated: float, tokens: float) -> Cell:
    style: Style = "best" if standing == "tied" else standing
    return (
        Line(percent(avg.value), style),
        Line(interval(avg), "faint"),
        *(Line(percent(estimate.value)) for estimate in more),
        Line(percent(truncated)),
        Line(number(tokens)),
    )


def _notes(summary: Summary) -> Iterator[str]:
    yield "cut: share of responses cut by max_tokens or the context. tokens: mean of a response. -: undefined."
    if len(summary.models) > 1:
        yield "bold: best, or not separable from the best (sign-flip test, Holm in the column); underlined: next."
    if not summary.complete:
        counts = [f"{getattr(summary, name):,} {name}" for name in _PROBLEMS[:3] if getattr(summary, name)]
        yield f"INCOMPLETE: {', '.join(counts)}; these samples are in no number. Run the same eval command again."
        yield from _reasons(summary, "errors", lambda numbers: numbers.error_reasons)
    if summary.undecided:
        yield f"{summary.undecided:,} undecided (the grader could not tell): counted as not correct."
        yield from _reasons(summary, "undecided", lambda numbers: numbers.undecided_reasons)
    uneven = [text for model in summary.models for facts in summary.benchmarks if (text := _uneven(model, facts))]
    if uneven:
        more = f"; and {len(uneven) - _NAMED} more" if len(uneven) > _NAMED else ""
        yield f"differing n: {'; '.join(uneven[:_NAMED])}{more}"
    for facts in summary.benchmarks:
        cut = [(m.name, n) for m in summary.models if (n := m.benchmarks[facts.name]).truncated > _CUT]
        if cut:
            scores = ", ".join(f"{name} {percent(n.avg.value)} ({percent(n.avg_untruncated)})" for name, n in cut)
            yield (
                f"{facts.name}: more than {_CUT:.0%} of the responses were cut at {facts.max_tokens:,} tokens; raise "
                f"--max-tokens. Accuracy with (without) the cut: {scores}"
            )
        if facts.apart:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in facts.apart.items())
            scores = ", ".join(
                f"{model.name} {percent(model.benchmarks[facts.name].apart_avg)}" for model in summary.models
            )
            yield f"{facts.name}: {sum(facts.apart.values())} problems apart, not in the score ({reasons}): {scores}"
    yield from (f"{facts.name}: {mark}" for facts in summary.benchmarks for mark in facts.marks)
    yield from (f"{model.name}: {mark}" for model in summary.models for mark in model.marks)
    yield from (f"run: {mark}" for mark in summary.marks)


def _reasons(summary: Summary, name: str, of: Callable[[CellNumbers], dict[str, int]]) -> Iterator[str]:
    total: Counter[str] = Counter()
    for model in summary.models:
        for numbers in model.benchmarks.values():
            total.update(of(numbers))
    if total:
        named = "; ".join(f"{reason[:100]}: {count:,}" for reason, count in total.most_common(_REASONS))
        more = len(total) - _REASONS
        yield f"{name}: {named}" + (f"; and {more} other reasons" if more > 0 else "")


def _uneven(model: ModelNumbers, facts: BenchmarkFacts) -> str:
    """Says where problems have differing n, and what that leaves of pass@k."""
    numbers = model.benchmarks[facts.name]
    if numbers.samples_min == facts.n or numbers.samples_max == 0:
        return ""
    text = f"{model.name} on {facts.name} {numbers.samples_min}-{numbers.samples_max} samples a problem"
    short = [f"pass@{k} over {count:,}" for k, count in numbers.pass_problems.items() if 0 < count < numbers.problems]
    return text + (f" ({', '.join(short)} of {numbers.problems:,} problems)" if short else "")
