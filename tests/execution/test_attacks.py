"""Programs that try to get out, to harm the machine, or to stay: by kind, at both levels.

Each prints `LEAK` with what it could do. After each one, baits of this process are untouched, no process of its own is
left, and the next program runs clean.
"""

# ruff: noqa: E501 (whole programs on a line)

import contextlib
import os
import socket
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ba_eval.execution import Limits, Sandbox
from tests.execution.processes import below, worker_pids

LIMITS = Limits(cpu_seconds=1, wall_seconds=3, memory_mb=300, output_kb=256, disk_mb=16, processes=32)


@dataclass
class Bait:
    """What an attack would like to reach."""

    folder: Path
    sockets: list[socket.socket]

    def touched(self) -> list[str]:
        names = [path.name for path in self.folder.iterdir()]
        found = [name for name in names if name not in ("secret", "socket")]
        if (self.folder / "secret").read_text() != "answers":
            found.append("secret")
        for listener in self.sockets:
            with contextlib.suppress(BlockingIOError):
                listener.accept()
                found.append(f"connection to {listener.getsockname()!r}")
        return found


@pytest.fixture(scope="module")
def bait() -> Iterator[Bait]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bait-")))
        folder.chmod(0o777)
        (folder / "secret").write_text("answers")
        (folder / "secret").chmod(0o666)
        addresses: list[tuple[socket.AddressFamily, Any]] = [
            (socket.AF_INET, ("127.0.0.1", 0)),
            (socket.AF_UNIX, f"\0bait-{os.getpid()}"),
            (socket.AF_UNIX, str(folder / "socket")),
        ]
        sockets = []
        for family, address in addresses:
            listener = stack.enter_context(socket.socket(family))
            listener.bind(address)
            listener.listen()
            listener.setblocking(False)
            sockets.append(listener)
        (folder / "socket").chmod(0o777)
        yield Bait(folder, sockets)


PRELUDE = """
import ctypes, os, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
FOLDER, PORT, ABSTRACT, HARNESS = {folder!r}, {port}, {abstract!r}, {pid}
def able(what, action, *arguments):
    try:
        got = action(*arguments)
    except (OSError, ValueError):
        return
    if got is not False and got != -1:
        print("LEAK", what, got)
def raw(family, kind=1, protocol=0): socket.socket(family, kind, protocol).close()
def reach(family, address):
    s = socket.socket(family); s.settimeout(1); s.connect(address)
"""

ESCAPES = {
    "read files": "for p in [FOLDER + '/secret', '/etc/shadow', '/etc/passwd', '/root', '/home', '/proc/1/root/etc/shadow', '/proc/self/root/root', '/proc/self/cwd/../../../../etc/shadow', '/var/lib', '/proc/kcore', '/proc/kmsg', '/sys/kernel']:\n    able(p, lambda: os.listdir(p) if os.path.isdir(p) else open(p).read(5))",
    "write files": "for p in [FOLDER + '/new', '/new', '/usr/new', '/etc/new', '/dev/new', '/var/new', '/proc/new', sys.prefix + '/new', os.path.dirname(os.__file__) + '/new.py']:\n    able(p, lambda: open(p, 'w'))",
    "change files": "import numpy\nfor p in [FOLDER, FOLDER + '/secret', sys.executable, os.__file__, numpy.__file__]:\n    able('chmod ' + p, os.chmod, p, 0o600)\n    able('utime ' + p, os.utime, p)\n    able('open ' + p, os.open, p, os.O_WRONLY)\n    able('unlink ' + p, os.unlink, p)\n    able('rename ' + p, os.rename, p, 'x')\n    able('link ' + p, os.link, p, 'y')\n    able('truncate ' + p, os.truncate, p, 0)\n    able('fchmod ' + p, lambda: os.fchmod(os.open(p, os.O_RDONLY), 0o777))",
    "links and dots": "os.symlink(FOLDER, 'out')\nfor p in ['out/secret', '../../../..' + FOLDER + '/secret', '/proc/self/root' + FOLDER + '/secret', '/proc/thread-self/root' + FOLDER + '/secret']:\n    able(p, lambda: open(p).read())\nable('write through', lambda: open('out/new', 'w'))",
    "handles": "able('name_to_handle_at', libc.syscall, 303, -100, b'/', ctypes.create_string_buffer(200), ctypes.byref(ctypes.c_int()), 0)\nable('open_by_handle_at', libc.syscall, 304, -100, ctypes.create_string_buffer(200), 0)",
    "devices": "import glob\nfor p in ['/dev/mem', '/dev/kmem', '/dev/kvm', '/dev/fuse', '/dev/vda', '/dev/sda', '/dev/kmsg', '/dev/net/tun', '/dev/loop0', '/dev/nvidia0', '/dev/ptp0', '/dev/rtc0']:\n    for m in (os.O_RDONLY, os.O_RDWR): able(p, os.open, p, m | os.O_NONBLOCK)\nable('mknod', os.mknod, 'dev', 0o60666, os.makedev(254, 0))",
    "kernel settings": "for p in ['/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/vm/drop_caches', '/proc/sys/fs/mqueue/msg_max', '/proc/sys/net/ipv4/ip_forward', '/proc/sys/user/max_user_namespaces', '/sys/kernel/uevent_helper', '/proc/self/oom_score_adj', *__import__('glob').glob('/sys/fs/cgroup/*/cgroup.procs')]:\n    able(p, os.open, p, os.O_WRONLY) if 'oom' not in p else None",
    "descriptors": "for fd in range(3, 512):\n    able(f'fd {fd}', os.fstat, fd)\nfor fd in range(3):\n    t = os.readlink(f'/proc/self/fd/{fd}') if os.path.exists(f'/proc/self/fd/{fd}') else 'pipe:'\n    if not t.startswith('pipe:'): print('LEAK', fd, t)",
    "environment": "print('LEAK' if 'CANARY' in os.environ else '')\nfor pid in [1, 2, 3, os.getppid(), HARNESS]:\n    if pid not in (0, os.getpid()):\n        for f in ('environ', 'mem', 'maps', 'fd', 'cwd', 'root'): able(f'{pid} {f}', lambda: os.listdir(f'/proc/{pid}/{f}') if f == 'fd' else os.readlink(f'/proc/{pid}/{f}') if f in ('cwd', 'root') else open(f'/proc/{pid}/{f}', 'rb').read(10) or -1)",
    "processes seen": "try: pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]\nexcept OSError: pids = []\nif len(pids) > 3 or HARNESS in pids and HARNESS != os.getpid(): print('LEAK', pids)",
    "signals": "for pid in [*range(1, 3000), HARNESS, os.getppid()]:\n    if pid and pid != os.getpid():\n        for f in (lambda: os.kill(pid, 9), lambda: libc.syscall(234, pid, pid, 9), lambda: libc.syscall(200, pid, 9), lambda: libc.syscall(129, pid, 9, ctypes.create_string_buffer(128)), lambda: libc.syscall(434, pid, 0)): able(f'signal {pid}', f)\ntry: os.kill(-1, 9)\nexcept OSError: pass\nprint('alive')",
    "signal through a file": "import fcntl\nr, w = os.pipe()\nfor pid in (1, HARNESS, -HARNESS, os.getppid()):\n    able('F_SETOWN', fcntl.fcntl, r, fcntl.F_SETOWN, pid)\nable('F_SETSIG', fcntl.fcntl, r, 10, 9)\nable('FIOSETOWN', lambda: fcntl.ioctl(r, 0x8901, struct.pack('i', 1)))",
    "stop": "for pid in (os.getppid(), 1, HARNESS): able(f'stop {pid}', os.kill, pid, signal.SIGSTOP) if pid else None",
    "debugging": "for pid in {1, 2, os.getppid(), HARNESS} - {0, os.getpid()}:\n    able('ptrace', libc.ptrace, 16, pid, None, None)\n    able('seize', libc.ptrace, 0x4206, pid, None, None)\n    able('vm_readv', libc.syscall, 310, pid, None, 0, None, 0, 0)\n    able('vm_writev', libc.syscall, 311, pid, None, 0, None, 0, 0)\n    able('kcmp', libc.syscall, 312, pid, pid, 0, 0, 0)\n    able('pidfd', libc.syscall, 434, pid, 0)\nable('traceme', libc.ptrace, 0, 0, None, None)\nable('process_madvise', libc.syscall, 440, 0, None, 0, 0, 0)",
    "other processes' settings": "import resource\nfor pid in {1, os.getppid(), HARNESS} - {0}:\n    able('prlimit', resource.prlimit, pid, resource.RLIMIT_CPU, (1, 1))\n    able('affinity', os.sched_setaffinity, pid, [0])\n    able('scheduler', os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0))\n    able('priority', os.setpriority, os.PRIO_PROCESS, pid, 19)\nable('user priority', os.setpriority, os.PRIO_USER, os.getuid(), 19)\nable('real time', os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))\nable('negative nice', os.nice, -5)",
    "namespaces": "for f in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80, 0x7c020000):\n    able(f'unshare {f:x}', libc.unshare, f)\n    pid = libc.syscall(56, f | 17, 0, 0, 0, 0)\n    if pid == 0: os._exit(0)\n    if pid > 0: print('LEAK clone', hex(f))\n    able('clone3', libc.syscall, 435, struct.pack('11Q', f, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)\nable('setns', lambda: libc.setns(os.open('/proc/self/ns/net', os.O_RDONLY), 0))",
    "mounts": "able('mount', libc.mount, b'x', b'/tmp', b'tmpfs', 0, None)\nable('bind', libc.mount, b'/', b'/tmp', None, 4096, None)\nable('remount', libc.mount, None, b'/', None, 32, None)\nable('umount', libc.umount2, b'/tmp', 2)\nable('umount proc', libc.umount2, b'/proc', 2)\nable('chroot', os.chroot, '.')\nable('pivot', libc.syscall, 155, b'.', b'.')\nfor n in (428, 429, 430, 432, 442): able(f'mount call {n}', libc.syscall, n, 0, 0, 0, 0, 0)",
    "privileges": "able('setuid', os.setuid, 12345)\nable('setgid', os.setgid, 12345)\nable('setgroups', os.setgroups, [0])\nable('capset', libc.syscall, 126, struct.pack('II', 0x20080522, 0), struct.pack('6I', 1 << 21, 1 << 21, 0, 0, 0, 0))\ndata = ctypes.create_string_buffer(24)\nlibc.syscall(125, struct.pack('II', 0x20080522, 0), data)\nif any(data.raw): print('LEAK capabilities', data.raw)\nif libc.prctl(39, 0, 0, 0, 0) != 1 or libc.prctl(21, 0, 0, 0, 0) != 2: print('LEAK no filter')\nable('new filter', libc.syscall, 317, 1, 0, None)",
    "kernel interfaces": "for name, n in dict(bpf=321, perf=298, userfaultfd=323, keyctl=250, add_key=248, io_uring=425, memfd=319, memfd_secret=447, kexec=246, init_module=175, finit_module=313, quotactl=179, swapon=167, reboot=169, syslog=103, acct=163, personality=135, modify_ldt=154, ioperm=173, iopl=172, fanotify=300, lookup_dcookie=212, vmsplice=278, nfs=180, pkey=1000, settime=227, settimeofday=164, adjtimex=159, hostname=170, domain=171, sync=162, syncfs=306, move_pages=279, landlock=444).items():\n    able(name, libc.syscall, n, 0, 0, 0, 0, 0)",
    "32 bit and x32 calls": "able('x32', libc.syscall, 0x40000000 + 39)\nable('x32 execve', libc.syscall, 0x40000000 + 520, b'x', 0, 0)",
    "clock": "able('clock_settime', time.clock_settime, time.CLOCK_REALTIME, time.time())\nable('hostname', socket.sethostname, 'x')",
    "sockets out": "able('tcp', reach, socket.AF_INET, ('127.0.0.1', PORT))\nable('abstract', reach, socket.AF_UNIX, ABSTRACT)\nable('file', reach, socket.AF_UNIX, FOLDER + '/socket')\nable('far', reach, socket.AF_INET, ('8.8.8.8', 53))\ndef udp():\n    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('8.8.8.8', 53))\nable('udp', udp)\nable('name', socket.getaddrinfo, 'example.com', 80)",
    "sockets of other families": "for f in range(3, 46):\n    if f != 10: able(f'family {f}', raw, f); able(f'raw {f}', raw, f, 3)\nable('raw ip', raw, socket.AF_INET, socket.SOCK_RAW, 1)\nable('packet', raw, 17, 3)",
    "datagrams from a pair": "able('pair', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', ABSTRACT))\nable('stream', lambda: socket.socketpair()[0].sendto(b'x', ABSTRACT))\nable('seqpacket', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0].connect(ABSTRACT))",
    "System V and POSIX ipc": "able('shmget', libc.shmget, 0x5a5a2, 4096, 0o1666)\nable('semget', libc.semget, 0x5a5a2, 1, 0o1666)\nable('msgget', libc.msgget, 0x5a5a2, 0o1666)\nable('mq_open', libc.syscall, 240, b'q', 0o102, 0o666, None)",
    "terminal": "import fcntl\nfor fd in range(3):\n    able('TIOCSTI', fcntl.ioctl, fd, 0x5412, b'x')\n    able('TIOCSCTTY', fcntl.ioctl, fd, 0x540e, 0)\nable('tty', os.open, '/dev/tty', os.O_RDWR)",
    "limits": "import resource\nfor name in dir(resource):\n    if name.startswith('RLIMIT_'):\n        kind = getattr(resource, name)\n        if resource.getrlimit(kind)[1] != -1: able(name, lambda: resource.setrlimit(kind, (-1, -1)) or True)",
    "wide open work folder": "os.umask(0)\nos.mkdir('a', 0o777)\nopen('a/f', 'w').write('x')\nfor p in ('../..', '/tmp/..'): able('write ' + p, lambda: open(p + '/left', 'w'))\nable('remove the folder', lambda: (os.chdir('/'), os.rmdir(os.path.dirname(__file__))))",
}  # fmt: skip


@pytest.mark.parametrize("name", ESCAPES)
def test_no_way_out(sandbox: Sandbox, bait: Bait, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "1")
    tcp, abstract, _ = bait.sockets
    prelude = PRELUDE.format(
        folder=str(bait.folder), port=tcp.getsockname()[1], abstract=abstract.getsockname().decode(), pid=os.getpid()
    )
    result = sandbox.run(prelude + ESCAPES[name] + "\nprint('END')", limits=LIMITS)
    out = result.stdout.decode()
    assert "LEAK" not in out, out
    assert out.endswith("END\n"), result
    assert bait.touched() == []
    assert sandbox.run("print('next')").stdout == b"next\n"


BOMBS = {
    "forks": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "threads": "import threading, time\nwhile True:\n    try: threading.Thread(target=time.sleep, args=(99,)).start()\n    except RuntimeError: pass",
    "sessions": "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            time.sleep(1000)\n        os._exit(0)",
    "children that outlive": "import os, time\nif os.fork() == 0:\n    time.sleep(1000)\nprint('done')",
    "ignored signals": "import os, signal, time\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: time.sleep(1)",
    "chain of children": "import os, time\nwhile True:\n    end = time.time() + 0.1\n    while time.time() < end: pass\n    if os.fork(): os._exit(0)",
    "subreaper": "import ctypes, os, time\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nfor _ in range(5):\n    if os.fork() == 0:\n        if os.fork() == 0: time.sleep(1000)\n        os._exit(0)\nos._exit(0)",
    "stopped": "import os, signal\nif os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
    "stopped group": "import os, signal\nos.kill(0, signal.SIGSTOP)",
    "vfork and exec": "import subprocess, sys\nfor _ in range(10): subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], start_new_session=True)",
    "zombies": "import os\nfor _ in range(1000):\n    try:\n        if os.fork() == 0: os._exit(0)\n    except OSError: pass",
    "shared memory": "import mmap\nx = []\nwhile True:\n    x.append(mmap.mmap(-1, 8 << 20)); x[-1].write(b'1' * (8 << 20))",
    "memory of many": "import os\nfor _ in range(8): os.fork()\nx = bytearray(100 << 20)\nx[::4096] = b'1' * len(x[::4096])\nwhile True: pass",
    "pipes full": "import os\np = []\nwhile True:\n    r, w = os.pipe(); os.set_blocking(w, False); p.append((r, w))\n    try: os.write(w, b'x' * 65536)\n    except OSError: pass",
    "socket buffers": "import socket\np = []\nwhile True:\n    a, b = socket.socketpair(); a.setblocking(False); p.append((a, b)); a.send(b'x' * 100000)",
    "unlinked files": "import os\nfds = []\nwhile True:\n    fd = os.open('f', os.O_CREAT | os.O_RDWR); os.unlink('f'); fds.append(fd)\n    for _ in range(15): os.write(fd, bytes(1 << 20))",
    "folders": "import os\nwhile True: os.mkdir('d'); os.chdir('d')",
    "names of one file": "import os\nopen('a', 'w').close()\nfor i in range(10**6): os.link('a', f'l{i}')",
    "symbolic links": "import os\nfor i in range(10**6): os.symlink('x' * 99, f'l{i}')",
    "timers": "import signal\nfor n in (signal.SIGALRM, signal.SIGPROF): signal.signal(n, lambda *a: None)\nfor n in (signal.ITIMER_REAL, signal.ITIMER_PROF): signal.setitimer(n, 1e-6, 1e-6)\nwhile True: pass",
    "buffers": "import os, socket, time\nfor _ in range(4): os.fork()\npairs = []\ntry:\n    while True: pairs.append(socket.socketpair())\nexcept OSError: pass\nfor a, b in pairs:\n    a.setblocking(False)\n    try:\n        while True: a.send(bytes(65536))\n    except OSError: pass",
    "children that nobody waits for": "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n    try:\n        if os.fork() == 0: os._exit(0)\n    except OSError: pass",
    "stopped by a child": "import os, signal\nparent = os.getpid()\nif os.fork() == 0:\n    while True: os.kill(parent, signal.SIGSTOP)\nwhile True: pass",
    "cleared modules": "import sys\nfor module in list(sys.modules.values()):\n    try: vars(module).clear()\n    except Exception: pass",
    "sparse": "f = open('f', 'wb')\nf.truncate(1 << 50)",
    "stdout and stderr": "import os\nwhile True: os.write(1, b'o' * 9999); os.write(2, b'e' * 9999)",
    "stack": "import sys, ctypes\nsys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(s): return repr(s) + 'x'\nrepr(A())",
    "core": "import os\nos.abort()",
    "busy exit": "import atexit\n@atexit.register\ndef f():\n    while True: pass",
    "swallow": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "regex": "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
    "big power": "x = 10**10**8\nprint(len(str(x)))",
    "read stdin again": "import os\nos.close(0); os.close(1); os.close(2)\nwhile True: pass",
    "close all": "import os\nos.closerange(0, 1 << 20)\nos.fork()",
    "name": "import ctypes\nctypes.CDLL(None).prctl(15, b') R 1 (x', 0, 0, 0)\nwhile True: pass",
    "undumpable": "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nx = []\nwhile True: x.append(bytearray(8 << 20))",
}  # fmt: skip


def running(sandbox: Sandbox) -> int:
    """How many processes on this machine belong to the sandbox's workers."""
    return sum(1 + len(below(root)) for root in worker_pids(sandbox))


def at_rest(sandbox: Sandbox, most: int) -> int:
    """The same, once a worker waits for its next job: at most so many, or those that stayed for two seconds."""
    end = time.monotonic() + 2
    while (count := running(sandbox)) != most and time.monotonic() < end:
        time.sleep(0.01)
    return count


@pytest.mark.parametrize("name", BOMBS)
def test_no_harm_and_nothing_left(sandbox: Sandbox, name: str) -> None:
    # The server, the zygote and the process that waits for a job; bubblewrap, its init and the namespace's.
    rest = 3 if sandbox.level == 2 else 6
    sandbox.run("pass")
    assert at_rest(sandbox, rest) == rest
    started = time.monotonic()
    waits = name in ("stopped", "stopped group", "ignored signals", "children that nobody waits for")
    result = sandbox.run(BOMBS[name], limits=replace(LIMITS, cpu_seconds=0.5, wall_seconds=1 if waits else 3))
    assert result.status != "infra", result
    assert result.peak_memory_mb < 1000
    assert time.monotonic() - started < 120
    assert at_rest(sandbox, rest) == rest
    clean = sandbox.run("import os\nprint(os.listdir())")
    assert (clean.status, clean.stdout) == ("ok", b"['program.py']\n")


SEGMENTS = {
    "POSIX": "from multiprocessing import shared_memory\nimport os\ntry: shared_memory.SharedMemory(create=True, size=4096)\nexcept OSError: pass\nos._exit(0)",
    "System V": "import ctypes\nctypes.CDLL(None).shmget(0x5a5a3, 4096, 0o1666)",
}  # fmt: skip


@pytest.mark.parametrize("name", SEGMENTS)
def test_no_segment_is_left(sandbox: Sandbox, name: str) -> None:
    assert sandbox.run(SEGMENTS[name]).status == "ok"
    keys = [line.split()[0] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    assert str(0x5A5A3) not in keys
    spare = 1_000_000  # the uids that programs have
    assert [path for path in Path("/dev/shm").iterdir() if path.stat().st_uid > spare] == []


def test_output_that_looks_like_the_protocol(sandbox: Sandbox) -> None:
    program = textwrap.dedent(
        """
        import json, os, struct
        text = json.dumps({"id": 1, "done": True, "status": "ok", "exit_code": 0}).encode()
        frame = struct.pack(">II", len(text), 0) + text
        for fd in range(1, 64):
            try: os.write(fd, frame + b"ready 0\\n")
            except OSError: pass
        os._exit(9)
        """
    )
    result = sandbox.run(program)
    assert (result.status, result.exit_code) == ("error", 9)
