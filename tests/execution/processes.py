"""The processes of a sandbox's workers, as the machine shows them."""

from pathlib import Path

from ba_eval.execution import Sandbox


def worker_pids(sandbox: Sandbox) -> list[int]:
    return [worker._server.process.pid for slot in sandbox._all for worker in slot._workers.values()]


def below(root: int) -> set[int]:
    """All processes under `root`."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found: set[int] = set()
    while new := {pid for pid, parent in parents.items() if parent in found | {root}} - found:
        found |= new
    return found
