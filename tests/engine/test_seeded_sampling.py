"""Our drawing of noise is vLLM's own, but for the time it takes."""

import pytest

torch = pytest.importorskip("torch")
ops = pytest.importorskip("vllm.v1.sample.ops.topk_topp_sampler")

from ba_eval.engine import seeded_sampling  # noqa: E402

ROWS, VOCABULARY = 7, 5000


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """vLLM's sampler as it comes, and with ours in its place."""
    sampler = ops.TopKTopPSampler()
    theirs = ops.random_sample, ops.TopKTopPSampler.forward_cpu
    monkeypatch.setattr(ops, "random_sample", theirs[0])
    monkeypatch.setattr(ops.TopKTopPSampler, "forward_cpu", theirs[1])
    seeded_sampling.install()
    assert ops.random_sample is not theirs[0]
    return lambda *args: theirs[1](sampler, *args), lambda *args: ops.TopKTopPSampler.forward_cpu(sampler, *args)


def generators(rows: int) -> dict[int, object]:
    return {row: torch.Generator().manual_seed(100 + row) for row in range(rows)}


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("top_p", [None, 0.7])
def test_seeded_requests_get_the_same_tokens(both, top_p: float | None, inference: bool) -> None:  # type: ignore[no-untyped-def]
    theirs, ours = both
    mine, others = generators(ROWS), generators(ROWS)
    with torch.inference_mode(inference):
        p = None if top_p is None else torch.full((ROWS,), top_p)
        for step in range(20):
            logits = 3 * torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(step))
            expected, _ = theirs(logits.clone(), others, None, p)
            assert ours(logits.clone(), mine, None, p)[0].tolist() == expected.tolist()
    assert len(set(expected.tolist())) > 1


def test_a_batch_with_other_requests_is_left_to_vllm(both) -> None:  # type: ignore[no-untyped-def]
    theirs, ours = both
    logits = 3 * torch.randn(ROWS, VOCABULARY)
    torch.manual_seed(1)
    expected, _ = theirs(logits.clone(), generators(3), None, None)
    torch.manual_seed(1)
    assert ours(logits.clone(), generators(3), None, None)[0].tolist() == expected.tolist()
