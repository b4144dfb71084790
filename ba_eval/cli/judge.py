"""`ba-eval judge`: verdicts on anyone's own outputs."""

import argparse
import sys
from pathlib import Path
from typing import Any


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        "judge",
        help="judge a file of outputs: programs, math answers, or samples for a benchmark",
        description=(
            "Judges a JSONL file and writes one verdict a line.\n\n"
            "  judge code FILE              lines {id, response | solution, entry_point?, tests}, where tests are\n"
            "                               [{args, expected}], [{stdin, stdout}] or the source of a test program\n"
            "  judge math FILE              lines {id, gold, answer | response}\n"
            "  judge --benchmark NAME FILE  lines {problem_id | task_id, response} (or solution, a program, or\n"
            "                               completion, what follows the prompt); prints pass@k\n"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="ba-eval judge {code,math} FILE [options] | ba-eval judge --benchmark NAME FILE [options]",
        allow_abbrev=False,
    )
    parser.add_argument("what", nargs="+", metavar="[code|math] FILE", help=argparse.SUPPRESS)
    parser.add_argument("--benchmark", metavar="NAME", help="judge samples for this benchmark, by name or YAML path")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where verdicts go (default: stdout, or beside FILE)")
    parser.add_argument("--workers", type=_positive, metavar="N", help="programs at a time (default: the cores)")
    parser.add_argument("--level", type=int, choices=(1, 2), help="isolation level to hold (default: the best)")
    parser.add_argument("--unsafe", action="store_true", help="run programs even where no isolation level holds")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="folder with the benchmark's data")
    parser.add_argument(
        "--accept-content",
        action="append",
        default=[],
        metavar="NAME",
        help="take data that is not what is pinned",
    )
    parser.set_defaults(run=run, error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Judges the file that the arguments name."""
    if arguments.benchmark is not None:
        if len(arguments.what) != 1:
            arguments.error("with --benchmark give one FILE")
        return _benchmark(arguments, Path(arguments.what[0]))
    if len(arguments.what) != 2 or arguments.what[0] not in ("code", "math"):
        arguments.error("give `code FILE`, `math FILE` or `--benchmark NAME FILE`")
    path = Path(arguments.what[1])
    if arguments.what[0] == "math":
        from ba_eval.grade.math import judge_file

        counts = judge_file(path, arguments.out, workers=arguments.workers or 1)
    else:
        from ba_eval.grade.judge_file import judge_code_file

        counts = judge_code_file(path, arguments.out, arguments.workers, arguments.level, arguments.unsafe)
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("correct", "wrong", "undecided", "error"))
    print(f"{sum(counts.values())} judged: {told}", file=sys.stderr)
    return 3 if counts["error"] else 0


def _benchmark(arguments: argparse.Namespace, path: Path) -> int:
    from ba_eval.benchmark.load import load
    from ba_eval.grade.judge_file import judge_benchmark_file

    benchmark = load(arguments.benchmark, data_dir=arguments.data_dir, accept_content=arguments.accept_content)
    out = arguments.out or path.with_suffix(".verdicts.jsonl")
    score = judge_benchmark_file(benchmark, path, out, arguments.workers, arguments.level, arguments.unsafe)
    for name, table in score.tables.items():
        print(f"{name}: " + "  ".join(f"{key} {value:.4f}" for key, value in table.items()))
    print(f"{score.samples} samples of {score.problems} problems; verdicts in {out}")
    if score.undecided:
        print(f"{score.undecided} undecided, counted as not correct")
    if score.missing:
        print(f"{score.missing} problems have no sample: the score is of the other {score.problems} alone")
    if score.apart:
        print(f"{score.apart} problems are reported apart and not counted (see the benchmark's list)")
    if score.errors:
        print(f"{score.errors} samples could not be judged: run the command again", file=sys.stderr)
    return 3 if score.errors else 0


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return value
