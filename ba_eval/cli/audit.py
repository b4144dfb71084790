"""`ba-eval audit`: the verdicts that a person should look at."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "audit",
        help="list suspicious verdicts, most likely wrong first",
        description="Lists the verdicts of a run that may be wrong, from its records alone: the gold's numbers stand\n"
        "in the final lines of a wrong answer, a second method disagrees, undecided, found outside the expected\n"
        "format, cut inside the box, no code, an error of the harness.",
        epilog="example:\n  ba-eval audit results/ba-vs-token --model ba --limit 50\n\nexit codes: 0 done, 2 bad input",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run folder that `eval --out` wrote")
    parser.add_argument("--model", metavar="NAME", help="only this model of the run")
    parser.add_argument("--benchmark", metavar="NAME", help="only this benchmark of the run")
    parser.add_argument("--limit", type=_count, default=20, metavar="N", help="show the first N (default: 20)")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.audit import audit
    from ba_eval.audit_report import as_json, as_text

    found = audit(arguments.folder, model=arguments.model, benchmark=arguments.benchmark, limit=arguments.limit)
    if arguments.format == "json":
        print(as_json(found))
    else:
        for line in as_text(found):
            print(line)
    return 0


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number, 0 or more")
    return int(text)
