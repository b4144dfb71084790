"""Rows of code sets as problems: HumanEval, evalplus, and plain tests in the forms that are met."""

import ast
import builtins
import importlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from ba_eval.benchmark import livecodebench
from ba_eval.benchmark.definition import Definition
from ba_eval.benchmark.problem import CallTest, CheckTest, CodeTask, EvalplusTest, Problem, StdinTest
from ba_eval.benchmark.rows import column, own_id, statement
from ba_eval.benchmark.source import Row
from ba_eval.environment import install_line
from ba_eval.errors import InputError


def code_problem(row: Row, definition: Definition) -> Problem:
    """Reads a row of a code set, whose columns tell which form it has."""
    if "question_content" in row.data:
        return livecodebench.problem(row)
    if "base_input" in row.data:
        return evalplus_problem(row)
    if "canonical_solution" in row.data and isinstance(row.data.get("test"), str):
        return _humaneval_problem(row)
    tests = column(row, definition, "tests")
    entry_point = column(row, definition, "entry_point")
    reference = column(row, definition, "solution") or row.data.get("code")
    task = _plain_task(tests, entry_point, row)
    return Problem(
        id=own_id(row, definition),
        prompt=statement(row, definition),
        code=task,
        reference=reference if isinstance(reference, str) else None,
    )


def _humaneval_problem(row: Row) -> Problem:
    task_id, prompt, entry_point, solution, test = _strings(
        row, "task_id", "prompt", "entry_point", "canonical_solution", "test"
    )
    return Problem(
        id=task_id,
        prompt=prompt,
        code=CodeTask(tests=CheckTest(test), entry_point=entry_point, prefix=prompt),
        reference=prompt + solution,
    )


def evalplus_problem(row: Row) -> Problem:
    """Reads a row of HumanEval+ or MBPP+ as evalplus's own loader leaves it."""
    task_id, prompt, entry_point, solution = _strings(row, "task_id", "prompt", "entry_point", "canonical_solution")
    dataset: Literal["humaneval", "mbpp"] = "mbpp" if task_id.startswith("Mbpp") else "humaneval"
    tests = EvalplusTest(
        dataset=dataset,
        task_id=task_id,
        base_input=row.data["base_input"],
        plus_input=row.data["plus_input"],
        reference=prompt + solution,
        atol=float(row.data["atol"]),
    )
    return Problem(
        id=task_id,
        prompt=prompt,
        # a prompt of MBPP+ is a docstring: there is no signature that a body could continue
        code=CodeTask(tests=tests, entry_point=entry_point, prefix=prompt if dataset == "humaneval" else ""),
        reference=prompt + solution,
    )


def evalplus_rows(name: str, dataset: Literal["humaneval", "mbpp"], path: Path | None) -> Iterator[Row]:
    """Reads HumanEval+ or MBPP+ through the evalplus package, from a local file or evalplus's own download."""
    try:
        with _without_datasets():
            import evalplus.data.humaneval as humaneval
            import evalplus.data.mbpp as mbpp
    except ImportError:
        raise InputError(f"benchmark {name} needs the evalplus package: {install_line('evalplus')}") from None
    if dataset == "humaneval":
        module, override, read = humaneval, "HUMANEVAL_OVERRIDE_PATH", humaneval.get_human_eval_plus
    else:
        module, override, read = mbpp, "MBPP_OVERRIDE_PATH", mbpp.get_mbpp_plus
    before = getattr(module, override)
    if path is not None:
        setattr(module, override, str(path))
    try:
        # completeness is for the content pins to say
        rows = read(err_incomplete=False)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path or name}: evalplus cannot read it ({type(error).__name__}: {error})") from None
    except Exception as error:
        raise InputError(
            f"benchmark {name}: evalplus cannot download its data ({type(error).__name__}: {error}); put {name}.jsonl "
            "into a folder and give it as --data-dir (or BA_EVAL_DATA_DIR)"
        ) from None
    finally:
        setattr(module, override, before)
    for task_id, data in rows.items():
        yield Row(data, f"{path or name} {task_id}")


@contextmanager
def _without_datasets() -> Iterator[None]:
    """Lets evalplus be imported without the package `datasets`, which it imports for another set and which takes most
    of the time of a small file's judging; evalplus gets it when it asks for that set."""
    if "datasets" in sys.modules:
        yield
        return

    def load_dataset(*args: Any, **more: Any) -> Any:
        return importlib.import_module("datasets").load_dataset(*args, **more)

    sys.modules["datasets"] = stand_in = ModuleType("datasets")
    stand_in.load_dataset = load_dataset  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del sys.modules["datasets"]


def _strings(row: Row, *names: str) -> list[str]:
    for name in names:
        if not isinstance(row.data.get(name), str):
            raise InputError(f"{row.where}: needs a text column '{name}' (its columns: {', '.join(row.data)})")
    return [row.data[name] for name in names]


def _plain_task(tests: Any, entry_point: Any, row: Row) -> CodeTask:
    """Tests as `[{stdin, stdout}]`, `[{args, expected}]`, `{inputs, outputs}`, a test program, or a list of asserts."""
    if isinstance(tests, str) and tests.lstrip()[:1] in ("[", "{"):
        try:
            tests = json.loads(tests)
        except ValueError as error:
            raise InputError(f"{row.where}: its tests are not valid JSON: {error}") from None
    if isinstance(tests, Mapping) and "inputs" in tests:
        entry_point = entry_point or tests.get("fn_name")
        outputs = tests.get("outputs", ())
        if len(tests["inputs"]) != len(outputs):
            raise InputError(f"{row.where}: {len(tests['inputs'])} inputs but {len(outputs)} outputs")
        keys = ("args", "expected") if entry_point else ("stdin", "stdout")
        tests = [dict(zip(keys, pair, strict=True)) for pair in zip(tests["inputs"], outputs, strict=True)]
    if isinstance(tests, Mapping) and isinstance(tests.get("functional"), str):
        tests = tests["functional"]
    if isinstance(tests, Sequence) and not isinstance(tests, str) and tests and all(isinstance(t, str) for t in tests):
        setup = row.data.get("test_imports") or row.data.get("test_setup_code") or ""
        tests = "\n".join(part for part in [*([setup] if isinstance(setup, str) else setup), *tests] if part)
    if isinstance(tests, str) and tests.strip():
        return CodeTask(
            tests=CheckTest(tests),
            entry_point=entry_point or called(tests, row.data.get("code") or row.data.get("reference"), row.where),
        )
    if isinstance(tests, Sequence) and tests and all(isinstance(t, Mapping) for t in tests):
        if all({"stdin", "stdout"} <= set(t) for t in tests):
            return CodeTask(tests=[StdinTest(_text(t["stdin"], row), _text(t["stdout"], row)) for t in tests])
        if all({"input", "output"} <= set(t) for t in tests) and not entry_point:
            return CodeTask(tests=[StdinTest(_text(t["input"], row), _text(t["output"], row)) for t in tests])
        if all({"args", "expected"} <= set(t) for t in tests):
            if not entry_point:
                raise InputError(f"{row.where}: tests with 'args' need a column 'entry_point', the function's name")
            calls = [CallTest(t["args"], t["expected"], t.get("kwargs") or {}) for t in tests]
            return CodeTask(tests=calls, entry_point=str(entry_point))
    raise InputError(
        f"{row.where}: no tests that are understood: give a column 'tests' with a list of "
        '{"stdin": ..., "stdout": ...} or {"args": [...], "expected": ...}, or a test program'
    )


def _text(value: Any, row: Row) -> str:
    if isinstance(value, list) and all(isinstance(line, str) for line in value):  # one string a line, as in APPS
        return "\n".join(value)
    if not isinstance(value, str):
        raise InputError(f"{row.where}: what goes into and out of a program must be text")
    return value


def called(tests: str, reference: Any, where: str, asked: str = "give a column 'entry_point'") -> str:
    """The function that a test program is about: what its first assert calls first, or a method of Solution.

    InputError, which says what is `asked` for instead: the asserts call nothing by name.
    """
    solution = re.search(r"\bSolution\(\)\.(\w+)", tests)
    if solution:
        return f"Solution.{solution[1]}"
    try:
        nodes = list(ast.walk(ast.parse(tests)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{where}: its tests are not Python: {error}") from None
    defined = set(re.findall(r"^(?:def|class) (\w+)", reference, re.MULTILINE)) if isinstance(reference, str) else set()
    # What the tests themselves define or are given, and Python has, is not what they test.
    own = {node.arg for node in nodes if isinstance(node, ast.arg)} | set(dir(builtins))
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    names = [
        node.func.id
        for assertion in nodes
        if isinstance(assertion, ast.Assert)
        for node in ast.walk(assertion)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    known = [name for name in names if name in defined] or [name for name in names if name not in own]
    if not known:
        raise InputError(f"{where}: its tests call no function by name; {asked}")
    return known[0]
