"""Workers come and go: threads share them, dead ones are replaced, none outlives its maker."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ba_eval.errors import InputError
from ba_eval.execution import Limits, Sandbox
from ba_eval.execution.runtime import public_runtime
from tests.execution.processes import below, worker_pids


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until_gone(pids: set[int], seconds: float = 60) -> set[int]:
    end = time.monotonic() + seconds
    while time.monotonic() < end and (pids := {pid for pid in pids if alive(pid)}):
        time.sleep(0.05)
    return pids


def wait_until_below(root: int, count: int, seconds: float = 60) -> set[int]:
    """All processes under `root`, once they are `count`."""
    end = time.monotonic() + seconds
    while len(found := below(root)) < count and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_many_threads_share_the_workers(sandbox: Sandbox) -> None:
    with Sandbox(workers=2, level=sandbox.level) as shared, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda n: shared.run(f"print({n})", limits=Limits(cpu_seconds=5)), range(60)))
    assert [int(result.stdout) for result in results] == list(range(60))


def test_a_dead_worker_is_replaced(sandbox: Sandbox) -> None:
    with Sandbox(workers=1, level=sandbox.level) as own:
        assert own.run("print(1)").stdout == b"1\n"
        [pid] = worker_pids(own)
        os.kill(pid, signal.SIGKILL)
        assert wait_until_gone({pid}) == set()
        assert own.run("print(2)").stdout == b"2\n"


def test_a_worker_killed_at_work_is_an_infra_result(sandbox: Sandbox) -> None:
    with Sandbox(workers=1, level=sandbox.level) as own, ThreadPoolExecutor(1) as thread:
        own.run("pass")
        [pid] = worker_pids(own)
        result = thread.submit(own.run, "import os, time\nos.fork()\ntime.sleep(60)")
        inside = wait_until_below(pid, 3 if own.level == 2 else 6)
        os.kill(pid, signal.SIGKILL)
        assert result.result().status == "infra"
        assert wait_until_gone(inside) == set()
        assert own.run("print(2)").stdout == b"2\n"


def test_two_users_do_not_disturb_each_other(sandbox: Sandbox) -> None:
    bomb = "import os\ntry: os.kill(-1, 9)\nexcept OSError: pass\nwhile True: os.fork()"
    with Sandbox(workers=1, level=sandbox.level) as other, ThreadPoolExecutor(1) as thread:
        bombs = thread.submit(lambda: [other.run(bomb, limits=Limits(cpu_seconds=0.5, processes=32)) for _ in range(3)])
        results = [sandbox.run("import os\nif os.fork() == 0: os._exit(0)\nprint(os.wait()[1])") for _ in range(20)]
        assert {result.status for result in bombs.result()} <= {"process", "timeout"}
    assert {(result.status, result.stdout) for result in results} == {("ok", b"0\n")}


KILLED = """
import os, sys, threading, time
from ba_eval.execution import Sandbox
sandbox = Sandbox(workers=2, level={level})
sandbox.run("pass")
program = "import os, time\\nif os.fork() == 0:\\n    os.setsid()\\n    if os.fork(): os._exit(0)\\ntime.sleep(1000)"
for _ in range(2): threading.Thread(target=sandbox.run, args=(program,), daemon=True).start()
while len(sandbox._all[1]._workers) < 1 or sandbox._slots.qsize(): time.sleep(0.05)
print("ready", *[w._server.home for s in sandbox._all for w in s._workers.values() if w._server.home], flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_the_harness(sandbox: Sandbox, number: int) -> None:
    harness = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(level=sandbox.level)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert harness.stdout is not None
    word, *folders = harness.stdout.readline().decode().split()
    assert word == "ready"
    assert len(folders) == (2 if sandbox.level == 2 else 0)
    # two servers (at level 1 below bubblewrap and its init) and two processes of each program
    inside = wait_until_below(harness.pid, (2 + 2 * 2 if sandbox.level == 2 else 2 * 4 + 2 * 2))
    assert len(inside) >= 6
    harness.send_signal(number)
    harness.wait(60)
    assert wait_until_gone(inside) == set()
    assert [folder for folder in folders if Path(folder).exists()] == []


def test_closing_twice_and_using_a_closed_one(sandbox: Sandbox) -> None:
    own = Sandbox(workers=1, level=sandbox.level)
    own.close()
    own.close()
    with pytest.raises(ValueError, match="closed"):
        own.run("pass")


def test_bad_limits() -> None:
    with pytest.raises(ValueError, match="cpu_seconds"):
        Limits(cpu_seconds=0)
    with pytest.raises(InputError):
        Sandbox(level=3)


WITHOUT_USER_NAMESPACES = """
import os, struct, sys
sys.path.insert(0, {checkout!r})
from sandbox import linux, seccomp
step = seccomp._step
deny, allow = step(6, 0x50001), step(6, 0x7fff0000)
flags = step(0x20, 16) + step(0x45, 0x10000000, 0, 1) + deny + allow
program = step(0x20, 0)
for number, rule in ((272, flags), (56, flags), (435, step(6, 0x50026)), (308, deny)):
    program += step(0x15, number, 0, len(rule) // 8) + rule
linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(seccomp.packed(program + allow))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""

SMALL_RUN = """
from ba_eval.execution import Limits, Sandbox
with Sandbox(workers=1, level={level}) as sandbox:
    print(sandbox.level)
    print(sandbox.run("import os\\nos.fork()\\nwhile True: pass", limits=Limits(cpu_seconds=0.5)).status)
    print(sandbox.run("import os\\nos.kill(-1, 9)\\nprint('alive')").status)
    print(sandbox.run("import os\\nif os.fork() == 0:\\n    os.setsid()\\n    while True: pass\\nprint('x')").status)
    print(sandbox.run("import os\\nwhile True: os.fork()", limits=Limits(processes=24)).status)
    with sandbox.session("def f(x): return [x]", "f") as session: print(session.call([1]).value)
"""


@pytest.mark.parametrize("user", ["own", "ordinary"])
@pytest.mark.parametrize("level", [1, 2, None])
def test_other_users_and_no_user_namespaces(user: str, level: int | None) -> None:
    """`level` None: user namespaces are denied, as in many containers."""
    arguments = ["-c", textwrap.dedent(SMALL_RUN.format(level=level))]
    if level is None:
        if os.uname().machine != "x86_64":
            pytest.skip("the filter of this test is for x86_64")
        arguments = ["-c", WITHOUT_USER_NAMESPACES.format(checkout=str(Path(__file__).parents[2])), *arguments]
    environment = {**os.environ}
    python = sys.executable
    identity: dict[str, int | list[int]] = {}
    if user == "ordinary":
        if os.getuid() != 0:
            pytest.skip("only root can become another user")
        runtime = public_runtime()
        python = str(runtime.executable)
        checkout, packages = Path(__file__).parents[2], Path(pytest.__file__).parents[1]
        if not all(parent.stat().st_mode & 1 for parent in (*checkout.parents, *packages.parents)):
            pytest.skip("other users cannot reach this checkout")
        environment = {"PYTHONPATH": f"{checkout}:{packages}", "PATH": os.environ["PATH"], "HOME": "/tmp"}
        if runtime.moved:
            environment["LD_LIBRARY_PATH"] = str(runtime.prefix / "lib")
        identity = {"user": 54321, "group": 54321, "extra_groups": []}
    done = subprocess.run(  # type: ignore[call-overload]
        [python, *arguments], capture_output=True, text=True, timeout=250, env=environment, cwd="/", **identity
    )
    lines = done.stdout.splitlines()
    assert lines, done.stderr
    assert lines[0] == str(level or 2)
    assert lines[1:] == ["timeout", lines[2], "ok", "process", "[1]"]
    assert lines[2] in ("ok", "error")


def test_no_level_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from ba_eval.execution import probe

    monkeypatch.setattr(probe, "_holds", lambda level: "tried and failed")
    with pytest.raises(InputError, match="no sandbox on this machine"):
        probe.probe_level()
    assert probe.probe_level(unsafe=True) == 0


def test_unsafe_runs_with_limits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from ba_eval.execution import probe

    monkeypatch.setattr(probe, "_holds", lambda level: "tried and failed")
    with Sandbox(workers=1, unsafe=True) as own:
        result = own.run("print(1)")
        assert (result.status, result.stdout, result.level) == ("ok", b"1\n", 0)
        assert own.run("while True: pass", limits=Limits(cpu_seconds=0.5)).status == "timeout"
        assert own.run("import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass").status == "ok"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_in_a_row(sandbox: Sandbox) -> None:
    """8,000 programs, none odd, and no memory that grows."""
    with Sandbox(workers=2, level=sandbox.level) as own, ThreadPoolExecutor(2) as threads:

        def batch(start: int) -> list[int]:
            results = threads.map(lambda n: own.run(f"print({n})\nx = bytearray(10**6)"), range(start, start + 1000))
            assert all(r.status == "ok" and int(r.stdout) == start + i for i, r in enumerate(results))
            time.sleep(0.2)  # until each worker has a process that waits for a job
            pids = {pid for root in worker_pids(own) for pid in {root} | below(root)} | {os.getpid()}
            return [_rss_kb(pid) for pid in sorted(pids)]

        first = batch(0)
        for start in range(1000, 8000, 1000):
            last = batch(start)
    assert len(last) == len(first)
    assert sum(last) < sum(first) * 1.1 + 8192


def _rss_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.parametrize("victim", ["zygote", "waiting"])
def test_what_is_killed_at_rest_changes_no_result(sandbox: Sandbox, victim: str) -> None:
    """The end of a process that waited for a job is not the end of the next one."""
    with Sandbox(workers=1, level=sandbox.level) as own:
        for n in range(10):
            assert own.run("print(1)").stdout == b"1\n"
            [root] = worker_pids(own)
            zygote = _zygote(root, sandbox.level)
            children = wait_until_below(zygote, 1 if sandbox.level == 2 else 2)
            os.kill(zygote if victim == "zygote" else max(children), signal.SIGKILL)
            if n % 2:
                time.sleep(0.01)
            started = time.monotonic()
            for code in (3, 0):
                result = own.run(f"print('x'); raise SystemExit({code})", limits=Limits(cpu_seconds=2))
                assert (result.status, result.exit_code) == ("ok" if code == 0 else "error", code) or (
                    result.status == "infra"
                )
            assert own.run("print(2)").stdout == b"2\n"
            assert time.monotonic() - started < 30


def _zygote(root: int, level: int) -> int:
    """The zygote under a worker's first process: its child, or the third below bubblewrap."""
    for _ in range(1 if level == 2 else 3):
        [root] = [int(pid) for pid in Path(f"/proc/{root}/task/{root}/children").read_text().split()]
    return root
