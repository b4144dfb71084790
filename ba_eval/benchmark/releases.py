"""Which part of a set is asked for: releases (files of the hub's dataset) and windows of dates."""

import calendar
import datetime
import re
from collections.abc import Sequence

from ba_eval.benchmark.definition import Source, Spec
from ba_eval.benchmark.problem import Problem
from ba_eval.errors import InputError


def wanted_releases(spec: Spec, source: Source) -> list[str]:
    """The releases that a spec asks for: `release_v5` is v1 to v5, `v5` that step alone; all where it names none."""
    known = list(source.files)
    asked = [s for s in spec.selectors if ".." not in s]
    if not asked:
        return known
    name = asked[0].removeprefix("release_")
    if len(asked) > 1 or name not in known:
        last = known[-1]
        raise InputError(
            f"benchmark {spec.name}: no release '{'@'.join(asked)}'; known: release_{known[0]} to release_{last} "
            f"(cumulative), {known[0]} to {last} (one step), and windows as 2024-08..2025-02"
        )
    return known[: known.index(name) + 1] if asked[0].startswith("release_") else [name]


def window(spec: Spec) -> tuple[str, str] | None:
    """The first and last day (ISO) of the date window that a spec asks for; months count whole, both ends included."""
    asked = [s for s in spec.selectors if ".." in s]
    if not asked:
        return None
    try:
        if len(asked) > 1:
            raise ValueError
        first, last = asked[0].split("..")
        days = _day(first, last=False), _day(last, last=True)
    except ValueError:
        raise InputError(
            f"benchmark {spec.name}: a date window is written 2024-08..2025-02 or 2024-08-01..2025-02-15"
        ) from None
    if days[0] > days[1]:
        raise InputError(f"benchmark {spec.name}: the window ends before it begins")
    return days


def _day(text: str, *, last: bool) -> str:
    if re.fullmatch(r"\d{4}-\d{2}", text):
        year, month = int(text[:4]), int(text[5:])
        if not 1 <= month <= 12:
            raise ValueError
        return f"{text}-{calendar.monthrange(year, month)[1] if last else 1:02d}"
    return datetime.date.fromisoformat(text).isoformat()


def select(problems: Sequence[Problem], spec: Spec, source: Source) -> tuple[list[Problem], list[str]]:
    """The problems of a spec's releases and window, and what tables must say of them."""
    chosen = list(problems)
    releases = wanted_releases(spec, source)
    if len(releases) < len(source.files):
        if not all("release" in p.meta for p in chosen):
            raise InputError(
                f"benchmark {spec.name}: the local rows do not say their release (no column '_version'); use a date "
                f"window, or the hub's files in a folder {spec.base}/"
            )
        chosen = [p for p in chosen if p.meta["release"] in releases]
    days = window(spec)
    if days is not None:
        chosen = [p for p in chosen if days[0] <= p.meta.get("date", "") <= days[1]]
    if not chosen:
        raise InputError(f"benchmark {spec.name}: no problem is left by {'@'.join(spec.selectors)}")
    marks = []
    present = {p.meta.get("release") for p in problems}
    missing = [release for release in releases if release not in present]
    if missing and None not in present:
        marks.append(f"without {', '.join(missing)}")
    public = sum(not p.meta.get("hidden", True) for p in chosen)
    if public:
        marks.append("public tests only" if public == len(chosen) else f"public tests only for {public} problems")
    return chosen, marks
