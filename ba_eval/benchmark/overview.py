"""What `ba-eval benchmarks` prints: the list, one definition, and the check of data against the pins."""

from collections.abc import Collection, Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from ba_eval.benchmark.definition import (
    Definition,
    Source,
    expand_suites,
    find,
    names,
    parse_spec,
    read_definition,
    suites,
)
from ba_eval.console import OutputConsole
from ba_eval.errors import InputError


def _console() -> OutputConsole:
    console = OutputConsole(highlight=False)
    if not console.is_terminal:  # a pipe has no width to fit into
        console = OutputConsole(highlight=False, width=200)
    return console


def print_list() -> None:
    """Prints the built-in benchmarks and suites; reads nothing but their YAML files."""
    table = Table(box=None, pad_edge=False)
    for heading, justify in (("name", "left"), ("title", "left"), ("kind", "left"), ("problems", "right")):
        table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("n", justify="right")
    table.add_column("source", overflow="fold")
    for name in names():
        definition = read_definition(find(name).path)
        rows = str(definition.pins[0].rows) if definition.pins else ""
        table.add_row(name, definition.title, definition.kind, rows, str(definition.n), source_text(definition.source))
    console = _console()
    console.print(table)
    console.print()
    for suite, members in suites().items():
        console.print(f"suite {suite}: {', '.join(members)}", soft_wrap=True)
    console.print(
        "\nYour own: a YAML file and a JSONL file beside it; give the YAML's path as the name.", soft_wrap=True
    )


def source_text(source: Source) -> str:
    """The source in a few words."""
    if source.hub:
        return " ".join(part for part in (source.hub, source.config) if part)
    return f"evalplus ({source.evalplus})" if source.evalplus else source.file or "the JSONL file beside its YAML"


def print_definition(name: str) -> None:
    """Prints one benchmark's definition."""
    spec = find(name)
    definition = read_definition(spec.path)
    console = _console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in _facts(spec.name, spec.path, definition):
        table.add_row(label, escape(value))
    console.print(table)


def _facts(name: str, path: Path, definition: Definition) -> list[tuple[str, str]]:
    source = definition.source
    facts = [
        ("name", name),
        ("title", definition.title),
        ("kind", definition.kind),
        ("file", str(path)),
        ("source", source_text(source)),
    ]
    if source.hub:
        facts.append(("revision", source.revision or "main (pinned by content)"))
        if source.files:
            facts.append(("files", ", ".join(f"{release}: {file}" for release, file in source.files.items())))
        else:
            facts.append(("split", source.split))
    facts.append(("prompt", definition.prompt))
    if definition.prompt_function:
        facts.append(("prompt (function)", definition.prompt_function))
    facts.append(
        (
            "defaults",
            f"n {definition.n}, temperature {definition.temperature}, top_p {definition.top_p}, "
            f"max_tokens {definition.max_tokens}",
        )
    )
    if definition.grader:
        facts.append(("grader", str(definition.grader)))
    facts += [("pin", str(pin)) for pin in definition.pins]
    for reason in dict.fromkeys(definition.excluded.values()):
        facts.append(
            ("reported apart", f"{reason}: {', '.join(i for i, r in definition.excluded.items() if r == reason)}")
        )
    return facts


def print_check(
    specs: Sequence[str],
    *,
    data_dir: Path | None = None,
    accept_content: Collection[str] = (),
    references: bool = False,
) -> int:
    """Loads each benchmark and prints what it is. Returns 0, or 2 where one cannot be loaded."""
    from ba_eval.benchmark.load import load

    console = _console()
    code = 0
    for spec in expand_suites(specs or names()):
        name, _ = parse_spec(spec)
        try:
            benchmark = load(name, data_dir=data_dir, accept_content=accept_content)
        except InputError as error:
            console.print(f"[red]fails[/red]  {escape(str(error))}", soft_wrap=True)
            code = 2
            continue
        facts = [f"{benchmark.rows} problems", f"golds {benchmark.golds}", f"content {benchmark.content[:16]}"]
        facts.append(f"from {benchmark.origin}")
        if benchmark.excluded:
            facts.append(f"{len(benchmark.excluded)} reported apart ({', '.join(benchmark.excluded)})")
        facts += benchmark.marks
        console.print(f"[green]ok[/green]     {escape(f'{name}: ' + '; '.join(facts))}", soft_wrap=True)
        if references:
            from ba_eval.benchmark.references import reference_failures

            total, failures = reference_failures(benchmark)
            console.print(f"       references: {total - len(failures)} of {total} pass", soft_wrap=True)
            for id, why in failures.items():
                apart = " (reported apart)" if id in benchmark.excluded else ""
                console.print(f"       {escape(f'{id}: {why}{apart}')}", soft_wrap=True)
    return code
