"""The program that a response means is the one that is taken, as it stands."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_eval.extract.code import (
    MAX_PROGRAM_CHARACTERS,
    code_before_entry_point,
    defines,
    extract_program,
    imports,
    parse,
)

READS = "print(int(input()) * 2)"
DEFINES = "def f(n):\n    return n + 1"
PREFIX = 'from typing import List\n\n\ndef f(n: int) -> int:\n    """ Add one. """\n'


def fenced(code: str, tag: str = "python", fence: str = "```") -> str:
    return f"{fence}{tag}\n{code}\n{fence}\n"


@pytest.mark.parametrize(
    "response",
    [
        fenced(READS),
        fenced(READS, tag=""),
        fenced(READS, tag="Python3"),
        fenced(READS, fence="~~~"),
        fenced(READS, fence="````"),
        f"Draft:\n{fenced('print(int(input()))')}Final:\n{fenced(READS)}",
        f"{fenced(READS)}Complexity:\n{fenced('O(n)', tag='')}",
        f"{fenced(READS)}Output for the sample:\n{fenced('8', tag='')}",
        f"{fenced(READS)}Sample:\n{fenced('4 5 6', tag='text')}",
        f"{fenced(READS)}In JavaScript:\n{fenced('console.log(1)', tag='javascript')}",
        f"{fenced(READS)}Try it:\n{fenced('print(solve(5))')}",
        f"{fenced(READS)}Broken thought:\n{fenced('print(int(input(')}",
        f"```python\n{READS}",  # the stop string took the closing fence
        f"{fenced('print(int(input()))')}Better:\n```python\n{READS}\n",
        f"```python\nx = 1\n\nBetter:\n```python\n{READS}\n```",  # the first was never closed
        f"{fenced(READS)}The marker ``` is not code and ``` neither.",
        f"{READS}\n```\nThat is all.",  # the prompt ended with the opening fence
        f"Answer: ```python\n{READS}\n```",
        f"```python\n{READS}```",
        f"1. Code:\n   ```python\n   {READS}\n   ```\n",
        f"2) ```python\n   {READS}\n   ```\n",
        f"- ```\n  {READS}\n  ```\n",
        f"```\npython\n{READS}\n```",
        f"\ufeff{READS}",
        f"[BEGIN]\n{READS}\n[DONE]",
        f"[PYTHON]\n{READS}\n[/PYTHON]\n",
        f"{fenced(READS)}To try it:\n{fenced('import subprocess' + chr(10) + 'print(subprocess.run([], input=None))')}",
        f"```python\r\n{READS}\r\n```\r\n",
        f"````markdown\n{fenced(READS)}````\n",
        f"So:\n> ```python\n> {READS}\n> ```\n",
        f"Draft:\r```python\r{READS}\r```\r",
        f"<think>{fenced('print(input())')}</think>{fenced(READS)}",
        f"first {fenced('print(input())')}</think>\n{READS}",
        READS,
        f"Here it is.\n\n{READS}\n\nIt doubles the number, doesn't it?",
    ],
)
def test_program_on_stdin(response: str) -> None:
    program = extract_program(response).program
    assert program is not None
    assert program.strip() == READS


@pytest.mark.parametrize(
    "response",
    [
        fenced(DEFINES),
        f"{fenced(DEFINES)}Usage:\n{fenced('print(f(1))')}",
        f"{fenced(DEFINES)}Helper only:\n{fenced('def g(n):' + chr(10) + '    return n')}",
        f"{fenced('def f(n):' + chr(10) + '    return n')}Fixed:\n{fenced(DEFINES)}",
        f"{fenced(DEFINES)}Usage:\n{fenced('from solution import f' + chr(10) + 'print(f(1))')}",
        f"{DEFINES}\n```",
        f"{DEFINES}\n```\nUsage:\n{fenced('print(f(1))')}",
        f"The function is\n\n{DEFINES}\n\nThis adds one, so f(1) is 2.",
        f"Thus:\n\n{DEFINES}\n\nIt's that simple.",
    ],
)
def test_function(response: str) -> None:
    program = extract_program(response, "f").program
    assert program is not None
    assert program.strip() == DEFINES


@pytest.mark.parametrize(
    "body",
    [
        "    return n + 1\n",
        "\n    return n + 1\n",
        "return n + 1",  # stripped by a server
        "if n:\n        return n + 1\n    return 1",
        "if n:\n    return n + 1\nreturn 1",
        fenced("for i in [n]:\n    n += 1\nreturn n"),
        "The body is:\n\n    return n + 1\n",
        "    return n + 1\n```\nDone.",
        "    return n + 1\n\nThis is it, isn't it?",
        fenced("    return n + 1"),
    ],
)
def test_body_continues_the_prompt(body: str) -> None:
    found = extract_program(body, "f", prefix=PREFIX)
    assert found.continues
    assert found.program is not None
    namespace: dict[str, object] = {}
    exec(found.program, namespace)  # written above, not by a model
    assert namespace["f"](1) == 2  # type: ignore[operator]


def test_the_prompt_repeated_is_no_program() -> None:
    prefix = 'import math\n\ndef f(xs):\n    """Adds."""\n'
    response = f"The function:\n```python\n{prefix}```\nits body:\n```python\n    return sum(xs)\n```"
    found = extract_program(response, "f", prefix)
    assert (found.program, found.continues) == (prefix + "    return sum(xs)", True)
    whole = prefix + "    return sum(xs)"
    assert extract_program(f"```python\n{whole}\n```\n```python\n{prefix}    ...\n```", "f", prefix).program == whole


@pytest.mark.parametrize(
    "end",
    ["<|im_end|>", "<|eot_id|>\n", "</s>", "<|im_end|>\n<|im_start|>user\nAnd g?\n<|im_start|>assistant\nprint(0)"],
)
def test_what_follows_the_end_of_the_turn_is_left_out(end: str) -> None:
    program = "n = int(input())\nprint(n * 2)"
    assert extract_program(program + end).program == program
    assert extract_program(f"```python\n{program}\n```{end}").program == program
    assert extract_program("print('<|im_end|>', input())").program == "print('<|im_end|>', input())"


def test_usage_is_not_taken_for_a_body() -> None:
    found = extract_program(fenced("print(f(1))"), "f", prefix=PREFIX)
    assert not found.continues


def test_whole_program_is_not_a_continuation() -> None:
    assert not extract_program(fenced(PREFIX + "    return n + 1"), "f", prefix=PREFIX).continues


def test_fence_inside_a_string_of_the_program() -> None:
    code = 'def f(n):\n    """Adds one.\n\n    ```python\n    f(1)\n    ```\n    """\n    return n + 1'
    assert extract_program(f"Here:\n{fenced(code)}Done.\n{fenced('f(1)')}", "f").program == code
    assert extract_program(f"```python\n{code}", "f").program == code
    assert extract_program(code, "f").program == code
    odd = "x = '''"  # a stray quote must not swallow the next block
    assert extract_program(f"{fenced(odd)}and\n{fenced(DEFINES)}", "f").program == DEFINES


def test_truncated() -> None:
    draft = "def f(n):\n    return 0"
    response = f"{fenced(draft)}Better:\n```python\n{DEFINES}"
    assert extract_program(response, "f").program == DEFINES
    cut = extract_program(response, "f", truncated=True)
    assert (cut.program, cut.complete) == (draft, True)
    alone = extract_program(f"```python\n{DEFINES}", "f", truncated=True)
    assert (alone.program, alone.complete) == (DEFINES, False)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "I cannot solve this.",
        "<think>" + fenced(READS),
        fenced("#include <cstdio>\nint main() {}", tag="cpp"),
        fenced("1 2 3", tag=""),
        "The answer is O(n).",
    ],
)
@pytest.mark.parametrize("entry_point", [None, "f"])
def test_no_code(response: str, entry_point: str | None) -> None:
    assert extract_program(response, entry_point).program is None


def test_broken_program_is_shown() -> None:
    assert extract_program(fenced("def f(:\n    pass"), "f").program == "def f(:\n    pass"


@pytest.mark.parametrize(
    ("source", "entry_point", "expected"),
    [
        ("def f(): pass", "f", True),
        ("async def f(): pass", "f", True),
        ("f = lambda: 1", "f", True),
        ("f: object = len", "f", True),
        ("from math import sqrt as f", "f", True),
        ("try:\n    def f(): pass\nexcept Exception:\n    pass", "f", True),
        ("def g():\n    def f(): pass", "f", False),
        ("class Solution:\n    def f(self): pass", "f", True),
        ("class Solution:\n    def f(self): pass", "Solution.f", True),
        ("class Other:\n    def f(self): pass", "Solution.f", False),
        ("class Base:\n    def f(self): pass\nclass Solution(Base): pass", "f", True),
        ("class Solution(Base): pass\ndef g(): pass", "Other.f", False),
        ("def f(): pass", "Solution.f", True),
        ("class Solution:\n    def g(self): pass", "Solution.f", False),
        ("f(1)", "f", False),
    ],
)
def test_defines(source: str, entry_point: str, expected: bool) -> None:
    tree = parse(source)
    assert tree is not None
    assert defines(tree, entry_point) is expected


@pytest.mark.parametrize(
    ("prefix", "entry_point", "expected"),
    [
        (PREFIX, "f", "from typing import List"),
        (
            "import math\n\ndef helper():\n    return 1\n\n\ndef f():\n",
            "f",
            "import math\n\ndef helper():\n    return 1",
        ),
        ("from functools import cache\n@cache\ndef f(n):\n", "f", "from functools import cache"),
        ("class Solution:\n    def f(self):\n", "Solution.f", ""),
        ("# note\nclass Solution:\n    def f(self):\n", "f", "# note"),
        ("import math\n", None, "import math"),
        ("", "f", ""),
    ],
)
def test_code_before_entry_point(prefix: str, entry_point: str | None, expected: str) -> None:
    assert code_before_entry_point(prefix, entry_point) == expected


def test_imports() -> None:
    program = "from __future__ import annotations\nimport sys, os as o\ndef f():\n    import re\nfrom math import *\n"
    assert imports(program) == "import sys, os as o\nfrom math import *"
    assert imports("def f(:") == ""


@pytest.mark.parametrize(
    "source",
    [
        "\x00",
        "\ud800 = 1",
        "(" * 100_000,
        "-" * 200_000 + "1",
        "x" + ".a" * 100_000,
        "[" * 150 + "]" * 150,
        "a" * (MAX_PROGRAM_CHARACTERS + 1),
        "x = '\\d'",
        "1 if " * 50_000,
        "def f():\n" + "".join(" " * depth + "if 1:\n" for depth in range(1, 200)),
    ],
    ids=range(10),
)
def test_hostile_source(source: str) -> None:
    parse(source)  # neither raises nor warns
    extract_program(fenced(source), "f")
    extract_program(source)


FENCES = ["```", "```python", "~~~", "````", "```text", "```markdown", "  ```", "x ```", "x ```py", '"""', "'''"]
CODE = ["def f(n):", "    return n", "input()", "print(1)", "class Solution:", "(", "\r"]
PIECES = st.sampled_from([*FENCES, *CODE, "prose, isn't it", "", "<think>", "</think>"])


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30).map("\n".join), st.sampled_from([None, "f", "Solution.f"]), st.booleans())
def test_taken_as_it_stands(response: str, entry_point: str | None, truncated: bool) -> None:
    program = extract_program(response, entry_point, truncated=truncated).program
    if program is not None:
        lines = iter(response.replace("\r", "").split("\n"))  # every line comes from the response, in order
        assert all(any(part.strip() in line for line in lines) for part in program.replace("\r", "").split("\n"))


@pytest.mark.parametrize(
    "unit",
    [
        "```\n",
        "```python\nx = 1\n",
        "```python\n'''\n```\n",
        "~~~\n",
        "a ",
        "`",
        " `\n",
        "x = 1\n",
        "def f(:\n",
        "It's\n",
        "    ",
    ],
)
def test_time_bounded(unit: str) -> None:
    started = time.process_time()
    extract_program(unit * (300_000 // len(unit)), "f", prefix=PREFIX)
    assert time.process_time() - started < 20


def test_published_extractions(shared: Path) -> None:
    """Responses of one model to 1,055 contest problems, with the code that its judge took from them."""
    rows = [json.loads(line) for line in (shared / "verdicts/lcb_v6_1055_Qwen2.5-Ins-7B.jsonl").open()]
    other, empty = [], 0
    for row in rows:
        entry_point = None
        if row["starter_code"]:
            entry_point = "Solution." + row["starter_code"].split("def ")[1].split("(")[0].strip()
        for response, code in zip(row["output_list"], row["code_list"], strict=True):
            program = extract_program(response, entry_point).program or ""
            if not code:
                empty += 1  # a second closing fence, or none, made that judge take nothing
            elif program.strip() != code.strip():
                other.append(row["question_id"])
    assert (len(rows), empty, other) == (1055, 14, [])
