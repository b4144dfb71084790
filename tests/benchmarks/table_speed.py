"""How long `ba-eval table` and `compare` take on a large study, and against decoding the same files with `json`.

    python tests/benchmarks/table_speed.py [--samples 300000] [--characters 2000] [--folder DIR]

Writes a study of 9 models and 6 benchmarks with that many samples in all, runs the commands in processes of their own
and prints wall time, peak memory and the ratio to the peer: one pass of `json.loads` over the same lines.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from ba_eval.records import Plan, PlannedBenchmark, PlannedModel, records_path

SHAPES = {"math500": (500, 4), "aime24": (30, 32), "aime25": (30, 32), "olympiadbench": (675, 4)}
SHAPES |= {"minerva_math": (272, 4), "livecodebench": (400, 4)}
MODELS = [f"{rule}-{seed}" for rule in ("sequence", "token", "balanced") for seed in range(3)]
MEASURE = """
import resource, sys, time
start = time.perf_counter()
sys.stdout = open("/dev/null", "w")
from ba_eval.cli import main
main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
busy = used.ru_utime + used.ru_stime
print(f"{time.perf_counter() - start:.2f} {busy:.2f} {used.ru_maxrss / 1024:.0f}", file=sys.stderr)
"""


def write_study(folder: Path, samples: int, characters: int) -> None:
    """Writes the run folder, n scaled so that it holds about `samples` samples."""
    scale = max(1, round(samples / len(MODELS) / sum(problems * n for problems, n in SHAPES.values())))
    text = "".join(random.Random(0).choices("abc xyz 123 \\\\frac{} $\\n", k=characters)).replace("\n", "\\n")
    text = json.dumps(text)
    benchmarks = tuple(
        PlannedBenchmark(name=name, title=name, kind="math", n=n * scale, content=name,
                         problem_ids=tuple(f"{name}-{row}" for row in range(problems)))
        for name, (problems, n) in SHAPES.items()
    )  # fmt: skip
    plan = Plan(
        models=tuple(PlannedModel(name=name, path=name, weights=name) for name in MODELS),
        benchmarks=benchmarks,
        keys={model: {name: f"{model}/{name}" for name in SHAPES} for model in MODELS},
        ks=(1, 4),
    )
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    generator = np.random.default_rng(0)
    for model in MODELS:
        for benchmark in benchmarks:
            chances = generator.beta(0.5, 0.7, len(benchmark.problem_ids))
            paths = [records_path(folder, what, model, benchmark.name) for what in ("samples", "verdicts")]
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
            with paths[0].open("w") as sample_file, paths[1].open("w") as verdict_file:
                for problem, chance in zip(benchmark.problem_ids, chances, strict=True):
                    head = f'{{"key":"{model}/{benchmark.name}","problem_id":"{problem}","index":'
                    for index, correct in enumerate((generator.random(benchmark.n) < chance).tolist()):
                        sample_file.write(
                            f'{head}{index},"seed":{index * 7919},"finish_reason":"stop","prompt_tokens":80,'
                            f'"completion_tokens":{500 + index},"seconds":12.5,"text":{text}}}\n'
                        )
                        outcome = '"correct","reason":"equal"' if correct else '"wrong","reason":"not equal"'
                        verdict_file.write(
                            f'{head}{index},"outcome":{outcome},"grader":"math 1","seconds":0.01,'
                            f'"extracted":"{index % 7}"}}\n'
                        )


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=300_000)
    parser.add_argument("--characters", type=int, default=2000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        run = Path(temporary) / "study"
        write_study(run, arguments.samples, arguments.characters)
        files = sorted(run.rglob("*.jsonl"))
        size = sum(file.stat().st_size for file in files)
        lines = sum(1 for file in files if "samples" in file.parts for _ in file.open("rb"))
        print(f"{lines:,} samples of {len(MODELS)} models on {len(SHAPES)} benchmarks, {size / 1e9:.2f} GB")
        start, busy = time.perf_counter(), time.process_time()
        for file in files:
            with file.open("rb") as opened:
                for line in opened:
                    json.loads(line)
        peer = time.perf_counter() - start
        peer_busy = time.process_time() - busy
        print(f"json.loads of every line: {peer:.1f} s, {peer_busy:.1f} s of CPU")
        for command in (["table"], ["compare"]):
            done = subprocess.run(
                [sys.executable, "-c", MEASURE, *command, str(run)], capture_output=True, text=True, check=True
            )
            seconds, busy, peak = map(float, done.stderr.split()[-3:])
            print(
                f"ba-eval {command[0]}: {seconds:.1f} s ({seconds / peer:.2f} of the peer), "
                f"{busy:.1f} s of CPU ({busy / peer_busy:.2f}), peak {peak:.0f} MiB"
            )


if __name__ == "__main__":
    main()
