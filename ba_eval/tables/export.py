"""The numbers as data: JSON, CSV, and the rows behind the data frame."""

import csv as csv_module
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ba_eval.compare import SUITE
from ba_eval.stats import Estimate
from ba_eval.tables.escape import csv_text
from ba_eval.tables.numbers import Summary


def json(data: Any) -> str:
    """The numbers as JSON, NaN as null."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def records(summary: Summary) -> list[dict[str, Any]]:
    """One flat row a model and benchmark, and one for the suite where there are several benchmarks."""
    rows = []
    for model in summary.models:
        head = {
            "model": model.name,
            "aggregation": model.aggregation,
            "step": model.step,
            "training_seed": model.training_seed,
        }
        for facts in summary.benchmarks:
            cell = model.benchmarks[facts.name]
            rows.append(
                {
                    **head,
                    "benchmark": facts.name,
                    "problems": cell.problems,
                    "n": facts.n,
                    **flat("avg", cell.avg),
                    "standing": cell.standing,
                    **_estimates("pass", cell.pass_at),
                    **_estimates("maj", cell.maj_at),
                    "avg_untruncated": cell.avg_untruncated,
                    "truncated": cell.truncated,
                    "tokens_mean": cell.tokens_mean,
                    "tokens_median": cell.tokens_median,
                    "thinking_mean": cell.thinking_mean,
                    "unclosed": cell.unclosed,
                    "wanted": cell.wanted,
                    "missing": cell.missing,
                    "ungraded": cell.ungraded,
                    "errors": cell.errors,
                    "undecided": cell.undecided,
                    "apart_problems": cell.apart_problems,
                    "apart_avg": cell.apart_avg,
                }
            )
        if len(summary.benchmarks) > 1:
            rows.append(
                {
                    **head,
                    "benchmark": SUITE,
                    **flat("avg", model.suite_avg),
                    "standing": model.suite_standing,
                    **_estimates("pass", model.suite_pass_at),
                    **_estimates("maj", model.suite_maj_at),
                    "avg_untruncated": model.suite_avg_untruncated,
                    "truncated": model.suite_truncated,
                    "tokens_mean": model.suite_tokens_mean,
                    "thinking_mean": model.suite_thinking_mean,
                    "unclosed": model.suite_unclosed,
                }
            )
    return rows


def csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV with a header; undefined numbers are "-", texts cannot become spreadsheet formulas."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv_module.writer(file, lineterminator="\n")
    writer.writerow(map(csv_text, columns))
    writer.writerows([_value(row.get(name)) for name in columns] for row in rows)
    return file.getvalue()


def flat(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate as four columns."""
    return {
        name: estimate.value,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        f"{name}_se": estimate.se,
    }


def _estimates(name: str, at: Mapping[int, Estimate]) -> dict[str, float]:
    return {column: value for k, estimate in at.items() for column, value in flat(f"{name}@{k}", estimate).items()}


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "-" if math.isnan(value) else format(value, ".6g")
    return csv_text(value) if isinstance(value, str) else str(value)
