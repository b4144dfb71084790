"""What an evaluation costs over bare vLLM: whole wall time of `ba-eval eval` over that of `vllm.LLM.generate`.

    python tests/benchmarks/engine_overhead.py [--model DIR] [--benchmarks SPEC] [--max-tokens N] [--rounds N]

Both make the same samples: the same prompts, seeds, sampling parameters, engine arguments and order, in a process of
their own, from its start to its end (imports, loading, and for ba-eval prompts, records and grading as well). The two
take turns, so that a machine that slows down slows both. Prints each time and the ratio of the fastest ones.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ba_eval.checkpoint import resolve
from ba_eval.config import RunConfig
from ba_eval.engine.vllm_args import cpu_defaults, model_args, parse_engine_args
from ba_eval.plan import load_tasks
from ba_eval.prompt import Renderer
from ba_eval.seeds import sample_seed

ROOT = Path(__file__).resolve().parents[2]


def write_requests(config: RunConfig, file: Path) -> int:
    """Writes what the evaluation asks of the engine, in its order. Returns the number of samples."""
    checkpoint = resolve("m", config.model_specs()[0].partition("=")[2])
    renderer = Renderer(checkpoint)
    requests: list[dict[str, Any]] = []
    for task in sorted(load_tasks(config), key=lambda task: -task.sampling.max_tokens):
        sampling = {
            name: getattr(task.sampling, name) for name in ("temperature", "top_p", "top_k", "min_p", "max_tokens")
        }
        for problem in task.benchmark.problems:
            ids = renderer.render(task.benchmark.user_message(problem))
            requests += [
                {"ids": ids, **sampling, "seed": sample_seed(config.seed, task.benchmark.name, problem.id, index)}
                for index in range(task.n)
            ]
    longest = max(len(request["ids"]) + request["max_tokens"] for request in requests)
    args = model_args(checkpoint, parse_engine_args(config.engine_args), longest)
    file.write_text(json.dumps({"args": args, "requests": requests}))
    return len(requests)


def bare(file: Path) -> None:
    """The peer: what a script of ten lines does."""
    asked = json.loads(file.read_text())
    os.environ["HF_HUB_OFFLINE"] = "1"
    from vllm.platforms import current_platform

    args = asked["args"]
    if current_platform.is_cpu():
        args, variables = cpu_defaults(args, os.environ)
        os.environ.update(variables)
    from vllm import LLM, SamplingParams

    prompts = [{"prompt_token_ids": request.pop("ids")} for request in asked["requests"]]
    llm = LLM(**args)
    start = time.perf_counter()
    outputs = llm.generate(prompts, [SamplingParams(**request) for request in asked["requests"]], use_tqdm=False)
    seconds = time.perf_counter() - start
    tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
    print(f"{tokens} tokens, {tokens / seconds:.0f} tokens/s while generating")
    sys.stdout.flush()
    os._exit(0)


def timed(name: str, command: list[str]) -> float:
    """Runs a command, prints its wall and CPU time and its last line. Returns the wall time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    notes = [line for line in (done.stdout + done.stderr).splitlines() if "tokens/s" in line]
    print(f"{name:8} {wall:7.1f} s wall, {cpu:7.1f} s CPU   {notes[-1].strip() if notes else ''}", flush=True)
    return wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", default=".cache/models/SmolLM2-135M-Instruct")
    parser.add_argument("--benchmarks", default="smoke")
    parser.add_argument("--data-dir")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--n", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)

    with tempfile.TemporaryDirectory() as scratch:
        flags = ["--benchmarks", options.benchmarks, "--n", str(options.n), "--max-tokens", str(options.max_tokens)]
        flags += ["--limit", str(options.limit)] if options.limit else []
        flags += ["--data-dir", options.data_dir] if options.data_dir else []
        config = RunConfig(
            models=(f"m={options.model}",),
            benchmarks=tuple(options.benchmarks.split(",")),
            out=scratch,
            n=options.n,
            limit=options.limit,
            max_tokens=options.max_tokens,
            data_dir=options.data_dir,
        )
        requests = Path(scratch) / "requests.json"
        print(f"{write_requests(config, requests)} samples")
        times: dict[str, list[float]] = {"bare": [], "ba-eval": []}
        for turn in range(options.rounds):
            out = str(Path(scratch) / f"run{turn}")
            commands = {
                "bare": [sys.executable, __file__, "--bare", str(requests)],
                "ba-eval": [
                    sys.executable,
                    "-m",
                    "ba_eval",
                    "eval",
                    "--model",
                    f"m={options.model}",
                    "--out",
                    out,
                    *flags,
                ],
            }
            # In turn first and second.
            for name in sorted(commands, reverse=turn % 2 == 1):
                times[name].append(timed(name, commands[name]))
        print(f"ba-eval / bare: {min(times['ba-eval']) / min(times['bare']):.3f}")


if __name__ == "__main__":
    main()
