"""Stands in for the long children of a study: leaves in moments what a training or an evaluation leaves.

    python tests/study_child.py train|eval FILE       as `ba-eval train FILE`, `ba-eval eval --config FILE`
    python tests/study_child.py study STUDY.yaml ...  `ba-eval study` with these children

STAND_IN_DIES, STAND_IN_REFUSES, STAND_IN_WAITS ("train token-0"): be killed, exit 2, or wait, half-way.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))


def write_model(folder: Path, value: int) -> None:
    """A model folder that is whole by its files: a safetensors file with one byte, a configuration, a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    data = len(header).to_bytes(8, "little") + header + bytes([value])
    (folder / "model.safetensors").write_bytes(data)
    (folder / "config.json").write_text('{"model_type": "qwen3", "max_position_embeddings": 512}')
    (folder / "tokenizer.json").write_text("{}")


def at(stage: str, name: str, out: Path) -> None:
    """The point half-way at which a stage can be made to fail."""
    here = f"{stage} {name}"
    if os.environ.get("STAND_IN_DIES") == here:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("STAND_IN_REFUSES") == here:
        sys.exit(2)
    if os.environ.get("STAND_IN_WAITS") == here:
        scratch = out / f"waiting-{stage}.part"
        scratch.write_text(str(os.getpid()))
        scratch.replace(out / f"waiting-{stage}")
        time.sleep(120)


def train(config: dict[str, Any]) -> None:
    out = Path(config["out"])
    out.mkdir(parents=True, exist_ok=True)
    for step in range(1, config["steps"] + 1):
        if step == config["steps"]:
            at("train", out.name, out.parent.parent)
        row = {"step": step, "reward": 0.5, "length/mean": 10.0, "grad_norm": 1.0, "step_time": 3.0}
        with (out / "diagnostics.jsonl").open("a") as log:
            log.write(json.dumps(row) + "\n")
        if step % config["save_every"] == 0:
            folder = out / f"checkpoint-{step}"
            write_model(folder, step + 10 * len(out.name) + config["seed"])
            record = {"aggregation": config["rule"], "step": step, "seed": config["seed"]}
            (folder / "training.json").write_text(json.dumps(record))


def evaluate(config: dict[str, Any]) -> None:
    """Right by step: none at the base, every other sample at the first saved step, all from step 4."""
    from ba_eval.benchmark import load, parse_spec
    from ba_eval.checkpoint import resolve
    from tests.runs import make_run

    name, asked = parse_spec(config["benchmarks"][0])
    n = asked or 1
    benchmark = load(name)
    models, scores = {}, {}
    out = Path(config["out"])
    for model, path in config["models"].items():
        found = resolve(model, path)
        step = found.step or 0
        models[model] = {
            "path": path,
            "weights": found.weights,
            "aggregation": found.aggregation,
            "step": found.step,
            "training_seed": found.training_seed,
        }
        row = [1] * n if step >= 4 else [i % 2 for i in range(n)] if step else [0] * n
        scores[model] = {benchmark.name: [row] * len(benchmark.problems)}
        at("eval", out.name, out.parent.parent)
    make_run(
        out,
        scores,
        models=models,
        benchmarks={
            benchmark.name: {"content": benchmark.content, "problem_ids": tuple(p.id for p in benchmark.problems)}
        },
    )


def study(arguments: list[str]) -> int:
    from ba_eval.cli import main
    from ba_eval.study import findings, run
    from ba_eval.study.gather import gather

    def waiting(asked: Any) -> Path:
        folder = gather(asked)
        at("report", "balanced-0", asked.out)
        return folder

    def words(stage: str) -> Any:
        return lambda *given: [sys.executable, __file__, stage, str(given[-1])]

    with (
        patch.multiple(run, train_words=words("train"), eval_words=words("eval")),
        patch.multiple(findings, gather=waiting, write_plots=lambda *_: [], write_report=lambda *_: None),
    ):
        return main(["study", *arguments])


if __name__ == "__main__":
    if sys.argv[1] == "study":
        sys.exit(study(sys.argv[2:]))
    {"train": train, "eval": evaluate}[sys.argv[1]](yaml.safe_load(Path(sys.argv[2]).read_text()))
