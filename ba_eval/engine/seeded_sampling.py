"""Cheaper sampling of requests with seeds in vLLM on the CPU; the samples stay the same, bit for bit.

vLLM (0.31, `v1/sample/ops/topk_topp_sampler.py`) draws noise for a whole batch and then again for each request that has
a seed, one after the other on one core: a third of each step of a small model. All of ours have seeds, so the first is
never used, and the second can go on all cores: every request has a generator of its own. On a GPU one kernel draws all.
"""

import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_KNOWN = ["probs", "generators", "use_fp64_gumbel"]


def install() -> None:
    """Changes vLLM's sampler in this process; leaves one alone that is unlike the known one."""
    import torch
    from vllm.v1.sample.ops import topk_topp_sampler as ops

    if [*inspect.signature(ops.random_sample).parameters] != _KNOWN or not hasattr(ops.TopKTopPSampler, "forward_cpu"):
        return
    one_by_one, for_any = ops.random_sample, ops.TopKTopPSampler.forward_cpu
    cores = torch.get_num_threads()
    threads = ThreadPoolExecutor(cores, thread_name_prefix="noise")

    def random_sample(probs: Any, generators: dict[int, Any], use_fp64_gumbel: bool = False) -> Any:
        if len(generators) != probs.shape[0]:
            return one_by_one(probs, generators, use_fp64_gumbel)
        noise = ops.empty_exponential_noise_like(probs, use_fp64_gumbel)

        def draw(first: int) -> None:
            with torch.inference_mode(noise.is_inference()):  # each thread has its own mode
                for row in range(first, len(noise), cores):
                    noise[row].exponential_(generator=generators[row])

        list(threads.map(draw, range(cores)))
        return ops.sample_with_exponential_noise(probs, noise)

    def forward_cpu(self: Any, logits: Any, generators: dict[int, Any], k: Any, p: Any) -> Any:
        # The native one differs in nothing but the noise for the whole batch.
        forward = self.forward_native if len(generators) == logits.shape[0] else for_any.__get__(self)
        return forward(logits, generators, k, p)

    ops.random_sample = random_sample
    ops.TopKTopPSampler.forward_cpu = forward_cpu
