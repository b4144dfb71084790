"""Modules loaded once by the fork server, so that a program's imports cost next to nothing and change nothing.

A module that is merely present in `sys.modules` changes what programs do: `import concurrent` followed by
`concurrent.futures` works in such a process and fails in a fresh one. So loaded modules are put aside, with the record of
what each of them imported, and a finder hands them out when, and only when, the program imports them.
"""

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

PRELOAD = (
    "abc argparse array ast asyncio base64 bisect calendar cmath collections collections.abc concurrent.futures "
    "contextlib copy csv dataclasses datetime decimal difflib enum fractions functools gc hashlib heapq inspect io "
    "itertools json locale logging math multiprocessing operator os pathlib pickle platform pprint queue random re select "
    "signal socket statistics string struct subprocess sys tempfile textwrap threading time timeit traceback types "
    "typing unicodedata unittest uuid warnings weakref zlib numpy"
).split()


class Warm(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The modules put aside."""

    def __init__(self, baseline: set[str]) -> None:
        """`baseline`: the names that a fresh interpreter has loaded at the start of a program."""
        self._baseline = baseline
        self._modules: dict[str, ModuleType] = {}
        self._names: dict[str, dict[str, Any]] = {}
        self._imports: dict[str, list[str]] = {}

    def load(self, names: Sequence[str]) -> list[str]:
        """Imports `names` where they exist, recording what each module imports; returns those that were loaded."""
        real = builtins.__import__

        def recording(
            name: str,
            globals: Any = None,
            locals: Any = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            result = real(name, globals, locals, fromlist, level)
            importer = (globals or {}).get("__name__")
            if importer is not None:
                package = (globals or {}).get("__package__") or ""
                full = importlib.util.resolve_name("." * level + name, package) if level else name
                self._imports.setdefault(importer, []).extend([full, *(f"{full}.{part}" for part in fromlist or ())])
            return result

        builtins.__import__ = recording
        try:
            loaded = []
            for name in names:
                before = set(sys.modules)
                try:
                    importlib.import_module(name)
                except ImportError:
                    continue
                finally:
                    # Imports that did not come through __import__ (importlib.import_module, C code).
                    new = [other for other in sys.modules if other not in before and other != name]
                    self._imports.setdefault(name, []).extend(new)
                loaded.append(name)
            return loaded
        finally:
            builtins.__import__ = real

    def put_aside(self) -> None:
        """Takes all modules beyond the baseline out of sight and starts handing them out on import."""
        aside = {name: module for name, module in sys.modules.items() if name not in self._baseline}
        for name in [name for name in aside if name.split(".")[0] in ("__main__", "sandbox")]:
            del aside[name], sys.modules[name]
        for name in aside:
            del sys.modules[name]
        for name, module in {**sys.modules, **aside}.items():
            names = vars(module)
            if name in aside:
                self._modules[name] = module
                self._names[name] = dict(names)
            for key, value in list(names.items()):
                if f"{name}.{key}" in aside and aside[f"{name}.{key}"] is value:
                    del names[key]
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._modules:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        self._restore(module.__spec__.name)

    def _restore(self, name: str) -> None:
        module, names = self._modules.pop(name), self._names[name]
        sys.modules[name] = module
        vars(module)["__spec__"] = names["__spec__"]
        for other in self._imports.get(name, ()):
            self._import(other)
        submodules = {key for key in names if f"{name}.{key}" in self._modules}
        vars(module).update((key, value) for key, value in names.items() if key not in submodules)

    def _import(self, name: str) -> None:
        parent, _, child = name.rpartition(".")
        if parent:
            self._import(parent)
        if name in self._modules and (not parent or parent in sys.modules):
            module = self._modules[name]
            self._restore(name)
            if parent:
                setattr(sys.modules[parent], child, module)
