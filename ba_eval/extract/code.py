"""Takes the program out of a response. What is taken is run as it stands: it is never rewritten."""

import ast
import re
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ba_eval.extract.fences import PYTHON, Block, fenced_blocks
from ba_eval.extract.thinking import TURN_ENDS, split_thinking

MAX_PROGRAM_CHARACTERS = 512 * 1024
"""Longer programs are not run (the largest limit on source that contest sites set)."""

_MAX_BLOCKS = 64
_MAX_ATTEMPTS = 20
_READS = re.compile(r"\b(?:input\b(?!\s*=)|(?:stdin|fileinput|open\s*\(\s*0|read\s*\(\s*0)\b)")
_PRINTS = re.compile(r"\b(?:print|stdout|write)\b")
_CODE_LINE = re.compile(
    r"(?:import\s|from\s+[\w.]+\s+import\b|(?:async\s+)?def\s|class\s|@\w|for\s|while\s|if\s|print\s*\(|sys\."
    r"|[A-Za-z_][\w, ]*=)"
)
_MARK = re.compile(r"\[/?[A-Z]+\]")
_QUOTE = re.compile(r"^[ \t]{0,3}>[ \t]?", re.MULTILINE)
_QUOTED_FENCE = re.compile(_QUOTE.pattern + r"[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_TURN_END = re.compile(
    rf"(?:{'|'.join(map(re.escape, TURN_ENDS))})\s*"
    r"(?:\Z|<\|(?:im_start|start_header_id|begin_of_text)\|>.*\Z)",
    re.DOTALL,
)
"""The end of the model's turn, with what it made up behind it."""
_parsing = threading.Lock()


@dataclass(frozen=True)
class Extraction:
    """The program of a response, or None.

    `complete` is False where the response was cut off and the program may go on past its end. `continues` is True
    where the program is the prompt's own code with the response as its continuation.
    """

    program: str | None
    complete: bool = True
    continues: bool = False


def extract_program(
    response: str, entry_point: str | None = None, prefix: str = "", truncated: bool = False
) -> Extraction:
    """Returns the program that answers: thinking is left out; then, in this order,

    1. the last fenced block that defines `entry_point` (for a program on stdin: the last one that parses, where one
       that reads and prints goes before one that only prints, and that before any other);
    2. text without a fence that does so;
    3. the body of a function that the prompt's code `prefix` began;
    4. code between lines of prose;
    5. the last block of Python, so that the verdict tells what is wrong with it.

    `entry_point` is a function's name or `Class.method`; a function of `class Solution` may be named alone. A block
    that the end of the response left open counts like the others, but where `truncated` (the engine's token limit
    was hit) it comes after all complete ones.
    """
    _, answer, closed = split_thinking(response)
    if not closed:
        return Extraction(None, complete=not truncated)
    answer = _TURN_END.sub("", answer.lstrip("\ufeff"))
    if "\r" in answer and "\n" not in answer:
        answer = answer.replace("\r", "\n")
    leading, blocks = fenced_blocks(answer, lambda text: parse(text) is not None)
    if _QUOTED_FENCE.search(answer) and all(parse(block.text) is None for block in blocks):
        leading, blocks = fenced_blocks(_QUOTE.sub("", answer), lambda text: parse(text) is not None)
    if blocks and leading.strip() and parse(answer) is not None:  # its fences stand in strings
        leading, blocks = answer, []
    leading = _without_marks(leading)
    blocks = [block for block in blocks[-_MAX_BLOCKS:] if block.text.strip()]
    accepts = _stdin_tests() if entry_point is None else _definition_tests(entry_point)
    found = _from_blocks(blocks, accepts, truncated)
    if found is None:
        found = _from_text(leading, accepts, entry_point, prefix, blocks, truncated)
    if found is None:
        found = _last_resort(blocks, truncated)
    if found.program is not None and len(found.program) > MAX_PROGRAM_CHARACTERS:
        return Extraction(None)
    return found


def _without_marks(text: str) -> str:
    """Leaves out lines such as [BEGIN] and [DONE] around a text, which Python takes for lists."""
    lines = text.split("\n")
    marked = [bool(_MARK.fullmatch(line.strip())) for line in lines]
    first, last = 0, len(lines)
    while first < last and (marked[first] or not lines[first].strip()):
        first += 1
    while last > first and (marked[last - 1] or not lines[last - 1].strip()):
        last -= 1
    return "\n".join(lines[first:last]) if any(marked[:first] + marked[last:]) else text


def parse(source: str) -> ast.Module | None:
    """Parses hostile source; None where it is not Python, or too long or deep to be."""
    return _parse(source)[0]


def callable_name(tree: ast.Module, entry_point: str) -> str | None:
    """The name under which the module binds what `entry_point` asks for, None where it does not.

    A function asked for may be a method of `class Solution`, and such a method a plain function: judges of LeetCode
    style sets take either.
    """
    return _callable_name(list(_bound(tree.body)), entry_point)


def _callable_name(bound: Sequence[tuple[str, ast.stmt]], entry_point: str) -> str | None:
    owner, _, name = entry_point.rpartition(".")
    plain = any(found == name and not isinstance(node, ast.ClassDef) for found, node in bound)
    if not owner and (plain or any(found == name for found, _ in bound)):
        return name
    for found, node in bound:
        if (
            isinstance(node, ast.ClassDef)
            and found == (owner or "Solution")
            and any(member == name for member, _ in _bound(node.body))
        ):
            return f"{found}.{name}"
    if plain:
        return name
    inherits = any(
        found == (owner or "Solution") and isinstance(node, ast.ClassDef) and node.bases for found, node in bound
    )
    return f"{owner or 'Solution'}.{name}" if inherits else None


def defines(tree: ast.Module, entry_point: str) -> bool:
    """Whether running the module binds what `entry_point` asks for. See `callable_name`."""
    return callable_name(tree, entry_point) is not None


def after_prelude(prelude: str, program: str) -> str:
    """The program with code that runs before it; only imports from `__future__` keep their place at the top."""
    if not prelude.strip():
        return program
    tree = parse(program)
    futures = [node for node in tree.body if _is_future(node)] if tree is not None else []
    if not futures:
        return f"{prelude}\n{program}"
    lines = program.split("\n")
    end = futures[-1].end_lineno or 0
    return "\n".join([*lines[:end], prelude, *lines[end:]])


def imports(program: str) -> str:
    """The import statements at a program's top level."""
    tree = parse(program)
    found = [node for node in (tree.body if tree is not None else []) if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in found if not _is_future(node))


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def code_before_entry_point(prefix: str, entry_point: str | None) -> str:
    """The part of the prompt's code that stands before the function or class asked for: imports and helpers."""
    name = (entry_point or "").rpartition(".")
    wanted = re.compile(rf"(?:async\s+)?(?:def|class)\s+{re.escape(name[0] or name[2])}\b")
    lines = prefix.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        if wanted.match(lines[number]) or re.match(r"class\s+Solution\b", lines[number]):
            while number and lines[number - 1].startswith("@"):
                number -= 1
            return "\n".join(lines[:number]).strip("\n")
    return prefix.strip("\n") if parse(prefix) is not None else ""


Test = Callable[[str, ast.Module], bool]


def _definition_tests(entry_point: str) -> list[Test]:
    def binds(tree: ast.Module, imports_too: bool) -> bool:
        own = [(name, node) for name, node in _bound(tree.body) if not _is_stub(node)]
        if not imports_too:
            own = [(name, node) for name, node in own if not isinstance(node, ast.Import | ast.ImportFrom)]
        return _callable_name(own, entry_point) is not None

    return [lambda _, tree: binds(tree, False), lambda _, tree: binds(tree, True)]


def _is_stub(node: ast.stmt) -> bool:
    """Whether a function does nothing yet: the prompt's signature and docstring, repeated."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and all(
        isinstance(part, ast.Pass) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in node.body
    )


def _stdin_tests() -> list[Test]:
    def prints(source: str, tree: ast.Module) -> bool:
        return _PRINTS.search(source) is not None and _calls(tree)

    return [
        lambda source, tree: _READS.search(source) is not None and prints(source, tree),
        prints,
        lambda _, tree: _calls(tree) and not isinstance(tree.body[0], ast.Expr),
    ]


def _from_blocks(blocks: Sequence[Block], accepts: Iterable[Test], truncated: bool) -> Extraction | None:
    trees = {block: parse(block.text) for block in blocks}
    for complete_only in (True, False) if truncated else (False,):
        for accept in accepts:
            for python in (True, False):
                for block in reversed(blocks):
                    tree = trees[block]
                    if tree is None or (block.language in PYTHON) is not python or (complete_only and not block.closed):
                        continue
                    if accept(block.text, tree):
                        return Extraction(block.text, complete=block.closed or not truncated)
    return None


def _from_text(
    leading: str,
    accepts: Sequence[Test],
    entry_point: str | None,
    prefix: str,
    blocks: Sequence[Block],
    truncated: bool,
) -> Extraction | None:
    complete = bool(blocks) or not truncated
    tree = parse(leading)
    if tree is not None and any(accept(leading, tree) for accept in accepts):
        return Extraction(leading, complete)
    if entry_point is not None and prefix:
        candidates = [(block.text, block.closed or not truncated) for block in blocks if block.language in PYTHON]
        prose = re.match(r"\S.*?\n[ \t]*\r?\n(?=[ \t]+\S)", leading, re.DOTALL)
        after_prose = [(leading[prose.end() :], complete)] if prose else []
        for body, whole in [*after_prose, (leading, complete), *candidates][::-1]:
            if (program := _continued(prefix, body, entry_point)) is not None:
                return Extraction(program, whole, continues=True)
    for accept in accepts:
        if (loose := _loose(leading, accept)) is not None:
            return Extraction(loose, complete)
    return None


def _last_resort(blocks: Sequence[Block], truncated: bool) -> Extraction:
    for tagged in (True, False):
        for block in reversed(blocks):
            if block.language in PYTHON and bool(block.language) is tagged:
                tree = parse(block.text)
                if tagged or (tree is not None and not all(isinstance(node, ast.Expr) for node in tree.body)):
                    return Extraction(block.text, block.closed or not truncated)
    return Extraction(None, complete=not truncated)


def _continued(prefix: str, body: str, entry_point: str) -> str | None:
    """The prompt's code with the body of its function after it, where that makes a program."""
    body = body.lstrip("\r\n")
    if not body.split("\n", 1)[0].strip():
        return None
    if not prefix.endswith("\n"):
        prefix += "\n"
    if body[0].isspace():
        return _with_body(prefix, body, entry_point)
    if re.search(r"\b(?:return|yield)\b", body) is None:
        return None
    # Some servers strip the response, and so the indentation of its first line alone; some models leave out all of it.
    indent = "    " * (2 if "." in entry_point else 1)
    found = _with_body(prefix, indent + body, entry_point)
    return found if found is not None else _with_body(prefix, textwrap.indent(body, indent), entry_point)


def _with_body(prefix: str, body: str, entry_point: str) -> str | None:
    lines = body.split("\n")
    for _ in range(_MAX_ATTEMPTS):
        program = prefix + "\n".join(lines)
        tree, error = _parse(program)
        if tree is not None:
            return program if defines(tree, entry_point) and not _returns_outside(tree) else None
        # Prose after the body: leave it out, never a line of the body itself.
        cut = error - prefix.count("\n") - 1
        if not 0 < cut < len(lines) or lines[cut][:1].isspace():
            return None
        lines = lines[:cut]
    return None


def _returns_outside(tree: ast.Module) -> bool:
    """Whether a `return` stands outside of any function, which the parser lets pass."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def _loose(text: str, accept: Test) -> str | None:
    """Code among lines of prose without a fence: from a line that begins like code up to where Python ends."""
    lines = text.split("\n")
    passed = attempts = 0
    for start, line in enumerate(lines):
        if start < passed or not _CODE_LINE.match(line):
            continue
        chunk = lines[start:]
        while attempts < _MAX_ATTEMPTS:
            attempts += 1
            source = "\n".join(chunk)
            tree, error = _parse(source)
            if tree is not None:
                if accept(source, tree):
                    return source
                passed = start + len(chunk)
                break
            if not 1 < error <= len(chunk) or chunk[error - 1][:1].isspace():
                break
            chunk = chunk[: error - 1]
    return None


def _parse(source: str) -> tuple[ast.Module | None, int]:
    """Parses; where that fails, the line of the error comes instead (0 where none is known)."""
    if len(source) > MAX_PROGRAM_CHARACTERS:
        return None, 0
    try:
        with _parsing, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source), 0
    except SyntaxError as error:
        return None, error.lineno or 0
    except (ValueError, RecursionError, MemoryError, OverflowError):
        return None, 0


def _calls(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(tree))


def _bound(body: Sequence[ast.stmt]) -> Iterable[tuple[str, ast.stmt]]:
    """Names that statements bind, those inside `if`, `try`, `with` and loops included."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id, node
        else:
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.stmt):
                    waiting.append(inner)
                elif isinstance(inner, ast.ExceptHandler):
                    waiting.extend(inner.body)
