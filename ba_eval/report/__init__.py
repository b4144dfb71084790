"""The report of a run: one HTML file that needs nothing else."""

from pathlib import Path

from ba_eval.results import Results


def write_report(results: Results, output: Path, baseline: str | None = None) -> int:
    """Writes the report and returns its size in bytes. The file appears whole or not at all.

    Raises InputError where the run has no such baseline, MachineError where the file cannot be written.
    """
    from ba_eval.report.page import page
    from ba_eval.store import write_atomically

    content = page(results, baseline).encode()
    write_atomically(output, [content])
    return len(content)


def write_plots(results: Results, folder: Path) -> list[Path]:
    """Writes each figure of the report as PNG and SVG, and returns the paths."""
    from ba_eval.report.draw import write_files
    from ba_eval.report.figures import figures
    from ba_eval.tables import summarise

    return write_files(figures(results, summarise(results)), folder)
