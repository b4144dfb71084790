"""Rows of math sets, whatever their columns are called and however they write an answer, as problems."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ba_eval.benchmark.definition import Definition
from ba_eval.benchmark.problem import Problem
from ba_eval.benchmark.source import Row
from ba_eval.errors import InputError

# Names in the wild, matched without case; the first that is there and not empty counts.
COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("unique_id", "question_id", "task_id", "problem_id", "id", "idx"),
    "problem": ("problem", "question", "prompt", "question_content", "statement", "query", "input"),
    "answer": ("expected_answer", "final_answer", "answer", "answers", "gold", "label", "target", "ground_truth",
               "reward_model"),
    "solution": ("reference_solution", "solution", "solutions", "canonical_solution", "reference", "rationale"),
    "entry_point": ("entry_point", "fn_name", "func_name"),
    "tests": ("tests", "test", "test_list", "test_cases", "input_output"),
}  # fmt: skip

_META = ("subject", "subfield", "level", "difficulty", "type", "answer_type", "year")

# What training rows put around a statement; a benchmark's own prompt says it instead.
_INSTRUCTIONS = (
    r"\ASolve the following math problem step by step\.[^\n]*\n+",
    r'\s+Remember to put your answer on its own line after "Answer:"\.\s*\Z',
    r"\s+(?:Let's think|Please reason) step by step,? and (?:output the|put your) final answer "
    r'(?:within \\boxed\{\}|after "####")\.\s*\Z',
)


def column(row: Row, definition: Definition, role: str) -> Any:
    """The value that plays a role (a key of COLUMNS) in a row, None where there is none."""
    named = definition.columns.get(role)  # type: ignore[call-overload]
    if named is not None:
        if named not in row.data:
            raise InputError(f"{row.where}: has no column '{named}' (its columns: {', '.join(row.data)})")
        return row.data[named]
    lower = {key.lower(): value for key, value in row.data.items()}
    return next((lower[name] for name in COLUMNS[role] if lower.get(name) not in (None, "", [])), None)


def statement(row: Row, definition: Definition) -> str:
    """The problem's text. Of chat messages it is the last user message, without a training set's instructions."""
    value = column(row, definition, "problem")
    if isinstance(value, Sequence) and not isinstance(value, str):
        users = [m for m in value if isinstance(m, Mapping) and m.get("role") == "user"]
        value = users[-1].get("content") if users else None
        for pattern in _INSTRUCTIONS:
            value = re.sub(pattern, "", value) if isinstance(value, str) else value
    if not isinstance(value, str) or not value.strip():
        raise InputError(
            f"{row.where}: no column holds the problem (its columns: {', '.join(row.data)}); name it under 'columns:'"
        )
    context = row.data.get("context")
    return f"{context.strip()}\n\n{value.strip()}" if isinstance(context, str) and context.strip() else value.strip()


def math_problem(row: Row, definition: Definition) -> Problem:
    """Reads a math row. The id is still the row's own (or empty): see `assign_ids`."""
    answer, solution = column(row, definition, "answer"), column(row, definition, "solution")
    if isinstance(solution, (list, tuple)):
        solution = "\n\n".join(str(part) for part in solution)
    golds = golds_of(answer if answer is not None else _last_box(solution))
    if row.data.get("is_multiple_answer") and len(golds) > 1:  # all of them are the answer, not one of them
        golds = (", ".join(golds),)
    if not golds:
        raise InputError(
            f"{row.where}: no column holds the answer (its columns: {', '.join(row.data)}); name it under 'columns:'"
        )
    if solution is None and isinstance(answer, str) and "####" in answer:
        solution = answer
    meta = {name: row.data[name] for name in _META if row.data.get(name) is not None}
    if row.data.get("unit"):
        meta["unit"] = str(row.data["unit"])
    if row.data.get("is_multiple_answer"):
        meta["multiple"] = True
    if row.data.get("error"):
        meta["tolerance"] = _tolerance(row)
    return Problem(
        id=own_id(row, definition),
        prompt=statement(row, definition),
        golds=golds,
        reference=str(solution) if solution else None,
        meta=meta,
    )


def own_id(row: Row, definition: Definition) -> str:
    """The row's own id, empty where it has none."""
    value = row.data.get(definition.id) if definition.id not in (None, "words", "row") else None
    value = column(row, definition, "id") if value is None else value
    return "" if value is None else str(value)


def golds_of(value: Any) -> tuple[str, ...]:
    """The accepted answers in an answer column: "025", 25, 25.0, `\\boxed{25}`, ["$x$"], `... #### 25`, verl's dict."""
    if isinstance(value, Mapping):
        return golds_of(value.get("ground_truth"))
    if isinstance(value, (list, tuple)):
        return tuple(dict.fromkeys(gold for item in value for gold in golds_of(item)))
    if isinstance(value, bool) or value is None:
        return ()
    if isinstance(value, (int, float)):
        return (
            (str(int(value)) if value == value and value in (int(value),) else repr(value),) if _finite(value) else ()
        )
    text = str(value).strip()
    if text.startswith('["') and text.endswith('"]'):
        try:
            listed = json.loads(text)
        except ValueError:
            listed = None
        if isinstance(listed, list) and all(isinstance(item, str) for item in listed):
            return golds_of(listed)
    if "####" in text:
        text = text.rpartition("####")[2].strip()
    boxed = _last_box(text)
    text = text if boxed is None else boxed
    dollars = re.fullmatch(r"\$([^$]*)\$", text)
    text = dollars[1].strip() if dollars else text
    integer = re.fullmatch(r"(-?)0*(\d+)(?:\.0+)?", text)
    text = f"{integer[1]}{integer[2]}" if integer else text
    return (text,) if text else ()


def _finite(value: float) -> bool:
    return value == value and abs(value) != float("inf")


def _last_box(text: Any) -> str | None:
    """What the last `\\boxed{...}` (or `\\boxed 5`) of a text holds."""
    if not isinstance(text, str):
        return None
    start = text.rfind("\\boxed")
    if start < 0:
        return None
    rest = text[start + len("\\boxed") :].lstrip()
    if not rest.startswith("{"):
        bare = re.match(r"[^\s$.,]+", rest)
        return bare[0] if bare else None
    depth = 0
    for at, char in enumerate(rest):
        escaped = at > 0 and rest[at - 1] == "\\"
        depth += 0 if escaped else (char == "{") - (char == "}")
        if depth == 0:
            return rest[1:at].strip()
    return None


def _tolerance(row: Row) -> float:
    try:
        return float(row.data["error"])
    except (TypeError, ValueError):
        raise InputError(f"{row.where}: 'error' must be a tolerance, a number, not {row.data['error']!r}") from None


def assign_ids(problems: Sequence[Problem], how: str | None) -> list[str]:
    """Gives the ids: by the first words of the statements, by ordinal, or the rows' own; ordinals where none has one.

    `words` is for sets whose copies number their rows differently: six words tell the problems of such a set apart,
    and where they do not, a hash over all letters and digits does.
    """
    own = [problem.id for problem in problems]
    if how == "words":
        ids = [_first_words(problem.prompt) for problem in problems]
        repeated = {id for id, count in Counter(ids).items() if count > 1}
        return [
            f"{id}-{_letters_hash(problem.prompt)}" if id in repeated else id
            for id, problem in zip(ids, problems, strict=True)
        ]
    if how == "row" or not any(own):
        return [str(number) for number in range(len(own))]
    return own


def _first_words(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())[:6])[:60]


def _letters_hash(text: str) -> str:
    return hashlib.sha256("".join(re.findall(r"[a-z0-9]", text.lower())).encode()).hexdigest()[:8]


def duplicates(ids: Iterable[str]) -> list[str]:
    """The ids that stand more than once."""
    return [id for id, count in Counter(ids).items() if count > 1]
