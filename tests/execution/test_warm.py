"""What the fork server loads for a program."""

import pytest

from sandbox.warm import wanted


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import random, heapq\nfrom statistics import mean", {"random", "statistics"}),
        ("    import json as j; import math", {"json"}),
        ("from json.decoder import (\n    JSONDecodeError\n)", {"json"}),
        ("m = __import__('decimal')\nimportlib.import_module(\"queue\")", {"decimal", "queue"}),
        ("queue = []\n# an array of random numbers", set()),
        ("x = np\nimport numpy as np", {"numpy"}),
        ("from \\\n    multiprocessing import Pool", {"multiprocessing.heap", "multiprocessing.pool"}),
        ("import evil, os.path", set()),
        ("", set()),
    ],
)
def test_wanted(program: str, expected: set[str]) -> None:
    assert wanted(program) & (expected | {"random", "array", "queue", "numpy"}) == expected
    assert "evil" not in wanted(program)
