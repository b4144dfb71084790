"""What is taken out of a response: the answer, where it stood, and how it was found."""

from typing import Literal

import msgspec

Method = Literal["boxed", "answer-line", "closing", "bare", "last-number"]


class Extraction(msgspec.Struct, frozen=True, gc=False):
    """`answer` is None where nothing was committed; `closed` is False where a box was opened and never closed."""

    answer: str | None
    method: str = ""
    closed: bool = True
    start: int = 0
    """Where in the text it was found."""
    end: int = 0
    """Where a box ends."""
