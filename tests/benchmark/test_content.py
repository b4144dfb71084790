"""Hashes: what enters them and what does not."""

from dataclasses import replace

from ba_eval.benchmark.content import content_hash, golds_hash, ids_hash
from ba_eval.benchmark.problem import CallTest, CodeTask, EvalplusTest, Problem, StdinTest

A = Problem(id="a", prompt="p", golds=("25",))
B = Problem(id="b", prompt="q", golds=("x", "y"))


def test_golds_hash_is_over_normal_golds_in_any_order() -> None:
    assert golds_hash([A, B]) == golds_hash(
        [replace(B, id="z", prompt="r", golds=("$y$", " x")), replace(A, golds=("025",))]
    )
    assert golds_hash([A, B]) != golds_hash([A])
    assert golds_hash([A, A]) != golds_hash([A])
    assert golds_hash([A, B]) != golds_hash([replace(A, golds=("26",)), B])


def test_content_hash_is_over_all_that_counts_in_any_order() -> None:
    content = content_hash([A, B])
    assert content_hash([B, A]) == content
    for changed in (
        replace(A, id="c"),
        replace(A, prompt="p "),
        replace(A, golds=("26",)),
        replace(A, meta={"tolerance": 0.1}),
    ):
        assert content_hash([changed, B]) != content
    assert content_hash([replace(A, reference="r", meta={"level": 5}), B]) == content


def test_ids_hash() -> None:
    assert ids_hash([A, B]) == ids_hash([B, A]) != ids_hash([A])


def test_tests_enter_by_their_values() -> None:
    def digest(tests: object) -> str:
        return CodeTask(tests=tests).digest  # type: ignore[arg-type]

    assert digest([StdinTest("1", "2")]) == digest((StdinTest("1", "2"),))
    assert digest([StdinTest("1", "2")]) != digest([StdinTest("1", "3")])
    assert digest([CallTest([1], 2)]) != digest([CallTest([1], 2, {"k": 1})])
    made = EvalplusTest("mbpp", "Mbpp/1", [({3, 1, 2}, 1j, (1,))], [], "def f(): pass", 0.0)
    assert digest(made) == digest(replace(made, base_input=[({1, 2, 3}, 1j, (1,))]))
    assert digest(made) != digest(replace(made, base_input=[({1, 2, 4}, 1j, (1,))]))
    assert CodeTask(tests=[StdinTest("\ud800", "")]).digest
