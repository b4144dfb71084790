"""Regrading a file of an evalplus set: the wall time of `ba-eval judge --benchmark` over that of evalplus's own judge.

    python -m tests.benchmarks.code_judge SAMPLES.jsonl {humaneval,mbpp} --data FILE [--rounds N] [--workers N]

SAMPLES holds `{task_id, solution}` for every problem of the set, DATA the set itself (as evalplus downloads it). Both
judges run as commands, from start to end, with as many workers, and take turns, so that a machine that slows down slows
both; the expected outputs of both are computed before the first round. Prints each time, the ratio of the fastest ones,
how many verdicts differ, and the size of each cache of expected outputs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("set", choices=("humaneval", "mbpp"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data"
        data.mkdir()
        shutil.copy(arguments.data, data / f"{arguments.set}_plus.jsonl")
        samples = folder / "samples.jsonl"
        rows = [json.loads(line) for line in arguments.samples.open()]
        samples.write_text("".join(json.dumps({k: r[k] for k in ("task_id", "solution")}) + "\n" for r in rows))
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": str(folder / "cache"),
            f"{arguments.set.upper()}_OVERRIDE_PATH": str(data / f"{arguments.set}_plus.jsonl"),
        }
        verdicts, results = folder / "verdicts.jsonl", folder / "samples_eval_results.json"
        workers = str(arguments.workers)
        ours = [sys.executable, "-m", "ba_eval", "judge", "--benchmark", f"{arguments.set}_plus", str(samples)]
        ours += ["--out", str(verdicts), "--data-dir", str(data), "--workers", workers]
        theirs = [sys.executable, "-m", "evalplus.evaluate", "--dataset", arguments.set, "--samples", str(samples)]
        theirs += ["--parallel", workers]

        def run(command: list[str]) -> float:
            results.unlink(missing_ok=True)
            started = time.monotonic()
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            return time.monotonic() - started

        print(
            f"first use, expected outputs included: ba-eval {run(ours):.1f} s, evalplus {run(theirs):.1f} s", flush=True
        )
        times: dict[str, list[float]] = {"ba-eval": [], "evalplus": []}
        for _ in range(arguments.rounds):
            times["ba-eval"].append(run(ours))
            times["evalplus"].append(run(theirs))
            print("  ".join(f"{name} {spent[-1]:.1f} s" for name, spent in times.items()), flush=True)
        print(f"ratio of the fastest: {min(times['ba-eval']) / min(times['evalplus']):.2f}")

        found = {row["problem_id"]: (row.get("base"), row.get("plus")) for row in map(json.loads, verdicts.open())}
        other = json.loads(results.read_text())["eval"]
        split = [
            id
            for id, (base, plus) in found.items()
            if (base == "pass", plus == "pass")
            != tuple(other[id][0][k] == "pass" for k in ("base_status", "plus_status"))
        ]
        print(f"{len(found)} programs, {len(split)} verdicts differ: {split}")
        for name, place in (("ba-eval", "ba-eval/expected"), ("evalplus", "evalplus")):
            size = sum(path.stat().st_size for path in (folder / "cache" / place).rglob("*") if path.is_file())
            print(f"expected outputs of {name}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
