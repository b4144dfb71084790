"""What is asked of a fork server, and how its last word is read."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from ba_eval.execution.result import STATUSES, Limits, RunResult
from ba_eval.execution.worker import Worker, WorkerDied

GRACE_SECONDS = 120.0
"""How long a fork server may take beyond a job's wall limit before it is taken for dead."""

_ids = count(1)


def make_job(mode: str, program: str, limits: Limits, **more: Any) -> dict[str, Any]:
    """Describes a job. `mode`: `script`, `calls` or `check`. Each has an id of its own, which its answers carry."""
    return {
        "id": next(_ids),
        "mode": mode,
        "program": program,
        "cpu_seconds": limits.cpu_seconds,
        "wall_seconds": limits.wall,
        "memory_mb": limits.memory_mb,
        "output_kb": limits.output_kb,
        "disk_mb": limits.disk_mb,
        "processes": limits.processes,
        **more,
    }


def run_script(worker: Worker, program: str, stdin: bytes, limits: Limits) -> RunResult:
    """Runs a program on a worker. WorkerDied: the worker must be replaced."""
    job = make_job("script", program, limits)
    worker.send(job, stdin)
    header, body = worker.receive(limits.wall + GRACE_SECONDS)
    return read_result(header, body, job["id"], worker.level)


def read_result(header: Mapping[str, Any], body: bytes, job_id: int, level: int) -> RunResult:
    """Reads the last frame of a job. WorkerDied: it is not this job's, or not a result."""
    try:
        if header["id"] != job_id or header["status"] not in STATUSES:
            raise WorkerDied("the fork server answered another question")
        out = int.from_bytes(body[:4], "big")
        return RunResult(
            status=header["status"],
            exit_code=header["exit_code"],
            signal=header["signal"],
            stdout=body[4 : 4 + out],
            stderr=body[4 + out :],
            cpu_seconds=float(header["cpu_seconds"]),
            wall_seconds=float(header["wall_seconds"]),
            peak_memory_mb=float(header["peak_memory_mb"]),
            level=level,
            stalled=bool(header["stalled"]),
            text=str(header["text"] or ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WorkerDied(f"the fork server gave no result: {error}") from error
