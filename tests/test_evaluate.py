"""The flow of a run through the command line, against a stand-in server over real HTTP."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.standin import StandIn

PROBLEMS = 20
N = 4


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """A user's own benchmark: a YAML file and the JSONL beside it."""
    rows = [{"id": f"p{i}", "problem": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(PROBLEMS)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "sums.yaml"
    path.write_text("title: Sums\nkind: math\nprompt: '{problem} Answer in \\boxed{}.'\nmax_tokens: 64\n")
    return path


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Right for the even problems; carries the seed, so that a repeated sample shows."""
    number = int(body["messages"][-1]["content"].split()[2])
    value = 2 * number if number % 2 == 0 else 1
    return {"content": f"\\boxed{{{value}}} seed {body['seed']}"}


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(answer=answer) as standin:
        yield standin


def command(benchmark: Path, server: StandIn, out: Path, *more: str) -> list[str]:
    base = [sys.executable, "-m", "ba_eval", "eval", "--model", "m=m", "--server", server.url]
    return [*base, "--benchmarks", f"{benchmark}:{N}", "--out", str(out), *more]


def run(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False, **options)


def lines(out: Path, what: str) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted((out / what).rglob("*.jsonl")) for line in path.open()]


def identities(records: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    return Counter((record["problem_id"], record["index"]) for record in records)


WANTED = Counter({(f"p{i}", j): 1 for i in range(PROBLEMS) for j in range(N)})


def test_each_sample_once_and_no_work_the_second_time(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run(command(benchmark, server, out))
    assert first.returncode == 0, first.stderr
    assert identities(lines(out, "samples")) == WANTED
    assert identities(lines(out, "verdicts")) == WANTED
    seeds = {sample["seed"] for sample in lines(out, "samples")}
    assert len(seeds) == PROBLEMS * N
    assert all(f"seed {sample['seed']}" in sample["text"] for sample in lines(out, "samples"))
    right = {v["problem_id"] for v in lines(out, "verdicts") if v["outcome"] == "correct"}
    assert right == {f"p{i}" for i in range(0, PROBLEMS, 2)}
    assert "50.0" in first.stdout

    asked = len(server.bodies)
    second = run(command(benchmark, server, out))
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert len(server.bodies) == asked


def test_more_samples_generate_only_the_difference(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(command(benchmark, server, out)).returncode == 0
    before, asked = lines(out, "samples"), len(server.bodies)
    more = command(benchmark, server, out)
    more[more.index(f"{benchmark}:{N}")] = f"{benchmark}:{N + 2}"
    assert run(more).returncode == 0
    assert len(server.bodies) - asked == PROBLEMS * 2
    assert lines(out, "samples")[: len(before)] == before


@pytest.mark.parametrize("change", [["--seed", "1"], ["--temperature", "0.5"], ["--max-tokens", "32"]])
def test_changed_sampling_is_not_reused_and_says_why(
    benchmark: Path, server: StandIn, tmp_path: Path, change: list[str]
) -> None:
    out = tmp_path / "run"
    assert run(command(benchmark, server, out)).returncode == 0
    asked = len(server.bodies)
    again = run(command(benchmark, server, out, *change))
    assert again.returncode == 0
    assert len(server.bodies) - asked == PROBLEMS * N
    assert "earlier samples are not reused; changed: " + ("seed" if "--seed" in change else "sampling") in again.stderr


def test_changed_content_is_not_reused(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(command(benchmark, server, out)).returncode == 0
    data = benchmark.with_suffix(".jsonl")
    data.write_text(data.read_text().replace('"answer": "6"', '"answer": "7"'))
    again = run(command(benchmark, server, out))
    assert "changed: benchmark content" in again.stderr
    assert len(lines(out, "samples")) == 2 * PROBLEMS * N


def kill_until_done(benchmark: Path, server: StandIn, out: Path, kills: int, signals: list[int]) -> int:
    """Starts the run again and again, each killed at a random moment, then lets it end; returns how many were hit."""
    hit = 0
    randomness = random.Random(kills)
    for _ in range(kills):
        process = subprocess.Popen(
            command(benchmark, server, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # Starting takes a while: half of the kills fall into it, half into the work.
        started = time.monotonic()
        while time.monotonic() - started < 20 and randomness.random() < 0.5 and not (out / "samples").exists():
            time.sleep(0.01)
        time.sleep(randomness.uniform(0, 1.0))
        if process.poll() is None:
            hit += 1
        process.send_signal(randomness.choice(signals))
        process.wait(60)
    last = run(command(benchmark, server, out))
    assert last.returncode == 0, last.stderr
    return hit


def check_exactly_once(out: Path) -> None:
    assert identities(lines(out, "samples")) == WANTED
    assert identities(lines(out, "verdicts")) == WANTED


def test_killed_at_random_moments(benchmark: Path, tmp_path: Path) -> None:
    with StandIn(answer=answer, delay=0.3) as server:
        assert kill_until_done(benchmark, server, tmp_path / "run", 6, [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    check_exactly_once(tmp_path / "run")


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_200_times(benchmark: Path, tmp_path: Path) -> None:
    with StandIn(answer=answer, delay=2.0) as server:
        assert kill_until_done(benchmark, server, tmp_path / "run", 200, [signal.SIGKILL]) > 50
    check_exactly_once(tmp_path / "run")


def test_interrupted_says_how_to_go_on(benchmark: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with StandIn(answer=answer, delay=60.0) as server:
        process = subprocess.Popen(
            command(benchmark, server, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        while not server.bodies:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        started = time.monotonic()
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "the same command goes on" in errors
    assert "Traceback" not in errors
    assert time.monotonic() - started < 15


def test_samples_without_a_verdict_are_graded(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(command(benchmark, server, out)).returncode == 0
    verdicts = next((out / "verdicts").rglob("*.jsonl"))
    kept = verdicts.read_text().splitlines(keepends=True)[:30]
    verdicts.write_text("".join(kept) + '{"key": "torn')
    asked = len(server.bodies)
    assert run(command(benchmark, server, out)).returncode == 0
    assert len(server.bodies) == asked
    check_exactly_once(out)


def test_a_request_that_fails_is_an_error_and_is_made_again(benchmark: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    broken = True

    def behave(number: int, body: dict[str, Any]) -> int | None:
        return 400 if broken and "What is 3 +" in body["messages"][-1]["content"] else None

    with StandIn(answer=answer, behave=behave) as server:
        first = run(command(benchmark, server, out))
        assert first.returncode == 3
        assert "fault 400" in json.dumps(lines(out, "samples"))
        broken = False
        assert run(command(benchmark, server, out)).returncode == 0
    check_exactly_once(out)


def test_a_full_disk_is_exit_3_and_goes_on(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    """RLIMIT_FSIZE makes the kernel refuse to write, as it does on a full disk."""
    out = tmp_path / "run"
    limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 8; exec "$@"', "-", *command(benchmark, server, out)]
    first = run(limited)
    assert first.returncode == 3, first.stderr
    assert "make room" in first.stderr or "cannot be written" in first.stderr
    assert "Traceback" not in first.stderr
    assert run(command(benchmark, server, out)).returncode == 0
    check_exactly_once(out)


def test_regrade_gives_the_same_verdicts_without_a_server(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run(command(benchmark, server, out)).returncode == 0
    before = sorted((v["problem_id"], v["index"], v["outcome"]) for v in lines(out, "verdicts"))
    for path in (out / "verdicts").rglob("*.jsonl"):
        path.write_text(path.read_text().replace('"outcome":"correct"', '"outcome":"wrong"', 3))
    regraded = run([sys.executable, "-m", "ba_eval", "regrade", str(out), "--diff"])
    assert regraded.returncode == 0, regraded.stderr
    assert regraded.stderr.count("wrong (") >= 3
    assert "3 wrong -> correct" in regraded.stderr
    assert sorted((v["problem_id"], v["index"], v["outcome"]) for v in lines(out, "verdicts")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--benchmarks", "math50"], "did you mean 'math500'"),
        (["-k", "8"], "pass@8 needs at least 8 samples"),
        (["--top-p", "2"], "top_p: 2 is out of range"),
        (["--engine-arg", "dtype=float32"], "no effect with --server"),
        (["-k", "two"], "must be whole numbers"),
        (["--temprature", "1"], "unrecognized arguments: --temprature 1; did you mean '--temperature'?"),
        (["--server", "ftp://x"], "--server ftp://x: not an address"),
        (["--model", "other=nothing"], "has no model 'nothing'; it has: m"),
        (
            ["--accept-content", "math50"],
            "--accept-content math50: there is no such benchmark; did you mean 'math500'?",
        ),
        (["--out", "x" * 300], "File name too long"),
        (["--step", "m=-4"], "step: -4 of m is out of range"),
        (["--training-seed", "m=99999999999999999999"], "training_seed: 99999999999999999999 of m is out of range"),
        (["--aggregation", "m=token", "--aggregation", "m=balanced"], "m is token already"),
        (["--parallel-models", "0"], "parallel_models: 0 is out of range"),
        (["--deterministic"], "--deterministic has no effect with --server"),
        (["--data-dir", "/etc/passwd"], "is a file"),
        (["--system", "a\udcff"], r"system: holds bytes that are not UTF-8: 'a\udcff'"),
    ],
)
def test_bad_input_writes_nothing(
    benchmark: Path, server: StandIn, tmp_path: Path, arguments: list[str], message: str
) -> None:
    out = tmp_path / "run"
    refused = run(command(benchmark, server, out, *arguments))
    assert refused.returncode == 2
    assert message in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    assert not out.exists()


def test_a_server_that_is_not_there_is_a_fault_that_writes_nothing(
    benchmark: Path, server: StandIn, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    there = command(benchmark, server, out)
    failed = run(["http://127.0.0.1:1/v1" if word == server.url else word for word in there])
    assert failed.returncode == 3
    assert "is the server running there?" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert not out.exists()


def test_one_of_two_servers_may_be_missing(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    done = run(command(benchmark, server, tmp_path / "run", "--server", "http://127.0.0.1:1/v1"))
    assert done.returncode == 0
    assert "http://127.0.0.1:1/v1: no answer" in done.stderr
    check_exactly_once(tmp_path / "run")


def test_a_finished_run_needs_no_server(benchmark: Path, tmp_path: Path) -> None:
    with StandIn(answer=answer) as standin:
        again = command(benchmark, standin, tmp_path / "run")
        assert run(again).returncode == 0
    assert run(again).returncode == 0


@pytest.mark.parametrize("text", ["{}", "\x00", '{"models": 3}'])
def test_a_damaged_plan_costs_no_samples(benchmark: Path, server: StandIn, tmp_path: Path, text: str) -> None:
    out = tmp_path / "run"
    assert run(command(benchmark, server, out)).returncode == 0
    asked = len(server.bodies)
    (out / "plan.json").write_text(text)
    refused = run(command(benchmark, server, out))
    assert refused.returncode == 2
    assert "plan.json: is not a plan" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    (out / "plan.json").unlink()  # as the message says
    assert run(command(benchmark, server, out)).returncode == 0
    assert len(server.bodies) == asked


def test_a_model_that_is_not_there(benchmark: Path, tmp_path: Path) -> None:
    refused = run(
        [sys.executable, "-m", "ba_eval", "eval", "--model", str(tmp_path / "none"), "--benchmarks", str(benchmark),
         "--out", str(tmp_path / "run")], env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert refused.returncode == 2
    assert "none" in refused.stderr
    assert not (tmp_path / "run").exists()


def test_seeds_do_not_depend_on_what_else_is_asked(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    few, all_ = tmp_path / "few", tmp_path / "all"
    assert run(command(benchmark, server, few, "--limit", "3")).returncode == 0
    assert run(command(benchmark, server, all_)).returncode == 0

    def digest(out: Path) -> dict[tuple[str, int], str]:
        return {
            (s["problem_id"], s["index"]): hashlib.sha256(s["text"].encode()).hexdigest() for s in lines(out, "samples")
        }

    assert digest(few).items() <= digest(all_).items()


def test_models_in_parallel(benchmark: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    models = [option for name in "abcde" for option in ("--model", f"{name}={name}")]
    with StandIn(answer=answer, models=tuple("abcde"), delay=0.5) as server:
        base = [sys.executable, "-m", "ba_eval", "eval", *models, "--server", server.url, "--out", str(out)]
        done = run([*base, "--benchmarks", f"{benchmark}:{N}", "--parallel-models", "3"])
        assert done.returncode == 0, done.stderr
        # One model alone has 80 requests: more at once are those of several.
        assert PROBLEMS * N < server.most_at_once <= 3 * PROBLEMS * N
        first = {body["model"] for body in server.bodies[: 2 * PROBLEMS * N]}
    assert first <= set("abc")
    for name in "abcde":
        records = [json.loads(line) for line in (out / "samples" / name / "sums.jsonl").open()]
        assert identities(records) == WANTED
        verdicts = [json.loads(line) for line in (out / "verdicts" / name / "sums.jsonl").open()]
        assert identities(verdicts) == WANTED


def test_what_a_model_was_trained_with_comes_from_flags(benchmark: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with StandIn(answer=answer, models=("a", "b")) as server:
        base = [sys.executable, "-m", "ba_eval", "eval", "--model", "x@5=a", "--model", "y=b", "--server", server.url]
        asked = [*base, "--benchmarks", f"{benchmark}:1", "--limit", "2", "--out", str(out)]
        flags = ["--aggregation", "x=balanced", "--step", "x@5=5", "--training-seed", "x=3", "--aggregation", "y=token"]
        done = run([*asked, *flags])
        assert done.returncode == 0, done.stderr
        x, y = json.loads((out / "plan.json").read_text())["models"]
        assert (x["aggregation"], x["step"], x["training_seed"], y["aggregation"]) == ("balanced", 5, 3, "token")
        wrong = run([*asked, "--aggregation", "z=token"])
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert "--aggregation z: there is no such model" in wrong.stderr


def test_sigterm_before_anything_began(benchmark: Path, tmp_path: Path) -> None:
    base = [sys.executable, "-m", "ba_eval", "eval", "--model=m=m", "--server=http://127.0.0.1:9/v1"]
    for seconds in (0.3, 0.8):
        process = subprocess.Popen(
            [*base, f"--benchmarks={benchmark}", f"--out={tmp_path / 'run'}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        # Python itself takes a moment before any line of ours runs.
        assert process.returncode in (3, -signal.SIGTERM)
        assert "Traceback" not in errors


def test_an_output_that_cannot_show_the_letters(benchmark: Path, server: StandIn, tmp_path: Path) -> None:
    out = tmp_path / "run"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run(command(benchmark, server, out), env=environment)
    assert (done.returncode, "50.0" in done.stdout) == (0, True)
    narrow = run([sys.executable, "-m", "ba_eval", "status", str(out)], env={**environment, "COLUMNS": "40"})
    assert narrow.returncode == 0
