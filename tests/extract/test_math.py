"""The committed answer of a response."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_eval.extract.math import extract_answer

BOXED = [
    (r"so $\boxed{42}$.", "42"),
    (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
    (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
    (r"first \boxed{1}. After a check the value is \boxed{2}", "2"),
    (r"\boxed{7} ... again \boxed{7}", "7"),
    (r"\boxed{1}, \boxed{2} and \boxed{3}", "1, 2, 3"),
    (r"$x=\boxed{1}$ or $x=\boxed{2}$", "x = 1, x = 2"),
    (r"\boxed{3}, so the final answer is \boxed{7}", "7"),
    (r"\boxed{\boxed{5}}", "5"),
    (r"\fbox{5}", "5"),
    (r"$\boxed 5$", "5"),
    (r"\boxed 5 \boxed{12}", "5, 12"),
    (r"$\boxed(5, 6)$", "(5, 6)"),
    (r"\\boxed{5}", "5"),
    ("\x08oxed{5}", "5"),
    ("boxed{5}", "5"),
    ("<|begin_of_box|>5<|end_of_box|>", "5"),
    ("<|begin_of_box|>$\\boxed{5}$<|end_of_box|>", "5"),
]

LINES = [
    ("The answer is not 10, but 12", "12"),
    ("The final answer is not $10$ but $12$.", "12"),
    ("Answer: 11, not 10", "11"),
    ("Answer: $11$, not $10$", "11"),
    ("The answer is 12 rather than 10.", "12"),
    ("Answer: 5", "5"),
    ("**Answer:** 5", "5"),
    ("Answer: **5**", "5"),
    ("ANSWER: 5 apples", "5 apples"),
    ("Answer: 4\nNo, a slip.\nAnswer: 5", "5"),
    ("### Final Answer\n\n5", "5"),
    ("### Final Answer:\n\n$$\n5\n$$", "5"),
    ("Final Answer: The final answer is $5$. I hope it is correct.", "5"),
    ("Final Answer: The largest $n$ is 5.", "5"),
    ("Final Answer: Jane started growing it 5 hours ago.", "5"),
    ("The answer is $(1, 2)$, since both hold.", "(1, 2)"),
    ("The correct answer is (B).", "(B)"),
    ("Hence the answer is $24$ and the value of $k$ was not needed.", "24"),
    ("The answer is $n+1$, and with $n=4$, this is equal to $\\mathbf{5}$.", "\\mathbf{5}"),
    ("The answer is $x=2$ or $x=3$.", "x=2  or  x=3"),
    ("<answer>5</answer>", "5"),
    ("text\n#### 5", "5"),
    ("text\nA: 5", "5"),
    ("答案是 5。", "5"),
    ("Answer: m+n = 2+3 = 5", "m+n = 2+3 = 5"),
]

CLOSING = [
    ("We count.\n\n**Therefore, there are 12 such pairs.**", "12"),
    ("We solve.\n\n**Thus, x = 4.**", "x = 4"),
    ("Adding both sides, we are done.\nTherefore, x = 2.", "x = 2"),
    ("So we get n = -3.", "n = -3"),
    ("It is not 5, but 7.", "7"),
    ("Hence there are six such integers.", "six"),
    ("Thus x = 5.\nLet me verify: 2(5) = 10.", "x = 5"),
    ("Thus $x = 5$. Let me check this.", "x = 5"),
    ("So the maximum is 5 when x = 2.", "5"),
    ("Thus there are **5** of them.", "5"),
    ("Therefore, there are 5 such sequences.", "5"),
    ("Hence the minimum increases by 5%.", "5%"),
    ("Work.\n\n$$x = 5$$", "x = 5"),
    ("So the pair is $(1, 2)$ or $(2, 1)$.", "(1, 2)  or  (2, 1)"),
    (r"With $T=3$, the sum is $\mathbf{1 2}$.", r"\mathbf{1 2}"),
    # A value that is the subject of the sentence.
    ("This means that $k=3/4$ is the smallest constant for which the bound holds for all $x$.", "k=3/4"),
    ("We conclude that $p=2$ and $p=7$ are the only primes with this property.", "p=2  and  p=7"),
    ("Checking both, only 48 satisfies the second condition.", "48"),
    ("We find that $t=3$ works, but $t=-3$ does not.", "t=3"),
    ("Hence 96 is the largest number below 100 that divides all of them.", "96"),
    # A count with more words behind it.
    (
        "Each pair gives two of them. In the end there are $5\\cdot 4=20$ arrangements with $A$ before $B$.",
        "5\\cdot 4=20",
    ),
    ("Thus 7 of the 20 tickets win a prize.", "7"),
    ("We get one more from $x=0$, for a total of 9 solutions.", "9 solutions"),
    ("Since $n=4$, we need $2<a<9$, giving 6 possible values for $a$.", "6"),
    ("Since the pump fills $v$ litres a minute, it takes 40 minutes to fill the tank at $B$.", "40"),
    ("Thus there are $6+3=9$ good pairs, so the chance is $9/36$.", "9/36"),
    ("There are 12 of the 30 cards left, which means that the share is $2/5$.", "2/5"),
    ("Thus, the only way is $a=1$ since $a$ is at most 1, so $b=3$.", "b=3"),
    ("Therefore, $m=5$ and $n=8$ satisfy all of the conditions.", "m=5  and  n=8"),
    ("So\n\n$$\n\\begin{aligned}\nS & =3+4 \\\\\n& =\\mathbf{7} .\n\\end{aligned}\n$$", "\\mathbf{7}"),
    ("The maximum value $4$ is attained at $x=1$.", "4"),
    # What is given, then what follows.
    ("With $N=12$, $s=5$.", "s=5"),
    ("Thus $m=N/3$, and with $N=12, m=4$.", "m=4"),
    ("So $m-3=8$, and $m=11$.", "m=11"),
    ("We obtain $4y=9$ or $y=9/4$.", "y=9/4"),
    ("So the slope is $2$, and hence we have $b=7$ or $b=-7$.", "b=7  or  b=-7"),
    ("Comparing both sides we get $ab=12$, from which $a=4$.", "a=4"),
    ("so $\\cos x=3/5$ because $\\cos x>0$ for $0<x<1$.", "\\cos x=3/5"),
    (r"Then $|S\cup T|=2\cdot 50-4=\mathbf{9 6}$.", r"\mathbf{9 6}"),
    # What stands behind the answer and is none.
    ("Thus $x=4$ or $x=9$.\n\n(If $x>9$ the left side is larger, so there are no others.)", "x=4  or  x=9"),
    ("Thus $x=4$.\n\n**Verification:**\n\n$2\\cdot 4+1=9$, as it should be.", "x=4"),
    ("(Check: $c=3$ fits, as $8=5+3$.) Thus\n\n$$d=6$$\n\nand the sum, which is what we want, equals 14.", "14"),
    ("The roots are\n\n$$\nx=1, 6\n$$\n\nWe can check by substitution that both are right.", "x=1, 6"),
    ("Therefore\n$$\nx=\\pi k\n$$\nfor $k \\in \\mathbb{Z}$.", "x=\\pi k"),
    ("The candidates are 12, 18 and 27. The largest of these is 27.", "27"),
    ("The number of tiles is $n/2$. With $T=19$, $n=16$, and the number is 8.", "8"),
]

NOTHING = [
    "",
    "   \n\n ",
    r"\boxed{}",
    "We have 3 apples and 4 pears, which makes many pieces of fruit in the bowl",
    "Let me compute. 3+4=7. Then 7+1=8",
    "#### Step 4 is next",
    "It is false that $x=5$ is the only solution, and we are left with nothing",
    "So there are cases to look at",
    "Hence there are six cases.",
    "It is not 5.",
    "So we must look at what happens if x = 2.",
]


@pytest.mark.parametrize(("text", "answer"), BOXED)
def test_boxed(text: str, answer: str) -> None:
    found = extract_answer(text)
    assert (found.answer, found.method) == (answer, "boxed")


@pytest.mark.parametrize(("text", "answer"), LINES)
def test_answer_lines(text: str, answer: str) -> None:
    found = extract_answer(text)
    assert (found.answer, found.method) == (answer, "answer-line")


@pytest.mark.parametrize(("text", "answer"), CLOSING)
def test_closing(text: str, answer: str) -> None:
    found = extract_answer(text)
    assert (found.answer, found.method) == (answer, "closing")


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_committed(text: str) -> None:
    assert extract_answer(text).answer is None


def test_a_final_answer_behind_the_box_overrules_it() -> None:
    text = r"The interest is \boxed{255}. Final Answer: The final answer is $10,455$."
    assert extract_answer(text).answer == "10,455"


def test_an_open_box_is_marked() -> None:
    found = extract_answer(r"so \boxed{12 + 3")
    assert (found.answer, found.method, found.closed) == ("12 + 3", "boxed", False)
    found = extract_answer(r"so $\boxed{12 + 3$ is what we get")
    assert (found.answer, found.method, found.closed) == ("12 + 3", "open box", True)


def test_last_number_only_where_asked() -> None:
    text = "That makes 3 and 4 and later 1,234 of them in all of the places"
    assert extract_answer(text).answer is None
    assert extract_answer(text, ("boxed", "last-number")).answer == "1,234"


def test_methods_in_the_order_asked() -> None:
    text = "Answer: 5\n\\boxed{6}"
    assert extract_answer(text, ("answer-line", "boxed")).answer == "5"
    assert extract_answer(text, ("answer-line",)).answer == "5"


@given(st.text(alphabet="0123456789+-x ", min_size=1).filter(lambda s: s.strip()), st.text(max_size=200))
@settings(deadline=None)
def test_a_last_box_is_found_whatever_stands_before(content: str, before: str) -> None:
    text = before.replace("boxed", "").replace("box", "") + "\n\n\\boxed{" + content + "}"
    assert (extract_answer(text, ("boxed",)).answer or "").split() == content.split()


@given(st.text(max_size=400))
@settings(deadline=None)
def test_never_raises(text: str) -> None:
    extract_answer(text, ("boxed", "answer-line", "closing", "bare", "last-number"))


@given(st.text(alphabet="\\boxed{}$*[]()answeris: #\nA.,1", max_size=300))
@settings(deadline=None)
def test_never_raises_on_fragments(text: str) -> None:
    extract_answer(text, ("boxed", "answer-line", "closing", "bare", "last-number"))


FODDER = {
    "boxes": "\\boxed{",
    "dollars": "$",
    "spaced dollars": "$a ",
    "round": "\\(",
    "square": "\\[",
    "stars": "*",
    "bold": "**a ",
    "answers": "answer ",
    "answer is": "answer is ",
    "hashes": "#",
    "spaces": " ",
    "newlines": "\n",
    "digits": "7",
    "commas": "1,",
    "ands": "\\boxed{1} and ",
    "is": "so it is ",
    "box tokens": "<|begin_of_box|>",
    "tags": "<answer>",
    "struck out": "~~a~~ ",
    "items": "- 3\n",
    "tuples": "(3,4)\n",
    "refuted": "so 5 is impossible ",
    "supposed": "suppose the answer is ",
    "denied boxes": "not \\boxed{5} ",
    "turns": "\nQuestion: a\nAnswer: 5",
    "money": "so she has $5 for ",
    "limits": "at least 5 ",
}


@pytest.mark.parametrize("piece", FODDER.values(), ids=FODDER.keys())
def test_linear_in_the_length(piece: str) -> None:
    """Twenty times the text takes about twenty times as long, not four hundred times."""
    times = []
    for size in (20_000, 400_000):
        text = (piece * (size // len(piece) + 1))[:size]
        start = time.process_time()
        extract_answer(text, ("boxed", "answer-line", "closing", "bare", "last-number"))
        times.append(time.process_time() - start)
    assert times[1] < 100 * max(times[0], 0.005)
