"""`ba-eval table`: the numbers of a run, from its records alone."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_eval.errors import InputError

if TYPE_CHECKING:
    from ba_eval.results import Results

FORMATS = ("text", "markdown", "csv", "latex", "json")


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "table",
        help="print the table of a run",
        description="Prints the table of a run from its records: no engine, no grader, no GPU.",
        epilog="exit codes: 0 done, 2 bad input, 3 samples are missing, ungraded or errored (the table says how many)",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="what `eval --out` wrote; several with --by")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("-k", metavar="K,K,...", type=ks, help="the k of pass@k (default: those of the run)")
    parser.add_argument("--maj", metavar="K,K,...", type=ks, default=(), help="also maj@k, for these k")
    parser.add_argument(
        "--by",
        choices=("aggregation", "step"),
        help="group the models by aggregation rule: ends of training, or learning curves over steps",
    )
    parser.add_argument(
        "--reference", metavar="FILE", type=Path, help="published numbers to show with --by aggregation"
    )
    parser.set_defaults(run=run)


def ks(text: str) -> tuple[int, ...]:
    """Parses `1,4,16`."""
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers such as 1,4,16") from None
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: k must be at least 1")
    return values


def distinct(runs: Sequence[Path]) -> Sequence[Path]:
    """The run folders as given. Raises InputError where one stands twice: its samples would count twice."""
    seen: set[Path] = set()
    for path in runs:
        if path.resolve() in seen:
            raise InputError(f"{path}: given twice")
        seen.add(path.resolve())
    return runs


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.results import load
    from ba_eval.tables import print_table, render

    if len(arguments.runs) > 1 and not arguments.by:
        raise InputError("several runs need --by aggregation or --by step; `ba-eval leaderboard` ranks runs")
    if arguments.reference and arguments.by != "aggregation":
        raise InputError("--reference needs --by aggregation")
    runs = [load(path, answers=bool(arguments.maj)) for path in distinct(arguments.runs)]
    if arguments.by:
        _print_studies(runs, arguments)
    elif arguments.format == "text":
        print_table(runs[0], arguments.k, arguments.maj)
    else:
        sys.stdout.write(render(runs[0], arguments.format, arguments.k, arguments.maj))
    return exit_code(runs)


def _print_studies(runs: "list[Results]", arguments: argparse.Namespace) -> None:
    from ba_eval.by_aggregation import study
    from ba_eval.reference import read_reference
    from ba_eval.tables.rules import render_studies, sheet
    from ba_eval.tables.terminal import print_sheet

    studies = [study(results) for results in runs]
    reference = read_reference(arguments.reference) if arguments.reference else None
    if arguments.format == "text":
        print_sheet(sheet(studies, arguments.by, reference))
    else:
        sys.stdout.write(render_studies(studies, arguments.by, reference, arguments.format))


def exit_code(runs: "list[Results]") -> int:
    """0 where all runs are complete, else 3, and says on standard error what is not there."""
    for results in runs:
        if not results.complete:
            print(f"ba-eval: {results.run}: {results.lacks()}", file=sys.stderr)
    return 0 if all(results.complete for results in runs) else 3
