"""What counts as the same output, and what does not."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.grade.compare import output_difference, same_value, show

DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ("8\n", "8"),
        ("1 2 3 \n\n", "1 2 3\n"),
        ("\n1\n", "1"),
        ("a  b", "a b"),
        ("a\tb", "a b"),
        ("1\r\n2\r\n", "1\n2\n"),
        ("1\n\n2", "1\n \n2"),
        ("0.5000001", "0.5"),
        ("6.06449510224598", "6.06449510224597979401"),
        ("1e-9", "0.0"),
        ("1e3", "1000.0"),
        ("20", "20.000000000000000"),
        ("-.5", "-0.50"),
        ("", "\n"),
        ("x" * 10**6, "x" * 10**6),
    ],
)
def test_same_output(got: str, expected: str) -> None:
    assert output_difference(got, expected) is None


@pytest.mark.parametrize(
    ("got", "expected", "difference"),
    [
        ("50000000000000001", "50000000000000000", "line 1: 50000000000000001 instead of 50000000000000000"),
        ("1" + "0" * 400, "1" + "0" * 399 + "1", "line 1"),
        ("5.0", "5", "line 1: 5.0 instead of 5"),
        ("1", "1.0000001", "line 1"),
        ("010", "10", "line 1"),
        ("yes", "YES", "line 1: yes instead of YES"),
        ("1\n2", "1 2", "line 1: 1 tokens instead of 2"),
        ("1 2", "1\n2", "line 1: 2 tokens instead of 1"),
        ("1", "1\n2", "1 lines instead of 2"),
        ("1\n2\n2", "1\n2", "3 lines instead of 2"),
        ("\n2", "1\n2", "line 1"),
        ("1\n2", "1\n\n2", "line 2"),
        ("", "0", "line 1: 0 tokens instead of 1"),
        ("0.51", "0.5", "line 1"),
        ("nan", "0.5", "line 1"),
        ("inf", "1e400", "line 1"),
        ("1e99999", "1.0", "line 1"),
        ("١", "1", "line 1"),
    ],
)
def test_other_output(got: str, expected: str, difference: str) -> None:
    assert (output_difference(got, expected) or "").startswith(difference)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (3, 3),
        (1, True),
        (True, 1),
        (3.0, 3),
        (3, 3.0),
        (0.1 + 0.1 + 0.1, 0.3),
        ([0.1 + 0.2], [0.3]),
        ((3, 3), [3, 3]),
        ([(3, (3,))], [[3, [3]]]),
        ({"a": (1,)}, {"a": [1]}),
        (math.nan, math.nan),
        (math.inf, math.inf),
        (None, None),
        ("a", "a"),
        (10**30, 10**30),
    ],
)
def test_same_value(got: Any, expected: Any) -> None:
    assert same_value(got, expected, 1e-6)


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Number(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (AlwaysEqual(), 2),
        (Number(2), 2),
        ([AlwaysEqual()], [2]),
        ([Number(2)], [2]),
        ({"a": AlwaysEqual()}, {"a": 2}),
        ({2}, [2]),
        ("2", 2),
        (2, "2"),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ([], None),
        (10**17 + 1, float(10**17)),
        (10**17 + 1, 10**17),
        (3.0000001, 3),
        (0.31, 0.3),
        (1e308, math.inf),
        (0.0, math.nan),
        ({1: 2}, {"1": 2}),
        ("ab", ["a", "b"]),
        (DEEP, [3]),
        (DEEP, DEEP[0]),
    ],
    ids=range(21),
)
def test_other_value(got: Any, expected: Any) -> None:
    assert not same_value(got, expected, 1e-6)


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(DATA)
def test_equal_after_json(value: Any) -> None:
    assert same_value(value, json.loads(json.dumps(value)), 1e-6)


@given(st.text(alphabet=st.characters(codec="utf-8")), st.text(alphabet=st.characters(codec="utf-8")))
def test_output_is_compared_without_fault(got: str, expected: str) -> None:
    assert output_difference(got, got) is None
    output_difference(got, expected)


@given(st.integers(), st.integers())
def test_integers_are_exact(got: int, expected: int) -> None:
    assert (output_difference(str(got), str(expected)) is None) is (got == expected)


@given(DATA | st.sets(st.integers()) | st.binary() | st.tuples(DATA) | st.frozensets(st.integers()))
def test_shown_as_python_writes_it(value: Any) -> None:
    text = show(value, 200)
    assert len(text) <= 250
    if len(repr(value)) <= 100:
        assert text == repr(value)


def test_showing_is_bounded() -> None:
    for value in (DEEP, [0] * 10**6, "x" * 10**7, 7**200_000, {"k": "x" * 10**7}, [10**5000], set(range(10**5))):
        assert len(show(value)) <= 350


def test_published_wrong_answers_differ(shared: Path) -> None:
    """Wrong outputs that another judge recorded, with what it expected.

    Two are right by the problems' own statements (both real numbers), which that judge compares digit by digit.
    """
    same = []
    for row in map(json.loads, (shared / "verdicts/lcb_v6_1055_Qwen2.5-Ins-7B.jsonl").open()):
        for found in map(json.loads, row["metadata"]):
            if found.get("error_code") != -2:
                continue
            if row["starter_code"]:
                equal = same_value(json.loads(_as_json(found["output"])), json.loads(_as_json(found["expected"])), 1e-5)
            else:
                equal = output_difference(found["output"], found["expected"]) is None
            if equal:
                same.append(row["question_id"])
    assert sorted(same) == ["3613", "abc375_b"]


def _as_json(text: Any) -> str:
    if not isinstance(text, str):
        return json.dumps(text)
    try:
        json.loads(text)
        return text
    except ValueError:
        return json.dumps(text)
