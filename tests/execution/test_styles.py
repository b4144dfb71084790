"""Programs in the styles that people and models write: output, errors and exit code are those of a plain interpreter."""

# ruff: noqa: E501 (whole programs on a line)

import functools
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from ba_eval.execution import Limits, Sandbox
from ba_eval.execution.runtime import public_runtime

FAST_IO = """
import os, sys
from io import BytesIO, IOBase
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, 8192))
            self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\\r\\n")
print(int(input()), sum(map(int, input().split())))
"""

PROGRAMS: dict[str, tuple[str, str]] = {
    "own streams": (FAST_IO, "3\n1 2 3\n"),
    "bytes": ("import sys\ndata = sys.stdin.buffer.read().split()\nprint(len(data), sum(map(int, data)))", "1 2 3\n4 5\n"),
    "until the end": ("s = 0\nwhile True:\n    try: s += int(input())\n    except EOFError: break\nprint(s)", "1\n2\n3"),
    "no end caught": ("while True: print(input())", "1\n2\n"),
    "file 0": ("print(open(0, closefd=False).readline())\nprint(open(0).read())", "x\ny\nz\n"),
    "os.read": ("import os\nb = b''\nwhile c := os.read(0, 3): b += c\nos.write(1, b[::-1])", "hello world"),
    "fileinput": ("import fileinput\nfor line in fileinput.input(): print(line.strip()[::-1])", "ab\ncd\n"),
    "readline as input": ("import sys\ninput = sys.stdin.readline\nprint([int(input()) for _ in range(int(input()))])", "2\n1\n2\n"),
    "prompt": ("print(int(input('n? ')) * 2)", "5"),
    "about streams": ("import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr): print(s.isatty(), s.encoding, s.name, s.fileno(), s.mode, s.line_buffering, s.errors)", ""),
    "devices": ("print(open('/dev/stdin').read())\nprint('out', file=open('/dev/stdout', 'w'))", "abc"),
    "exit codes 0": ("import os, sys\nprint('a')\nsys.exit()", ""),
    "exit code from a tuple": ("import sys\nsys.exit((1, 2))", ""),
    "exit code too large": ("import sys\nsys.exit(2**70)", ""),
    "exit code below zero": ("import sys\nsys.exit(-1)", ""),
    "exit without a flush": ("import os\nprint('lost')\nos._exit(0)", ""),
    "exit in a thread": ("import sys, threading\nt = threading.Thread(target=lambda: sys.exit(3))\nt.start(); t.join()\nprint('x')", ""),
    "exit at exit": ("import atexit, sys\natexit.register(lambda: sys.exit(5))\nprint('x')", ""),
    "failure at exit": ("import atexit\natexit.register(lambda: 1 / 0)\nprint('x')", ""),
    "stdout closed": ("import sys\nprint('x')\nsys.stdout.close()", ""),
    "no stdout": ("import sys\nsys.stdout = None\nprint('x')", ""),
    "excepthook": ("import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0", ""),
    "failure in a thread": ("import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start(); t.join()\nprint('x')", ""),
    "daemon": ("import threading, time\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()\nprint('x')", ""),
    "timer": ("import threading\nthreading.Timer(0.05, print, ('t',)).start()\nprint('x')", ""),
    "at the end": ("import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\ndef g():\n    try: yield 1\n    finally: print('closed')\nx = g(); next(x)\nprint('end')", ""),
    "recursion in a thread": ("import sys, threading\nsys.setrecursionlimit(1 << 25)\nthreading.stack_size(1 << 26)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(50000)))\nt.start(); t.join()", ""),
    "recursion": ("import sys\nfrom functools import cache\nsys.setrecursionlimit(10**6)\n@cache\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(5000))", ""),
    "stack without limit": ("import resource, sys\nresource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\nsys.setrecursionlimit(10**6)\ndef f(n): return n and 1 + f(n - 1)\nprint(f(50000))", ""),
    "stack limit": ("import resource\nhard = resource.getrlimit(resource.RLIMIT_STACK)[1]\nresource.setrlimit(resource.RLIMIT_STACK, (hard, hard))\nprint('ok')", ""),
    "too deep": ("def f(): return f()\ntry: f()\nexcept RecursionError as e: print(e)", ""),
    "names of typing": ("class Solution:\n    def f(self, x: List[int]) -> int: return x\nprint(1)", ""),
    "annotations": ("from __future__ import annotations\nclass Solution:\n    def f(self, x: List[int]) -> int: return x\nprint(Solution.f.__annotations__)", ""),
    "dataclasses": ("from dataclasses import dataclass, field\n@dataclass(order=True, slots=True)\nclass A:\n    x: int\n    y: list = field(default_factory=list, compare=False)\nprint(sorted([A(2), A(1)]))", ""),
    "asyncio": ("import asyncio, sys\nasync def main():\n    r = asyncio.StreamReader()\n    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(r), sys.stdin)\n    print(await r.read(), await asyncio.to_thread(sum, [1, 2]), await asyncio.gather(*(asyncio.sleep(0, i) for i in range(3))))\nasyncio.run(main())", "hi"),
    "files": ("import os, shelve, shutil\nopen('a', 'w').write('hi')\nos.makedirs('d/e')\nos.rename('a', 'd/e/b')\nshutil.copy('d/e/b', 'c')\nos.link('c', 'd/l')\nwith shelve.open('s') as s: s['k'] = 1\nprint(sorted(os.listdir('d')), sorted(os.listdir('d/e')), open('c').read(), dict(shelve.open('s')))", ""),
    "processes": ("import os\nprint('once')\nif os.fork() == 0: os._exit(0)\nos.wait()\nprint(os.system('exit 3') >> 8, os.popen('echo a | tr a b').read())", ""),
    "alarm": ("import signal\ndef h(*a): raise TimeoutError('t')\nsignal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntry:\n    while True: pass\nexcept TimeoutError as e: print(e)", ""),
    "signal state": ("import signal\nprint(signal.getsignal(signal.SIGINT) is signal.default_int_handler, [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ)], signal.pthread_sigmask(signal.SIG_BLOCK, []))", ""),
    "globals": ("import __main__, sys\nx: int = 1\nprint(sorted(globals()), __main__.__dict__ is globals(), __annotations__, __doc__, __package__, __spec__)", ""),
    "modules": ("import sys\nprint([name in sys.modules for name in ('numpy', 'json', 'ctypes', 'socket', 'threading', 'sandbox', 'signal', 'select')])", ""),
    "unittest": ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 2)\nr = unittest.main(exit=False)\nprint(r.result.wasSuccessful())", ""),
    "doctest": ("def f(x):\n    '''\n    >>> f(1)\n    3\n    '''\n    return x + 1\nimport doctest\nprint(doctest.testmod())", ""),
    "warnings": ("import warnings\nwarnings.warn('w')\nx = '\\d'\nprint(1 is 1)", ""),
    "chained": ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e", ""),
    "syntax": ("x = 1\nprint((x)\nprint(2)", ""),
    "half a surrogate pair": ("print('\\ud800')", ""),
    "byte order mark": ("\ufeffprint('bom')", ""),
    "line ends": ("x = 1\r\nif x:\r\n    print('''a\r\nb''')\r\n\x0cprint('form feed')", ""),
    "own module": ("open('mine.py', 'w').write('x = 5')\nimport mine\nprint(mine.x)", ""),
    "own pickle": ("import copy, pickle\nclass A:\n    def __init__(self): self.x = 1\nprint(pickle.loads(pickle.dumps(copy.deepcopy(A()))).x, A.__module__)", ""),
}  # fmt: skip


@functools.cache
def plain(name: str) -> tuple[int, str, str]:
    """Exit code, output and errors under the interpreter that the sandbox is made from."""
    program, stdin = PROGRAMS[name]
    runtime = public_runtime()
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONHASHSEED": "0"}
    if runtime.moved:
        environment["LD_LIBRARY_PATH"] = str(runtime.prefix / "lib")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_bytes(program.encode())
        command = [str(runtime.executable), "-s", "-B", str(path)]
        done = subprocess.run(command, input=stdin.encode(), capture_output=True, env=environment, cwd=folder)
    out, errors = (text.decode().replace(folder, "FOLDER") for text in (done.stdout, done.stderr))
    return done.returncode, out, errors


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_a_plain_interpreter(sandbox: Sandbox, name: str) -> None:
    program, stdin = PROGRAMS[name]
    result = sandbox.run(program, stdin.encode(), Limits(cpu_seconds=10))
    assert result.exit_code is not None, result
    out, errors = (
        re.sub(r"/tmp/(ba-eval-sandbox-\w+/)?work", "FOLDER", text.decode()) for text in (result.stdout, result.stderr)
    )
    code, wanted, wanted_errors = plain(name)
    assert (result.exit_code, out) == (code, wanted), result
    assert _without_numbers(errors) == _without_numbers(wanted_errors)


def _without_numbers(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+\.\d+s", "#", text)
