"""What `--model` names: `name=path`, a bare path, or a pattern that stands for one model per training step."""

import glob
import re
from collections.abc import Iterable
from pathlib import Path

from ba_eval.errors import InputError
from ba_eval.json_file import read_object
from ba_eval.resources import user_path

_STEP = re.compile(r"(?:checkpoint|global_step|step|iter)[-_]?(\d+)$", re.IGNORECASE)


def step_of(folder: Path) -> int | None:
    """The training step that a folder's name, or the trainer's own state in it, tells."""
    for part in (folder.name, folder.parent.name):
        found = _STEP.search(part)
        if found:
            return int(found[1])
    state = folder / "trainer_state.json"
    step = read_object(state).get("global_step") if state.is_file() else None
    return step if isinstance(step, int) else None


# --model


def expand_models(models: Iterable[str]) -> list[tuple[str, str]]:
    """Expands `--model` values (`name=path`, or a bare path) to (name, path), in the order given.

    A path with `*`, `?` or `[` stands for every folder that it matches, one model per training step, named `name@step`
    and ordered by step. Without a name the run folder's name, or the last part of a hub id, serves.
    Raises InputError for a pattern without a match, a name that cannot be a file name, and a name that stands twice.
    """
    expanded: list[tuple[str, str]] = []
    for value in models:
        name, path = _split(value)
        if glob.has_magic(path) and not Path(path).is_dir():
            folders = [Path(found) for found in glob.glob(str(user_path(path))) if Path(found).is_dir()]  # noqa: PTH207
            if not folders:
                raise InputError(f"--model {value}: no folder matches {path}")
            steps = {folder: step_of(folder) for folder in folders}
            folders.sort(key=lambda f: (steps[f] is None, steps[f] or 0, f.name))
            for folder in folders:
                mark = folder.name if steps[folder] is None else str(steps[folder])
                expanded.append((f"{name or _derived(folder, run=True)}@{mark}", str(folder)))
        else:
            expanded.append((name or _derived(Path(path), run=False), path))
    for name, path in expanded:
        if not re.fullmatch(r"[\w.+@-]{1,100}", name, re.ASCII) or name.startswith("."):
            raise InputError(
                f"--model {name[:120]}={path}: a name may hold letters, digits and . _ - + @ only, 100 at most"
            )
    seen: dict[str, str] = {}
    for name, path in expanded:
        if name.lower() in seen:
            raise InputError(
                f"--model: two models are named '{name}', upper or lower case ({seen[name.lower()]} and {path}); "
                "name them: name=path"
            )
        seen[name.lower()] = path
    return expanded


def _split(value: str) -> tuple[str | None, str]:
    name, equals, path = value.partition("=")
    if not equals or "/" in name:
        name, path = "", value
    elif not name:
        raise InputError(f"--model {value}: no name before '='")
    if not path.strip():
        raise InputError(f"--model {value}: no path; give name=path")
    return name or None, path


def _derived(path: Path, *, run: bool) -> str:
    """`ba@300` for runs/ba/checkpoint-300, `Qwen3-0.6B` for Qwen/Qwen3-0.6B, `ba` for the pattern runs/ba/*."""
    path = path.expanduser().absolute() if path.is_dir() else path
    step = _STEP.fullmatch(path.name)
    if run or step:
        plain = re.sub(r"[^\w.+-]", "-", path.parent.name, flags=re.ASCII).lstrip(".") or "model"
        return plain if run else f"{plain}@{step[1]}" if step else plain
    return re.sub(r"[^\w.+@-]", "-", path.name, flags=re.ASCII).lstrip(".") or "model"
