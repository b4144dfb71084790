"""What a program may use, and what became of it."""

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["ok", "error", "timeout", "memory", "output", "disk", "process", "killed", "infra"]
"""How a program ended: `ok` exit code 0; `error` another exit code or an exception; `killed` a signal; the limit that
it met; `infra` the sandbox itself failed, which says nothing about the program."""

STATUSES: tuple[Status, ...] = ("ok", "error", "timeout", "memory", "output", "disk", "process", "killed", "infra")


_MOST = 1e9


@dataclass(frozen=True)
class Limits:
    """What one program, with all processes that it starts, may use."""

    cpu_seconds: float = 10.0
    """CPU time of the whole process tree. This limit decides: it does not depend on the machine's load."""
    wall_seconds: float | None = None
    """A backstop for programs that sleep; None: 10 s + 4 x `cpu_seconds`."""
    memory_mb: int = 1024
    output_kb: int = 10 * 1024
    """For stdout and stderr each."""
    disk_mb: int = 64
    processes: int = 64
    """Processes and threads."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 < value <= _MOST:
                raise ValueError(f"{name} must be positive and at most {_MOST:.0e}, not {value}")

    @property
    def wall(self) -> float:
        """Wall seconds, with the default filled in."""
        return self.wall_seconds if self.wall_seconds is not None else 10.0 + 4.0 * self.cpu_seconds


def idle(wall_seconds: float, cpu_seconds: float) -> bool:
    """Whether many runs or calls of one program together took so long that it can only have slept, which the limit of
    each would allow."""
    return wall_seconds > max(300.0, 50.0 * cpu_seconds)


@dataclass(frozen=True)
class RunResult:
    """What became of one program."""

    status: Status
    exit_code: int | None = None
    signal: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory_mb: float = 0.0
    level: int = 0
    stalled: bool = False
    """The machine stood still or gave the program too little CPU: a timeout here says little, run it again."""
    text: str = ""
    """For people: what failed, where `status` is `infra`, or how a session was broken."""

    def as_json(self) -> dict[str, Any]:
        """The result as JSON data; bytes that are not UTF-8 are replaced."""
        return {
            "status": self.status,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "stdout": self.stdout.decode(errors="replace"),
            "stderr": self.stderr.decode(errors="replace"),
            "cpu_seconds": self.cpu_seconds,
            "wall_seconds": self.wall_seconds,
            "peak_memory_mb": self.peak_memory_mb,
            "level": self.level,
            "stalled": self.stalled,
        }


@dataclass(frozen=True)
class CallResult:
    """What became of one call."""

    status: Status
    value: Any = None
    """Plain data of exact built-in types; `Opaque` in place of anything else."""
    changed: Any = None
    """Arguments and keyword arguments as a call for a test program left them, where it returned None."""
    matched: bool = False
    """The encoded value is the one that was expected. It is not decoded then."""
    exception: str | None = None
    """The type name of the exception that the call raised (`status` is then `error`)."""
    text: str = ""
    """The exception's message, or how the session ended."""
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_seconds: float = 0.0
    stalled: bool = False
    details: RunResult | None = field(default=None, repr=False)
    """How the process ended, where it did during this call."""
