"""`ba-eval train`."""

import argparse
import sys
from importlib.util import find_spec
from typing import Any

from ba_eval.errors import InputError

EXAMPLES = """examples:
  ba-eval train toy --set out=runs/toy                          # a ready configuration, on a CPU
  ba-eval train qwen3-1.7b-dapo17k --set rule=token --set seed=1 --set out=runs/token-1
  ba-eval train my.yaml --set trl.learning_rate=2e-6
  ba-eval train my.yaml --print-launch                          # the accelerate line for several GPUs
  ba-eval train my.yaml --engine verl --print-launch            # data and command for verl, on several nodes

Run the same command again to go on from the last checkpoint. Evaluate every saved step:
  ba-eval eval --model 'ba=runs/toy/checkpoint-*' --benchmarks math500
exit codes: 0 done, 2 bad input, 3 incomplete
"""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        "train",
        help="train a checkpoint with GRPO under one aggregation rule",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    parser.add_argument("config", help="a YAML file, or the name of a ready configuration")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="override a key; repeatable"
    )
    parser.add_argument("--print-launch", action="store_true", help="print the command for several GPUs and stop")
    parser.add_argument(
        "--engine", choices=("trl", "verl"), default="trl", help="verl: for several nodes, with --print-launch only"
    )


def run(arguments: argparse.Namespace) -> int:
    from ba_eval.train.config import load_config

    config, file = load_config(arguments.config, arguments.settings)
    if arguments.engine == "verl":
        from ba_eval.train.verl_launch import verl_command

        if not arguments.print_launch:
            raise InputError("--engine verl: verl starts its own processes; add --print-launch and run what it prints")
        print(verl_command(config, lambda line: print(line, file=sys.stderr)))
        return 0
    if arguments.print_launch:
        from ba_eval.train.arguments import trl_types
        from ba_eval.train.launch import launch_line, missing_package

        if config.trl and find_spec("trl"):  # where it is printed need not be where it runs
            trl_types(config)
        lacking = missing_package(config)
        print(launch_line(config, file, arguments.settings))
        if lacking:
            print(f"before you run it: {lacking}", file=sys.stderr)
        return 0
    from ba_eval.train.run import train

    last = train(config, lambda line: print(line, flush=True))
    print(
        f"checkpoints in {last.parent}; evaluate them: "
        f"ba-eval eval --model '{last.parent}/checkpoint-*' --benchmarks NAME,..."
    )
    return 0
