"""`ba-eval status`: how far a run is, from another shell."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        "status",
        help="how far a run is, from another shell",
        description="Shows how many samples of a run are generated and graded. Reads the records alone.",
        epilog="example:\n  ba-eval status results/ba-vs-token\n\nexit codes: 0 complete, 2 bad input, 3 not complete",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run folder that `eval --out` wrote")


def run(arguments: argparse.Namespace) -> int:
    from rich.table import Table
    from rich.text import Text

    from ba_eval.console import OutputConsole
    from ba_eval.results import State, load
    from ba_eval.store import is_being_written

    results = load(arguments.folder)
    table = Table("model", "benchmark")
    for name in ("made", "wanted", "graded", "score"):
        table.add_column(name, justify="right")
    for cell in results.cells.values():
        wanted, scored = cell.state.size, int(cell.scored.sum())
        graded = scored + cell.count(State.ERROR)
        score = f"{cell.correct.sum() / scored:.3f}" if scored else "-"
        names = (Text(cell.model.name), Text(cell.benchmark.name))
        table.add_row(*names, f"{wanted - cell.count(State.MISSING):,}", f"{wanted:,}", f"{graded:,}", score)
    OutputConsole().print(table)
    state = "running" if is_being_written(arguments.folder) else "not running"
    print(f"{state}; {results.lacks() or 'complete'}")
    return 0 if results.complete else 3
