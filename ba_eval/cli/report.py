"""`ba-eval report`: a run as one HTML file."""

import argparse
from pathlib import Path
from typing import Any

from ba_eval.cli.table import exit_code


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "report",
        help="write a run as one HTML file: tables, plots, samples",
        description="Writes a run as one HTML file that needs no network and no server: scores with intervals, paired "
        "comparisons, plots, and a browser of the samples. From the records alone.",
        epilog="exit codes: 0 done, 2 bad input, 3 samples are missing, ungraded or errored (the report says how many)",
    )
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="what `eval --out` wrote")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="default: RUN/report.html")
    parser.add_argument(
        "--baseline", metavar="MODEL", help="compare every other model with this one (default: all pairs)"
    )
    parser.add_argument("--plots", metavar="DIR", type=Path, help="also write the plots as PNG and SVG files")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.report import write_report
    from ba_eval.results import load

    output: Path = arguments.output or arguments.run_folder / "report.html"
    results = load(arguments.run_folder)
    size, plots = write_report(results, output, arguments.baseline, arguments.plots)
    print(f"{output} ({size / 1e6:.1f} MB)")
    if plots:
        print(f"{len(plots)} plots in {arguments.plots}")
    return exit_code([results])
