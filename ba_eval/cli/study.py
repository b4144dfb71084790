"""`ba-eval study`: arms trained, evaluated and compared with one command."""

import argparse
import sys
from pathlib import Path
from typing import Any

EXAMPLES = """examples:
  ba-eval study study.yaml --dry-run                  # what is left to do, and the hours that it may take
  ba-eval study study.yaml                            # all of it; run it again to go on
  ba-eval study study.yaml --arm balanced-0           # one arm: train and eval
  ba-eval study study.yaml --arm "$SLURM_ARRAY_TASK_ID"   # the same by number, in a job array
  ba-eval study study.yaml --stage report             # tables and plots again, from the records

exit codes: 0 done, 1 a gate failed, 2 bad input, 3 incomplete (run the same command again to go on)
"""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "study",
        help="train rules x seeds, evaluate every saved step, compare",
        description="Trains every arm (a rule and a seed) that is not finished, evaluates its saved steps, and writes "
        "tables, plots and gates. Several processes can work on one study: each arm has a lock.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="STUDY.yaml", type=Path)
    parser.add_argument(
        "--stage",
        action="append",
        default=[],
        choices=("train", "eval", "report", "gates"),
        help="this stage alone; repeatable (default: all; with --arm: train and eval)",
    )
    parser.add_argument(
        "--arm", action="append", default=[], metavar="NAME", help="this arm alone, by name or number; repeatable"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and how long it may take")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="override a key; repeatable"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.study.config import load_study
    from ba_eval.study.run import STAGES, dry_run, run_study

    study = load_study(arguments.file, arguments.settings)
    arms = study.pick(arguments.arm)
    stages = arguments.stage or (("train", "eval") if arguments.arm else STAGES)
    if arguments.dry_run:
        print("\n".join(dry_run(study, stages, arms)))
        return 0
    return run_study(study, stages, arms, lambda line: print(line, file=sys.stderr, flush=True))
