"""The report of a run: one HTML file that needs nothing else."""

from pathlib import Path

from ba_eval.errors import InputError
from ba_eval.results import Results


def write_report(
    results: Results, output: Path, baseline: str | None = None, plots: Path | None = None
) -> tuple[int, list[Path]]:
    """Writes the report, and into the folder `plots` each figure as PNG and SVG.

    Returns the report's size in bytes and the paths of the plots. A file appears whole or not at all. Raises InputError
    where the run has no such baseline or a path cannot be what it is given for, MachineError where a file cannot be
    written.
    """
    from ba_eval.report.draw import write_files
    from ba_eval.report.figures import figures
    from ba_eval.report.page import page
    from ba_eval.store import write_atomically
    from ba_eval.tables import summarise

    if output.is_dir():
        raise InputError(f"{output}: is a folder; give the name of a file with -o")
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    if plots is not None and plots.exists() and not plots.is_dir():
        raise InputError(f"{plots}: is a file; --plots needs a folder")
    summary = summarise(results)
    made = figures(results, summary)
    content = page(results, summary, made, baseline).encode()
    write_atomically(output, [content])
    return len(content), [] if plots is None else write_files(made, plots)
