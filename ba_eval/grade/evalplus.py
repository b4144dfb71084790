"""HumanEval+ and MBPP+: when an output counts as the reference's, and what a program's base and plus status are."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ba_eval.benchmark.problem import CodeTask, EvalplusTest
from ba_eval.execution import Call, CallResult, Limits, Opaque
from ba_eval.execution.wire import encode, encode_call
from ba_eval.grade.compare import same_plain, same_structure, show
from ba_eval.grade.expected import Digest, Expected, ExpectedOutputs
from ba_eval.grade.trial import Part, Runner, SandboxFailed, Trial, call_all, show_call

RELATIVE_TOLERANCE = 1e-7
FLOAT_TOLERANCE = 1e-6
"""Absolute, for floats of problems that state none."""

_ONLY_NOT_NONE = frozenset({"check_str", "text_match_three", "text_starta_endb"})
_AS_SETS = {
    *("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum"),
    *("intersection_array", "find_dissimilar", "Diff"),
}


def agrees(test: EvalplusTest, entry_point: str, arguments: Sequence[Any], got: Any, expected: Any) -> bool:
    """Whether an output counts as the reference's, by the rules of evalplus 0.3.1 on plain built-in types.

    Equal as Python has it (a tuple is not a list), or of the same type with floats within `atol` (1e-6 where the
    problem states none) plus 1e-7 of the expected value. Some problems have rules of their own: see `_ORACLES`.
    Integers are always exact.
    """
    oracle = _ORACLES.get((test.dataset, entry_point))
    if oracle is not None:
        return oracle(test, arguments, got, expected)
    if test.dataset == "mbpp" and entry_point in _AS_SETS:
        return _same_set(got, expected)
    if test.dataset == "mbpp" and entry_point in _ONLY_NOT_NONE:
        return same_plain(got, expected) if type(got) is bool else expected is (got is not None)
    return _same(test, got, expected)


def recorded(test: EvalplusTest, entry_point: str, output: Any) -> Any:
    """What is kept of a reference's output: all of it, save where only None or not None counts."""
    return output is not None if test.dataset == "mbpp" and entry_point in _ONLY_NOT_NONE else output


def _same(test: EvalplusTest, got: Any, expected: Any) -> bool:
    if same_structure(got, expected, same_plain, strict_sequences=True):
        return True
    tolerance = test.atol or FLOAT_TOLERANCE

    def close(got: Any, expected: Any) -> bool:
        kinds = {type(got), type(expected)}
        if not kinds <= {int, float, bool, complex} or kinds <= {int, bool}:
            return same_plain(got, expected)
        try:
            return got == expected or bool(abs(got - expected) <= tolerance + RELATIVE_TOLERANCE * abs(expected))
        except OverflowError:  # an integer beyond all floats
            return False

    return type(got) is type(expected) and same_structure(got, expected, close, strict_sequences=False)


def _same_set(got: Any, expected: Any) -> bool:
    if type(got) not in (list, tuple, set, frozenset, str, dict):
        return False
    # Only elements of the reference's go into a set: others could be made to have one hash.
    wanted = set(expected)
    try:
        return all(item in wanted for item in got) and len(set(got)) == len(wanted)
    except TypeError:  # unhashable elements
        return False


def _polynomial_root(test: EvalplusTest, arguments: Sequence[Any], got: Any, _: Any) -> bool:
    """The polynomial with these coefficients, lowest first, is zero at `got`, within `atol`."""
    try:
        return type(got) in (int, float) and (
            abs(sum(coefficient * math.pow(got, power) for power, coefficient in enumerate(arguments[0]))) <= test.atol
        )
    except (OverflowError, ValueError):
        return False


def _pyramid_surface(test: EvalplusTest, arguments: Sequence[Any], got: Any, expected: Any) -> bool:
    """Either reading of "height": along the slant (the reference), or from the base to the apex."""
    edge, height = arguments
    upright = round(edge**2 + 4 * (edge * math.sqrt((edge / 2) ** 2 + height**2)) / 2)
    if _same(test, got, expected):
        return True
    return type(got) in (int, float, bool) and abs(got - upright) <= test.atol


def _digit_distance(test: EvalplusTest, arguments: Sequence[Any], got: Any, expected: Any) -> bool:
    """Besides the reference's: the sum of distances digit by digit, the shorter number padded with zeros."""
    first, second = (str(number) for number in arguments)
    width = max(len(first), len(second))
    distance = sum(abs(int(a) - int(b)) for a, b in zip(first.zfill(width), second.zfill(width), strict=True))
    return _same(test, got, expected) or same_plain(got, distance)


_ORACLES: dict[tuple[str, str], Callable[[EvalplusTest, Sequence[Any], Any, Any], bool]] = {
    ("humaneval", "find_zero"): _polynomial_root,
    ("mbpp", "are_equivalent"): lambda *_: True,  # the statement leaves open what is meant
    ("mbpp", "sum_div"): lambda test, _, got, expected: _same(test, got, expected) or same_plain(got, 0),
    ("mbpp", "surface_Area"): _pyramid_surface,
    ("mbpp", "digit_distance_nums"): _digit_distance,
}


LIMITS = Limits(cpu_seconds=1.0, memory_mb=2048)
REFERENCE_FACTOR = 4.0
"""A call may take 1 s of CPU time, or this many times what the reference takes for it, whichever is more."""
PROGRAM_SECONDS = 60.0
"""CPU time of all base or all plus inputs together, unless the reference needs more."""
REFERENCE_LIMITS = Limits(cpu_seconds=60.0, memory_mb=4096)


_AT_A_TIME = 8
_MOST_KEPT, _MOST_WHOLE = 64 << 20, 4
"""Bytes of a problem's outputs in full, and problems, that are kept in memory."""


class _Inputs:
    """The inputs of a problem, encoded for the sandbox when they are first sent."""

    def __init__(self, arguments: Sequence[Sequence[Any]]) -> None:
        self.arguments = arguments
        self._encoded: list[bytes | None] = [None] * len(arguments)

    def encoded(self, number: int) -> bytes:
        body = self._encoded[number]
        if body is None:
            body = self._encoded[number] = encode_call(self.arguments[number], {})
        return body


class EvalplusJudge:
    """Judges programs of evalplus sets; holds the references' outputs."""

    def __init__(self, runner: Runner, cache: Path | None = None) -> None:
        self._runner = runner
        self._expected = ExpectedOutputs(self._run_reference, cache)
        self._encoded: dict[str, _Inputs] = {}
        self._whole: dict[str, dict[int, Expected]] = {}
        """Outputs in full of which the cache has a digest only, for the last problems that needed them."""
        self._lock = threading.Lock()

    def weight(self, task: CodeTask) -> tuple[float, int]:
        """Grows with how long a program may take: what the reference takes for all inputs, in tenths of a second where
        it is known, then the largest number that is passed, which tells how long a poorer program can take."""
        test, _ = _parts(task)
        numbers = (n for args in (*test.base_input, *test.plus_input) for n in args if type(n) is int)
        return round(self._expected.cpu_seconds(task), 1), max(numbers, default=0)

    def judge(self, task: CodeTask, program: str) -> tuple[Trial, Mapping[str, Any]]:
        """The trial over base and plus inputs, and the status of each (`pass`, `fail` or `timeout`).

        Inputs on which the reference itself fails are left out and counted as `unusable`; ValueError where that is all
        of them.
        """
        test, _ = _parts(task)
        expected = self._expected.of(task)
        usable = [number for number, output in enumerate(expected) if output.failure is None]
        if not usable:
            raise ValueError(f"the reference solution fails on every input: {expected[0].failure}")
        base = [number for number in usable if number < len(test.base_input)]
        trials = self._try(task, program, [base, usable[len(base) :]], expected)
        failed = next((trial for trial in trials if trial.reason is not None), trials[0])
        more: dict[str, Any] = {"base": _status(trials[0]), "plus": _status(trials[1])}
        if len(usable) < len(expected):
            more["unusable"] = len(expected) - len(usable)
            more["why_unusable"] = next(output.failure for output in expected if output.failure is not None)
        passed = sum(trial.passed for trial in trials)
        return Trial(passed, len(usable), failed.reason, failed.failed), more

    def _try(
        self, task: CodeTask, program: str, numbers: Sequence[Sequence[int]], expected: Sequence[Expected]
    ) -> list[Trial]:
        """Tries inputs, given by their numbers; those of each list count together."""
        _, entry_point = _parts(task)
        computed = dict(self._whole.get(task.digest, {}))
        unsure: set[int] = set()
        parts = [self._part(task, part, expected, computed, unsure) for part in numbers]
        while True:
            unsure.clear()
            trials = self._runner.fairly(lambda: call_all(self._runner.sandbox, program, entry_point, parts, LIMITS))
            if not unsure:
                return trials
            # Other bytes than the reference's may still be equal: compare with the output itself.
            again = self._in_full(task, unsure)
            if not again:
                return trials
            if computed:  # who gives two such outputs gives many
                self._keep_in_full(task, expected, computed)
            computed.update(again)

    def _in_full(self, task: CodeTask, numbers: Iterable[int]) -> dict[int, Expected]:
        """What the reference gives for these inputs."""
        numbers, inputs = sorted(numbers), self._inputs(task)
        outputs = self._outputs_of(task, [inputs.encoded(number) for number in numbers])
        return {n: output for n, output in zip(numbers, outputs, strict=True) if output.failure is None}

    def _keep_in_full(self, task: CodeTask, expected: Sequence[Expected], found: dict[int, Expected]) -> None:
        """Adds the outputs of which only a digest was kept, as far as memory goes, also for the next programs."""
        missing = [n for n, output in enumerate(expected) if isinstance(output.kept, Digest) and n not in found]
        while missing and sum(len(o.kept) for o in found.values() if isinstance(o.kept, bytes)) < _MOST_KEPT:
            found.update(self._in_full(task, missing[:_AT_A_TIME]))
            del missing[:_AT_A_TIME]
        with self._lock:
            self._whole[task.digest] = dict(found)
            while len(self._whole) > _MOST_WHOLE:
                del self._whole[next(iter(self._whole))]

    def _part(
        self,
        task: CodeTask,
        part: Sequence[int],
        expected: Sequence[Expected],
        computed: Mapping[int, Expected],
        unsure: set[int],
    ) -> Part:
        """The calls with the inputs whose numbers are in `part`. `computed`: outputs of which only a digest is kept.
        `unsure` takes the numbers of failed calls whose output was not there to be compared."""
        test, entry_point = _parts(task)
        inputs = self._inputs(task)

        def judge(at: int, value: Any) -> Mapping[str, Any] | None:
            number = part[at]
            output = computed.get(number, expected[number]).output
            if isinstance(output, Digest):
                if output.matches(value):
                    return None
                unsure.add(number)
            elif agrees(test, entry_point, inputs.arguments[number], value, output):
                return None
            return {"test": number, "expected": show(output, 600)}

        def calls() -> Iterator[Call]:
            for number in part:
                limit = max(LIMITS.cpu_seconds, REFERENCE_FACTOR * expected[number].cpu_seconds)
                # With other outputs than its own a program may pass, or fail with it: `agrees` says.
                own_rule = (test.dataset, entry_point) in _ORACLES and not isinstance(expected[number].kept, Digest)
                yield Call(inputs.encoded(number), limit, None if own_rule else expected[number].passing)

        budget = max(PROGRAM_SECONDS, REFERENCE_FACTOR * sum(expected[number].cpu_seconds for number in part))
        return Part(calls, len(part), judge, lambda at: show_call(inputs.arguments[part[at]]), budget)

    def _inputs(self, task: CodeTask) -> "_Inputs":
        """Encoded once for all programs."""
        with self._lock:
            if task.digest not in self._encoded:
                test, _ = _parts(task)
                self._encoded[task.digest] = _Inputs([*test.base_input, *test.plus_input])
            return self._encoded[task.digest]

    def _run_reference(self, task: CodeTask) -> list[Expected]:
        test, entry_point = _parts(task)
        inputs = self._inputs(task)
        outputs = self._outputs_of(task, [inputs.encoded(number) for number in range(len(inputs.arguments))])
        with self._runner.sandbox.session(test.reference, entry_point, REFERENCE_LIMITS) as session:
            for number in _measured_together(outputs):  # one by one, since each sets a limit
                result = session.call_encoded(inputs.encoded(number))
                outputs[number] = outputs[number]._replace(cpu_seconds=result.cpu_seconds)
                if session.ended is not None:
                    break
        return outputs

    def _outputs_of(self, task: CodeTask, bodies: Sequence[bytes]) -> list[Expected]:
        """What the reference gives for encoded calls; a process that it ends is started again for the next one."""
        test, entry_point = _parts(task)
        outputs: list[Expected] = []
        while len(outputs) < len(bodies):
            left = [Call(body, REFERENCE_LIMITS.cpu_seconds) for body in bodies[len(outputs) :]]
            with self._runner.sandbox.session(test.reference, entry_point, REFERENCE_LIMITS) as session:
                outputs += [_output(test, entry_point, result) for result in session.call_many(left)]
                if session.loaded.status != "ok":
                    return outputs[-1:] * len(bodies)
        return outputs


def _measured_together(outputs: Sequence[Expected]) -> list[int]:
    """Numbers of the calls whose CPU time was told in one sum with others', and matters for the limit of each."""
    slow: list[int] = []
    group: list[int] = []
    for number, output in enumerate(outputs):
        group.append(number)
        if output.cpu_seconds > 0:
            if len(group) > 1 and REFERENCE_FACTOR * output.cpu_seconds > LIMITS.cpu_seconds:
                slow += group
            group = []
    return slow


def _output(test: EvalplusTest, entry_point: str, result: CallResult) -> Expected:
    if result.status == "infra":
        raise SandboxFailed(result.text)
    output = recorded(test, entry_point, result.value)
    failure = None
    if result.status != "ok":
        failure = f"{result.exception or result.status}: {result.text}"[:200]
    elif holds_opaque(output):
        failure = "not plain data"
    return Expected(None if failure else encode(output), result.cpu_seconds, failure)


def holds_opaque(value: Any) -> bool:
    """Whether a value from the sandbox holds something that is not plain data."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is Opaque:
            return True
        if kind in (list, tuple, set, frozenset):
            waiting.extend(value)
        elif kind is dict:
            waiting.extend(value)
            waiting.extend(value.values())
    return False


def _parts(task: CodeTask) -> tuple[EvalplusTest, str]:
    """The tests, and what is called: evalplus takes it by its name, and no method in its place."""
    assert isinstance(task.tests, EvalplusTest) and task.entry_point is not None
    return task.tests, task.entry_point


def _status(trial: Trial) -> str:
    return "pass" if trial.reason is None else "timeout" if trial.reason == "timeout" else "fail"
