"""Programs per second of the sandbox against a plain subprocess and against one bubblewrap for each program.

usage: python tests/benchmarks/sandbox_speed.py [--programs N] [--workers N]

All of them in the same run, in turns, so that the machine's load meets each alike; CPU time per program is printed too,
which depends on the load less.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ba_eval.errors import InputError
from ba_eval.execution import Sandbox
from ba_eval.execution.runtime import public_runtime

PLAIN = "n = int(input())\nprint(sum(range(n)))\n"
WITH_NUMPY = "import numpy as np\nn = int(input())\nprint(np.arange(n).sum())\n"
_TICK = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """CPU seconds of this process, its children that have ended, and all processes below it."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    total = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    rows: dict[int, list[tuple[int, float]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            rows.setdefault(int(fields[1]), []).append((int(entry.name), sum(map(int, fields[11:15])) * _TICK))
    queue = [os.getpid()]
    while queue:
        for pid, seconds in rows.get(queue.pop(), []):
            total += seconds
            queue.append(pid)
    return total


def measure(run: Callable[[], object], programs: int, workers: int) -> tuple[float, float]:
    """Returns programs per second and CPU milliseconds per program."""
    cpu, started = cpu_seconds(), time.perf_counter()
    with ThreadPoolExecutor(workers) as threads:
        for done in [threads.submit(run) for _ in range(programs)]:
            done.result()
    return programs / (time.perf_counter() - started), (cpu_seconds() - cpu) / programs * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    runtime = public_runtime()
    bwrap = [str(runtime.bwrap), "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc"]
    bwrap += ["--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    with tempfile.TemporaryDirectory() as folder:
        for name, program in (("plain", PLAIN), ("numpy", WITH_NUMPY)):
            path = Path(folder) / "program.py"
            path.write_text(program)
            source = ["-c", program]

            def check(out: bytes) -> None:
                assert out == b"499500\n", out

            def call(command: list[str]) -> None:
                check(subprocess.run(command, input=b"1000\n", capture_output=True, check=True).stdout)

            peers: dict[str, Callable[[], object]] = {
                "subprocess": lambda path=path: call([sys.executable, str(path)]),  # type: ignore[misc]
                "bubblewrap each": lambda source=source: call([*bwrap, sys.executable, *source]),  # type: ignore[misc]
            }
            opened = []
            for level in (1, 2):
                try:
                    sandbox = Sandbox(workers=arguments.workers, level=level)
                except InputError as error:
                    print(error)
                    continue
                opened.append(sandbox)
                peers[f"level {level}"] = lambda sandbox=sandbox, program=program: check(  # type: ignore[misc]
                    sandbox.run(program, b"1000\n").stdout
                )
            totals = dict.fromkeys(peers, 0.0)
            cpus = dict.fromkeys(peers, 0.0)
            for run in peers.values():
                measure(run, 8 * arguments.workers, 2 * arguments.workers)  # all workers warm
            rounds = 5
            for _ in range(rounds):
                for peer, run in peers.items():
                    rate, cpu = measure(run, arguments.programs // rounds, arguments.workers)
                    totals[peer] += 1 / rate
                    cpus[peer] += cpu
            for sandbox in opened:
                sandbox.close()
            print(f"{name}: {arguments.workers} workers")
            for peer in peers:
                rate, cpu = rounds / totals[peer], cpus[peer] / rounds
                faster = ", ".join(
                    f"{totals[other] / totals[peer]:5.1f} x {other}" for other in ("subprocess", "bubblewrap each")
                )
                # bubblewrap's own children end out of sight.
                used = "" if peer == "bubblewrap each" else f"{cpu:6.1f} ms CPU"
                print(f"  {peer:16} {rate:7.1f} programs/s  {used:14}  {faster}", flush=True)


if __name__ == "__main__":
    main()
