"""Runs untrusted programs behind a wall, and calls functions in them with plain data. See docs/sandbox.md."""

from ba_eval.execution.pool import Sandbox
from ba_eval.execution.probe import check, probe_level
from ba_eval.execution.result import CallResult, Limits, RunResult, Status, idle
from ba_eval.execution.session import Call, CallSession
from ba_eval.execution.wire import Opaque, WireError

__all__ = [
    "Call",
    "CallResult",
    "CallSession",
    "Limits",
    "Opaque",
    "RunResult",
    "Sandbox",
    "Status",
    "WireError",
    "check",
    "idle",
    "probe_level",
]
