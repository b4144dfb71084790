"""Typed YAML files whose errors name the file, the line, the key and the nearest key that exists."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ba_eval.errors import InputError

T = TypeVar("T")


def read_yaml(path: Path, type: type[T]) -> T:
    """Reads a YAML mapping into a msgspec Struct.

    Raises InputError for a file that cannot be read, is not YAML, repeats a key, or does not fit the type.
    """
    data, lines = read_mapping(path)
    return convert(data, type, where=str(path), lines=lines)


def read_mapping(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Reads a YAML mapping, and the line (from 1) on which each key stands, by path (`$.models.ba`, `$.list[0]`)."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{path}{line}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: must be a mapping of keys to values")
    lines: dict[str, int] = {}
    try:
        _note_lines(node, "$", lines, path)
    except RecursionError:  # an alias inside its own anchor
        raise InputError(f"{path}: an anchor (&) holds an alias (*) of itself; write the value out") from None
    return data, lines


def _note_lines(node: Any, at: str, lines: dict[str, int], path: Path) -> None:
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            child = f"{at}.{key.value}"
            line = key.start_mark.line + 1
            if child in lines:
                raise InputError(f"{path}:{line}: key '{key.value}' stands twice (first in line {lines[child]})")
            lines[child] = line
            _note_lines(value, child, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            lines[f"{at}[{i}]"] = value.start_mark.line + 1
            _note_lines(value, f"{at}[{i}]", lines, path)


def convert(data: Any, type: type[T], *, where: str, lines: Mapping[str, int] | None = None, elsewhere: str = "") -> T:
    """Converts plain data to a Struct that forbids unknown fields; InputError names the key, its line, the nearest.

    `elsewhere` is named instead of `where` for keys that have no line in the file.
    """
    try:
        return msgspec.convert(data, type)
    except msgspec.ValidationError as error:
        message = str(error)
    of_key = re.fullmatch(r"(.*) - at `key` in `([^`]*)`", message, re.DOTALL)
    if of_key:
        bad = [key for key in _at(data, of_key[2]) if not isinstance(key, str)]
        if bad:
            where = f"{where}:{line}" if (line := (lines or {}).get(f"{of_key[2]}.{bad[0]}")) else where
            raise InputError(f"{where}: key {bad[0]!r} must be text; write it in quotes: '{bad[0]}'")
        message = f"a key: {of_key[1]} - at `{of_key[2]}`"
    found = re.fullmatch(r"(?P<what>.*?)(?: - at `(?P<at>[^`]*)`)?", message, re.DOTALL)
    assert found is not None  # the pattern takes any text
    at, what = found["at"] or "$", found["what"]
    unknown = re.search(r"unknown field `([^`]*)`", what)
    if unknown:
        name = unknown[1]
        key = f"{at}.{name}"
        what = f"unknown key '{name}'{nearest(name, _fields_at(type, at))}"
    elif what.startswith("Invalid enum value"):
        key, value = at, what.removeprefix("Invalid enum value ").strip("'")
        what = f"{at[2:]}: {value!r} is none of the values known here{nearest(value, _choices_at(type, at))}"
    else:
        own_check = re.match(r"(\w+): ", what)  # raised by a Struct's __post_init__, which names the key itself
        key = f"$.{own_check[1]}" if at == "$" and own_check else at
        what = (f"{at[2:]}: " if at != "$" else "") + what.replace("Object missing required field", "missing key")
    line = (lines or {}).get(key.split("[...]")[0])  # msgspec does not tell which value of a mapping
    raise InputError(f"{where}:{line}: {what}" if line else f"{elsewhere or where}: {what}")


def _at(data: Any, path: str) -> Any:
    """What stands at a path such as `$.source`; an empty mapping where the path is not of plain keys."""
    for name in path.split(".")[1:]:
        data = data.get(name, {}) if isinstance(data, dict) else {}
    return data if isinstance(data, dict) else {}


def _fields_at(type: Any, at: str) -> list[str]:
    """The field names of the Struct at a path such as `$.source`; empty where the path leads out of the types."""
    for name in re.findall(r"\.([^.\[]+)", at):
        info = [f for f in _struct_fields(type) if f.encode_name == name]
        if not info:
            return []
        type = info[0].type
    return [f.encode_name for f in _struct_fields(type)]


def _choices_at(type: Any, at: str) -> list[str]:
    """The words allowed at a path such as `$.source.kind`, or `$.benchmarks[0].kind`."""
    info: Any = msgspec.inspect.type_info(type)
    for name in re.findall(r"\.([^.\[]+)|\[", at):
        parts = getattr(info, "types", (info,))
        if name:
            fields = [f for part in parts for f in getattr(part, "fields", ()) if f.encode_name == name]
            values = [part.value_type for part in parts if hasattr(part, "value_type")]
            info = fields[0].type if fields else values[0] if values else None
        else:
            info = next((p.item_type for p in parts if hasattr(p, "item_type")), None)
    return [str(value) for part in getattr(info, "types", (info,)) for value in getattr(part, "values", ())]


def _struct_fields(type: Any) -> tuple[Any, ...]:
    for candidate in (type, *getattr(type, "__args__", ())):
        if isinstance(candidate, msgspec.StructMeta):
            return msgspec.structs.fields(candidate)  # type: ignore[arg-type]
    return ()


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?`, or the known names where none is near, to end an error message."""
    known = list(known)
    folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{folded[close[0]]}'?"
    return f"; known: {', '.join(known)}" if known else ""
