"""`ba-eval sandbox`: what isolation holds on this machine, and one program run behind it."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ba_eval.errors import InputError

_MOST_STDIN = 1 << 29


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser("sandbox", help="check the sandbox, or run one program in it")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    check = actions.add_parser("check", help="try every layer and say which isolation level holds here")
    check.add_argument("--level", type=int, choices=(1, 2), help="try this level only")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=_check)

    run = actions.add_parser("run", help="run one Python program in the sandbox")
    run.add_argument("program", type=Path, metavar="PROGRAM.py")
    run.add_argument("--stdin", type=Path, metavar="FILE", help="standard input (default: empty)")
    run.add_argument("--cpu-seconds", type=float, metavar="S", help="CPU time of all its processes (default: 10)")
    run.add_argument("--wall-seconds", type=float, metavar="S", help="backstop (default: 10 + 4 x the CPU seconds)")
    run.add_argument("--memory-mb", type=int, metavar="M", help="(default: 1024)")
    run.add_argument("--output-kb", type=int, metavar="K", help="for stdout and stderr each (default: 10240)")
    run.add_argument("--level", type=int, choices=(1, 2), help="isolation level (default: the best that holds)")
    run.add_argument("--unsafe", action="store_true", help="run it even where no level holds")
    run.add_argument("--json", action="store_true", help="print the result as one line of JSON")
    run.set_defaults(run=_run)


def _check(arguments: argparse.Namespace) -> int:
    from ba_eval.execution.probe import check

    report = check(arguments.level)
    if arguments.json:
        print(json.dumps(report.as_json()))
    else:
        print(report.as_text())
    return 0 if report.level is not None else InputError.exit_code


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{path}: longer than {most >> 20} MB")
    return data


def _run(arguments: argparse.Namespace) -> int:
    from ba_eval.execution import Limits, Sandbox

    names = ("cpu_seconds", "wall_seconds", "memory_mb", "output_kb")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    try:
        limits = Limits(**given)
        program = _read(arguments.program, limits.disk_mb << 20).decode("utf-8", "surrogateescape")
        stdin = _read(arguments.stdin, _MOST_STDIN) if arguments.stdin else b""
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(str(error)) from error
    with Sandbox(workers=1, level=arguments.level, unsafe=arguments.unsafe) as sandbox:
        result = sandbox.run(program, stdin, limits)
    if arguments.json:
        print(json.dumps(result.as_json()))
    else:
        sys.stdout.write(result.stdout.decode(errors="replace"))
        sys.stdout.flush()
        sys.stderr.write(result.stderr.decode(errors="replace"))
        print(f"{result.status}: {result.cpu_seconds:.3f} s CPU, {result.wall_seconds:.3f} s wall", file=sys.stderr)
    if result.status == "infra":
        print(f"ba-eval: the sandbox failed: {result.text}", file=sys.stderr)
        return 3
    return 0
