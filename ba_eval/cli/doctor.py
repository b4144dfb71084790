"""`ba-eval doctor`: what this machine has and lacks, and how to mend it."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        "doctor",
        help="what this machine has and lacks for an evaluation, and how to mend it",
        description="Checks GPU, vLLM, sandbox, hub, data folders and versions. "
        "Exit code 0: a whole evaluation can run here; 3: something it needs is lacking.",
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="data folder to look into (BA_EVAL_DATA_DIR)")
    parser.add_argument("--import-vllm", action="store_true", help="also import vLLM, which takes 10 to 60 seconds")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from ba_eval import doctor

    findings = doctor.examine(arguments.data_dir, arguments.import_vllm)
    print(doctor.as_json(findings) if arguments.json else doctor.as_text(findings))
    return doctor.exit_code(findings)
