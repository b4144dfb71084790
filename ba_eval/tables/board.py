"""The leaderboard as Markdown, HTML, JSON or text."""

from collections.abc import Sequence

from ba_eval.leaderboard import Entry, Group
from ba_eval.stats import CONFIDENCE
from ba_eval.tables import html
from ba_eval.tables.export import json
from ba_eval.tables.formats import RENDERERS
from ba_eval.tables.layout import marks
from ba_eval.tables.sheet import Cell, Column, Line, Sheet, cell, interval, number, percent

SCHEMA = "ba-eval leaderboard 1"
TITLE = "Leaderboard"
SUFFIXES = {".md": "markdown", ".html": "html", ".json": "json"}


def render_board(groups: Sequence[Group], format: str) -> str:
    """The leaderboard in a format of `SUFFIXES`, or `text`."""
    if format == "json":
        return json({"schema": SCHEMA, "confidence": CONFIDENCE, "groups": groups})
    sheets = board_sheets(groups)
    if format == "html":
        return html.page(TITLE, sheets)
    return "\n".join(RENDERERS[format](sheet) for sheet in sheets)


def board_sheets(groups: Sequence[Group]) -> list[Sheet]:
    """One table a group."""
    return [_sheet(group, number, len(groups)) for number, group in enumerate(groups, 1)]


def _sheet(group: Group, position: int, total: int) -> Sheet:
    names = list(group.entries[0].benchmarks)
    header = [
        Column(("rank",), label=True),
        Column(("model",), label=True),
        Column(("mean",) if len(names) > 1 else (names[0],)),
    ]
    header += [Column((name,)) for name in (*(names if len(names) > 1 else ()), "tokens", "cut")]
    title = f"{TITLE}: avg@n and {100 * CONFIDENCE:.0f} % interval, in %"
    if total > 1:
        title += f" (group {position} of {total})"
    notes = [
        "rank: the best and the worst that paired tests leave open (sign-flip on the mean, Holm over all pairs); "
        "models whose ranks overlap are not ordered by these data."
    ]
    if group.differs:
        notes.insert(0, f"Not comparable with group 1: {'; '.join(group.differs)}")
    notes += [f"{entry.label}: INCOMPLETE: {entry.lacks}" for entry in group.entries if entry.lacks]
    notes += marks((entry.label, mark) for entry in group.entries for mark in entry.model.marks)
    return Sheet(title, tuple(header), [_row(entry, names) for entry in group.entries], tuple(notes))


def _row(entry: Entry, names: Sequence[str]) -> list[Cell]:
    rank = "-" if entry.rank is None else "–".join(map(str, dict.fromkeys(entry.rank)))
    trained = " ".join(
        part
        for part in (
            entry.model.aggregation or "",
            "" if entry.model.step is None else f"step {entry.model.step}",
            "" if entry.model.training_seed is None else f"seed {entry.model.training_seed}",
        )
        if part
    )
    scores = [entry.suite, *((entry.benchmarks[name] for name in names) if len(names) > 1 else ())]
    return [
        cell(rank),
        cell(entry.label, *([Line(trained, "faint")] if trained else [])),
        *(cell(percent(score.value), Line(interval(score), "faint")) for score in scores),
        cell(number(entry.tokens)),
        cell(percent(entry.truncated)),
    ]
