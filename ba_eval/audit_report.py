"""Shows an audit to people and to programs. Everything that a model wrote is escaped."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ba_eval.audit import Audit, Finding
from ba_eval.tables.escape import plain

_LINES = 8
_WIDTH = 400


def as_text(audit: Audit) -> Iterator[str]:
    """Yields the lines of an audit for a terminal."""
    for number, finding in enumerate(audit.findings, 1):
        yield from _finding(number, finding)
        yield ""
    yield headline(audit)
    for name, count in audit.signals.items():
        yield f"  {count:>9,}  {name}"
    if len(audit.findings) < audit.suspicious:
        yield f"Shown: the first {len(audit.findings):,}, most likely wrong first; --limit shows more."


def headline(audit: Audit) -> str:
    """Says in one line how much there is to look at."""
    return f"{audit.suspicious:,} of {audit.verdicts:,} verdicts are suspicious"


def pointer(audit: Audit, command: str) -> str:
    """The line at the end of a run: how many, of which kinds, and the command that shows them."""
    kinds = ", ".join(f"{count:,} {name}" for name, count in audit.signals.items())
    return f"{headline(audit)} ({kinds}); `{command}` lists them, most likely wrong first"


def as_json(audit: Audit) -> str:
    """Returns the audit as one JSON document."""
    data = {
        "verdicts": audit.verdicts,
        "suspicious": audit.suspicious,
        "signals": audit.signals,
        "findings": [_row(finding) for finding in audit.findings],
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def _finding(number: int, finding: Finding) -> Iterator[str]:
    verdict = finding.verdict
    place = f"{finding.model} on {finding.benchmark}, {verdict.problem_id} #{verdict.index}"
    yield plain(f"{number}. {place}: {verdict.outcome} ({verdict.reason})", _WIDTH)
    yield f"   why        {'; '.join(finding.signals)}"
    if golds := _golds(finding):
        yield f"   gold       {plain(' | '.join(golds), _WIDTH)}"
    if verdict.extracted is not None:
        yield f"   extracted  {plain(verdict.extracted.strip(), _WIDTH)}"
    for name, value in _more(finding).items():
        yield f"   {name:<9}  {plain(str(value), _WIDTH)}"
    lines = [line for line in finding.tail.split("\n") if line.strip()][-_LINES:]
    for line in lines or ["(no response)"]:
        yield f"   | {plain(line.rstrip(), 2 * _WIDTH)}"


def _row(finding: Finding) -> dict[str, Any]:
    verdict = finding.verdict
    return {
        "model": finding.model,
        "benchmark": finding.benchmark,
        "problem_id": verdict.problem_id,
        "index": verdict.index,
        "weight": round(finding.weight, 2),
        "signals": finding.signals,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "golds": _golds(finding),
        "extracted": verdict.extracted,
        **_more(finding),
        "tail": finding.tail,
    }


def _golds(finding: Finding) -> list[str]:
    """Those the verdict was made against; of one that does not tell, the problem's."""
    return [str(gold) for gold in finding.verdict.details.get("golds") or finding.golds]


def _more(finding: Finding) -> dict[str, Any]:
    """What else a verdict says for itself: how the answer was compared, the harness's message."""
    verdict = finding.verdict
    found = {"method": verdict.method, "place": verdict.details.get("found"), "message": verdict.details.get("message")}
    return {name: value for name, value in found.items() if value}
