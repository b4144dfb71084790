"""Runs one program in the process that was forked for it. The program can change anything here, this module included:
what it gains is only a different answer of its own, and the answer is judged outside."""

import _thread
import atexit
import builtins
import gc
import itertools
import os
import sys
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any

from sandbox import wire

_EXIT = os._exit
_PRINT_EXCEPTION = sys.__excepthook__  # the module `traceback` may be out of sight, with what it imports
_ITERATORS = frozenset(
    (
        *map(type, ((None for _ in ()), range(0), iter(()), iter([]), iter(""), iter({}), iter(set()), reversed([]))),
        *(type(iter({}.items())), type(iter({}.values())), type({}.keys()), type({}.values()), type({}.items())),
        *(enumerate, filter, map, zip, itertools.chain, itertools.islice, itertools.accumulate, itertools.takewhile),
        *(itertools.combinations, itertools.permutations, itertools.product),
    )
)
NONCE = 16


def _module(name: str, path: str) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(__file__=path, __builtins__=builtins, __annotations__={}, __cached__=None)
    sys.modules[name] = module
    return module


def _own(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """The exception with its traceback cut to the program's own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    return type(error), error.with_traceback(trace), trace


def _execute(source: bytes, path: str, module: ModuleType) -> None:
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)


def _exit_code(error: SystemExit) -> int:
    """What the interpreter would exit with."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF if -(1 << 63) <= error.code < 1 << 63 else 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _finish(module: ModuleType | None) -> int:
    """What the interpreter does at exit, in its order: join threads, run exit functions, flush, drop the globals."""
    threading = sys.modules.get("threading")
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()
    code = _flush()
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    if module is not None:
        names = module.__dict__
        for key in [key for key in names if key[:1] == "_" and key != "__builtins__"] + list(names):
            if key != "__builtins__":
                names[key] = None
        gc.collect()
    return _flush() or code


def _flush() -> int:
    code = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException:
            code = 120
    return code


def run_script(source: bytes, path: str) -> None:
    """Runs the program as `python program.py` would, and exits."""
    module = _module("__main__", path)
    code = 0
    try:
        try:
            _execute(source, path, module)
        except SystemExit as error:
            code = _exit_code(error)
        except BaseException as error:
            code = 1
            sys.excepthook(*_own(error))
        code = _finish(module) or code
    except SystemExit as error:
        code = _exit_code(error)
        _flush()
    except BaseException:
        code = 1
        _PRINT_EXCEPTION(*sys.exc_info())
        _flush()
    _EXIT(code)


def _describe(error: BaseException) -> bytes:
    """Type name and message of an exception, as an encoded pair; hostile `__str__` included."""
    kind = type(error)
    name = type.__dict__["__name__"].__get__(kind)
    try:
        # A KeyError's own text is quoted, and would be once more where it is raised again for a test program.
        quoted = kind is KeyError and len(error.args) == 1 and type(error.args[0]) is str
        text = error.args[0] if quoted else str(error)
        text = text[:2000] if type(text) is str else "?"
    except BaseException:
        text = "?"
    return wire.encode((name if type(name) is str else "?", text))


def _resolve(module: ModuleType, entry_point: str) -> Callable[..., Any]:
    """The function, or the method of a new object."""
    first, dot, name = entry_point.partition(".")
    target = module.__dict__[first]
    return getattr(target(), name) if dot else target  # type: ignore[no-any-return]


class Calls:
    """The pipes on which calls come in and answers leave: a nonce, a length, a kind (one letter), an encoded value."""

    def __init__(self, calls: int, answers: int) -> None:
        self._calls, self._answers = calls, answers
        self._come = bytearray()

    def _read(self, size: int) -> bytes:
        while len(self._come) < size:
            part = os.read(self._calls, 1 << 16)
            if not part:
                _EXIT(0)
            self._come += part
        data = bytes(self._come[:size])
        del self._come[:size]
        return data

    @property
    def more(self) -> bool:
        """Whether a further message has come, or its beginning."""
        return bool(self._come)

    def receive(self) -> tuple[bytes, bytes]:
        """Waits for a message; ends the process where none will come."""
        head = self._read(NONCE + 4)
        return head[:NONCE], self._read(int.from_bytes(head[NONCE:], "big"))

    def send(self, nonce: bytes, kind: bytes, body: bytes) -> None:
        head = nonce + (len(body) + 1).to_bytes(4, "big") + kind
        for piece in (head + body,) if len(body) < 1 << 16 else (head, body):
            data = memoryview(piece)
            while data:
                data = data[os.write(self._answers, data) :]


def serve_calls(source: bytes, path: str, entry_point: str, calls: Calls, for_test: bool) -> None:
    """Loads the program as a module, then answers calls of its entry point until the pipe closes.

    `for_test`: a test program calls, which may use up an iterator, or look at what became of its arguments where
    nothing is returned.
    """
    module = _module("solution", path)
    nonce, _ = calls.receive()
    try:
        try:
            _execute(source, path, module)
        except BaseException as error:
            _PRINT_EXCEPTION(*_own(error))
            raise
        _resolve(module, entry_point)
        kind, body = b"v", wire.encode(None)
    except BaseException as error:
        kind, body = b"e", _describe(error)
    while True:
        if not calls.more:  # what was printed is told of the calls that come together
            _flush()
        calls.send(nonce, kind, body)
        del body
        nonce, body = calls.receive()
        try:
            arguments, keywords = wire.decode_call(body)
            value = _resolve(module, entry_point)(*arguments, **keywords)
            if for_test and type(value) in _ITERATORS:
                value = wire.Passing(list(itertools.islice(value, wire.MAX_NODES + 1)))
            if for_test and value is None:
                kind, body = b"m", wire.encode_call(arguments, keywords)
            else:
                kind, body = b"v", wire.encode(value)
            del value
        except BaseException as error:
            kind, body = b"e", _describe(error)


def run_check(source: bytes, path: str, entry_point: str, calls: Calls) -> None:
    """Runs a test program that names the entry point, or defines `check(candidate)`. The candidate itself is in another
    process: calling it sends the arguments out and waits for the answer. It goes by every name that a test may use: its
    own, `candidate`, a method of `Solution`."""
    nonce, _ = calls.receive()
    one_at_a_time = _thread.allocate_lock()
    called = False

    def candidate(*arguments: Any, **keywords: Any) -> Any:
        nonlocal called
        called = True
        with one_at_a_time:
            calls.send(nonce, b"c", wire.encode_call(arguments, keywords))
            _, answer = calls.receive()
        kind = answer[:1]
        if kind == b"m":
            changed, changed_keywords = wire.decode_call(answer[1:])
            new_values = (*changed, *changed_keywords.values())
            for old, new in zip((*arguments, *keywords.values()), new_values, strict=True):
                _overwrite(old, new)
            return None
        value = wire.decode(answer[1:])
        if kind == b"v":
            return iter(value.values) if type(value) is wire.Passing else value
        name, text = value
        error = getattr(builtins, name, None)
        if isinstance(error, type) and issubclass(error, Exception):
            raise error(text)
        raise RuntimeError(f"{name}: {text}")

    module = _module("__main__", path)
    owner, _, name = entry_point.rpartition(".")
    names = module.__dict__
    names[owner or "Solution"] = type(
        owner or "Solution", (), {name: lambda _, *args, **more: candidate(*args, **more)}
    )
    names.update({"candidate": candidate, name: candidate})
    kind, body = b"v", wire.encode(None)
    try:
        _execute(source, path, module)
        if name != "check" and callable(names.get("check")):
            names["check"](candidate)
    except BaseException as error:
        # As unittest ends, with 0 where all is well; but a test that called nothing has shown nothing.
        if not (isinstance(error, SystemExit) and called and _exit_code(error) == 0):
            _PRINT_EXCEPTION(*_own(error))
            kind, body = b"e", _describe(error)
    _flush()
    calls.send(nonce, kind, body)
    _EXIT(0 if kind == b"v" else 1)


def _overwrite(old: Any, new: Any) -> None:
    """Gives a changeable argument the content that the candidate's copy has now."""
    if type(old) is list or type(old) is bytearray:
        old[:] = new
    elif type(old) in (dict, set):
        old.clear()
        old.update(new)
