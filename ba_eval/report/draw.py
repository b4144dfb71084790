"""Draws figures with matplotlib: as files for a paper, and as SVG whose colours follow the page's theme."""

import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ba_eval.report import palette
from ba_eval.report.figures import Boxes, Curves, Dots, Figure, Map, Panel
from ba_eval.tables.escape import plain

_NAME = 24  # the longest name in a figure, in characters
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ba-eval",  # the same numbers give the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": palette.MUTED,
    "axes.labelcolor": palette.MUTED,
    "axes.titlecolor": palette.INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": palette.RULE,
    "grid.linewidth": 0.6,
    "xtick.color": palette.MUTED,
    "ytick.color": palette.MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": palette.INK,
    "text.parse_math": False,  # a model may be named $x$
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
}


def svg(panel: Panel) -> str:
    """One panel as an `<svg>` element, its colours the page's variables. All text in it is escaped by matplotlib."""
    with _matplotlib():
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas(figsize=size(panel), layout="constrained")
        _draw(canvas.add_subplot(), panel)
        file = io.StringIO()
        canvas.savefig(
            file, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    return _themed(file.getvalue())


def write_files(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Writes each figure as PNG and SVG, on white, and returns the paths."""
    from ba_eval.store import write_atomically

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with _matplotlib():
        for figure in figures:
            canvas = _whole(figure)
            for suffix in ("png", "svg"):
                file = io.BytesIO()
                metadata = {"Date": None} if suffix == "svg" else None
                canvas.savefig(file, format=suffix, dpi=200, facecolor="white", metadata=metadata)
                written.append(folder / f"{figure.name}.{suffix}")
                write_atomically(written[-1], [file.getvalue()])
    return written


def size(panel: Panel) -> tuple[float, float]:
    """Width and height of a panel in inches."""
    match panel:
        case Curves():
            return 3.5, 2.3
        case Map():
            return 10.5, 0.6 + 0.19 * len(panel.names)
    return 3.5, 0.8 + 0.19 * len(panel.rows)


@contextmanager
def _matplotlib() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # not the user's own style
        parameters: Any = matplotlib.rcParams
        parameters.update(_STYLE)
        yield


def _whole(figure: Figure) -> Any:
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    width = max(size(panel)[0] for panel in figure.panels)
    columns = min(3 if width < 5 else 1, len(figure.panels))
    rows = math.ceil(len(figure.panels) / columns)
    legend = 0.22 * math.ceil(len(figure.legend) / (2 * columns)) + 0.1 if figure.legend else 0
    tall = max(size(panel)[1] for panel in figure.panels)
    canvas = Canvas(figsize=(width * columns, tall * rows + legend), layout="constrained")
    for number, panel in enumerate(figure.panels, 1):
        _draw(canvas.add_subplot(rows, columns, number), panel)
    if figure.legend:
        handles = []
        for name, look in figure.legend:
            colour, marker, dash = palette.look(look)
            options: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dash}
            handles.append(Line2D([], [], label=_short(name), **options))
        canvas.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 2 * columns))
    return canvas


def _draw(axes: Any, panel: Panel) -> None:
    axes.set_title(_short(panel.title, 48))
    match panel:
        case Curves():
            _curves(axes, panel)
        case Dots():
            _dots(axes, panel)
        case Boxes():
            _boxes(axes, panel)
        case Map():
            _map(axes, panel)


def _curves(axes: Any, panel: Curves) -> None:
    scale = 100 if panel.share else 1
    for series in panel.series:
        colour, marker, dash = palette.look(series.look)
        known = [(x, at) for x, at in series.points if at.defined]
        x = [x for x, _ in known]
        band = [(x, scale * at.low, scale * at.high) for x, at in known if not math.isnan(at.low)]
        if len(band) > 1:
            at, low, high = zip(*band, strict=True)
            axes.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0)
        elif band:
            axes.vlines(*band[0], color=colour, linewidth=1)
        axes.plot(x, [scale * at.value for _, at in known], color=colour, marker=marker, linestyle=dash)
    if panel.doubling:
        ks = sorted({x for series in panel.series for x, _ in series.points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ks, [f"{k:g}" for k in ks])
        axes.minorticks_off()
    else:
        steps = sorted({x for series in panel.series for x, _ in series.points})
        if len(steps) <= 8:
            axes.set_xticks(steps)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    if not panel.share:
        axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)


def _dots(axes: Any, panel: Dots) -> None:
    for row, (_, look, estimate) in enumerate(panel.rows):
        colour, marker, _ = palette.look(look)
        if not estimate.defined:
            continue
        if not math.isnan(estimate.low):
            axes.hlines(row, 100 * estimate.low, 100 * estimate.high, color=colour, linewidth=1.6)
        axes.plot([100 * estimate.value], [row], marker=marker, color=colour, markersize=5, linestyle="none")
    _rows(axes, [name for name, _, _ in panel.rows])
    axes.set_xlabel(panel.x)


def _boxes(axes: Any, panel: Boxes) -> None:
    for row, box in enumerate(panel.rows):
        colour, _, _ = palette.look(box.look)
        low, first, middle, third, high = box.quantiles
        if math.isnan(middle):
            continue
        axes.hlines(row, low, high, color=colour, linewidth=1.1)
        axes.barh(row, third - first, left=first, height=0.56, color=colour, alpha=0.3, linewidth=0)
        axes.vlines(middle, row - 0.28, row + 0.28, color=colour, linewidth=1.8)
        axes.plot([box.mean], [row], marker="D", color=colour, markersize=3.2, linestyle="none")
    axes.set_xlim(left=0)
    if panel.limit and axes.get_xlim()[1] > 0.6 * panel.limit:
        axes.axvline(panel.limit, color=palette.MUTED, linestyle="dashed", linewidth=0.8)
    _rows(axes, [box.name for box in panel.rows])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel(panel.x)


def _map(axes: Any, panel: Map) -> None:
    mesh = axes.pcolormesh(100 * panel.scores, cmap="cividis", vmin=0, vmax=100, rasterized=True)
    axes.grid(False)
    _rows(axes, panel.names, first=0.5)
    problems = panel.scores.shape[1]
    axes.set_xticks([])
    axes.set_xlabel(f"{problems:,} problems, from the easiest to the hardest")
    bar = axes.figure.colorbar(mesh, ax=axes, ticks=[0, 50, 100], fraction=0.015, pad=0.01, label="%")
    bar.outline.set_visible(False)


def _rows(axes: Any, names: Sequence[str], first: float = 0.0) -> None:
    axes.set_yticks([row + first for row in range(len(names))], list(map(_short, names)))
    axes.set_ylim(len(names) - 0.4 if not first else len(names), -0.6 if not first else 0)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", labelcolor=palette.INK)


def _short(name: str, limit: int = _NAME) -> str:
    return plain(name, limit)


# Pages

_IDS = re.compile(r'(\bid="|url\(#|href="#)([A-Za-z_][\w.-]*)')
_counter = 0


def _themed(text: str) -> str:
    """matplotlib's SVG as part of a page: no XML head, own ids, colours and fonts from the style sheet."""
    global _counter
    _counter += 1
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = _IDS.sub(lambda found: f"{found[1]}f{_counter}{found[2]}", text)
    for colour, variable in palette.VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    text = re.sub(r" font-family: [^;\"]*;", "", text)
    text = re.sub(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', text, count=1)
    return re.sub(r"\n\s*", "\n", text).replace("xlink:href", "href")
