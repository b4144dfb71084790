"""Time of `ba-eval --help` beside a bare start of the same Python: median of several runs each, taken in turns.

python tests/benchmarks/startup.py [RUNS]
"""

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "ba-eval --help": [sys.executable, "-m", "ba_eval", "--help"],
}


def main() -> None:
    """Prints the seconds of each command and their ratio."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name:<16} {median:.3f} s")
    print(f"ratio            {medians['ba-eval --help'] / medians['python -c pass']:.1f}")


if __name__ == "__main__":
    main()
