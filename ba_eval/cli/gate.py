"""`ba-eval gate`: fails a CI job when a checkpoint is not good enough or got worse."""

import argparse
import os
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "gate",
        help="fail where a checkpoint is not good enough or got worse (for CI)",
        description="Checks every model of a run against thresholds and against a baseline run. "
        "Missing, ungraded and errored samples fail the gate; they never count as wrong. "
        "Without --min and --max-drop, that is all that is checked.",
        epilog="exit codes: 0 all gates passed, 1 a gate failed, 2 bad input",
    )
    parser.add_argument("run_folder", metavar="RUN", type=Path, help="what `eval --out` wrote")
    parser.add_argument(
        "--min",
        metavar="BENCHMARK:METRIC=SHARE",
        action="append",
        default=[],
        help="the least score, as math500:avg=0.30 or suite:pass@4=0.5; repeatable",
    )
    parser.add_argument(
        "--max-drop",
        metavar="BENCHMARK:METRIC=SHARE",
        action="append",
        default=[],
        help="the largest drop from the baseline, as suite:avg=0.01; repeatable",
    )
    parser.add_argument("--baseline", metavar="RUN", type=Path, help="the run that drops are measured from")
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="beyond noise at this confidence (default: 0.95)"
    )
    parser.add_argument("--strict", action="store_true", help="a drop counts even within noise")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write the findings as JUnit XML")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from ba_eval.errors import InputError
    from ba_eval.gate import check, parse_gate
    from ba_eval.gate_report import annotations, junit
    from ba_eval.results import load
    from ba_eval.store import write_atomically
    from ba_eval.tables.escape import plain

    gates = [parse_gate("min", text) for text in arguments.min]
    gates += [parse_gate("max-drop", text) for text in arguments.max_drop]
    if not 0.5 <= arguments.confidence < 1:
        raise InputError(f"--confidence {arguments.confidence:g}: must be at least 0.5 and below 1")
    baseline = load(arguments.baseline) if arguments.baseline else None
    findings = check(
        load(arguments.run_folder), gates, baseline, confidence=arguments.confidence, strict=arguments.strict
    )
    for finding in findings:
        print(plain(f"{'ok  ' if finding.passed else 'FAIL'} {finding.model}: {finding.gate}: {finding.message}", 1000))
    if arguments.junit:
        write_atomically(arguments.junit, [junit(str(arguments.run_folder), findings)])
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(*annotations(findings), sep="\n")
    return 0 if all(finding.passed for finding in findings) else 1
