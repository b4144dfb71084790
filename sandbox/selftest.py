"""A program that tries to get out. Reads what to try as JSON from standard input; prints what it could do, as JSON."""

import ctypes
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)


def succeeds(action: Callable[..., Any], *arguments: Any) -> bool:
    try:
        action(*arguments)
    except OSError:
        return False
    return True


def connects(family: int, address: Any) -> bool:
    with socket.socket(family) as client:
        client.settimeout(1)
        client.connect(address)
    return True


def open_file(path: str, flags: int) -> None:
    os.close(os.open(path, flags))


def main() -> None:
    task = json.load(sys.stdin)
    no_new_privileges, seccomp = 39, 21
    head, capabilities = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(head, capabilities)
    stream, abstract = task["tcp"], task["abstract"]
    found = {
        "files": succeeds(open_file, task["file"], os.O_RDONLY)
        or succeeds(open_file, task["folder"] + "/new", os.O_CREAT | os.O_WRONLY)
        or succeeds(open_file, f"/proc/{task['pid']}/environ", os.O_RDONLY),
        "network": succeeds(connects, socket.AF_INET, tuple(stream)) or succeeds(connects, socket.AF_UNIX, abstract),
        "signals": any(succeeds(os.kill, pid, 0) for pid in (task["pid"], 1)),
        "privileges": any(capabilities) or libc.prctl(no_new_privileges, 0, 0, 0, 0) != 1,
        "system calls": libc.prctl(seccomp, 0, 0, 0, 0) != 2
        or libc.unshare(0x10000000) == 0
        or libc.ptrace(0x4206, task["pid"], None, None) == 0,
    }
    print(json.dumps({name: bool(out) for name, out in found.items()}))


main()
