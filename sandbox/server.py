"""The fork server: takes one job at a time from the harness, forks a process for it, answers with what became of it."""

import contextlib
import gc
import os
import sys
from typing import Any

from sandbox import confine, linux, semaphore
from sandbox.confine import Walls
from sandbox.harness import Harness, HarnessGone
from sandbox.linux import signal
from sandbox.namespace import Namespace
from sandbox.supervise import Job
from sandbox.tree import empty_folder
from sandbox.usage import own_memory_mb
from sandbox.warm import PRELOAD, Warm, wanted

_LEVEL_2_CAPABILITIES = (
    linux.CAP_CHOWN,
    linux.CAP_DAC_OVERRIDE,
    linux.CAP_FOWNER,
    linux.CAP_KILL,
    linux.CAP_SETGID,
    linux.CAP_SETUID,
    linux.CAP_SYS_PTRACE,  # to see which deleted files a program holds open
)


class Server:
    """What stays the same from job to job."""

    def __init__(self, harness: Harness, warm: Warm) -> None:
        self.harness = harness
        config, _ = harness.wait()
        os.umask(0o022)
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        confine.set_own_limits()
        if config["level"] == 1:
            linux.mount(None, b"/", None, linux.MS_REC | linux.MS_PRIVATE)
            self.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        elif config["uid"] is not None:
            os.setgroups([])
            os.setresgid(config["uid"], config["uid"], config["uid"])
        self.walls = Walls(config["level"], config["uid"], config["home"], config["readable"], config["listable"])
        if self.walls.level == 1:
            linux.empty_bounding_set()
        elif self.walls.level == 2 and self.walls.uid is not None:
            linux.empty_bounding_set()
            linux.keep_capabilities(_LEVEL_2_CAPABILITIES)
        if self.walls.level != 1:
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGTERM)
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
            if os.getppid() != config["parent"]:
                raise HarnessGone
        self.other_processes = config["other_processes"]
        self.warm = warm
        self.loaded: set[str] = set()
        compile("", "", "exec")  # the first time makes some hundred types
        self._load(PRELOAD)
        harness.reply({"ready": True})

    def _load(self, names: list[str]) -> None:
        gc.unfreeze()
        own_semaphores = self.walls.level == 2 and "multiprocessing.heap" in names
        self.warm.load(names, semaphore.use_for_multiprocessing if own_semaphores else None)
        self.loaded.update(names)
        gc.collect()
        gc.freeze()
        self.inherited_mb = own_memory_mb()

    def serve(self) -> None:
        """Takes jobs until the harness closes the connection."""
        while True:
            job, stdin = self.harness.wait()
            if "program" not in job:  # a call, or the end, of a session that was over before it came
                continue
            folder = os.path.join(self.walls.home, "work")
            space = Namespace(self.own_pids) if self.walls.level == 1 else None
            try:
                header, body = self._run(job, stdin, folder, space)
            finally:
                if space is None:
                    empty_folder(folder)
            self.harness.reply(header, body)
            if space is not None:
                space.close()

    def clean_up(self) -> None:
        """Removes the server's folder, whose maker may be gone."""
        if self.walls.level != 1:
            with contextlib.suppress(OSError):
                empty_folder(self.walls.home)
                os.rmdir(self.walls.home)

    def _run(
        self, job: dict[str, Any], stdin: bytes, folder: str, space: Namespace | None
    ) -> tuple[dict[str, Any], bytes]:
        missing = wanted(job["program"]) - self.loaded
        if missing:
            self._load(sorted(missing))
        try:
            job["program"] = job["program"].encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a surrogate pair: a syntax error of the program
            job["program"] = job["program"].encode("utf-8", "surrogatepass")
        job["limits"] = confine.limits(job, job["processes"] + 8 + self.other_processes)
        job["file_system_size"] = confine.file_system_size(job["disk_mb"])
        gc.disable()
        try:
            under_way = Job(job, stdin, folder, self.walls, space, self.inherited_mb, self.harness)
        finally:
            gc.enable()
        return under_way.watch()


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
    try:
        server = Server(harness, warm)
        try:
            server.serve()
        finally:
            server.clean_up()
    except (HarnessGone, BrokenPipeError, ConnectionResetError):
        pass
