"""What a run shows while it works: a live display on a terminal, plain lines elsewhere. Goes to stderr."""

import threading
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ba_eval.records import Sample

# Before that share of what is ahead is made, most of the work done is in samples not finished: no time is told.
_TOLD = 0.1
PLAIN_SECONDS = 30.0
"""How often a line is printed where there is no terminal."""


class _Counts:
    """What is known of one benchmark of one model."""

    def __init__(self, done: int, wanted: int) -> None:
        self.done, self.wanted = done, wanted
        self.made = self.cut = self.errors = self.tokens = self.graded = self.correct = 0

    def score(self) -> str:
        return f"{self.correct / self.graded:.3f}" if self.graded else "-"


class _Model:
    """A model under way."""

    def __init__(self, benchmarks: Mapping[str, tuple[int, int]]) -> None:
        self.counts = {name: _Counts(done, wanted) for name, (done, wanted) in benchmarks.items()}
        self.started = self.printed = time.monotonic()
        self.bars: dict[str, TaskID] = {}

    def total(self, what: str) -> int:
        return sum(getattr(counts, what) for counts in self.counts.values())

    def rate(self, now: float) -> str:
        return f"{self.total('tokens') / max(now - self.started, 1e-9):.0f} tokens/s"


class RunProgress:
    """Progress of a run, as a context manager. Methods may be called from any thread."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._live: Progress | None = None
        self._models: dict[str, _Model] = {}
        self._lock = threading.Lock()

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
        state = self._models[model] = _Model(benchmarks)
        if self._live:
            for name, (done, wanted) in benchmarks.items():
                state.bars[name] = self._live.add_task(f"{model} {name}", total=wanted, completed=done, note="")

    def end(self, model: str) -> None:
        """Takes a model off the display; verdicts of it may still come."""
        with self._lock:
            bars, self._models[model].bars = self._models[model].bars, {}
        for bar in bars.values():
            assert self._live is not None
            self._live.remove_task(bar)

    def sample(self, model: str, benchmark: str, sample: Sample) -> None:
        """Counts a finished sample."""
        counts = self._models[model].counts[benchmark]
        counts.done += 1
        counts.made += 1
        counts.cut += sample.finish_reason == "length"
        counts.errors += sample.finish_reason == "error"
        counts.tokens += sample.completion_tokens
        self._show(model, benchmark)

    def verdict(self, model: str, benchmark: str, outcome: str) -> None:
        """Counts a verdict."""
        counts = self._models[model].counts[benchmark]
        counts.graded += outcome != "error"
        counts.correct += outcome == "correct"
        counts.errors += outcome == "error"
        self._show(model, benchmark)

    def _show(self, model: str, benchmark: str) -> None:
        now = time.monotonic()
        state = self._models[model]
        if self._live:
            counts = state.counts[benchmark]
            note = f"score {counts.score()}  {self._cut(counts)}{state.rate(now)}"
            with self._lock:
                if benchmark in state.bars:
                    self._live.update(state.bars[benchmark], completed=counts.done, note=note)
        elif now - state.printed > PLAIN_SECONDS:
            state.printed = now
            parts = [f"{name} {c.done}/{c.wanted} score {c.score()}" for name, c in state.counts.items()]
            made = state.total("made")
            ahead = state.total("wanted") - state.total("done")
            left = f"; about {_duration(ahead * (now - state.started) / made)} left" if made > _TOLD * ahead else ""
            self.note(f"{model}: {', '.join(parts)}; {state.rate(now)}{left}")

    @staticmethod
    def _cut(counts: _Counts) -> str:
        text = f"cut {counts.cut / counts.made:.0%}  " if counts.cut else ""
        return text + (f"errors {counts.errors}  " if counts.errors else "")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
