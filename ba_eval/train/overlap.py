"""Training problems that stand in a benchmark too: by normalised text, and by shared runs of words."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

RUN = 8
"""Words in a run (an n-gram)."""
SHARE = 0.5
"""A match: this share of a benchmark problem's runs stands in the training problem. Phrases that many contest
problems end with ("relatively prime positive integers, find m + n") stay well below it."""

# Some copies of a problem have its figure as a drawing program, some leave it out.
_FIGURE = re.compile(r"\[asy\].*?\[/asy\]", re.DOTALL)
# Spacing and sizing that copies of a problem differ in.
_DECORATION = re.compile(r"\\(?:[,!;: ]|left|right|big+[lr]?|displaystyle|quad|qquad|mathrm|text|rm)\b|[${}]|\\[,!;:]")


@dataclass(frozen=True)
class Match:
    """The benchmark problem that a training problem repeats."""

    benchmark: str
    id: str
    share: float
    """Of the benchmark problem's runs of words; 1 for the same text."""


def plain(text: str) -> str:
    """Returns a statement in lower case without spaces, LaTeX spacing and sizing: equal for copies of a problem."""
    return "".join(_undecorated(text).split()).rstrip(".")


def words(text: str) -> list[str]:
    """Returns the lower-case words, commands and numbers of a statement."""
    return re.findall(r"[a-z]+|\d+", _undecorated(text))


def _undecorated(text: str) -> str:
    text = _FIGURE.sub(" ", unicodedata.normalize("NFKC", text).lower())
    text = _DECORATION.sub(" ", text)
    return text.replace("dfrac", "frac").replace("tfrac", "frac")


class Index:
    """The problems of some benchmarks, to look training problems up in."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, str]] = {}
        self._runs: dict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
        self._sizes: dict[tuple[str, str], int] = {}

    def add(self, benchmark: str, problems: Iterable[tuple[str, str]]) -> None:
        """Adds (id, statement) pairs."""
        for id, text in problems:
            self._texts.setdefault(plain(text), (benchmark, id))
            runs = _runs(words(text))
            self._sizes[benchmark, id] = len(runs)
            for run in runs:
                self._runs[run].add((benchmark, id))

    def find(self, text: str) -> Match | None:
        """Returns the benchmark problem that `text` repeats most, None where it repeats none."""
        same = self._texts.get(plain(text))
        if same:
            return Match(*same, share=1.0)
        shared = Counter(problem for run in _runs(words(text)) for problem in self._runs.get(run, ()))
        best = max(shared, key=lambda problem: shared[problem] / self._sizes[problem], default=None)
        if best is None:
            return None
        share = shared[best] / self._sizes[best]
        return Match(*best, share=share) if share >= SHARE else None


def _runs(found: list[str]) -> set[tuple[str, ...]]:
    return {tuple(found[at : at + RUN]) for at in range(len(found) - RUN + 1)}
