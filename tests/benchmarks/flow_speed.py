"""A run as large as 9 checkpoints x 6 benchmarks against a stand-in server: samples/s, memory, resume, table.

    python tests/benchmarks/flow_speed.py [--samples N] [--kilobytes K] [--keep DIR]

A server in a process of its own answers at once with responses of K kB that hold a boxed answer, so that what is
measured is the harness: requests over HTTP, records, grading. Prints samples per second and CPU seconds per 1,000
samples of the run, of the server, and of a bare loop that only sends the same requests (the limit that the HTTP
client sets); then the memory of the parent, the time until a resumed run asks for its first sample, and `table`.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROBLEMS = 500


def serve(kilobytes: int) -> None:
    """The stand-in: as little work per request as Python allows."""
    import random

    words = ["so", "we", "have", "the", "sum", "of", "two", "terms", "and", "then", "x", "is"]
    randomness = random.Random(0)
    fillers = [" ".join(randomness.choices(words, k=kilobytes * 250)) for _ in range(16)]
    count = 0

    class Answers(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport, self.data = transport, b""

        def data_received(self, data: bytes) -> None:
            nonlocal count
            self.data += data
            while (end := self.data.find(b"\r\n\r\n")) >= 0:
                head = self.data[:end].decode()
                length = next(
                    (int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0
                )
                if len(self.data) < end + 4 + length:
                    return
                body, self.data = self.data[end + 4 : end + 4 + length], self.data[end + 4 + length :]
                if "/chat/completions" in head.split("\r\n", 1)[0]:
                    count += 1
                    request = json.loads(body)
                    number = int(request["messages"][-1]["content"].split()[2])
                    value = 2 * number if request["seed"] % 2 else request["seed"] % 1000
                    content = f"{fillers[request['seed'] % 16]} \\boxed{{{value}}}"
                    choice = {"message": {"content": content}, "finish_reason": "stop"}
                    answer = {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 400}}
                elif "/models" in head:
                    answer = {"data": [{"id": "m"}]}
                else:
                    answer = {"version": "stand-in"}
                text = json.dumps(answer).encode()
                self.transport.write(  # type: ignore[attr-defined]
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)
                    + text
                )

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        while sys.stdin and (line := await asyncio.to_thread(sys.stdin.readline)):
            if line.strip() == "count":
                used = resource.getrusage(resource.RUSAGE_SELF)
                print(count, used.ru_utime + used.ru_stime, flush=True)

    asyncio.run(run())


def bare(url: str, count: int) -> None:
    """Sends requests of the same kind and drops the answers."""
    import aiohttp

    async def run() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=128)) as session:
            left = iter(range(count))

            async def worker() -> None:
                for i in left:
                    body = {"model": "m", "seed": i, "messages": [{"role": "user", "content": f"What is {i % 500} ?"}]}
                    async with session.post(f"{url}/chat/completions", json=body) as response:
                        await response.json()

            await asyncio.gather(*(worker() for _ in range(128)))

    asyncio.run(run())


def largest_memory(process: subprocess.Popen[str]) -> list[float]:
    """Watches the peak memory (MB) of a process from a thread; the list holds it."""
    peak = [0.0]

    def watch() -> None:
        while process.poll() is None:
            try:
                for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                    if line.startswith("VmHWM"):
                        peak[0] = int(line.split()[1]) / 1024
            except OSError:
                return
            time.sleep(0.5)

    threading.Thread(target=watch, daemon=True).start()
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--kilobytes", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=None, help="keep the run folder here")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bare", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.kilobytes)
    if args.bare:
        return bare(args.bare[0], int(args.bare[1]))
    folder = args.keep or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"id": f"p{i}", "problem": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(PROBLEMS)]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "sums.yaml").write_text("title: Sums\nkind: math\nprompt: '{problem}'\nmax_tokens: 1000\n")
    n = args.samples // PROBLEMS
    me = [sys.executable, str(Path(__file__).resolve()), "--kilobytes", str(args.kilobytes)]
    server = subprocess.Popen([*me, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin and server.stdout
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"

    def served() -> tuple[int, float]:
        assert server.stdin and server.stdout
        print("count", file=server.stdin, flush=True)
        count, cpu = server.stdout.readline().split()
        return int(count), float(cpu)

    def evaluate(n: int) -> tuple[float, float, float]:
        """Wall and CPU seconds, and the peak memory of the parent in MB."""
        command = [
            sys.executable,
            "-m",
            "ba_eval",
            "eval",
            "--model",
            "m=m",
            "--server",
            url,
            "--out",
            str(folder / "run"),
        ]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        process = subprocess.Popen(
            [*command, "--out", str(folder / "run"), "--benchmarks", f"{folder / 'sums.yaml'}:{n}"],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        peak = largest_memory(process)
        _, errors = process.communicate()
        wall = time.perf_counter() - start
        assert process.returncode == 0, errors
        print("   ", next(line for line in errors.splitlines() if "samples/s" in line))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak[0]

    count = n * PROBLEMS
    print(f"{count} samples of {args.kilobytes} kB")
    wall, cpu, peak = evaluate(n)
    asked, server_cpu = served()
    print(f"run: {count / wall:.0f} samples/s, {1000 * cpu / count:.2f} CPU s per 1,000; parent at most {peak:.0f} MB")
    print(f"server: {1000 * server_cpu / asked:.2f} CPU s per 1,000")
    some = min(count, 20_000)
    start = time.perf_counter()
    subprocess.run([*me, "--bare", url, str(some)], check=True)
    print(f"bare client: {some / (time.perf_counter() - start):.0f} requests/s")

    before_resume, _ = served()
    start = time.perf_counter()
    resumed: list[float] = []

    def watch() -> None:
        while served()[0] == before_resume:
            time.sleep(0.2)
        resumed.append(time.perf_counter() - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    evaluate(n + 1)
    watcher.join()
    print(f"resumed with n + 1: {resumed[0]:.1f} s to the first request")
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "ba_eval", "table", str(folder / "run")], check=True, cwd=ROOT, stdout=subprocess.DEVNULL
    )
    print(f"table: {time.perf_counter() - start:.1f} s")
    server.kill()
    if args.keep is None:
        shutil.rmtree(folder)
    print(f"load of the machine now: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
