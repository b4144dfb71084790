"""`ba-eval leaderboard`: ranks the models of many runs."""

import argparse
from pathlib import Path
from typing import Any

from ba_eval.cli.table import distinct, exit_code


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "leaderboard",
        help="rank the models of many runs",
        description="Ranks the models of many runs. Only what was measured the same way (benchmarks, content, prompt, "
        "sampling, grader) is ranked together; the rest stands in groups of its own, with the reason.",
        epilog="exit codes: 0 done, 2 bad input, 3 samples are missing, ungraded or errored",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="what `eval --out` wrote")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="a .md, .html or .json file (default: print)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.errors import InputError
    from ba_eval.leaderboard import leaderboard
    from ba_eval.results import load
    from ba_eval.store import write_atomically
    from ba_eval.tables.board import SUFFIXES, board_sheets, render_board
    from ba_eval.tables.terminal import print_sheet

    output: Path | None = arguments.output
    if output is not None and output.suffix not in SUFFIXES:
        raise InputError(f"-o {output}: the name must end in {', '.join(SUFFIXES)}")
    runs = [load(path) for path in distinct(arguments.runs)]
    groups = leaderboard(runs)
    if output is None:
        for sheet in board_sheets(groups):
            print_sheet(sheet)
    else:
        write_atomically(output, [render_board(groups, SUFFIXES[output.suffix]).encode()])
        print(output)
    return exit_code(runs)
