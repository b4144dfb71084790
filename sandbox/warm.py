"""Modules loaded once by the zygote, so that a program's imports cost next to nothing and change nothing.

A module that is merely present in `sys.modules` changes what programs do: `import concurrent` followed by
`concurrent.futures` works in such a process and fails in a fresh one. So loaded modules are put aside, with the record
of what each of them imported, and a finder hands them out when, and only when, the program imports them.
"""

from __future__ import annotations

import builtins
import os
import sys

# This module is the first to be imported and must import nothing itself: what it imported would have no record.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any
else:
    ModuleType, ModuleSpec = type(sys), type(sys.__spec__)

# What most programs import. Each megabyte more makes every fork dearer: the rest is loaded once a program imports it.
PRELOAD = (
    "abc bisect collections collections.abc copy functools heapq itertools math operator os re string sys time typing"
).split()
ON_IMPORT = frozenset(
    (
        "array cmath contextlib dataclasses datetime decimal enum fractions hashlib io json numbers queue random "
        "statistics struct textwrap threading traceback types"
    ).split()
)
ON_MENTION = {
    "numpy": ("numpy",),
    "multiprocessing": ("multiprocessing.heap", "multiprocessing.pool"),
    "concurrent": ("concurrent.futures.process", "concurrent.futures.thread", "multiprocessing.heap"),
}


def wanted(program: str) -> set[str]:
    """The modules to be loaded before the program runs. One that it imports in another way is read from disk then."""
    imports = " ".join(line for line in program.splitlines() if "import" in line)
    for sign in "(),.;\"'":
        imports = imports.replace(sign, " ")
    mentioned = (name for word, names in ON_MENTION.items() if word in program for name in names)
    return {*ON_IMPORT.intersection(imports.split()), *mentioned}


class Warm:
    """Records imports from its making on; later, finder and loader of the modules put aside."""

    def __init__(self) -> None:
        """To be made before anything is imported that a fresh interpreter does not import at its start."""
        self._baseline = set(sys.modules) - {"sandbox", "sandbox.warm", "__future__"}
        self._modules: dict[str, ModuleType] = {}
        self._specs: dict[str, ModuleSpec | None] = {}
        self._submodules: dict[str, dict[str, Any]] = {}
        """Per module: its submodules put aside, which were attributes of it."""
        self._imports: dict[str, list[str]] = {}
        self._under_way: list[str] = []
        self._fork_handlers: dict[str, list[dict[str, Callable[[], None]]]] = {}
        self._import_function, self._register_at_fork = builtins.__import__, os.register_at_fork
        self._record()

    def _recording_import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        importer = None
        if getattr((globals or {}).get("__spec__"), "_initializing", False):
            importer = (globals or {})["__name__"]
        elif self._under_way:  # C code, or a function of a module that is loaded: for the one being loaded
            importer = self._under_way[-1]
        package = ((globals or {}).get("__package__") or "").rsplit(".", level - 1)[0] if level else ""
        full = ".".join(part for part in (package, name) if part)
        self._under_way.append(full)
        try:
            result = self._import_function(name, globals, locals, fromlist, level)
        finally:
            self._under_way.pop()
        if importer is not None:
            self._imports.setdefault(importer, []).extend([full, *(f"{full}.{part}" for part in fromlist or ())])
        return result

    def _record(self) -> None:
        builtins.__import__ = self._recording_import
        os.register_at_fork = self._recording_register  # type: ignore[assignment]

    def _recording_register(self, **handlers: Callable[[], None]) -> None:
        """What a module wants done at a fork waits until a program imports it: each program would have to do it."""
        self._fork_handlers.setdefault(sys._getframe(1).f_globals["__name__"], []).append(handlers)

    def load(self, names: Sequence[str], patch: Callable[[], None] | None = None) -> None:
        """Imports `names` where they exist, applies `patch`, and puts all of it aside."""
        self._record()
        self._bring_back()
        self._imports.setdefault("sandbox", []).extend(names)
        for name in names:
            before = set(sys.modules)
            try:
                __import__(name)
            except ImportError:
                continue
            recorded = self._recorded()
            # What did not come through __import__ but by importlib.import_module.
            new = [other for other in sys.modules if other not in before and other not in recorded and other != name]
            self._imports.setdefault(name, []).extend(new)
        if patch is not None:
            patch()
        builtins.__import__, os.register_at_fork = self._import_function, self._register_at_fork
        self._put_aside()

    def _recorded(self) -> set[str]:
        return {other for imported in self._imports.values() for other in imported}

    def _bring_back(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        sys.modules.update(self._modules)
        for name, submodules in self._submodules.items():
            for key, value in submodules.items():
                setattr(sys.modules[name], key, value)

    def _put_aside(self) -> None:
        """Takes all modules beyond the baseline out of sight and starts handing them out on import."""
        for name in [name for name in sys.modules if name not in self._baseline]:
            module = sys.modules.pop(name)
            if name.split(".")[0] not in ("sandbox", "__mp_main__"):
                self._modules[name] = module
                self._specs[name] = getattr(module, "__spec__", None)
        recorded = self._recorded()
        for name in self._modules:  # what a package puts there by itself (`typing.io`), under another name at times
            spec = self._specs[name]
            if name not in recorded or (spec is not None and spec.name != name):
                self._imports.setdefault(name.rpartition(".")[0], []).append(name)
        for name, module in {**sys.modules, **self._modules}.items():
            names = vars(module) if isinstance(module, ModuleType) else {}
            inner = [key for key, value in names.items() if self._modules.get(f"{name}.{key}") is value is not None]
            self._submodules[name] = {key: names.pop(key) for key in inner}
        for name, imported in self._imports.items():
            self._imports[name] = [other for other in dict.fromkeys(imported) if other in self._modules]
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._modules:
            return None
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        self._restore(module.__spec__.name)

    def _restore(self, name: str) -> None:
        module = self._modules.pop(name)
        sys.modules[name] = module
        module.__spec__ = self._specs[name]
        if name == "threading":
            module.main_thread()._set_native_id()
        if name == "multiprocessing":
            sys.modules["__mp_main__"] = sys.modules["__main__"]
        for handlers in self._fork_handlers.pop(name, ()):  # as if the process had been forked just now
            for moment in ("before", "after_in_child"):
                if moment in handlers:
                    handlers[moment]()
            os.register_at_fork(**handlers)
        for other in self._imports.get(name, ()):
            self._import(other)
        for key, value in self._submodules[name].items():
            if f"{name}.{key}" in sys.modules:
                setattr(module, key, value)

    def _import(self, name: str) -> None:
        parent, _, child = name.rpartition(".")
        if parent:
            self._import(parent)
        if name in self._modules and (not parent or parent in sys.modules):
            module = self._modules[name]
            self._restore(name)
            if child in self._submodules.get(parent, ()):
                setattr(sys.modules[parent], child, module)
