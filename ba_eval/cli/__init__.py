"""The command line: parse, call, print. Each command is one module of this package with `add_parser` and `run`."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from ba_eval import __version__
from ba_eval.errors import BaEvalError

# Shown in this order by `ba-eval --help`.
COMMANDS = (
    "eval",
    "status",
    "table",
    "compare",
    "leaderboard",
    "gate",
    "export",
    "regrade",
    "train",
    "benchmarks",
    "judge",
    "sandbox",
    "doctor",
)


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of all commands. Command modules import nothing heavy at their top."""
    parser = argparse.ArgumentParser(
        prog="ba-eval",
        description="Which of these checkpoints is better at reasoning and code, and is the difference real?",
        epilog="exit codes: 0 done, 1 a gate failed, 2 bad input, 3 incomplete (run the same command again to go on)",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ba-eval {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"ba_eval.cli.{name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    arguments = build_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        return code
    except BaEvalError as error:
        print(f"ba-eval: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("ba-eval: interrupted; what is done is kept, the same command goes on", file=sys.stderr)
        return 3
    except BrokenPipeError:  # `ba-eval table | head`
        sys.stderr.close()
        return 0
