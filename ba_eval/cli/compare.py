"""`ba-eval compare`: which checkpoint of a run is better, and whether the difference is real."""

import argparse
import sys
from pathlib import Path
from typing import Any

from ba_eval.cli.table import FORMATS, distinct, exit_code


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "compare",
        help="compare the models of a run, paired by problem",
        description="Compares the models of a run on the same problems: difference, interval, permutation test, and "
        "what it would take to tell them apart. Several runs are compared as one where they were measured in the same "
        "way.",
        epilog="exit codes: 0 done, 2 bad input, 3 samples are missing, ungraded or errored",
    )
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="what `eval --out` wrote")
    parser.add_argument(
        "--baseline", metavar="MODEL", help="compare every other model with this one (default: all pairs)"
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.compare import compare
    from ba_eval.measure import join
    from ba_eval.results import load
    from ba_eval.tables.comparison import comparison_sheet, render_comparison
    from ba_eval.tables.terminal import print_sheet

    runs = [load(path) for path in distinct(arguments.runs)]
    results = join(runs)
    comparisons = compare(results, arguments.baseline)
    if arguments.format == "text":
        print_sheet(comparison_sheet(results, comparisons))
    else:
        sys.stdout.write(render_comparison(results, comparisons, arguments.format))
    return exit_code(runs)
