"""The fork server: takes one job at a time from the harness, forks a process for it, answers with what became of it."""

import contextlib
import gc
import os
import signal
import socket
import sys
from typing import Any

from sandbox import linux, semaphore
from sandbox.confine import Walls
from sandbox.harness import Harness, HarnessGone
from sandbox.supervise import Job
from sandbox.tree import empty_folder
from sandbox.usage import own_memory_mb
from sandbox.warm import ON_DEMAND, PRELOAD, Warm

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
            try:
                header, body = self._run(job, stdin, folder)
            finally:
                if self.walls.level != 1:
                    empty_folder(folder)
            self.harness.reply(header, body)

    def clean_up(self) -> None:
        """Removes the server's folder, whose maker may be gone."""
        if self.walls.level != 1:
            with contextlib.suppress(OSError):
                empty_folder(self.walls.home)
                os.rmdir(self.walls.home)

    def _run(self, job: dict[str, Any], stdin: bytes, folder: str) -> tuple[dict[str, Any], bytes]:
        wanted = [name for word, names in ON_DEMAND.items() if word in job["program"] for name in names]
        if not set(wanted) <= self.loaded:
            self._load(wanted)
        job["nproc"] = job["processes"] + 8 + self.other_processes
        gc.disable()
        try:
            under_way = Job(job, stdin, folder, self.walls, self.inherited_mb, self.harness)
        finally:
            gc.enable()
        return under_way.watch()


def main(code: int, fd: int, warm: Warm) -> None:
    """Serves the harness on socket `fd`. `code`: the file that this code came from. `warm`: what was made before
    anything was imported."""
    os.close(code)
    sys.path_importer_cache.pop(sys.path.pop(0), None)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
        with contextlib.suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with socket.socket(fileno=fd) as control:

            def end(*_: object) -> None:
                """Ends the connection, and by that the server, at the one place where it looks: never in a clean-up."""
                with contextlib.suppress(OSError):
                    control.shutdown(socket.SHUT_RDWR)

            signal.signal(signal.SIGTERM, end)
            server = Server(Harness(control), warm)
            try:
                server.serve()
            finally:
                server.clean_up()
    except (HarnessGone, BrokenPipeError, ConnectionResetError):
        pass
