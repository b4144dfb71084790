"""The math grader: what must not change a verdict."""

import random

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ba_eval.grade.math.decide import decide
from tests.grade.math_answers import CASES, same

integers = st.integers(-(10**6), 10**6)
expressions = st.recursive(
    st.one_of(
        st.integers(1, 99).map(str),
        st.sampled_from(["x", "y", "\\pi", "e", "\\sqrt{2}", "\\alpha"]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"\\frac{{{p[0]}}}{{{p[1]}}}"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}+{p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}-{p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]} \\cdot {p[1]}"),
        inner.map(lambda a: f"\\sqrt{{{a}}}"),
        inner.map(lambda a: f"({a})^2"),
    ),
    max_leaves=6,
)
LIGHT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(expressions)
@LIGHT
def test_an_answer_equals_itself_in_other_spellings(text: str) -> None:
    assert same(text, text)
    assert same(text, f"$ {text} $")
    assert same(text, "{" + text + "}")
    assert same(text, text.replace("\\frac", "\\dfrac"))
    assert same(text, text.replace("(", "\\left( ").replace(")", " \\right)"))
    assert same(text, text.replace("+", " + ").replace("-", "\\, - \\,").replace("\\cdot", "\\times"))


@given(expressions, expressions)
@LIGHT
def test_equivalence_is_symmetric(a: str, b: str) -> None:
    assert decide(a, b)[0] == decide(b, a)[0]


@given(integers, st.integers(1, 500), st.integers(1, 50))
@LIGHT
def test_equivalent_fractions(above: int, below: int, factor: int) -> None:
    gold = f"\\frac{{{above}}}{{{below}}}"
    assert same(gold, f"\\frac{{{above * factor}}}{{{below * factor}}}")
    assert same(gold, f"{above * factor}/{below * factor}")
    assert not same(gold, f"\\frac{{{above * factor + 1}}}{{{below * factor}}}")
    assert not same(gold, f"{above}/{below + 1}") or above == 0


@given(st.integers(0, 10**40), st.integers(0, 5))
@LIGHT
def test_leading_zeros_and_separators(value: int, zeros: int) -> None:
    assert same(str(value), "0" * zeros + str(value))
    assert same(str(value), f"{value:,}".replace(",", "{,}"))
    assert same(str(value), f"{value:,}".replace(",", "\\,"))
    assert not same(str(value), str(value + 1))


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True), st.randoms())
@LIGHT
def test_sets_have_no_order_and_tuples_have(items: list[int], draw: random.Random) -> None:
    shuffled = items[:]
    draw.shuffle(shuffled)
    listed, other = ", ".join(map(str, items)), ", ".join(map(str, shuffled))
    assert same(listed, other)
    assert same(f"\\{{{listed}\\}}", f"\\{{{other}\\}}")
    assert same(f"({listed})", f"({other})") == (items == shuffled)
    assert not same(listed, ", ".join(map(str, items[:-1])))


@given(st.integers(-99, 99), st.integers(1, 99), st.booleans(), st.booleans())
@LIGHT
def test_intervals_and_inequalities(low: int, width: int, left: bool, right: bool) -> None:
    high = low + width
    interval = f"{'[' if left else '('}{low}, {high}{']' if right else ')'}"
    less = {True: "\\le", False: "<"}
    assert same(interval, f"{low} {less[left]} x {less[right]} {high}")
    assert same(f"{low} {less[left]} x {less[right]} {high}", interval)
    assert not same(interval, f"{low} {less[not left]} x {less[right]} {high}")


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_is_decided_without_an_error(gold: str, answer: str) -> None:
    assert "fault" not in decide(gold, answer)[1]


@given(st.text(alphabet="0123456789xyi+-*/^_={}()[]<>,.;:|!%\\ $'&", max_size=40))
@example("<0i")
@settings(max_examples=300, deadline=None)
def test_any_notation_is_decided_without_an_error(answer: str) -> None:
    for gold in ("5", "x<3", "(1,2)", "x+1", "\\{1,2\\}"):
        decide(gold, answer)
        decide(answer, gold)


def test_a_verdict_does_not_depend_on_what_was_graded_before() -> None:
    pairs = [(case["gold"], case["answer"]) for case in CASES if "answer" in case and isinstance(case["gold"], str)]
    pairs = pairs[::5]
    first = [decide(gold, answer) for gold, answer in pairs]
    order = list(range(len(pairs)))
    random.Random(5).shuffle(order)
    again = {i: decide(*pairs[i]) for i in order}
    assert first == [again[i] for i in range(len(pairs))]
