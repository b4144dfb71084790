"""`ba-eval eval`."""

import argparse
import re
from pathlib import Path
from typing import Any

EXAMPLES = """examples:
  ba-eval eval --model ba=runs/ba/checkpoint-300 --model token=runs/token/checkpoint-300 \\
               --benchmarks aime24:32,aime25:32,math500:4 --temperature 1.0 --top-p 0.7 --max-tokens 3072
  ba-eval eval --model 'ba=runs/ba/checkpoint-*' --benchmarks paper --out results/ba      # every saved step
  ba-eval eval --model Qwen/Qwen3-1.7B --benchmarks math500 --limit 50 --template-arg enable_thinking=true
  ba-eval eval --model 'ba=runs/ba/checkpoint-*' --benchmarks paper --parallel-models 8   # 8 GPUs, one model each
  ba-eval eval --model m=my-model --server http://localhost:8000/v1 --benchmarks smoke
  ba-eval eval --config run.yaml --set seed=1

Run the same command again to go on with a run that was cut, or with a larger n to add the difference.
exit codes: 0 done, 2 bad input, 3 incomplete
"""


def add_parser(commands: "argparse._SubParsersAction[Any]") -> None:
    parser = commands.add_parser(
        "eval",
        help="generate and grade samples of checkpoints on benchmarks, ending in a table",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add(
        "--model",
        dest="models",
        action="append",
        metavar="NAME=PATH",
        help="local checkpoint, LoRA adapter folder or hub id; a glob gives one model per step; repeatable",
    )
    add(
        "--benchmarks",
        type=_comma_list,
        metavar="NAME[:N],...",
        help="benchmarks or suites, with samples per problem (see `ba-eval benchmarks list`)",
    )
    add("--out", metavar="DIR", help="run folder (default: results/<models>)")
    add("--config", type=Path, default=None, metavar="FILE", help="all of this as YAML; flags win")
    add("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="override a key of --config")
    add("--n", type=int, help="samples per problem where the benchmark has no :N (default: the benchmark's own)")
    add("-k", type=_comma_ints, metavar="K,...", help="k of pass@k (default: 1)")
    add("--limit", type=int, metavar="N", help="only the first N problems of each benchmark")
    add("--seed", type=int, metavar="S", help="run seed (default: 0)")
    add(
        "--temperature",
        type=float,
        metavar="T",
        help="sampling temperature, 0 for greedy (default: the benchmark's own)",
    )
    add("--top-p", type=float, metavar="P", help="nucleus sampling (default: the benchmark's own)")
    add("--max-tokens", type=int, metavar="N", help="longest response (default: the benchmark's own)")
    add("--top-k", type=int, metavar="K", help="sample from the K likeliest tokens (default: all)")
    add("--min-p", type=float, metavar="P", help="leave out tokens below P times the likeliest (default: none)")
    add(
        "--template",
        metavar="NAME|FILE",
        help="chat template: qwen-boxed, none, or a .jinja file (default: the tokenizer's own)",
    )
    add(
        "--template-arg",
        dest="template_args",
        action="append",
        metavar="KEY=VALUE",
        help="argument of the chat template, as enable_thinking=true; repeatable",
    )
    add("--system", metavar="TEXT", help="system prompt (default: the chat template's own)")
    add("--data-dir", metavar="DIR", help="folder with <benchmark>.jsonl files, read before the hub (BA_EVAL_DATA_DIR)")
    add(
        "--accept-content",
        action="append",
        metavar="NAME",
        help="accept a benchmark whose content is not the pinned one; tables carry a mark; repeatable",
    )
    add(
        "--engine-arg",
        dest="engine_args",
        action="append",
        metavar="KEY=VALUE",
        help="vLLM engine argument, as tensor_parallel_size=2; repeatable",
    )
    add("--server", action="append", metavar="URL", help="use a running OpenAI-compatible server; repeatable")
    add(
        "--parallel-models",
        type=int,
        metavar="K",
        help="evaluate K models at once, each on GPUs of its own (as many as its parallel sizes ask for; default: 1)",
    )
    add(
        "--deterministic",
        action="store_true",
        help="samples that do not depend on the batch: batch-invariant kernels; on the CPU, one sequence at a time",
    )
    for name, value in (("aggregation", "RULE"), ("step", "STEP"), ("training-seed", "SEED")):
        add(
            f"--{name}",
            dest=name.replace("-", "_"),
            action="append",
            metavar=f"MODEL={value}",
            help="what the model was trained with, where training.json does not say (MODEL may leave out @step)"
            if name == "aggregation"
            else "as --aggregation; repeatable",
        )
    add("--workers", type=int, metavar="N", help="grading processes (default: the cores)")
    add("--sandbox-level", type=int, choices=(1, 2), help="force an isolation level (see `ba-eval sandbox check`)")
    add("--unsafe", action="store_true", help="run model-written code without a sandbox; tables carry a mark")
    add("--trust-remote-code", action="store_true", help="let the checkpoint's own code run")


def run(arguments: argparse.Namespace) -> int:
    from ba_eval.audit import audit
    from ba_eval.audit_report import pointer
    from ba_eval.config import load_config, pairs
    from ba_eval.evaluate import evaluate
    from ba_eval.progress import RunProgress
    from ba_eval.results import load
    from ba_eval.tables import print_table, write_summary

    flags = {
        name: value for name, value in vars(arguments).items() if name not in ("run", "command", "config", "settings")
    }
    for name, flag in (
        ("template_args", "--template-arg"),
        ("engine_args", "--engine-arg"),
        ("aggregation", "--aggregation"),
        ("step", "--step"),
        ("training_seed", "--training-seed"),
    ):
        if name in flags:
            flags[name] = pairs(flags[name], flag)
    if arguments.config is None and "out" not in flags and "models" in flags:
        flags["out"] = default_out(flags["models"])
    config = load_config(arguments.config, arguments.settings, flags)
    progress = RunProgress()
    failures = evaluate(config, progress)
    results = load(Path(config.out))
    write_summary(Path(config.out), results)
    print_table(results)
    if (doubts := audit(Path(config.out), limit=0)).suspicious:
        progress.note(pointer(doubts, f"ba-eval audit {config.out}"))
    if failures or not results.complete:
        refused = bool(failures) and all(error.exit_code == 2 for error in failures)  # only other input helps
        mend = "mend what was refused, then " if refused else ""
        progress.note(f"ba-eval: incomplete: {results.lacks()}; {mend}run the same command again to go on")
        return 2 if refused else 3
    progress.note(f"records in {config.out}; `ba-eval table {config.out}` prints this table again")
    return 0


def default_out(models: list[str]) -> str:
    """`results/<model>-vs-<model>`, so that the same command finds its run again."""
    names = [re.sub(r"[^\w.@+-]+", "-", spec.partition("=")[0]).strip("-") for spec in models]
    return f"results/{'-vs-'.join(names)[:100]}"


def _comma_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _comma_ints(text: str) -> list[int]:
    try:
        return [int(part) for part in _comma_list(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: must be whole numbers, as in 1,4") from None
