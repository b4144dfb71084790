"""Gates: whether a run is good enough to go on, for CI."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ba_eval.compare import align
from ba_eval.errors import InputError
from ba_eval.measure import differences, measure, remedy
from ba_eval.results import Cell, Results
from ba_eval.stats import CONFIDENCE, Estimate, mean_interval, pass_at_k
from ba_eval.yaml_file import nearest

SUITE = "suite"
_FORM = re.compile(r"(?P<where>.+):(?P<metric>avg|pass@(?P<k>[1-9]\d*))=(?P<value>[^=]+)")


@dataclass(frozen=True)
class Gate:
    """One condition: `min`, the score must reach `value`; `max-drop`, it may not fall by more than `value`."""

    kind: Literal["min", "max-drop"]
    benchmark: str
    """A benchmark's name, or `suite` for the mean over all."""
    k: int
    """0 for avg@n, else the k of pass@k."""
    value: float

    def __str__(self) -> str:
        return f"{self.kind} {self.benchmark}:{f'pass@{self.k}' if self.k else 'avg'}={self.value:g}"


@dataclass(frozen=True)
class Finding:
    """What one gate found for one model."""

    model: str
    gate: str
    passed: bool
    message: str


def parse_gate(kind: Literal["min", "max-drop"], text: str) -> Gate:
    """Parses `math500:avg=0.30` or `suite:pass@4=0.5`. Raises InputError."""
    found = _FORM.fullmatch(text)
    try:
        value = float(found["value"]) if found else math.nan
    except ValueError:
        value = math.nan
    if not found or math.isnan(value):
        raise InputError(f"--{kind} {text}: write BENCHMARK:avg=SHARE or BENCHMARK:pass@K=SHARE, as math500:avg=0.30")
    if not 0 <= value <= 1:
        raise InputError(f"--{kind} {text}: shares are between 0 and 1; {value:g} may be meant as {value / 100:g}")
    return Gate(kind, found["where"], int(found["k"] or 0), value)


def check(
    results: Results,
    gates: Sequence[Gate],
    baseline: Results | None = None,
    *,
    confidence: float = CONFIDENCE,
    strict: bool = False,
) -> list[Finding]:
    """Checks the gates for every model of a run, and that nothing is missing.

    A drop is measured on the same problems of the model of the same name in `baseline` (or of its only model). It
    fails where it is larger than allowed and, unless `strict`, beyond noise: its interval at `confidence` has no zero.
    Raises InputError where a gate cannot be checked: unknown benchmark, no baseline, other problems in the baseline.
    """
    for gate in gates:
        names = _members(results, gate)
        if gate.kind == "max-drop":
            if baseline is None:
                raise InputError(f"--{gate}: needs --baseline RUN")
            _same_problems(results, baseline, names)
        for name in names:
            n = results.cells[results.plan.models[0].name, name].benchmark.n
            if n < gate.k:
                raise InputError(f"--{gate}: {name} has {n} samples a problem; pass@{gate.k} needs {gate.k}")
    drops = dict.fromkeys(name for gate in gates if gate.kind == "max-drop" for name in _members(results, gate))
    if drops and baseline is not None:
        _same_measure(results, baseline, tuple(drops))
    findings = []
    for model in (model.name for model in results.plan.models):
        findings.append(_check_complete(model, "complete", results, model))
        if baseline is not None and any(gate.kind == "max-drop" for gate in gates):
            findings.append(_check_complete(model, "baseline complete", baseline, _baseline_model(baseline, model)))
        for gate in gates:
            scores = [results.cells[model, name] for name in _members(results, gate)]
            if gate.kind == "min":
                findings.append(_check_min(model, gate, scores))
            else:
                assert baseline is not None
                old = _baseline_model(baseline, model)
                before = [baseline.cells[old, cell.benchmark.name] for cell in scores]
                findings.append(_check_drop(model, gate, scores, before, confidence, strict))
    return findings


def _check_complete(model: str, gate: str, results: Results, name: str) -> Finding:
    lacks = results.only(name).lacks()
    return Finding(model, gate, not lacks, lacks or "every sample generated and graded")


def _check_min(model: str, gate: Gate, cells: Sequence[Cell]) -> Finding:
    estimate = mean_interval([_values(cell.in_score, gate.k) for cell in cells])
    passed = estimate.value >= gate.value  # NaN does not pass
    sign = "at least" if passed else "below"
    return Finding(model, str(gate), passed, f"{_shown(estimate)}, {sign} {gate.value:.4f}")


def _check_drop(
    model: str, gate: Gate, cells: Sequence[Cell], before: Sequence[Cell], confidence: float, strict: bool
) -> Finding:
    aligned = [align(new, old) for new, old in zip(cells, before, strict=True)]
    differences = [_values(new, gate.k) - _values(old, gate.k) for new, old in aligned]
    change = mean_interval(differences, limits=(-1.0, 1.0), confidence=confidence)
    old = mean_interval([_values(cell, gate.k) for _, cell in aligned]).value
    text = f"{old:.4f} to {old + change.value:.4f}, change {_shown(change, signed=True)}"
    if math.isnan(change.value):
        return Finding(model, str(gate), False, f"{text}: undefined")
    if -change.value <= gate.value:
        return Finding(model, str(gate), True, f"{text}: at most {gate.value:.4f} down")
    if not strict and not change.high < 0:
        return Finding(model, str(gate), True, f"{text}: within noise at {100 * confidence:g} %")
    return Finding(model, str(gate), False, f"{text}: more than {gate.value:.4f} down")


def _members(results: Results, gate: Gate) -> list[str]:
    names = [benchmark.name for benchmark in results.plan.benchmarks]
    if gate.benchmark in names:
        return [gate.benchmark]
    if gate.benchmark == SUITE:
        return names
    raise InputError(
        f"--{gate}: {results.run} has no benchmark {gate.benchmark!r}{nearest(gate.benchmark, [*names, SUITE])}"
    )


def _same_problems(results: Results, baseline: Results, names: Sequence[str]) -> None:
    here = {benchmark.name: benchmark.content for benchmark in results.plan.benchmarks}
    there = {benchmark.name: benchmark.content for benchmark in baseline.plan.benchmarks}
    for name in names:
        if name not in there:
            raise InputError(f"{baseline.run}: has no benchmark {name}; run the baseline on it too")
        if here[name] != there[name]:
            raise InputError(
                f"{name}: content {here[name]} in {results.run} is {there[name]} in {baseline.run}; "
                "a drop can only be measured on the same problems"
            )


def _same_measure(results: Results, baseline: Results, names: Sequence[str]) -> None:
    """Prompt, sampling and grader must be the baseline's; fewer problems and other engine arguments are no matter."""
    for model in results.plan.models:
        old = next(m for m in baseline.plan.models if m.name == _baseline_model(baseline, model.name))
        before, now = (
            {name: {**parts[name], "problems": None, "apart": None, "engine arguments": None} for name in names}
            for parts in (measure(baseline, old), measure(results, model))
        )
        if differing := differences(before, now):
            raise InputError(
                f"{model.name} was not measured as {old.name} of {baseline.run}: {'; '.join(differing[:5])}; "
                f"a drop can only be measured in the same way{remedy(differing)}"
            )


def _baseline_model(baseline: Results, model: str) -> str:
    names = [planned.name for planned in baseline.plan.models]
    if model in names:
        return model
    if len(names) == 1:
        return names[0]
    raise InputError(f"{baseline.run}: has no model {model!r} to compare with; there are: {', '.join(names)}")


def _values(cell: Cell, k: int) -> npt.NDArray[np.float64]:
    return pass_at_k(cell.scored, cell.correct, k) if k else cell.scores


def _shown(estimate: Estimate, signed: bool = False) -> str:
    if math.isnan(estimate.value):
        return "undefined"
    form = "+.4f" if signed else ".4f"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"
