"""The same samples through ba-eval and through lm-evaluation-harness: whole wall time of both, and their ratio.

    python tests/benchmarks/peers.py --lm-eval PYTHON [--model DIR] [--limit N] [--n N] [--max-tokens N] [--rounds N]

PYTHON: an interpreter that has lm_eval and this environment's vLLM (a virtual environment of its own; lm_eval is no
dependency). Both use the same vLLM with the same engine arguments, model, problems (MATH-500), n, sampling and chat
template; lm_eval gets an exact-match metric, which costs it nothing, ba-eval grades and records. They take turns.
The peer's seeds are its own, so texts differ; what is compared is time per generated token as well as wall time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ba_eval.config import RunConfig
from ba_eval.engine.vllm_args import cpu_defaults
from ba_eval.plan import load_tasks

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = 1024

TASK = """
task: peer_math
dataset_path: json
dataset_kwargs:
  data_files: {{test: "{rows}"}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
repeats: {n}
generation_kwargs: {{do_sample: true, temperature: 1.0, top_p: 0.7, max_gen_toks: {max_tokens}, until: []}}
filter_list: [{{name: all, filter: [{{function: take_first}}]}}]
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


def records(folder: Path, pattern: str) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.rglob(pattern) for line in path.open()]


def timed(name: str, command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lm-eval", required=True, metavar="PYTHON")
    parser.add_argument("--model", default=str(ROOT / ".cache/models/SmolLM2-135M-Instruct"))
    parser.add_argument("--data-dir", default=os.environ.get("BA_EVAL_DATA_DIR"))
    parser.add_argument("--limit", type=int, default=16)
    parser.add_argument("--n", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    benchmark = f"math500:{args.n}"
    engine, variables = cpu_defaults({"max_model_len": CONTEXT}, os.environ)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(
            models=(args.model,), benchmarks=(benchmark,), out=folder, data_dir=args.data_dir, limit=args.limit
        )
        (task,) = load_tasks(config)
        rows = [
            {"question": task.benchmark.user_message(problem), "answer": problem.golds[0]}
            for problem in task.benchmark.problems
        ]
        (Path(folder) / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (Path(folder) / "peer_math.yaml").write_text(
            TASK.format(rows=Path(folder) / "rows.jsonl", n=args.n, max_tokens=args.max_tokens)
        )
        model_args = ",".join(f"{name}={value}" for name, value in engine.items())
        for turn in range(args.rounds):
            environment = {**os.environ, **variables, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
            peer = [args.lm_eval, "-m", "lm_eval", "--model", "vllm", "--tasks", "peer_math", "--include_path", folder]
            peer += ["--model_args", f"pretrained={args.model},{model_args}", "--apply_chat_template"]
            peer += ["--batch_size", "auto", "--output_path", f"{folder}/peer{turn}", "--log_samples"]
            theirs = timed("lm_eval", peer, environment)
            own = [sys.executable, "-m", "ba_eval", "eval", "--model", f"m={args.model}", "--benchmarks", benchmark]
            own += ["--limit", str(args.limit), "--max-tokens", str(args.max_tokens), "--temperature", "1.0"]
            own += ["--top-p", "0.7", "--out", f"{folder}/own{turn}", "--engine-arg", f"max_model_len={CONTEXT}"]
            own += ["--data-dir", args.data_dir] if args.data_dir else []
            ours = timed("ba-eval", own, dict(os.environ))
            samples = records(Path(folder) / f"own{turn}" / "samples", "*.jsonl")
            logged = records(Path(folder) / f"peer{turn}", "samples_*.jsonl")
            texts = [text for entry in logged for responses in entry["resps"] for text in responses]
            characters = sum(len(sample["text"]) for sample in samples), sum(map(len, texts))
            assert len(texts) == len(samples) == len(rows) * args.n, (len(texts), len(samples))
            ratios.append(theirs / ours)
            print(
                f"{len(samples)} samples: lm_eval {theirs:.1f} s ({characters[1]} characters), "
                f"ba-eval {ours:.1f} s ({characters[0]} characters): {theirs / ours:.2f} x as fast"
            )
    print(f"best {max(ratios):.2f} x, worst {min(ratios):.2f} x; load of the machine now: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
