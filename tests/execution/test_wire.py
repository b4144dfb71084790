"""Plain data across the wall: exact types come back, anything else is opaque, hostile bytes are refused."""

import contextlib
import json
import math
import sys
from collections import deque
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.execution.wire import FrameBuffer, Opaque, WireError, decode, decode_call, encode, pack_frame

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
hashables = st.recursive(
    scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)
values = st.recursive(
    hashables,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.sets(hashables, max_size=4)
    ),
    max_leaves=20,
)


def types(value: Any) -> Any:
    """The value's types all the way down, and signs of zero."""
    if isinstance(value, (list, tuple)):
        return type(value), [types(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(types(key), types(item)) for key, item in value.items()]
    if isinstance(value, float):
        return type(value), math.copysign(1.0, value)
    return type(value)


@given(values)
def test_round_trip(value: Any) -> None:
    back = decode(encode(value))
    assert back == value
    assert types(back) == types(value)


@given(st.binary() | st.text().map(str.encode))
def test_hostile_bytes(data: bytes) -> None:
    with contextlib.suppress(WireError):
        decode(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("itndsfcbBox"), inner, max_size=2),
    )
)
def test_hostile_json(data: Any) -> None:
    with contextlib.suppress(WireError):
        decode(json.dumps(data).encode())


def test_special_values() -> None:
    assert math.isnan(decode(encode(float("nan"))))
    assert decode(encode([math.inf, -math.inf])) == [math.inf, -math.inf]
    assert decode(encode(10**5000)) == 10**5000
    assert decode(encode("\ud800")) == "\ud800"
    assert decode(encode({(1, 2): {3}})) == {(1, 2): {3}}
    assert type(decode(encode(bytearray(b"x")))) is bytearray


class Named(NamedTuple):
    x: int


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Liar(3), "Liar"),
        (Named(1), "Named"),
        (deque([1]), "deque"),
        ((x for x in [1]), "generator"),
        (range(3), "range"),
        (iter([]), "list_iterator"),
        ({}.keys(), "dict_keys"),
        (int, "type"),
        (object(), "object"),
    ],
)
def test_opaque(value: Any, name: str) -> None:
    back = decode(encode([value]))[0]
    assert isinstance(back, Opaque)
    assert back.type_name == name
    assert back != value
    assert back != back


def test_depth_and_size_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    back = decode(encode(nested))
    depth = 0
    while isinstance(back, list):
        back, depth = back[0], depth + 1
    assert isinstance(back, Opaque)
    assert depth <= 201
    shared_file = sys.modules[encode.__module__]
    monkeypatch.setattr(shared_file, "MAX_NODES", 20_000)
    monkeypatch.setattr(shared_file, "MAX_BYTES", 1 << 20)
    wide: list[Any] = []
    for _ in range(60):
        wide = [wide, wide]
    with pytest.raises(WireError):
        encode(wide)
    with pytest.raises(WireError):
        encode("x" * (2 << 20))
    with pytest.raises(WireError):
        decode(b"[" * 30_000)
    with pytest.raises(WireError):
        decode(b"[" * 10_000 + b"]" * 10_000)


def test_colliding_keys_are_refused() -> None:
    keys = [hex(k * (2**61 - 1)) for k in range(2, 5_000)]
    with pytest.raises(WireError):
        decode(json.dumps({"s": [{"i": key} for key in keys]}).encode())


def test_many_small_groups_of_colliding_keys_are_refused() -> None:
    colliding = [{"i": hex((k + 9) * (2**61 - 1))} for k in range(2000)]
    with pytest.raises(WireError):  # more different hashes than half
        decode(json.dumps({"s": [*colliding, *range(2005)]}).encode())
    assert decode(encode(set(range(5000)))) == set(range(5000))


@pytest.mark.parametrize("text", ["[5]", "5", "[]", "[[],5]", '[[],{"d":[[1],[2]]}]', "[[],{},1]", '{"t":[[]]}'])
def test_what_is_no_call(text: str) -> None:
    with pytest.raises(WireError):
        decode_call(text.encode())


@pytest.mark.parametrize(
    "text",
    ["NaN", "Infinity", '{"i":"x"}', '{"d":[[[]],[1]]}', '{"s":[[1]]}', '{"c":[1]}', '{"a":1,"b":2}', '{"z":"1"}'],
)
def test_what_encode_never_makes(text: str) -> None:
    with pytest.raises(WireError):
        decode(text.encode())


@given(st.lists(st.tuples(st.dictionaries(st.text(), st.integers()), st.binary())), st.integers(1, 7))
def test_frames(frames: list[tuple[dict[str, int], bytes]], step: int) -> None:
    data = b"".join(pack_frame(header, body[:2], memoryview(body)[2:]) for header, body in frames)
    buffer, got = FrameBuffer(), []
    for start in range(0, len(data), step):
        buffer.feed(data[start : start + step])
        while (frame := buffer.next()) is not None:
            got.append(frame)
        assert buffer.begun is (sum(len(pack_frame(*frame)) for frame in got) < start + len(data[start : start + step]))
    assert got == frames


def test_frames_that_are_none() -> None:
    for data in (b"\xff" * 8, b"\x00\x00\x00\x02\x00\x00\x00\x00[]", b"\x00\x00\x00\x02\x00\x00\x00\x00{]"):
        buffer = FrameBuffer()
        buffer.feed(data)
        with pytest.raises(WireError):
            buffer.next()
