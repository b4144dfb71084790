"""`ba-eval benchmarks`: lists, shows and checks the benchmarks."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        "benchmarks",
        help="list, show and check the benchmarks",
        description="Lists the built-in benchmarks and suites, shows a definition, and checks that data can be read.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser(
        "list",
        help="the built-in benchmarks and suites",
        description="Lists the built-in benchmarks (kind, problems, samples per problem, source) and the suites.",
    )
    listing.set_defaults(run=_list)

    show = actions.add_parser("show", help="one definition: source, prompt, defaults, pins")
    show.add_argument("name", metavar="NAME", help="a benchmark's name, or the path of your own YAML file")
    show.set_defaults(run=_show)

    check = actions.add_parser("check", help="load benchmarks and compare their content with what is pinned")
    check.add_argument("names", metavar="NAME", nargs="*", help="benchmarks or suites; default: all")
    check.add_argument("--data-dir", type=Path, metavar="DIR", help="folder with <benchmark>.jsonl files")
    check.add_argument("--references", action="store_true", help="also grade the reference solutions of the sets")
    check.add_argument("--accept-content", action="append", default=[], metavar="NAME", help="take it as it is")
    check.set_defaults(run=_check)


def _list(arguments: argparse.Namespace) -> int:
    from ba_eval.benchmark.overview import print_list

    print_list()
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from ba_eval.benchmark.overview import print_definition

    print_definition(arguments.name)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from ba_eval.benchmark.overview import print_check

    return print_check(
        arguments.names,
        data_dir=arguments.data_dir,
        accept_content=arguments.accept_content,
        references=arguments.references,
    )
