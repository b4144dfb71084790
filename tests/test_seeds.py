"""Seeds of samples."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from ba_eval.seeds import sample_seed


@given(st.integers(), st.text(), st.text(), st.integers(0, 10**6))
def test_31_bits_and_the_same_each_time(run: int, benchmark: str, problem: str, index: int) -> None:
    seed = sample_seed(run, benchmark, problem, index)
    assert 0 <= seed < 2**31
    assert seed == sample_seed(run, benchmark, problem, index)


def test_fixed_for_ever() -> None:
    text = "1:06:aime248:2024-I-11:3"
    wanted = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) // 2
    assert sample_seed(0, "aime24", "2024-I-1", 3) == wanted == 512125881


def test_each_part_counts() -> None:
    seeds = {
        sample_seed(*parts) for parts in [(0, "a", "bc", 0), (0, "ab", "c", 0), (1, "a", "bc", 0), (0, "a", "bc", 1)]
    }
    assert len(seeds) == 4
    assert len({sample_seed(0, "math500", str(p), i) for p in range(500) for i in range(16)}) > 7980
