"""Whether a benchmark's own reference solutions pass its grading: what fails here is a fault of data or grader."""

from ba_eval.benchmark.load import Benchmark
from ba_eval.benchmark.problem import Problem
from ba_eval.grade.verdict import Verdict


def reference_failures(benchmark: Benchmark, *, workers: int | None = None) -> tuple[int, dict[str, str]]:
    """Grades the reference solutions of a benchmark; of math those that commit to an answer, by a box or `####`.

    Returns how many were graded, and by problem id why one was not found correct.
    """
    problems = [problem for problem in benchmark.problems if problem.reference]
    if benchmark.kind == "math":
        problems = [p for p in problems if "\\boxed" in str(p.reference) or "####" in str(p.reference)]
        return len(problems), _math_failures(benchmark, problems)
    if not problems:
        return 0, {}
    from ba_eval.grade.code import reference_failures as code_failures

    return len(problems), dict(code_failures(problems, workers))


def _math_failures(benchmark: Benchmark, problems: list[Problem]) -> dict[str, str]:
    from ba_eval.grade.math import MathGrader, MathOptions
    from ba_eval.yaml_file import convert

    with MathGrader(convert(dict(benchmark.grader), MathOptions, where=benchmark.name)) as grader:
        futures = {problem.id: grader.submit(problem, problem.reference or "", "stop") for problem in problems}
        verdicts = {id: future.result() for id, future in futures.items()}
    golds = {problem.id: problem.golds for problem in problems}
    return {id: _why(verdict, golds[id]) for id, verdict in verdicts.items() if verdict.outcome != "correct"}


def _why(verdict: Verdict, golds: tuple[str, ...]) -> str:
    extracted = "nothing" if verdict.extracted is None else repr(verdict.extracted[:60])
    return f"{verdict.outcome} ({verdict.reason}): took {extracted}, gold {' or '.join(map(repr, golds))}"
