"""Gates: thresholds, drops beyond noise, and what a CI system reads."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_eval.errors import InputError
from ba_eval.gate import Finding, Gate, check, parse_gate
from ba_eval.gate_report import annotations, junit
from ba_eval.results import Results, load
from tests.runs import make_run


def study(folder: Path, share: float, seed: int = 0, problems: int = 200, **more: object) -> Results:
    generator = np.random.default_rng(seed)
    chances = np.random.default_rng(99).uniform(-0.2, 0.2, problems)[:, None] + share
    scores = {"ba": {name: generator.random((problems, 4)) < chances for name in ("x", "y")}}
    return load(make_run(folder, scores, **more))  # type: ignore[arg-type]


def verdicts(findings: list[Finding]) -> dict[str, bool]:
    return {finding.gate: finding.passed for finding in findings}


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("math500:avg=0.30", Gate("min", "math500", 0, 0.3)),
        ("suite:pass@16=0.5", Gate("min", "suite", 16, 0.5)),
        ("livecodebench@2024-08..2025-02:avg=1", Gate("min", "livecodebench@2024-08..2025-02", 0, 1.0)),
    ],
)
def test_gates_are_parsed(text: str, gate: Gate) -> None:
    assert parse_gate("min", text) == gate


@pytest.mark.parametrize("text", ["", "math500", "math500:avg", "math500:avg=", "math500:avg=high", "a:avg=nan",
                                  "a:maj=0.1", "a:pass@0=0.1", "a:avg=30", "a:avg=-0.1", ":avg=0.3"])  # fmt: skip
def test_what_is_no_gate_is_bad_input(text: str) -> None:
    with pytest.raises(InputError, match="--min"):
        parse_gate("min", text)


def test_thresholds(tmp_path: Path) -> None:
    results = study(tmp_path, 0.5)
    value = float(np.mean([cell.scores.mean() for cell in results.cells.values()]))
    gates = [Gate("min", "suite", 0, round(value - 0.001, 4)), Gate("min", "suite", 0, round(value + 0.001, 4))]
    below, above = check(results, gates)[1:]
    assert below.passed and not above.passed
    assert f"{value:.4f}" in above.message


def test_a_large_drop_fails_and_a_small_one_is_noise_unless_strict(tmp_path: Path) -> None:
    baseline = study(tmp_path / "main", 0.5)
    worse = study(tmp_path / "worse", 0.4, seed=1)
    noisy = study(tmp_path / "noisy", 0.475, seed=6)
    gate = Gate("max-drop", "suite", 0, 0.01)
    assert not verdicts(check(worse, [gate], baseline))[str(gate)]
    found = check(noisy, [gate], baseline)
    assert verdicts(found)[str(gate)]
    assert "within noise" in found[-1].message
    assert not verdicts(check(noisy, [gate], baseline, strict=True))[str(gate)]
    assert verdicts(check(worse, [Gate("max-drop", "suite", 0, 0.3)], baseline, strict=True))["max-drop suite:avg=0.3"]


def test_a_rise_is_no_drop(tmp_path: Path) -> None:
    gate = Gate("max-drop", "x", 4, 0.0)
    found = check(study(tmp_path / "b", 0.7, seed=1), [gate], study(tmp_path / "a", 0.4), strict=True)
    assert verdicts(found)[str(gate)]


def test_missing_samples_fail_the_gate_not_the_score(tmp_path: Path) -> None:
    whole = study(tmp_path / "whole", 0.5)
    lacking = study(tmp_path / "lacking", 0.5, change=lambda m, b, row, i: None if (b, row, i) == ("x", 0, 0) else {})
    gate = Gate("min", "suite", 0, 0.3)
    assert verdicts(check(whole, [gate])) == {"complete": True, str(gate): True}
    assert verdicts(check(lacking, [gate])) == {"complete": False, str(gate): True}
    drop = Gate("max-drop", "suite", 0, 0.05)
    assert verdicts(check(whole, [drop], lacking)) == {"complete": True, "baseline complete": False, str(drop): True}


def test_what_cannot_be_measured_does_not_pass(tmp_path: Path) -> None:
    empty = study(tmp_path / "e", 0.5, change=lambda m, b, row, i: None if b == "x" else {})
    gates = [Gate("min", "suite", 0, 0.0), Gate("max-drop", "x", 0, 1.0)]
    found = verdicts(check(empty, gates, study(tmp_path / "a", 0.5)))
    assert not found["min suite:avg=0"] and not found["max-drop x:avg=1"]


def test_gates_that_cannot_be_checked_are_bad_input(tmp_path: Path) -> None:
    results = study(tmp_path / "a", 0.5)
    drop = Gate("max-drop", "x", 0, 0.1)
    with pytest.raises(InputError, match="did you mean 'suite'"):
        check(results, [Gate("min", "suit", 0, 0.1)])
    with pytest.raises(InputError, match="needs --baseline"):
        check(results, [drop])
    with pytest.raises(InputError, match="x has 4 samples"):
        check(results, [Gate("min", "x", 8, 0.1)])
    other = study(tmp_path / "b", 0.5, benchmarks={"x": {"content": "changed"}})
    with pytest.raises(InputError, match=r"content c-x in .* is changed"):
        check(results, [drop], other)
    grid = [[1, 0]]
    without = load(make_run(tmp_path / "c", {"ba": {"y": grid}}))
    with pytest.raises(InputError, match="has no benchmark x"):
        check(results, [drop], without)
    models = load(make_run(tmp_path / "d", {name: {"x": grid} for name in "uv"}, benchmarks={"x": {"content": "c-x"}}))
    with pytest.raises(InputError, match="has no model 'ba'"):
        check(results, [drop], models)


def test_a_drop_is_measured_in_the_same_way_only(tmp_path: Path) -> None:
    results, gates = study(tmp_path / "now", 0.5), [Gate("max-drop", "x", 0, 0.01)]
    older = study(tmp_path / "old", 0.5, change=lambda m, b, row, i: {"grader": "math 2"})
    with pytest.raises(InputError, match=r"x: grader math 1, not math 2.*ba-eval regrade RUN"):
        check(results, gates, older)
    hot = study(tmp_path / "hot", 0.5)
    keys = json.loads((hot.run / "keys.json").read_bytes())
    for parts in keys.values():
        parts["sampling"]["temperature"] = 0.6
        parts["engine arguments"] = {"dtype": "float16"}  # no matter
    (hot.run / "keys.json").write_text(json.dumps(keys))
    with pytest.raises(InputError, match=r"was not measured as ba of .*: x: temperature 1\.0, not 0\.6; a drop"):
        check(results, gates, hot)


def test_the_only_model_of_a_baseline_is_the_baseline(tmp_path: Path) -> None:
    results = study(tmp_path / "a", 0.5)
    other = load(make_run(tmp_path / "b", {"old": {"x": [[1, 1, 1, 1]] * 200}}))
    found = check(results, [Gate("max-drop", "x", 0, 0.1)], other)
    assert not found[-1].passed and "1.0000 to" in found[-1].message


FINDINGS = [
    Finding("ba", "min x:avg=0.3", True, "fine"),
    Finding("50%, <a>", "min\nx", False, "0.2 is below: 100%\n::error::x"),
]


def test_junit() -> None:
    root = ElementTree.fromstring(junit("results/run", FINDINGS))
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    cases = suite.findall("testcase")
    assert [len(case.findall("failure")) for case in cases] == [0, 1]
    assert cases[1].get("classname") == "50%, <a>"


@given(st.text(), st.text())
def test_junit_is_xml_whatever_the_names(model: str, message: str) -> None:
    ElementTree.fromstring(junit("run", [Finding(model, "g", False, message), Finding(model, "g", True, message)]))


def test_annotations_cannot_be_broken_out_of() -> None:
    [line] = annotations(FINDINGS)
    assert line == "::error title=50%25%2C <a>%3A min\\nx::0.2 is below: 100%25\\n::error::x"
