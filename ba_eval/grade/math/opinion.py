"""A second, independent reading of a pair: math-verify, whose parser shares nothing with ours.

It decides nothing. Where it calls equal what we call wrong, the verdict is marked for the audit.
"""

MAX_LENGTH = 300


def math_verify_agrees(gold: str, answer: str) -> bool | None:
    """Tells whether math-verify takes the two for equal; None where it cannot read one. Runs in the limited worker."""
    if max(len(gold), len(answer)) > MAX_LENGTH:
        return None
    import logging

    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    try:
        # Its own time limits need signals of the main thread; the worker has better ones.
        sides = [parse(f"${text}$", parsing_timeout=None) for text in (gold, answer)]
        if not all(sides):
            return None
        return bool(verify(sides[0], sides[1], timeout_seconds=None))
    except MemoryError:
        raise
    except Exception:  # any of the many errors of its parsers: no opinion
        return None
