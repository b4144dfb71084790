"""`ba-eval export`: the samples and verdicts of a run as one Parquet file."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "export",
        help="write samples and verdicts as Parquet",
        description="Writes every wanted sample with its verdict as one row of a Parquet file, which "
        '`datasets.load_dataset("parquet", data_files=FILE)` and pandas read.',
    )
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="what `eval --out` wrote")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the Parquet file to write")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.export import export_parquet

    count = export_parquet(arguments.run_folder, arguments.output)
    print(f"{count:,} samples in {arguments.output}")
    return 0
