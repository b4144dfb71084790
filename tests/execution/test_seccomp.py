"""The filter of system calls, run step by step: what is listed passes, and nothing else."""

import errno
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import seccomp
from sandbox.syscalls import TABLE, numbers

ARCH = 0xC000003E
PASS, KILL, DENY = 0x7FFF0000, 0x80000000, 0x00050000


def result(program: bytes, number: int, arguments: tuple[int, ...] = (), arch: int = ARCH) -> int:
    """Runs classic BPF on `struct seccomp_data`, as linux/filter.h defines both."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    for _ in range(len(steps)):
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            accumulator &= value
        elif code == 0x05:
            at += value
        elif code == 0x06:
            return int(value)
        else:
            met = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += if_true if met else if_false
    raise AssertionError("no return")


@pytest.fixture(autouse=True)
def x86_64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine="x86_64"))


LEVEL_2_ONLY_IN_NAMESPACES = {"chown", "utime", "inotify_init", "socket", "connect", "bind", "listen", "sendmmsg"}


@pytest.mark.parametrize("level", [1, 2])
def test_every_number(level: int) -> None:
    program = seccomp.filter_program(level, own_uid=True)
    listed = numbers("x86_64")
    assert len(listed) > 200 and len(program) // 8 < 400
    conditions = seccomp._conditions(level, 0)
    for number in range(700):
        names = [name for name, listed_number in listed.items() if listed_number == number]
        if names and names[0] in conditions:
            continue
        missing = not names or (level == 2 and names[0] in seccomp._ONLY_IN_NAMESPACES)
        assert result(program, number) == (DENY | errno.EPERM if missing else PASS), (number, names)
    if level == 2:
        assert set(seccomp._ONLY_IN_NAMESPACES) >= LEVEL_2_ONLY_IN_NAMESPACES


# Numbers from the kernel's table of x86_64: arch/x86/entry/syscalls/syscall_64.tbl
@pytest.mark.parametrize(
    ("number", "arguments", "expected"),
    [
        (0, (), PASS),  # read
        (59, (), PASS),  # execve
        (101, (), DENY | errno.EPERM),  # ptrace
        (165, (), DENY | errno.EPERM),  # mount
        (272, (0x10000000,), DENY | errno.EPERM),  # unshare
        (308, (), DENY | errno.EPERM),  # setns
        (321, (), DENY | errno.EPERM),  # bpf
        (425, (), DENY | errno.EPERM),  # io_uring_setup
        (435, (), DENY | errno.ENOSYS),  # clone3
        (56, (0x01200011,), PASS),  # clone as fork makes it
        (56, (0x10000000,), DENY | errno.EPERM),  # clone into a user namespace
        (62, (1, 9), DENY | errno.EPERM),  # kill 1
        (62, (77, 9), PASS),
        (16, (0, 0x5401), PASS),  # ioctl TCGETS
        (16, (0, 0x5412), DENY | errno.ENOTTY),  # ioctl TIOCSTI
        (302, (0,), PASS),  # prlimit64 of itself
        (302, (77,), DENY | errno.EPERM),
        (41, (2, 1), PASS),  # socket, IPv4, which leads nowhere in the namespace
        (41, (16, 3), DENY | errno.EPERM),  # netlink
        (0x40000000, (), DENY | errno.ENOSYS),  # an x32 call
        (0xFFFFFFFF, (), DENY | errno.ENOSYS),
    ],
)
def test_known_calls(number: int, arguments: tuple[Any, ...], expected: int) -> None:
    assert result(seccomp.filter_program(1, own_uid=True), number, arguments) == expected


def test_another_instruction_set_kills() -> None:
    assert result(seccomp.filter_program(1, own_uid=True), 0, arch=0x40000003) == KILL


def test_spans() -> None:
    a, b, deny = b"a", b"b", seccomp._deny()
    spans = seccomp._spans({1: a, 2: a, 3: b, 7: a})
    assert spans == [(0, deny), (1, a), (3, b), (4, deny), (7, a), (8, deny)]
    assert "read:0:63" in TABLE


@given(
    st.dictionaries(st.integers(0, 900), st.sampled_from([bytes(8 * n) for n in (1, 2, 90, 300)]), min_size=1),
    st.integers(0, 1000),
)
def test_far_rules_are_found(sizes: dict[int, bytes], number: int) -> None:
    """Whatever lies between them: a comparison skips at most 255 steps."""
    load, unreachable = seccomp._step(0x20, 0), seccomp._step(0x15, 0)
    rules = {key: seccomp._step(0x06, PASS + key % 2) + unreachable * (len(rule) // 8) for key, rule in sizes.items()}
    expected = PASS + number % 2 if number in rules else DENY | errno.EPERM
    assert result(load + seccomp._search(seccomp._spans(rules)), number) == expected
