"""`ba-eval table`: the numbers of a run, from its records alone."""

import argparse
import sys
from pathlib import Path
from typing import Any

FORMATS = ("text", "markdown", "csv", "latex", "json")


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "table",
        help="print the table of a run",
        description="Prints the table of a run from its records: no engine, no grader, no GPU.",
        epilog="exit codes: 0 done, 2 bad input, 3 samples are missing, ungraded or errored (the table says how many)",
    )
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="what `eval --out` wrote")
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument("-k", metavar="K,K,...", type=ks, help="the k of pass@k (default: those of the run)")
    parser.add_argument("--maj", metavar="K,K,...", type=ks, default=(), help="also maj@k, for these k")
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


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.results import load
    from ba_eval.tables import print_table, render

    results = load(arguments.run_folder, answers=bool(arguments.maj))
    if arguments.format == "text":
        print_table(results, arguments.k, arguments.maj)
    else:
        sys.stdout.write(render(results, arguments.format, arguments.k, arguments.maj))
    if results.complete:
        return 0
    print(f"ba-eval: {arguments.run_folder}: {results.lacks()}", file=sys.stderr)
    return 3
