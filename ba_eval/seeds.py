"""The seed of each sample."""

import hashlib


def sample_seed(run_seed: int, benchmark: str, problem_id: str, index: int) -> int:
    """Returns the seed of one sample, in 0 .. 2**31 - 1.

    A function of its arguments alone: the same on every platform, and independent of what else is asked in the run,
    so n = 16 can be topped up to 64. The model is not in it: checkpoints are compared on the same random numbers.
    """
    parts = (str(run_seed), benchmark, problem_id, str(index))
    # Lengths keep ("a", "bc") and ("ab", "c") apart.
    text = "".join(f"{len(part.encode())}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
