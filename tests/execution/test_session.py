"""Calls across the wall: plain data in and out, and one status for each way to fail."""

# ruff: noqa: E501 (whole programs on a line)

import hashlib
import math
import time
from typing import Any

import pytest

from ba_eval.execution import Call, Limits, Opaque, Sandbox
from ba_eval.execution.wire import encode_call

LIMITS = Limits(cpu_seconds=2, wall_seconds=60)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([1, 2], {}),
        ([(1, [2, {"a": (3,)}])], {"b": {1, 2}}),
        ([10**400, -0.0, 1.5e300, True, None], {}),
        ([b"x", 1 + 2j, frozenset([1])], {}),
        (["\ud800\U0001f600"], {}),
        ([{1: "a", (2, 3): "b", None: "c"}], {}),
        ([list(range(100_000))], {}),
    ],
)
def test_values_keep_their_types(sandbox: Sandbox, args: list[Any], kwargs: dict[str, Any]) -> None:
    with sandbox.session("def f(*args, **kwargs): return args, kwargs", "f", LIMITS) as session:
        result = session.call(args, kwargs)
    assert result.status == "ok", result
    assert result.value == (tuple(args), kwargs)
    assert repr(result.value) == repr((tuple(args), kwargs))


def test_methods_get_a_new_object_each_time(sandbox: Sandbox) -> None:
    program = "class Solution:\n    def __init__(self): self.n = 0\n    def add(self, x):\n        self.n += x\n        return self.n"
    with sandbox.session(program, "Solution.add", LIMITS) as session:
        assert [session.call([5]).value for _ in range(3)] == [5, 5, 5]


def test_an_expected_value_is_told_and_not_decoded(sandbox: Sandbox) -> None:
    program = "def f(n):\n    if n < 0: raise ValueError(n)\n    return list(range(n))"
    wanted = hashlib.sha256(b"[0,1,2]").hexdigest()
    expected = [(3, wanted), (4, wanted), (-1, wanted), (3, None), (2, b"[0,1]"), (1, b"[1]")]
    calls = [Call(encode_call([n], {}), 1.0, value) for n, value in expected]
    with sandbox.session(program, "f", LIMITS) as session:
        results = list(session.call_many(calls))
    assert [result.matched for result in results] == [True, False, False, False, True, False]
    assert [result.value for result in results] == [None, [0, 1, 2, 3], None, [0, 1, 2], None, [0]]
    assert results[2].exception == "ValueError"


def test_calls_whose_results_nobody_wants(sandbox: Sandbox) -> None:
    program = "import os, time\nmade = []\ndef f(n):\n    made.append(n)\n    if n == 7: time.sleep(30)\n    if n == 8: os._exit(1)\n    return list(made)"

    def calls(numbers: list[int]) -> list[Call]:
        return [Call(encode_call([n], {}), 1.0) for n in numbers]

    with sandbox.session(program, "f", LIMITS) as session:
        assert session.settled()
        assert next(iter(session.call_many(calls([1, 2, 3])))).value == [1]
        assert session.settled()
        assert session.call([4]).value == [1, 2, 3, 4]
    for last in (7, 8):
        with sandbox.session(program, "f", LIMITS) as session:
            assert next(iter(session.call_many(calls([1, last])))).value == [1]
            started = time.monotonic()
            assert not session.settled()
        assert time.monotonic() - started < 20
    with sandbox.session("1 / 0", "f", LIMITS) as session:
        assert session.loaded.status == "error"


@pytest.mark.parametrize(
    ("program", "exception"),
    [("def f(:", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("assert 1 == 2, 'no'", "AssertionError")],
)
def test_what_stopped_the_loading_is_told(sandbox: Sandbox, program: str, exception: str) -> None:
    with sandbox.session(program, "f", LIMITS) as session:
        assert (session.loaded.status, session.loaded.exception) == ("error", exception)
        assert exception.encode() in session.loaded.stderr


def test_state_of_the_module_stays(sandbox: Sandbox) -> None:
    program = "n = 0\ndef f(x):\n    global n\n    n += 1\n    x.append(n)\n    return n\nif __name__ == '__main__': raise SystemExit"
    argument = [0]
    with sandbox.session(program, "f", LIMITS) as session:
        assert [session.call([argument]).value for _ in range(3)] == [1, 2, 3]
    assert argument == [0]


@pytest.mark.parametrize(
    ("program", "type_name"),
    [
        ("class I(int):\n    def __eq__(s, o): return True\ndef f(): return I(3)", "I"),
        ("def f():\n    yield 3", "generator"),
        ("class T:\n    __class__ = int\n    def __eq__(s, o): return True\ndef f(): return T()", "T"),
        ("class M(type):\n    def __eq__(c, o): return True\n    __hash__ = type.__hash__\nclass X(metaclass=M): pass\ndef f(): return X()", "X"),
        ("import collections\ndef f(): return collections.deque([1])", "deque"),
        ("import collections\nclass D(dict): pass\ndef f(): return D(a=1)", "D"),
        ("import numpy\ndef f(): return numpy.float64(1)", "float64"),
        ("def f(): return f", "function"),
        ("def f(): return map(abs, [1])", "map"),
        ("class R:\n    def __reduce__(s): return (exit, ())\n    def __repr__(s): return 'x' * 10**12\ndef f(): return R()", "R"),
        ("def f():\n    x = []\n    for _ in range(10**5): x = [x]\n    return x", None),
        ("def f():\n    x = []\n    x.append(x)\n    return x", None),
        ("def f():\n    d = {}\n    d['d'] = d\n    return d", None),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_opaque(sandbox: Sandbox, program: str, type_name: str | None) -> None:
    with sandbox.session(program, "f", LIMITS) as session:
        value = session.call([]).value
    while type(value) in (list, dict):
        value = value[0] if type(value) is list else value["d"]
    assert isinstance(value, Opaque)
    assert value != value
    if type_name is not None:
        assert value.type_name == type_name


@pytest.mark.parametrize(
    ("program", "status", "exception"),
    [
        ("def f(): return 1 / 0", "error", "ZeroDivisionError"),
        ("def f(): raise SystemExit(0)", "error", "SystemExit"),
        ("def f(): raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("class E(BaseException):\n    def __str__(s): raise ValueError\ndef f(): raise E", "error", "E"),
        ("def f(): return f()", "error", "RecursionError"),
        ("def f(): return 'x' * 10**9", "error", None),
        ("def f(): return [[0] * 1000] * 10**5", "error", "WireError"),
        ("import os\ndef f(): os._exit(0)", "error", None),
        ("import os\ndef f(): os.kill(os.getpid(), 9)", "killed", None),
        ("def f():\n    while True: pass", "timeout", None),
        ("def f():\n    x = []\n    while True: x.append(bytearray(1 << 22))", "memory", None),
        ("import os\ndef f():\n    while True: os.write(1, b'x' * 4096)", "output", None),
        ("import atexit, os\natexit.register(os._exit, 0)\ndef f(): raise SystemExit(0)", "error", "SystemExit"),
        ("import os\ndef f():\n    for fd in range(3, 200):\n        try: os.write(fd, b'{\"v\": 3}' * 9)\n        except OSError: pass\n    return 0", "error", None),
        ("import os\ndef f():\n    os.closerange(0, 300)\n    return 0", "error", None),
        ("import builtins\nbuiltins.len = builtins.isinstance = lambda *a: True\nbuiltins.set = builtins.map = None\ndef f(): raise ValueError('x')", "error", None),
    ],
)  # fmt: skip
def test_failing_calls(sandbox: Sandbox, program: str, status: str, exception: str | None) -> None:
    cpu_seconds = 0.5 if status == "timeout" else 10
    limits = Limits(cpu_seconds, wall_seconds=60, memory_mb=256, output_kb=64)
    with sandbox.session(program, "f", limits) as session:
        result = session.call([])
        if exception is None:
            assert session.call([]).status != "ok"  # the session is over, or the same again
    assert result.status in (status, "memory" if "10**9" in program else status), result
    if exception is not None:
        assert result.exception == exception
    assert sandbox.run("print('next')").stdout == b"next\n"


@pytest.mark.parametrize(
    ("program", "entry_point", "status"),
    [
        ("def g(): pass", "f", "error"),
        ("class Solution: pass", "Solution.f", "error"),
        ("def f(:", "f", "error"),
        ("raise ValueError", "f", "error"),
        ("while True: pass", "f", "timeout"),
        ("import sys\nsys.exit(0)\ndef f(): return 1", "f", "error"),
        ("import os\nos._exit(0)", "f", "error"),
    ],
)
def test_programs_that_do_not_load(sandbox: Sandbox, program: str, entry_point: str, status: str) -> None:
    with sandbox.session(program, entry_point, Limits(cpu_seconds=0.5, wall_seconds=60)) as session:
        assert session.loaded.status == status
        assert session.call([1]).status == status


def test_each_call_has_its_own_time(sandbox: Sandbox) -> None:
    program = "import time\ndef f(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n    return s"
    with sandbox.session(program, "f", Limits(cpu_seconds=1, wall_seconds=60)) as session:
        results = [session.call([0.4]) for _ in range(4)]
        assert [result.status for result in results] == ["ok"] * 4
        assert all(0.3 <= result.cpu_seconds <= 0.9 for result in results)
        assert session.call([0.4], cpu_seconds=0.1).status == "timeout"
        assert session.call([0]).status == "timeout"


def test_printed_text_goes_with_its_call(sandbox: Sandbox) -> None:
    with sandbox.session("print('load')\ndef f(x): print('got', x); return x", "f", LIMITS) as session:
        assert session.loaded.stdout == b"load\n"
        assert session.call([1]).stdout == b"got 1\n"
        assert session.call([2]).stdout == b"got 2\n"


def test_output_counts_for_each_call(sandbox: Sandbox) -> None:
    """However far ahead the program is of who reads it."""
    program = "def f(n):\n    print('x' * 400_000)\n    if n == 150: print('y' * 2_000_000)\n    return n"
    limits = Limits(cpu_seconds=5, output_kb=1024)
    with sandbox.session(program, "f", limits) as session:
        results = list(session.call_many(Call(encode_call([n], {}), 5.0) for n in range(200)))
    assert [result.value for result in results[:-1]] == list(range(150))
    assert (results[-1].status, results[-1].text) == ("output", "the program met a limit: output")


def test_special_floats(sandbox: Sandbox) -> None:
    with sandbox.session("def f(): return [float('nan'), float('inf'), -float('inf'), -0.0]", "f", LIMITS) as session:
        value = session.call([]).value
    assert math.isnan(value[0])
    assert value[1:3] == [math.inf, -math.inf]
    assert math.copysign(1, value[3]) == -1


CANDIDATE = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    ("test", "program", "entry_point", "status"),
    [
        ("def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate([1], [2]) == [1, 2]", CANDIDATE, "add", "ok"),
        ("assert add(1, 2) == 3\nassert abs(add(0.1, 0.2) - 0.3) < 1e-9", CANDIDATE, "add", "ok"),
        ("assert add(1, 2) == 4", CANDIDATE, "add", "error"),
        ("def check(candidate): assert candidate(1, 2) == 4", CANDIDATE, "add", "error"),
        ("from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool: assert list(pool.map(f, range(100))) == list(range(100))", "def f(x): return x", "f", "ok"),
        ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(1), 1)\nunittest.main()", "def f(x): return x", "f", "ok"),
        ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(1), 2)\nunittest.main()", "def f(x): return x", "f", "error"),
        ("try: f({})\nexcept KeyError as error: assert error.args == ('x',) and str(error) == repr('x')\nelse: raise AssertionError", "def f(x): return x['x']", "f", "ok"),
        ("assert f(1) == 1\nraise SystemExit(3)", "def f(x): return x", "f", "error"),
        ("assert f(1) == 2", "def f(x): raise SystemExit(0)", "f", "error"),
        ("assert Solution().f(1) == candidate(x=1) == f(1) == 1", "def f(x): return x", "f", "ok"),
        ("assert Solution().f(1) == candidate(x=1) == f(1) == 1", "class Solution:\n    def f(self, x): return x", "Solution.f", "ok"),
        ("assert set(f('12')) == {1, 2} and tuple(f('3')) == (3,)", "def f(x): return map(int, x)", "f", "ok"),
        ("assert list(f(3)) == [0, 1, 2]", "def f(x):\n    for i in range(x): yield i", "f", "ok"),
        ("assert f(3) == [0, 1, 2]", "def f(x):\n    for i in range(x): yield i", "f", "error"),
        ("assert f(3) == [0, 1, 2]", "def f(x):\n    while True: yield 0", "f", "error"),
        ("x = [3, [1], 2]\nassert f(x) is None and x == [2, [1], 3]", "def f(x): x.reverse()", "f", "ok"),
        ("x, y = {1: 2}, {3}\nf(x, y=y)\nassert (x, y) == ({2: 2}, {3, 4})", "def f(x, y):\n    x[2] = x.pop(1)\n    y.add(4)", "f", "ok"),
        ("x = [3, 1]\nassert f(x) == sorted(x)", "def f(x):\n    x.clear()\n    return []", "f", "error"),
        ("def check(candidate): assert candidate(1) == 4", "class Solution:\n    def f(self, x): return x * 4", "Solution.f", "ok"),
        ("assert Solution().f(1) == 4", "class Solution:\n    def f(self, x): return x * 4", "Solution.f", "ok"),
        ("try:\n    add(1, 'x')\n    assert False\nexcept TypeError: pass", CANDIDATE, "add", "ok"),
        ("assert add(1, 2) == 3", "def add(a, b):\n    while True: pass", "add", "timeout"),
        ("assert add(1, 2) == 3", "import os\ndef add(a, b): os._exit(0)", "add", "error"),
        ("assert add(1, 2) == 3", "class T:\n    def __eq__(s, o): return True\ndef add(a, b): return T()", "add", "error"),
        ("assert add(1, 2) != 4", "def add(a, b): return iter(())", "add", "ok"),
        ("while True: add(1, 2)", CANDIDATE, "add", "timeout"),
        ("import sys\nsys.exit(0)\nassert add(1, 2) == 4", CANDIDATE, "add", "error"),
        ("assert add(1, 2) == 3", "def sub(a, b): return a", "add", "error"),
    ],
)  # fmt: skip
def test_check(sandbox: Sandbox, test: str, program: str, entry_point: str, status: str) -> None:
    limits = Limits(cpu_seconds=0.1 if "while True: add" in test else 0.5, wall_seconds=60)
    assert sandbox.check(test, program, entry_point, limits).status == status


FORGED = """
import os, sys
def f(x):
    names = sys._getframe(1).f_locals
    calls, nonce = names["calls"], names["nonce"]
    {forge}
    return x
"""


@pytest.mark.parametrize(
    "forge",
    [
        "calls.send(nonce, b'c', b'1'); calls.send(nonce, b'c', b'1')",
        "calls.send(nonce, b'v', b'2'); calls.send(nonce, b'v', b'2')",
        "calls.send(nonce, b'm', b'2')",
        "calls.send(nonce, b'?', b'2')",
        """calls.send(nonce, b'v', b'{"p":' * 600 + b'1' + b'}' * 600)""",
        "os.write(calls._answers, nonce + bytes(4))",
        "os.write(calls._answers, nonce + b'\\xff' * 4)",
    ],
)
def test_forged_answers_are_the_programs_own_failure(sandbox: Sandbox, forge: str) -> None:
    program = FORGED.replace("{forge}", forge)
    assert sandbox.check("assert f(1) == f(1) == 3", program, "f", LIMITS).status == "error"
    with sandbox.session(program, "f", LIMITS) as session:
        assert [session.call([3]) for _ in range(3)][-1].status == "error"


def test_a_process_that_ends_between_two_calls(sandbox: Sandbox) -> None:
    """The next call is on its way already: it must not be taken for the next program."""
    program = (
        "import os, threading\ndef f(x):\n    threading.Timer(0.002 * (x % 4), os._exit, (0,)).start()\n    return x"
    )
    for _ in range(20):
        result = sandbox.check("for i in range(200): assert f(i) == i", program, "f", LIMITS)
        assert result.status == "error", result


def test_a_slow_answer_is_not_the_time_of_the_test(sandbox: Sandbox) -> None:
    slow = "import time\ndef f(x):\n    time.sleep(1)\n    return x"
    limits = Limits(cpu_seconds=1, wall_seconds=1.6)
    assert sandbox.check("import time\ntime.sleep(1)\nassert f(1) == f(1)", slow, "f", limits).status == "ok"
    assert sandbox.check("import time\nf(1)\ntime.sleep(5)", "def f(x): return x", "f", limits).status == "timeout"


def test_the_candidate_never_meets_the_test(sandbox: Sandbox) -> None:
    spy = """
        import gc, os, sys
        def f(x):
            frame, seen = sys._getframe(), []
            while frame:
                seen += [repr(v) for v in list(frame.f_locals.values()) + list(frame.f_globals.values())]
                frame = frame.f_back
            seen += [o for o in gc.get_objects() if isinstance(o, str)] + [repr(o)[:9999] for o in gc.get_objects() if type(o) in (dict, list, tuple)]
            for folder, _, files in os.walk("/tmp"):
                for file in files:
                    try: seen.append(open(os.path.join(folder, file), errors="replace").read())
                    except OSError: pass
            return any(bytes([84, 79, 80, 45]).decode() + "SECRET" in text for text in seen)
    """
    import textwrap

    result = sandbox.check(
        "answer = 'TOP-SECRET'\nassert f(1) is False", textwrap.dedent(spy), "f", Limits(cpu_seconds=10)
    )
    assert result.status == "ok", result
