"""Lays out a run's numbers: one row a checkpoint, one column a benchmark, what a reader must know below."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

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


class _Row(NamedTuple):
    """A row on the responses of each cell: a field of `CellNumbers`, and of the suite with `suite_` before it."""

    name: str
    text: Callable[[float], str]
    where: str | None = None
    """The field that must be above 0 somewhere for the row to be shown."""


_RESPONSES = {
    "uncut": _Row("avg_untruncated", percent, where="truncated"),
    "cut": _Row("truncated", percent),
    "tokens": _Row("tokens_mean", number),
    "thinking": _Row("thinking_mean", number, where="thinking_mean"),
    "unclosed": _Row("unclosed", percent, where="thinking_mean"),
}


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
    ks = tuple(k for k in summary.ks if k > 1)  # pass@1 is avg@n
    faults = [name for name in _PROBLEMS if any(getattr(numbers, name) for numbers in cells)]
    labels = [Line("avg@n"), Line("95 %", "faint"), *(Line(f"pass@{k}") for k in ks)]
    labels += [*(Line(f"maj@{k}") for k in summary.maj)]
    shown = [label for label, one in _RESPONSES.items() if _occurs(summary, one)]
    labels += [*map(Line, shown), *(Line(name, "warn") for name in faults)]
    row = [cell(model.name), tuple(labels)]
    for numbers in cells:
        more = [*(numbers.pass_at[k] for k in ks), *numbers.maj_at.values()]
        lines = _lines(numbers.avg, numbers.standing, more)
        lines += tuple(Line(_RESPONSES[label].text(getattr(numbers, _RESPONSES[label].name))) for label in shown)
        counts = [getattr(numbers, name) for name in faults]
        row.append((*lines, *(Line(number(count) if count else "", "warn") for count in counts)))
    if has_suite:
        more = [*(model.suite_pass_at[k] for k in ks), *model.suite_maj_at.values()]
        lines = _lines(model.suite_avg, model.suite_standing, more)
        suite = (Line(_RESPONSES[label].text(getattr(model, f"suite_{_RESPONSES[label].name}"))) for label in shown)
        row.append((*lines, *suite))
    return row


def _occurs(summary: Summary, row: _Row) -> bool:
    """Whether a row has something to say: no response was cut, none thinks, in most runs."""
    if row.where is None:
        return True
    cells = (numbers for model in summary.models for numbers in model.benchmarks.values())
    return any(getattr(numbers, row.where) > 0 for numbers in cells)


def _lines(avg: Estimate, standing: Standing, more: list[Estimate]) -> Cell:
    style: Style = "best" if standing == "tied" else standing
    return (
        Line(percent(avg.value), style),
        Line(interval(avg), "faint"),
        *(Line(percent(estimate.value)) for estimate in more),
    )


def _notes(summary: Summary) -> Iterator[str]:
    yield "cut: share of responses cut by max_tokens or the context. tokens: mean of a response. -: undefined."
    if _occurs(summary, _RESPONSES["uncut"]):
        yield "uncut: accuracy without the cut responses; not fairer, as it is the hard problems that are cut."
    if _occurs(summary, _RESPONSES["thinking"]):
        yield (
            "thinking: mean tokens before the thinking ends, of the responses that think. "
            "unclosed: share of them whose thinking never ended."
        )
    if len(summary.models) > 1:
        yield (
            "bold (*): best, or not separable from the best (sign-flip test, Holm in the column); underlined ('): next."
        )
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
        cut = [model.name for model in summary.models if model.benchmarks[facts.name].truncated > _CUT]
        if cut:
            yield (
                f"{facts.name}: more than {_CUT:.0%} of the responses were cut at {facts.max_tokens:,} tokens "
                f"({', '.join(cut)}); raise --max-tokens."
            )
        if facts.apart:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in facts.apart.items())
            scores = ", ".join(
                f"{model.name} {percent(model.benchmarks[facts.name].apart_avg)}" for model in summary.models
            )
            yield f"{facts.name}: {sum(facts.apart.values())} problems apart, not in the score ({reasons}): {scores}"
    yield from marks((facts.name, mark) for facts in summary.benchmarks for mark in facts.marks)
    yield from marks((model.name, mark) for model in summary.models for mark in model.marks)
    yield from (f"run: {mark}" for mark in summary.marks)


def marks(named: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One note for each mark, with the names of all that bear it."""
    bearers: dict[str, list[str]] = {}
    for name, mark in named:
        bearers.setdefault(mark, []).append(name)
    for mark, names in bearers.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{', '.join(names[:_NAMED])}{more}: {mark}"


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
