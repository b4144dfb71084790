"""What a study found, as files: tables, the comparison of rules, training diagnostics, plots, the report."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ba_eval.by_aggregation import study as by_aggregation
from ba_eval.compare import compare
from ba_eval.report import write_report
from ba_eval.results import Results, load
from ba_eval.stats import Estimate
from ba_eval.store import write_atomically
from ba_eval.study.config import BASE, Study
from ba_eval.study.curves import SHOWN, RuleLog, read_logs, read_rows
from ba_eval.study.gather import gather
from ba_eval.study.plots import write_plots
from ba_eval.study.state import eval_folder
from ba_eval.tables import render, write_summary
from ba_eval.tables.comparison import render_comparison
from ba_eval.tables.export import csv, flat
from ba_eval.tables.formats import RENDERERS
from ba_eval.tables.rules import render_studies, sheet
from ba_eval.tables.sheet import Column, Line, Sheet, cell
from ba_eval.tables.terminal import print_sheet


def report(study: Study, say: Callable[[str], None]) -> Results:
    """Puts the evaluations together, writes what they show into `<out>/tables` and `<out>/plots`, and prints it.

    Raises MachineError where nothing has been evaluated.
    """
    results = load(gather(study))
    write_summary(results.run, results)
    logs = read_logs(study.arms)
    tables = study.out / "tables"
    tables.mkdir(exist_ok=True)
    texts = {
        "table.md": render(results, "markdown"),
        "table.csv": render(results, "csv"),
        "training.md": RENDERERS["markdown"](training_sheet(logs)),
        "training.csv": csv(training_records(logs)),
    }
    if any(model.aggregation for model in results.plan.models):
        rules = by_aggregation(results)
        for name, by in (("rules", "aggregation"), ("curves", "step")):
            texts[f"{name}.md"] = render_studies([rules], by, format="markdown")  # type: ignore[arg-type]
        texts["curves.csv"] = render_studies([rules], "step", format="csv")
        texts["rules.json"] = render_studies([rules], format="json")
        last = last_steps(study, results)
        if BASE in {model.name for model in last.plan.models} and len(last.plan.models) > 1:
            texts["from_base.md"] = render_comparison(last, compare(last, BASE), "markdown")
        print_sheet(sheet([rules], "step"))
        print_sheet(sheet([rules], "aggregation"))
    for name, text in texts.items():
        write_atomically(tables / name, [text.encode()])
    _write_steps(study, tables / "steps.parquet")
    say(f"tables in {tables}: {', '.join(sorted(texts))}, steps.parquet")
    say(f"plots in {study.out / 'plots'}: {', '.join(write_plots(study.out / 'plots', results, logs))}")
    page = study.out / "report.html"
    write_report(results, page, BASE if (BASE in {model.name for model in results.plan.models}) else None)
    say(f"report: {page}")
    return results


def _write_steps(study: Study, file: Path) -> None:
    """Every step of every arm as it was logged, as one table."""
    import pandas

    rows = [{"arm": arm.name, "rule": arm.train.rule, "seed": arm.train.seed, **row}
            for arm in study.arms for row in read_rows(arm)]  # fmt: skip
    pandas.DataFrame(rows).to_parquet(file, index=False)


def last_steps(study: Study, results: Results) -> Results:
    """The results of the base and of the last step of each arm alone."""
    names = {BASE, *(f"{arm.name}@{arm.train.steps}" for arm in study.arms)}
    models = tuple(model for model in results.plan.models if model.name in names)
    cells = {place: cell for place, cell in results.cells.items() if place[0] in names}
    return Results(results.run, replace(results.plan, models=models), cells)


def gate_baseline(study: Study) -> Results | None:
    """What drops are measured from: the run that the gates name, else the base model's. InputError."""
    if not study.config.gates.max_drop:
        return None
    named = study.config.gates.baseline
    return load(Path(named).expanduser() if named else eval_folder(study, BASE))


def training_sheet(logs: Sequence[RuleLog]) -> Sheet:
    """The training diagnostics, a column for each rule: mean over steps and seeds, with the interval over seeds."""
    columns = [Column(("training",), label=True)]
    columns += [Column((log.rule, f"{len(log.seeds)} seeds, {len(log.steps)} steps")) for log in logs]
    rows = [[cell(text), *(_shown(log.overall(name)) for log in logs)] for name, text in SHOWN.items()]
    third = {log.rule: max(1, len(log.steps) // 3) for log in logs}
    for text, part in (("first third", lambda n: slice(0, n)), ("last third", lambda n: slice(-n, None))):
        for name in ("reward", "length/mean"):
            label = f"{SHOWN[name]}, {text} of the steps"
            rows.append([cell(label), *(_shown(log.overall(name, part(third[log.rule]))) for log in logs)])
    note = (
        "Mean over sampled batches, then over seeds; interval over seeds (Student, 95 %). With two reward values "
        "balanced - sequence is 0 at ratio 1 by construction; the length variation inside a sign is what drives it."
    )
    return Sheet("Training: what drives the rules apart", tuple(columns), rows, (note,))


def training_records(logs: Sequence[RuleLog]) -> list[dict[str, object]]:
    """The curves as flat rows: rule, step, name, mean over seeds with its interval."""
    rows: list[dict[str, object]] = []
    for log in logs:
        for name in SHOWN:
            for step, estimate in zip(log.steps.tolist(), log.curve(name), strict=True):
                rows.append({"aggregation": log.rule, "step": step, "measure": name, **flat("mean", estimate)})
    return rows


def _shown(estimate: Estimate) -> tuple[Line, ...]:
    if math.isnan(estimate.value):
        return cell("-")
    if math.isnan(estimate.low):
        return cell(_digits(estimate.value))
    return cell(_digits(estimate.value), Line(f"[{_digits(estimate.low)}, {_digits(estimate.high)}]", "faint"))


def _digits(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"
