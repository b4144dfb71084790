"""The command line: parse, call, print. Each command is one module of this package with `add_parser` and `run`."""

import argparse
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ba_eval import __version__
from ba_eval.errors import BaEvalError

BAD_PATH = (
    errno.ENAMETOOLONG,
    errno.EINVAL,
    errno.ELOOP,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENOENT,
    errno.EACCES,
    errno.EROFS,
)
"""What the system says of a path that the user has to mend."""

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

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:  # told by the command itself, which knows its flags
            from ba_eval.yaml_file import nearest

            flags = [flag for action in self._actions for flag in action.option_strings]
            meant = nearest(unknown[0].partition("=")[0], flags) if unknown[0].startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return parsed, unknown

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
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a letter is no reason to fail
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with sigterm_interrupts():
            arguments = build_parser().parse_args(argv)
            code: int = arguments.run(arguments)
            return code
    except BaEvalError as error:
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted; what is done is kept, the same command goes on")
        return 3
    except BrokenPipeError:  # `ba-eval table RUN | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered has nowhere to go
        return 128 + signal.SIGPIPE
    except OSError as error:  # a path that the system refuses, a disk that fails
        where = f"{error.filename}: " if error.filename is not None else ""
        _complain(f"{where}{error.strerror or error}")
        return 2 if error.errno in BAD_PATH else 3


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever closed standard error has the exit code still
        print(f"ba-eval: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """SIGTERM (a job scheduler's warning) ends a command as Ctrl-C does."""

    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
