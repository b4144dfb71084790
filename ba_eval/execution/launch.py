"""Starts a fork server behind the walls of a level: what it may see, which uid it has, its environment."""

import functools
import importlib.util
import io
import itertools
import marshal
import os
import pwd
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ba_eval.errors import MachineError
from ba_eval.execution.runtime import Runtime, own_runtime, public_runtime
from ba_eval.resources import data_folder

_START = """
import site, sys
site.setquit(); site.setcopyright(); site.sethelper()
del sys.path[0]
sys.path.insert(0, "/proc/self/fd/" + sys.argv[1])
from sandbox.warm import Warm
warm = Warm()
from sandbox.server import main
main(int(sys.argv[1]), int(sys.argv[2]), warm)
"""
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_READABLE_FILES = ("/etc/ld.so.cache", "/etc/localtime")
_STORES = ("/nix/store", "/gnu/store")


@dataclass
class Server:
    """A started fork server."""

    process: "subprocess.Popen[bytes]"
    control: socket.socket
    home: Path | None
    """Levels 2 and 0: the server's folder on this machine, to be removed after it."""
    config: dict[str, Any]
    """What it is told first."""


def spare_uid() -> int | None:
    """Returns a uid that nobody uses, or None where this process cannot change its uid."""
    if os.geteuid() != 0:
        return None
    ranges = []
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = (int(field) for field in line.split())
        ranges.append((first, first + count))
    first, last = max(ranges, key=lambda pair: pair[1] - pair[0])
    if last - first < 10_000:
        return None
    if last > 1 << 31:
        first, last = 1 << 30, (1 << 31) - 2
    else:
        first, last = max(first, last // 2), last - 2
    for _ in range(100):
        uid = random.SystemRandom().randrange(first, last)
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid
    return None


@functools.cache
def _archive() -> bytes:
    """The sandbox's programs as a zip archive. Compiled here, once: that is most of what a server's start costs."""
    header = importlib.util.MAGIC_NUMBER + bytes(12)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(data_folder("sandbox").glob("*.py")):
            code = compile(path.read_bytes(), f"sandbox/{path.name}", "exec", dont_inherit=True)
            archive.writestr(f"sandbox/{path.stem}.pyc", header + marshal.dumps(code))
    return packed.getvalue()


def _code() -> int:
    """The archive in an anonymous file: no path of this machine is needed inside."""
    fd = os.memfd_create("ba-eval-sandbox", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(_archive())
    return fd


def _environment(runtime: Runtime, home: str, packages: str) -> dict[str, str]:
    one_thread = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    environment = {
        "PATH": f"{runtime.executable.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(one_thread, "1"),
    }
    if packages:
        environment["PYTHONPATH"] = packages
    if runtime.moved:
        environment["LD_LIBRARY_PATH"] = str(runtime.prefix / "lib")
    return environment


def _bubblewrap(runtime: Runtime) -> list[str]:
    """The command line in front of Python's at level 1."""
    assert runtime.bwrap is not None
    command = [str(runtime.bwrap), "--unshare-all", "--die-with-parent", "--new-session"]
    command += ["--uid", "0", "--gid", "0", "--cap-add", "ALL", "--hostname", "sandbox"]
    command += ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM_FOLDERS:
        folder = Path(name)
        if folder.is_symlink():
            command += ["--symlink", str(folder.readlink()), name]
        elif folder.is_dir():
            command += ["--ro-bind", name, name]
    for name in (*_READABLE_FILES, *_STORES):
        command += ["--ro-bind-try", name, name]
    if not runtime.prefix.is_relative_to("/usr"):
        command += ["--ro-bind", str(runtime.prefix), str(runtime.prefix)]
    for folder in (runtime.stdlib / "site-packages", runtime.stdlib / "dist-packages"):
        if folder.is_dir():
            command += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    for package in runtime.packages:
        command += ["--ro-bind", str(package), f"/packages/{package.name}"]
    command += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", "65536", "--tmpfs", "/tmp"]
    for name in ("/tmp", "/dev", "/"):
        command += ["--remount-ro", name]
    return [*command, "--chdir", "/tmp", "--"]


def _readable(runtime: Runtime) -> tuple[list[str], list[str]]:
    """What programs may read, and which folders they may list, at level 2."""
    readable = [
        *_SYSTEM_FOLDERS,
        "/usr/lib",
        "/usr/lib32",
        "/usr/lib64",
        "/usr/bin",
        "/usr/sbin",
        "/usr/share/zoneinfo",
    ]
    readable += [*_READABLE_FILES, *_STORES, str(runtime.executable)]
    libraries = runtime.prefix / "lib"
    readable += [str(path) for path in libraries.glob("*.so*")]
    # Landlock cannot take back what lies below: name all but the installed packages.
    readable += [str(path) for path in runtime.stdlib.iterdir() if path.name not in ("site-packages", "dist-packages")]
    readable += [str(path) for path in runtime.packages]
    return readable, [str(runtime.stdlib)]


def _shared_uid_threads() -> int:
    """How many threads the user of this process runs: RLIMIT_NPROC counts them all."""
    count = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                count += sum(1 for _ in (entry / "task").iterdir())
        except OSError:
            continue
    return count


_numbers = itertools.count()


def _start(level: int) -> Server:
    if sys.platform != "linux":
        raise MachineError("the sandbox needs Linux")
    uid = spare_uid()
    runtime = own_runtime() if uid is None else public_runtime()
    ours, theirs = socket.socketpair()
    code = _code()
    home: Path | None = None
    config: dict[str, Any] = {"level": level, "uid": None, "readable": [], "listable": [], "parent": os.getpid()}
    config["number"] = next(_numbers)
    command = [str(runtime.executable), "-s", "-S", "-B", "-c", _START, str(code), str(theirs.fileno())]
    arguments: dict[str, Any] = {}
    try:
        if level == 1:
            config.update(home="/tmp", packages="/packages" if runtime.packages else "")
            command = _bubblewrap(runtime) + command
            if uid is not None:
                arguments = {"user": uid, "group": uid, "extra_groups": []}
        else:
            home = Path(tempfile.mkdtemp(prefix="ba-eval-sandbox-"))
            home.chmod(0o755)
            (home / "work").mkdir(mode=0o700)
            (home / "packages").mkdir()
            for package in runtime.packages:
                (home / "packages" / package.name).symlink_to(package)
            if uid is not None:
                os.chown(home / "work", uid, uid)
            readable, listable = _readable(runtime)
            listable.append(str(home / "packages"))
            config.update(home=str(home), uid=uid, readable=readable, listable=listable)
            config["packages"] = str(home / "packages") if runtime.packages else ""
        config["other_processes"] = _shared_uid_threads() if uid is None else 0
        work = "/tmp" if home is None else str(home / "work")
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(runtime, work, config["packages"]),
            cwd="/",
            pass_fds=(code, theirs.fileno()),
            start_new_session=True,
            **arguments,
        )
    except BaseException:
        ours.close()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)
        raise
    finally:
        os.close(code)
        theirs.close()
    return Server(process, ours, home, config)


_starter: tuple[int, ThreadPoolExecutor] | None = None


def start(level: int) -> Server:
    """Starts a fork server. It dies with the thread that started it, so one thread that stays starts them all."""
    global _starter
    if _starter is None or _starter[0] != os.getpid():
        _starter = (os.getpid(), ThreadPoolExecutor(1, "ba-eval-sandbox-starter"))
    return _starter[1].submit(_start, level).result()
