"""What crosses the wall: frames, and plain Python values as typed JSON. Both sides use this one file.

Neither pickle nor marshal nor repr: a value that is not exactly of a plain built-in type (a subclass, a generator, any
other object) arrives as `Opaque`, and decoding hostile bytes builds plain data or raises `WireError`, within bounds.
"""

import json
import math
import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 200
MAX_NODES = 2_000_000
MAX_BYTES = 32 << 20
MAX_FRAME = 1 << 30
_INT = 1 << 63
_DICTS = frozenset((dict, Counter, OrderedDict, defaultdict))  # all of them equal a dict with the same items
_SCALARS = frozenset((type(None), bool, int, float, str))
_PLAIN, _INTS, _FLOATS, _LISTS = (frozenset(kinds) for kinds in ((str, bool, type(None)), (int,), (float,), (list,)))
_HEADER = struct.Struct(">II")


class WireError(Exception):
    """Bytes that are no frame or no value, or more of either than is allowed."""


class Passing:
    """Values that an iterator gave, which has no other content. Equal to nothing, as an iterator."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"<iterator of {len(self.values)} values>"


class Opaque:
    """Stands for a value that is not plain data. Equal to nothing, itself included."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<{self.type_name} object>"


def pack_frame(header: dict[str, Any], *body: bytes | memoryview) -> bytes:
    """One frame: two lengths (4 bytes each, big-endian), a JSON object, raw bytes, given in any number of pieces."""
    text = _json(header)
    return b"".join((_HEADER.pack(len(text), sum(map(len, body))), text, *body))


class FrameBuffer:
    """Collects bytes and gives back whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data

    @property
    def begun(self) -> bool:
        """Whether a frame, or its beginning, has come."""
        return bool(self._data)

    def next(self) -> tuple[dict[str, Any], bytes] | None:
        """Returns the next whole frame, or None where more bytes are needed; WireError where it cannot be one."""
        data = self._data
        if len(data) < _HEADER.size:
            return None
        header_size, body_size = _HEADER.unpack_from(data)
        if header_size + body_size > MAX_FRAME:
            raise WireError("frame too large")
        end = _HEADER.size + header_size + body_size
        if len(data) < end:
            return None
        try:
            header = json.loads(data[_HEADER.size : _HEADER.size + header_size])
        except (ValueError, RecursionError) as error:
            raise WireError("frame without a header") from error
        if type(header) is not dict:
            raise WireError("frame without a header")
        with memoryview(data) as view:  # a slice of a bytearray would be a copy more
            body = bytes(view[_HEADER.size + header_size : end])
        del data[:end]
        return header, body


class _Encoder:
    """One value's way into JSON types, counting nodes."""

    def __init__(self) -> None:
        self.nodes = 0

    def pack(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is list and depth < MAX_DEPTH:
            return self.items(value, depth)
        if kind is int:
            return value if -_INT < value < _INT else {"i": hex(value)}
        if kind is float:
            return value if value - value == 0.0 else {"n": repr(value)}
        if kind is bytes or kind is bytearray:
            return {"b" if kind is bytes else "B": value.hex()}
        if kind is complex:
            return {"c": self.items((value.real, value.imag), depth)}
        if depth >= MAX_DEPTH and (kind in (list, tuple, set, frozenset, Passing) or kind in _DICTS):
            return {"o": kind.__name__ + " nested too deep"}
        if kind is tuple:
            return {"t": self.items(value, depth)}
        if kind in _DICTS:
            return {"d": [self.items(value.keys(), depth), self.items(value.values(), depth)]}
        if kind is set or kind is frozenset:
            return {"s" if kind is set else "f": self.items(value, depth)}
        if kind is Passing:
            return {"p": self.items(value.values, depth)}
        return {"o": _type_name(kind)}

    def items(self, values: Iterable[Any], depth: int) -> list[Any]:
        values = list(values)
        self.nodes += len(values)
        if self.nodes > MAX_NODES:
            raise WireError("too many values")
        kinds = set(map(type, values))
        if kinds <= _PLAIN:
            return values
        if len(kinds) == 1:
            if kinds == _INTS and min(values) > -_INT and max(values) < _INT:
                return values
            if kinds == _FLOATS and all(map(math.isfinite, values)):
                return values
            if kinds == _LISTS and depth + 1 < MAX_DEPTH:
                return [self.items(value, depth + 1) for value in values]
        return [self.pack(value, depth + 1) for value in values]


def _type_name(kind: type) -> str:
    name = type.__dict__["__name__"].__get__(kind)
    return name[:100] if type(name) is str else "?"


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"), check_circular=False)
# One for all values: JSONEncoder makes one for each, which costs more than encoding a small value.
_make_encoder: Any = getattr(json.encoder, "c_make_encoder", None)
_chunks: Any = _make_encoder and _make_encoder(
    None, _ENCODER.default, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, False
)


def _json(packed: Any) -> bytes:
    return ("".join(_chunks(packed, 0)) if _chunks else _ENCODER.encode(packed)).encode()


def encode(value: Any) -> bytes:
    """Encodes plain data; what is not plain becomes an opaque mark with its type's name. WireError: too large."""
    packed = _Encoder().pack(value, 0)
    text = _json(packed)
    if len(text) > MAX_BYTES:
        raise WireError("value too large")
    return text


def encode_call(arguments: Iterable[Any], keywords: dict[str, Any]) -> bytes:
    """Encodes the arguments of a call."""
    return encode([list(arguments), keywords] if keywords else [list(arguments)])


def decode_call(data: bytes) -> tuple[list[Any], dict[str, Any]]:
    """Decodes what `encode_call` made. WireError where it could not have made it."""
    value = decode(data)
    if type(value) is not list or not 1 <= len(value) <= 2:
        raise WireError("not a call")
    arguments, keywords = value[0], value[1] if len(value) > 1 else {}
    if type(arguments) is not list or type(keywords) is not dict or not all(type(name) is str for name in keywords):
        raise WireError("not a call")
    return arguments, keywords


def decode(data: bytes) -> Any:
    """Decodes what `encode` made. WireError where it could not have made it."""
    lists, tags = data.count(b"["), data.count(b"{")
    if len(data) > MAX_BYTES or data.count(b",") > 2 * MAX_NODES or lists + tags > MAX_NODES:
        raise WireError("value too large")
    try:
        text = data.decode()
        value, end = _DECODER.scan_once(text, 0)  # type: ignore[attr-defined]
        if end != len(text):
            raise WireError("not a value: more than one")
        return _unpack(value, 0) if tags or lists > MAX_DEPTH else value
    except WireError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, StopIteration) as error:
        raise WireError(f"not a value: {error}") from error


def _no_constant(name: str) -> None:
    raise WireError(f"not a value: {name}")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _items(values: Any, depth: int) -> list[Any]:
    if type(values) is not list or depth > 3 * MAX_DEPTH:
        raise WireError("not a value")
    kinds = set(map(type, values))
    if kinds <= _SCALARS:
        return values
    if kinds == _LISTS:
        return [_items(value, depth + 1) for value in values]
    return [_unpack(value, depth + 1) for value in values]


def _hashable(values: list[Any]) -> list[Any]:
    # Keys made to collide would turn building a dict into hours of work: each is compared with all of its hash.
    if len(values) > 64 and sum(n * n for n in Counter(map(hash, values)).values()) > 64 * len(values):
        raise WireError("too many equal hashes")
    return values


def _unpack(value: Any, depth: int) -> Any:
    if type(value) is list:
        return _items(value, depth)
    if type(value) is not dict:
        return value
    if len(value) != 1:
        raise WireError("not a value")
    [(tag, inner)] = value.items()
    if tag == "d":
        keys, values = (_items(part, depth) for part in inner)
        if len(keys) != len(values):
            raise WireError("not a value")
        return dict(zip(_hashable(keys), values, strict=True))
    if tag in ("t", "s", "f", "c", "p"):
        items = _items(inner, depth)
        if tag == "p":
            return Passing(items)
        if tag == "t":
            return tuple(items)
        if tag == "c":
            real, imaginary = items
            return complex(float(real), float(imaginary))
        return set(_hashable(items)) if tag == "s" else frozenset(_hashable(items))
    if type(inner) is not str:
        raise WireError("not a value")
    if tag == "i":
        return int(inner, 16)
    if tag == "n":
        return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[inner]
    if tag in ("b", "B"):
        raw = bytes.fromhex(inner)
        return raw if tag == "b" else bytearray(raw)
    if tag == "o":
        return Opaque(inner[:100])
    raise WireError("not a value")
