"""The command line: parse, call, print. Each command is one module of this package with `add_parser` and `run`."""

import argparse
import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from ba_eval import __version__
from ba_eval.errors import BaEvalError

BAD_PATH = (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
"""What the system says of a path that no machine could use."""

# Shown in this order by `ba-eval --help`.
COMMANDS = (
    "eval",
    "status",
    "table",
    "compare",
    "leaderboard",
    "report",
    "gate",
    "export",
    "audit",
    "regrade",
    "train",
    "study",
    "benchmarks",
    "judge",
    "sandbox",
    "doctor",
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see `{self.prog} --help`)\n")


def build_parser() -> argparse.ArgumentParser:
    """Builds the parser of all commands. Command modules import nothing heavy at their top."""
    parser = _Parser(
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
    except BrokenPipeError:  # `ba-eval table RUN | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered has nowhere to go
        return 128 + signal.SIGPIPE
    except OSError as error:  # a path that the system refuses, a disk that fails
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"ba-eval: {where}{error.strerror or error}", file=sys.stderr)
        return 2 if error.errno in BAD_PATH else 3
