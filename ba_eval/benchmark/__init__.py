"""Benchmarks: definitions in YAML, problems from a local folder or the hub, pinned by content."""

from ba_eval.benchmark.definition import expand_suites, names, parse_spec, suites
from ba_eval.benchmark.load import Benchmark, load
from ba_eval.benchmark.problem import (
    CallTest,
    CheckTest,
    CodeTask,
    EvalplusTest,
    Kind,
    Problem,
    StdinTest,
)

__all__ = [
    "Benchmark",
    "CallTest",
    "CheckTest",
    "CodeTask",
    "EvalplusTest",
    "Kind",
    "Problem",
    "StdinTest",
    "expand_suites",
    "load",
    "names",
    "parse_spec",
    "suites",
]
