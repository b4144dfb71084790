"""Rows in the forms that are met: columns, answer types, chat messages, ids."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.benchmark.content import canonical_gold
from ba_eval.benchmark.definition import Definition
from ba_eval.benchmark.problem import Problem
from ba_eval.benchmark.rows import assign_ids, golds_of, math_problem
from ba_eval.benchmark.source import Row
from ba_eval.errors import InputError

MATH = Definition(title="Mine", kind="math", prompt="{problem}")


def read(**data: Any) -> Problem:
    return math_problem(Row(data, "mine.jsonl:1"), MATH)


@pytest.mark.parametrize(
    "value",
    [
        "25", "025", 25, 25.0, "25.0", r"\boxed{25}", r"$\boxed{25}$", ["$25$"], '["25"]', " 25\n", "so\n#### 25",
        {"ground_truth": "025", "style": "rule"}, r"Long. Thus \boxed{1} or rather \boxed{ 25 }.", "$25$", r"\boxed 25",
    ],
)  # fmt: skip
def test_one_answer_in_many_forms(value: Any) -> None:
    assert golds_of(value) == ("25",)


@pytest.mark.parametrize(
    ("value", "golds"),
    [
        (["9.6\n", "0.01"], ("9.6", "0.01")),
        (["$x$", "x"], ("x",)),
        (0.5, ("0.5",)),
        (-1.0, ("-1",)),
        ("-007", ("-7",)),
        ("0", ("0",)),
        ("000", ("0",)),
        ("[1,3]", ("[1,3]",)),
        ("$69$,$84$", ("$69$,$84$",)),
        (r"\frac{\boxed{1}}{2}", ("1",)),
        (r"\boxed{\{1, 2\}}", (r"\{1, 2\}",)),
        (r"\boxed{\left\{x : x > 0\right\}}", (r"\left\{x : x > 0\right\}",)),
        ("1.50", ("1.50",)),
        (None, ()),
        (float("nan"), ()),
        (True, ()),
        ("  ", ()),
    ],
)
def test_other_answers(value: Any, golds: tuple[str, ...]) -> None:
    assert golds_of(value) == golds


@given(st.integers(min_value=-(10**6), max_value=10**6), st.integers(min_value=0, max_value=4))
def test_integers_agree_in_every_form(number: int, zeros: int) -> None:
    padded = f"-{'0' * zeros}{-number}" if number < 0 else f"{'0' * zeros}{number}"
    forms = [
        number,
        float(number),
        str(number),
        padded,
        f"\\boxed{{{padded}}}",
        f"${padded}$",
        [padded],
        f"#### {padded}",
    ]
    assert {golds_of(form) for form in forms} == {(str(number),)}


@given(st.text(max_size=60))
def test_no_answer_text_breaks_the_reader(text: str) -> None:
    for gold in golds_of(text):
        assert gold
        canonical_gold(gold)


@pytest.mark.parametrize("name", ["problem", "Problem", "question", "Question", "PROMPT", "query"])
@pytest.mark.parametrize("answer", ["answer", "Answer", "expected_answer", "final_answer", "target", "label"])
def test_column_names(name: str, answer: str) -> None:
    problem = read(**{name: "What?", answer: 7})
    assert (problem.prompt, problem.golds) == ("What?", ("7",))


def test_named_columns_win_and_must_exist() -> None:
    definition = Definition(title="", kind="math", prompt="{problem}", columns={"problem": "text", "answer": "key"})
    row = Row({"problem": "no", "text": "yes", "answer": 1, "key": 2}, "mine.jsonl:1")
    assert math_problem(row, definition).prompt == "yes"
    assert math_problem(row, definition).golds == ("2",)
    with pytest.raises(InputError, match=r"mine.jsonl:3: has no column 'key' \(its columns: text\)"):
        math_problem(Row({"text": "x"}, "mine.jsonl:3"), definition)


def test_gold_in_the_last_box_of_the_solution() -> None:
    problem = read(problem="What?", solution=r"First \boxed{1}, then \boxed{\frac{1}{2}}")
    assert problem.golds == (r"\frac{1}{2}",)
    assert problem.reference is not None and problem.reference.startswith("First")


def test_gsm8k_answer_is_gold_and_reference() -> None:
    problem = read(question="How many?", answer="She sells 9.\n#### 18")
    assert (problem.golds, problem.reference) == (("18",), "She sells 9.\n#### 18")


@pytest.mark.parametrize(
    "content",
    [
        "What is $x$?",
        "What is $x$? Let's think step by step and output the final answer within \\boxed{}.",
        "What is $x$?\nPlease reason step by step, and put your final answer within \\boxed{}.",
        'What is $x$? Let\'s think step by step and output the final answer after "####".',
        "Solve the following math problem step by step. The last line of your response should be of the form Answer: "
        "$Answer (without quotes) where $Answer is the answer to the problem.\n\nWhat is $x$?\n\nRemember to put your "
        'answer on its own line after "Answer:".',
    ],
)
def test_chat_messages_lose_their_instruction(content: str) -> None:
    messages = [{"role": "system", "content": "Be good."}, {"role": "user", "content": content}]
    problem = read(prompt=messages, reward_model={"ground_truth": "3", "style": "rule"})
    assert problem.prompt == "What is $x$?"
    assert problem.golds == ("3",)


def test_olympiad_columns() -> None:
    problem = read(id=2592, question="How much?", final_answer=["4.2"], unit="%", error="1e-1", context=None)
    assert problem.meta == {"unit": "%", "tolerance": 0.1}
    both = read(question="Which?", final_answer=["1", "3"], is_multiple_answer=True, context="Given: x.")
    assert both.golds == ("1, 3",)
    assert both.prompt == "Given: x.\n\nWhich?"
    assert both.meta == {"multiple": True}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"text": "What?", "answer": 1}, "mine.jsonl:1: no column holds the problem"),
        ({"problem": "What?"}, "mine.jsonl:1: no column holds the answer"),
        ({"problem": "What?", "answer": ""}, "no column holds the answer"),
        ({"problem": "", "answer": 1}, "no column holds the problem"),
        ({"problem": 5, "answer": 1}, "no column holds the problem"),
        ({"prompt": [{"role": "assistant", "content": "x"}], "answer": 1}, "no column holds the problem"),
        ({"problem": "What?", "answer": 1, "error": "small"}, "'error' must be a tolerance"),
    ],
)
def test_rows_that_cannot_be_read(data: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(**data)


def ids(prompts: list[str], own: list[str], how: str | None) -> list[str]:
    return assign_ids([Problem(id=id, prompt=prompt) for prompt, id in zip(prompts, own, strict=True)], how)


def test_ids() -> None:
    prompts = ["Let $ABC$ be a triangle.", "Find  the number of\nways to go home"]
    assert ids(prompts, ["a", "b"], None) == ["a", "b"]
    assert ids(prompts, ["", ""], None) == ["0", "1"]
    assert ids(prompts, ["a", "b"], "row") == ["0", "1"]
    assert ids(prompts, ["a", "b"], "words") == ["let-abc-be-a-triangle", "find-the-number-of-ways-to"]


def test_ids_by_words_are_told_apart_by_all_letters() -> None:
    same = "Let a b c d e f be real."
    first, second, other = ids([same + " Find a.", same + " Find b.", "Else?"], ["", "", ""], "words")
    assert first != second
    assert first.startswith("let-a-b-c-d-e-") and other == "else"
    # spacing and markup do not enter, so copies of a set agree
    assert ids([f" {same}  $Find$ a.", same + " Find b."], ["", ""], "words")[0] == first
