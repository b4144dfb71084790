"""The server: takes one job at a time from the harness, has a process forked for it, answers with what became of it."""

import contextlib
import os
import sys
from typing import Any

from sandbox import confine, linux
from sandbox.disk import Disk
from sandbox.harness import Harness, HarnessGone
from sandbox.linux import signal
from sandbox.supervise import Job
from sandbox.tree import empty_folder
from sandbox.usage import own_memory_mb
from sandbox.warm import PRELOAD, Warm, wanted
from sandbox.zygote import Zygote, ZygoteGone

_LEVEL_2_CAPABILITIES = (
    linux.CAP_CHOWN,
    linux.CAP_DAC_OVERRIDE,
    linux.CAP_FOWNER,
    linux.CAP_KILL,
    linux.CAP_SETGID,
    linux.CAP_SETUID,
    linux.CAP_SYS_PTRACE,  # to see which deleted files a program holds open
)


def _stay_on_one(number: int) -> set[int]:
    """Binds this process and the zygote, which take turns, to one CPU, a worker's `number` says which: where the kernel
    spreads them over all, each waits for the other's CPU to wake up. Returns the CPUs for the programs."""
    cpus = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {sorted(cpus)[number % len(cpus)]})
    return cpus


class Server:
    """What stays the same from job to job."""

    def __init__(self, harness: Harness, warm: Warm) -> None:
        self.harness = harness
        config, _ = harness.wait()
        os.umask(0o022)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        confine.set_own_limits()
        self.level, self.uid, self.home = config["level"], config["uid"], config["home"]
        if self.level == 1:
            linux.mount(None, b"/", None, linux.MS_REC | linux.MS_PRIVATE)
            linux.empty_bounding_set()
        elif self.level == 2 and self.uid is not None:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            linux.empty_bounding_set()
            linux.keep_capabilities(_LEVEL_2_CAPABILITIES)
        if self.level != 1:
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != config["parent"]:
                raise HarnessGone
        self.other_processes = config["other_processes"]
        walls = {name: config[name] for name in ("level", "uid", "home", "readable", "listable")}
        walls["cpus"] = _stay_on_one(config["number"])
        self.zygote = Zygote(walls, warm, harness.close)
        self.loaded: set[str] = set()
        self._load(list(PRELOAD))
        harness.reply({"ready": True})

    def _load(self, names: list[str]) -> None:
        self.zygote.load(names)
        self.loaded.update(names)
        self.inherited_mb = own_memory_mb(self.zygote.pid)

    def serve(self) -> None:
        """Takes jobs until the harness closes the connection."""
        while True:
            job, stdin = self.harness.wait()
            if "program" not in job:  # a call, or the end, of a session that was over before it came
                continue
            folder = os.path.join(self.home, "work")
            try:
                header, body = self._run(job, stdin, folder)
            finally:
                if self.level != 1:
                    empty_folder(folder)
            self.harness.reply(header, body)

    def _run(self, job: dict[str, Any], stdin: bytes, folder: str) -> tuple[dict[str, Any], bytes]:
        missing = wanted(job["program"]) - self.loaded
        if missing:
            self._load(sorted(missing))
        try:
            job["program"] = job["program"].encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a surrogate pair: a syntax error of the program
            job["program"] = job["program"].encode("utf-8", "surrogatepass")
        # Where they share the uid of others, these count too, and how many there are changes.
        processes = job["processes"] * (1 if self.level == 1 or self.uid is not None else 4)
        job["limits"] = confine.limits(job, processes + 8 + self.other_processes)
        job["file_system_size"] = confine.file_system_size(job["disk_mb"])
        disk = None if self.level == 1 else Disk(folder)
        return Job(job, stdin, self.zygote, self.harness, self.uid, self.inherited_mb, disk).watch()


def main(code: int, fd: int, warm: Warm) -> None:
    """Serves the harness on socket `fd`. `code`: the file that this code came from. `warm`: what was made before
    anything was imported."""
    os.close(code)
    sys.path_importer_cache.pop(sys.path.pop(0), None)
    kept = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}
    for number in {*map(int, signal.valid_signals())} - kept:
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    harness = Harness(fd)
    signal.signal(signal.SIGTERM, lambda *_: harness.end())
    server = None
    try:
        server = Server(harness, warm)
        server.serve()
    except (HarnessGone, ZygoteGone, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        if server is not None:
            server.zygote.close()
        _remove(os.path.dirname(os.environ["TMPDIR"]))


def _remove(home: str) -> None:
    """Removes the server's folder, whose maker may be gone. At level 1 it has none."""
    if os.path.basename(home).startswith("ba-eval-sandbox-"):
        with contextlib.suppress(OSError):
            empty_folder(home)
            os.rmdir(home)
