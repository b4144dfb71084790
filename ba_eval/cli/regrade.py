"""`ba-eval regrade`."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        "regrade",
        help="grade the stored samples of a run again, without an engine",
        description="Grades the stored samples of a run with the graders of this version, and prints the table.\n"
        "Nothing is generated; verdicts are replaced, samples stay as they are.",
        epilog="example:\n  ba-eval regrade results/ba-vs-token --diff\n\n"
        "exit codes: 0 done, 2 bad input, 3 incomplete",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run folder that `eval --out` wrote")
    parser.add_argument("--diff", action="store_true", help="show every verdict that changes")
    parser.add_argument("--data-dir", metavar="DIR", help="folder with <benchmark>.jsonl files, if it has moved")
    parser.add_argument("--workers", type=int, metavar="N", help="grading processes (default: the cores)")


def run(arguments: argparse.Namespace) -> int:
    from ba_eval.progress import RunProgress
    from ba_eval.regrade import regrade, summarise
    from ba_eval.results import load
    from ba_eval.tables import print_table, write_summary

    progress = RunProgress()
    changes = regrade(arguments.folder, progress, data_dir=arguments.data_dir, workers=arguments.workers)
    results = load(arguments.folder)
    write_summary(arguments.folder, results)
    print_table(results)
    if arguments.diff:
        for change in changes:
            before, after = change.before, change.after
            progress.note(
                f"{change.model} {change.benchmark} {after.problem_id}#{after.index}: {before.outcome} "
                f"({before.reason}) -> {after.outcome} ({after.reason}); answer {(after.extracted or '')[:80]!r}"
            )
    for line in summarise(changes) or ["no verdict changed"]:
        progress.note(line)
    return 0 if results.complete else 3
