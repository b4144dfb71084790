"""How long `ba-eval report` takes on a run of 20,000 samples, how large its file is, and how fast Chromium opens it.

    python tests/benchmarks/report_speed.py [--samples 20000] [--characters 6000] [--models 4] [--folder DIR]

Peers in the same run: one pass of `json.loads` over the records; opening a page of the same size without content.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.runs import make_run

SHAPES = {"math500": (500, 4), "aime24": (30, 32), "aime25": (30, 32), "olympiadbench": (270, 4)}
MEASURE = """
import resource, sys, time
start = time.perf_counter()
from ba_eval.cli import main
main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
print(f"{time.perf_counter() - start:.2f} {used.ru_utime + used.ru_stime:.2f} {used.ru_maxrss / 1024:.0f}")
"""


def write_run(folder: Path, samples: int, characters: int, models: int) -> None:
    """Writes the run folder: texts of words, numbers and formulas, none like another."""
    generator = np.random.default_rng(0)
    choose = random.Random(0)
    words = ["".join(choose.choices("etaoinshrdlu", k=choose.randint(2, 9))) for _ in range(4000)]

    def text(*_: object) -> dict[str, Any]:
        parts = choose.choices(words, k=characters // 8)
        for at in range(0, len(parts), 15):
            parts[at] = f"$x_{{{at}}} = \\frac{{{choose.randint(1, 9999)}}}{{{choose.randint(2, 99)}}}$\n"
        return {"text": " ".join(parts) + f"\n\n\\[\\boxed{{{choose.randint(0, 999)}}}\\]"}

    scale = max(1, round(samples / models / sum(problems * n for problems, n in SHAPES.values())))
    scores = {
        f"model-{number}": {
            name: generator.random((problems, n * scale)) < 0.5 for name, (problems, n) in SHAPES.items()
        }
        for number in range(models)
    }
    make_run(folder, scores, change=text)


def open_pages(report: Path, plain: Path) -> None:
    """Opens both pages three times each and prints the times."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no Chromium: the page is not opened")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        for name, path, ready in (("plain text", plain, "body"), ("report", report, ".pane .response")):
            for _ in range(3):
                page = browser.new_page()
                start = time.perf_counter()
                page.goto(path.as_uri(), wait_until="commit")
                page.wait_for_selector(ready)
                seconds = time.perf_counter() - start
                paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN")
                print(f"{name}: opened in {seconds:.2f} s, first paint {paint / 1000:.2f} s")
                page.close()
        browser.close()


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--characters", type=int, default=6000)
    parser.add_argument("--models", type=int, default=4)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        run = Path(temporary) / "study"
        write_run(run, arguments.samples, arguments.characters, arguments.models)
        files = list(run.rglob("*.jsonl"))
        print(f"{sum(file.stat().st_size for file in files) / 1e6:.0f} MB of records")
        start = time.process_time()
        for file in files:
            with file.open("rb") as opened:
                for line in opened:
                    json.loads(line)
        peer = time.process_time() - start
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, "report", str(run)], capture_output=True, text=True, check=True
        )
        *said, measured = done.stdout.splitlines()
        seconds, busy, peak = map(float, measured.split())
        print(*said, sep="\n")
        print(
            f"ba-eval report: {seconds:.1f} s, {busy:.1f} s of CPU ({busy / peer:.1f} times json.loads), {peak:.0f} MiB"
        )
        report = run / "report.html"
        plain = run / "plain.html"
        plain.write_text("<!doctype html><script type='text/plain'>" + "A" * report.stat().st_size + "</script><body>x")
        open_pages(report, plain)


if __name__ == "__main__":
    main()
