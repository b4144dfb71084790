"""What a run shows while it works: a live display on a terminal, plain lines elsewhere. Goes to stderr."""

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ba_eval.engine.request import Completion

PLAIN_SECONDS = 30.0
"""How often a line is printed where there is no terminal."""


class _Counts:
    """What is known of one benchmark of the model that is running."""

    def __init__(self, done: int, wanted: int) -> None:
        self.done, self.wanted = done, wanted
        self.made = self.cut = self.errors = self.tokens = self.graded = self.correct = 0

    def score(self) -> str:
        return f"{self.correct / self.graded:.3f}" if self.graded else "-"


class RunProgress:
    """Progress of a run, as a context manager. Methods may be called from any thread."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._live: Progress | None = None
        self._bars: dict[str, TaskID] = {}
        self._counts: dict[str, _Counts] = {}
        self._model = ""
        self._started = self._printed = time.monotonic()

    def __enter__(self) -> "RunProgress":
        if self.console.is_terminal:
            self._live = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def note(self, text: str) -> None:
        """Prints one line that stays."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def begin(self, model: str, benchmarks: Mapping[str, tuple[int, int]]) -> None:
        """Starts a model: benchmark -> (samples on disk, samples wanted)."""
        self._model, self._started, self._printed = model, time.monotonic(), time.monotonic()
        self._counts = {name: _Counts(done, wanted) for name, (done, wanted) in benchmarks.items()}
        if self._live:
            for bar in self._bars.values():
                self._live.remove_task(bar)
            self._bars = {
                name: self._live.add_task(f"{model} {name}", total=wanted, completed=done, note="")
                for name, (done, wanted) in benchmarks.items()
            }

    def sample(self, benchmark: str, completion: Completion) -> None:
        """Counts a finished sample."""
        counts = self._counts[benchmark]
        counts.done += 1
        counts.made += 1
        counts.cut += completion.finish_reason == "length"
        counts.errors += completion.finish_reason == "error"
        counts.tokens += completion.completion_tokens
        self._show(benchmark)

    def verdict(self, benchmark: str, outcome: str) -> None:
        """Counts a verdict."""
        counts = self._counts[benchmark]
        counts.graded += outcome != "error"
        counts.correct += outcome == "correct"
        counts.errors += outcome == "error"
        self._show(benchmark)

    def _show(self, benchmark: str) -> None:
        now = time.monotonic()
        if self._live:
            counts = self._counts[benchmark]
            note = f"score {counts.score()}  {self._cut(counts)}{self._rate(now)}"
            self._live.update(self._bars[benchmark], completed=counts.done, note=note)
        elif now - self._printed > PLAIN_SECONDS:
            self._printed = now
            parts = [f"{name} {c.done}/{c.wanted} score {c.score()}" for name, c in self._counts.items()]
            made, wanted = (sum(getattr(c, w) for c in self._counts.values()) for w in ("made", "wanted"))
            done = sum(c.done for c in self._counts.values())
            left = (wanted - done) * (now - self._started) / made if made else 0.0
            self.note(f"{self._model}: {', '.join(parts)}; {self._rate(now)}; about {_duration(left)} left")

    def _rate(self, now: float) -> str:
        tokens = sum(counts.tokens for counts in self._counts.values())
        return f"{tokens / max(now - self._started, 1e-9):.0f} tokens/s"

    @staticmethod
    def _cut(counts: _Counts) -> str:
        text = f"cut {counts.cut / counts.made:.0%}  " if counts.cut else ""
        return text + (f"errors {counts.errors}  " if counts.errors else "")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
