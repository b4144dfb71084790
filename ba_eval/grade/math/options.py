"""What a benchmark may say about the grading of its answers: the `grader` mapping of its YAML file."""

import msgspec

from ba_eval.extract.extraction import Method
from ba_eval.extract.math import DEFAULT


class MathOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the math grader; the defaults grade exactly and take no tolerance."""

    extract: tuple[Method, ...] = DEFAULT
    """Where an answer may stand, in order: `boxed`, `answer-line`, `closing`, `bare`, `last-number`."""
    absolute_tolerance: float | None = None
    """Largest difference from a numeric gold, where the benchmark states one. A problem's own goes first."""
    relative_tolerance: float | None = None
    """Largest difference as a share of a numeric gold, where the benchmark states one."""
    seconds: float = 5.0
    """CPU seconds that one comparison may take before it is cut off and `undecided`."""
    memory: int = 1024**3
    """Bytes of address space that a comparison may take."""
