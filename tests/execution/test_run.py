"""Programs as scripts: what a fresh interpreter would do, and one status for each way to end."""

# ruff: noqa: E501 (whole programs on a line)

import json
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from ba_eval.execution import Limits, Sandbox

SHORT = Limits(cpu_seconds=0.5, wall_seconds=60, memory_mb=200, output_kb=64, disk_mb=8, processes=24)


@pytest.mark.parametrize(
    ("program", "stdin", "expected"),
    [
        ("print(input()[::-1])", b"abc\n", b"cba\n"),
        ("import sys\nprint(len(sys.stdin.buffer.read()))", b"x" * 3_000_000, b"3000000\n"),
        ("for line in open(0): print(line.strip())", b"1\n2\n", b"1\n2\n"),
        ("print(open('/dev/stdin').read())", b"7", b"7\n"),
        ("global x\nx = 1\ndef f():\n    global x\n    x += 1\nf()\nprint(x)", b"", b"2\n"),
        ("print(__name__)\nquit()", b"", b"__main__\n"),
        ("import sys, os\nprint(os.path.isabs(__file__), sys.argv[0] == __file__, len(sys.argv))", b"", b"True True 1\n"),
        ("import atexit\natexit.register(print, 'bye')\nprint('hi')", b"", b"hi\nbye\n"),
        ("class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')", b"", b"end\ngone\n"),
        (
            "import threading, time\ndef f():\n    time.sleep(0.1)\n    print('late')\nthreading.Thread(target=f).start()\nprint('first')",
            b"",
            b"first\nlate\n",
        ),
        ("import sys\nsys.stdout.write('no newline')", b"", b"no newline"),
        ("# -*- coding: latin-1 -*-\nprint(len('\xe9'))", b"", b"2\n"),
        ("print('\U0001f600')", b"", "\U0001f600\n".encode()),
        ("import os\nos.write(1, bytes(range(128, 256)))", b"", bytes(range(128, 256))),
        ("import numpy as np\nprint(np.arange(4).reshape(2, 2).sum())", b"", b"6\n"),
        ("import inspect\ndef f(): return 1\nprint(inspect.getsource(f).strip())", b"", b"def f(): return 1\n"),
        ("import pickle\nclass P: x = 1\nprint(pickle.loads(pickle.dumps(P())).x)", b"", b"1\n"),
        ("import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', 'print(6*7)']).decode().strip())", b"", b"42\n"),
        ("import tempfile, sqlite3, os\nf = tempfile.TemporaryFile()\nf.write(b'x')\nc = sqlite3.connect('t.db')\nc.execute('create table t(x)')\nprint(sorted(os.listdir()))", b"", b"['program.py', 't.db']\n"),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5\nprint(asyncio.run(f()))", b"", b"5\n"),
        ("import os, sys\nr, w = os.pipe()\nif os.fork() == 0:\n    os.write(w, b'child')\n    os._exit(0)\nos.wait()\nprint(os.read(r, 9))", b"", b"b'child'\n"),
        ("print('x' * 300_000)", b"", b"x" * 300_000 + b"\n"),
        # What modules want done at a fork: done when they are imported, and again when the program forks.
        ("import threading, os\nprint(threading.main_thread().native_id == os.getpid())", b"", b"True\n"),
        ("import os, threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\nif os.fork() == 0:\n    os._exit(threading.active_count())\nprint(os.wait()[1] >> 8)\nprint(end='', flush=True)\nos._exit(0)", b"", b"1\n"),
        ("import os, random\nr, w = os.pipe()\nif os.fork() == 0:\n    os.write(w, str(random.random()).encode())\n    os._exit(0)\nos.wait()\nprint(float(os.read(r, 99)) == random.random())", b"", b"False\n"),
    ],
)  # fmt: skip
def test_ok(sandbox: Sandbox, program: str, stdin: bytes, expected: bytes) -> None:
    result = sandbox.run(program, stdin, Limits(cpu_seconds=10))
    assert (result.status, result.stdout, result.stderr) == ("ok", expected, b"")
    assert result.exit_code == 0
    assert result.level == sandbox.level


MULTIPROCESSING = """
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def square(x): return x * x
def add(lock, total):
    for _ in range(50):
        with lock: total.value += 1
if __name__ == "__main__":
    context = mp.get_context("fork")
    with context.Pool(2) as pool: print(pool.map(square, range(4)))
    lock, total = context.Lock(), context.Value("i", 0)
    workers = [context.Process(target=add, args=(lock, total)) for _ in range(3)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print(total.value)
    with ProcessPoolExecutor(2, mp_context=context) as pool: print(sum(pool.map(square, range(5))))
    with ThreadPoolExecutor(16) as pool: print(sum(pool.map(square, range(5))))
    semaphore, queue = context.BoundedSemaphore(1), context.Queue()
    print(semaphore.acquire(), semaphore.acquire(timeout=0.01), queue.put(1), queue.get())
    recursive = context.RLock()
    with recursive, recursive: print("twice")
"""


def test_multiprocessing(sandbox: Sandbox) -> None:
    result = sandbox.run(MULTIPROCESSING)
    assert result.stdout == b"[0, 1, 4, 9]\n150\n30\n30\nTrue False None 1\ntwice\n", result.stderr
    assert (result.status, result.stderr) == ("ok", b"")


def test_deep_recursion(sandbox: Sandbox) -> None:
    program = """
        import sys, threading
        sys.setrecursionlimit(10**6)
        threading.stack_size(256 << 20)
        def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
        thread = threading.Thread(target=lambda: print(depth(40000)))
        thread.start()
        thread.join()
    """
    result = sandbox.run(textwrap.dedent(program), limits=Limits(memory_mb=512))
    assert (result.status, result.stdout) == ("ok", b"40000\n")


@pytest.mark.parametrize(
    ("program", "status", "exit_code", "signal"),
    [
        ("raise SystemExit(3)", "error", 3, None),
        ("raise SystemExit('text')", "error", 1, None),
        ("import os\nos._exit(7)", "error", 7, None),
        ("1 / 0", "error", 1, None),
        ("def f(:", "error", 1, None),
        ("x = '\0'", "error", 1, None),
        ("import os\nos.kill(os.getpid(), 15)", "killed", None, 15),
        ("import os\nos.kill(os.getpid(), 9)", "killed", None, 9),
        ("import os\nos.abort()", "killed", None, 6),
        ("import ctypes\nctypes.string_at(0)", "killed", None, 11),
        ("import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.1)\ntime.sleep(20)", "killed", None, 14),
        ("while True: pass", "timeout", None, None),
        ("import os\nos.fork()\nwhile True: pass", "timeout", None, None),
        ("x = []\nwhile True: x.append(bytearray(4 << 20))", "memory", None, None),
        ("import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 4 << 20)); x[-1].write(bytes(4 << 20))", "memory", None, None),
        ("x = bytearray(10**13)", "memory", 1, None),
        ("import os\nwhile True: os.write(1, b'x' * 4096)", "output", None, None),
        ("import os\nwhile True: os.write(2, b'x' * 4096)", "output", None, None),
        ("import os\nwhile True: os.fork()", "process", None, None),
        ("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()", "process", None, None),
        ("open('f', 'wb').write(bytes(20 << 20))", "disk", None, None),
        ("for i in range(10**6): open(f'{i}', 'w').close()", "disk", None, None),
    ],
)  # fmt: skip
def test_other_ends(sandbox: Sandbox, program: str, status: str, exit_code: int | None, signal: int | None) -> None:
    limits = SHORT if status == "timeout" else replace(SHORT, cpu_seconds=20)
    result = sandbox.run(program, limits=limits)
    assert result.status == status, result
    if exit_code is not None or signal is not None:
        assert (result.exit_code, result.signal) == (exit_code, signal)
    assert len(result.stdout) <= 64 << 10
    assert sandbox.run("print('next')").stdout == b"next\n"


def test_sleep_meets_the_wall_limit(sandbox: Sandbox) -> None:
    result = sandbox.run("import time\ntime.sleep(100)", limits=Limits(cpu_seconds=1, wall_seconds=0.5))
    assert result.status == "timeout"
    assert result.wall_seconds < 20
    assert result.cpu_seconds < 0.5


def test_traceback_shows_the_program_alone(sandbox: Sandbox) -> None:
    result = sandbox.run("def f():\n    raise ValueError('why')\nf()")
    lines = result.stderr.decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: why"
    assert [line for line in lines if line.startswith("  File")] == [
        line for line in lines if "program.py" in line
    ] != []  # fmt: skip


def test_measures(sandbox: Sandbox) -> None:
    program = (
        "import time\nwhile time.process_time() < 0.5: pass\nx = bytearray(60 << 20)\nx[::4096] = b'1' * len(x[::4096])"
    )
    result = sandbox.run(program)
    assert result.status == "ok"
    assert 0.3 <= result.cpu_seconds <= 1.5
    assert 60 <= result.peak_memory_mb <= 200
    assert result.wall_seconds >= 0.4


@pytest.mark.parametrize(
    "program",
    [
        "import concurrent\nconcurrent.futures",
        "import importlib\nimportlib.util.find_spec('os')",
        "import os\nos.path.join('a', 'b')\nimport xml\nxml.etree",
        "import collections\ncollections.abc.Sequence",
        "import email\nemail.message",
        "import multiprocessing\nmultiprocessing.pool",
        "import logging\nlogging.handlers",
        "import json, typing, heapq, random, math, re, itertools, functools, string, decimal, datetime, dataclasses",
        "from collections import *\nprint(Counter('aab').most_common(1))",
        "import threading, queue, asyncio, traceback, inspect, statistics, fractions",
        "import unittest\nunittest.mock",
        "math.sqrt(4)",
        "import decimal\nprint(decimal.Decimal(1) / 3, decimal.getcontext().prec)",
        "import typing\nprint(typing.List[int])",
    ],
)
def test_warm_imports_change_nothing(sandbox: Sandbox, program: str) -> None:
    """The outcome, and the modules loaded in the end, are those of a fresh interpreter."""
    code = (
        f"import sys\ntry:\n    exec({program!r})\n    print('fine')\nexcept Exception as error:\n    print(type(error).__name__)\n"
        "print(sorted(name for name in sys.modules if not name.startswith(('sitecustomize', '__editable__'))))"
    )
    sandbox.run("import numpy, multiprocessing, concurrent")  # what a worker loads in the course of time
    warm = sandbox.run(code)
    cold = sandbox.run(
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {('import site' + chr(10) + code)!r}])"
    )
    assert cold.status == "ok", cold
    warm_lines, cold_lines = warm.stdout.decode().splitlines(), cold.stdout.decode().splitlines()
    assert warm_lines[:-1] == cold_lines[:-1]
    warm_names, cold_names = (set(json.loads(lines[-1].replace("'", '"'))) for lines in (warm_lines, cold_lines))
    assert cold_names - warm_names == set()
    assert {name.split(".")[0] for name in warm_names - cold_names} <= {"_multiprocessing", "_ctypes", "ctypes", "mmap"}


def test_a_program_finds_nothing_of_the_one_before(sandbox: Sandbox) -> None:
    leave = """
        import builtins, os, sys, json
        for folder in (".", "/tmp", "/dev/shm", "/", os.path.expanduser("~"), ".."):
            try: open(folder + "/left", "w").write("x")
            except OSError: pass
        builtins.left = json.left = sys.left = 1
        os.environ["LEFT"] = "1"
        os.umask(0o777)
        sys.setrecursionlimit(50)
        print("left")
    """
    find = """
        import builtins, json, os, sys
        found = [f for f in (".", "/tmp", "/dev/shm", "/", os.path.expanduser("~"), "..") if os.path.exists(f + "/left")]
        print(found, hasattr(builtins, "left"), hasattr(json, "left"), hasattr(sys, "left"), "LEFT" in os.environ)
        print(sys.getrecursionlimit(), oct(os.umask(0)), os.listdir())
    """
    assert sandbox.run(textwrap.dedent(leave)).stdout == b"left\n"
    limit = (
        subprocess.check_output([sys.executable, "-c", "import sys; print(sys.getrecursionlimit())"]).decode().strip()
    )
    expected = f"[] False False False False\n{limit} 0o22 ['program.py']\n"
    assert sandbox.run(textwrap.dedent(find)).stdout.decode() == expected


def test_the_order_of_sets_is_the_same_each_time(sandbox: Sandbox) -> None:
    program = "print(list({str(i) for i in range(20)}))"
    assert sandbox.run(program).stdout == sandbox.run(program).stdout


def test_random_is_seeded_anew(sandbox: Sandbox) -> None:
    program = "import random\nprint(random.random())"
    assert sandbox.run(program).stdout != sandbox.run(program).stdout


SECRETS = ("OFSTDIN", "OFPROGRAM", "OFOUTPUT", "OFTEST", "OFITSELF")
SEARCH = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.sbrk.restype = ctypes.c_void_p
libc.write.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
first, *rests = [bytes(c - 1 for c in word) for word in {words}]  # apart, so that it does not find these
own = b"".join((first, rests[-1]))
r, w = os.pipe()
found = set()
def look(at):
    size = libc.write(w, at, 4096)
    if size <= 0:
        return False
    page = os.read(r, size)
    at = page.find(first)
    while at >= 0:
        found.update(rest for rest in rests if page.startswith(rest, at + len(first)))
        at = page.find(first, at + 1)
    return True
at = libc.sbrk(0) & ~4095
while look(at := at - 4096): pass
for near in (id(object()), id(own)):
    for at in range((near & ~0xFFFFF) - (64 << 20), (near & ~0xFFFFF) + (64 << 20), 4096): look(at)
print(sorted(found))
"""


def test_no_program_holds_what_others_had(sandbox: Sandbox) -> None:
    """It searches its own memory: for the input, the source, the output and the test of programs before it."""
    words = [f"SECRET{name}".encode() for name in SECRETS]
    hidden = [bytes(c + 1 for c in word) for word in (b"SECRET", *map(str.encode, SECRETS))]
    sandbox.run(f"import sys\nsys.stdin.read()\n# {words[1].decode()}", b"x" * 100 + words[0] + b"y" * 100)
    sandbox.run(f"print(bytes(c - 1 for c in {hidden[0] + hidden[3]!r}).decode() * 50)")
    assert sandbox.check(f"assert f({words[3].decode()!r})", "def f(x): return x", "f").status == "ok"
    result = sandbox.run(SEARCH.format(words=hidden), limits=Limits(cpu_seconds=20))
    assert (result.status, result.stdout) == ("ok", b"[b'OFITSELF']\n"), result


def test_memory_counts_where_the_first_thread_has_ended(sandbox: Sandbox) -> None:
    program = """
import ctypes, os, threading, time
def hold():
    time.sleep(0.1)
    kept = bytearray(300 << 20)
    time.sleep(20)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""
    assert sandbox.run(program, limits=replace(SHORT, wall_seconds=15)).status == "memory"


def test_pages_that_forks_share_count_once(sandbox: Sandbox) -> None:
    program = """
import os, time
kept = bytearray(60 << 20)
for _ in range(8):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for _ in range(8): os.wait()
print("ok")
"""
    result = sandbox.run(program, limits=replace(SHORT, cpu_seconds=5))
    assert (result.status, result.stdout) == ("ok", b"ok\n")
    assert 60 < result.peak_memory_mb < 200
