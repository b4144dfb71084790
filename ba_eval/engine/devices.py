"""Which devices each of several models gets that are evaluated at the same time."""

import math
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from ba_eval.engine.vllm_args import kv_cache_gib, parse_engine_args
from ba_eval.errors import InputError

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; empty where there are none."""
    for name in VISIBLE:
        if name in os.environ:
            return [gpu.strip() for gpu in os.environ[name].split(",") if gpu.strip() not in ("", "-1")]
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(i) for i, line in enumerate(listed.stdout.splitlines()) if line.startswith("GPU ")]


def gpus_per_model(engine_args: Mapping[str, Any]) -> int:
    """How many GPUs the engine arguments spread one model over."""
    parsed = parse_engine_args(engine_args)
    return math.prod(int(parsed.get(name) or 1) for name in _PARALLEL)


def share(models: int, engine_args: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns, for each of `models` engines that run at once, the environment variables that give it its own devices.

    GPUs are given in order, as many as the engine arguments ask for. Without a GPU the cores and the memory for the
    KV cache are divided. Raises InputError where there are too few.
    """
    if models == 1:
        return [{}]
    found, each = gpus(), gpus_per_model(engine_args)
    if found:
        if models * each > len(found):
            raise InputError(
                f"--parallel-models {models} needs {models * each} GPUs ({each} a model), but there are {len(found)}; "
                f"give at most {len(found) // each}"
            )
        # One name serves: vLLM's ROCm build reads CUDA_VISIBLE_DEVICES too.
        name = next((name for name in VISIBLE if name in os.environ), VISIBLE[0])
        return [{name: ",".join(found[i * each : (i + 1) * each])} for i in range(models)]
    cores = sorted(os.sched_getaffinity(0))
    if models > len(cores):
        raise InputError(
            f"--parallel-models {models}: without a GPU each model needs a core, and there are {len(cores)}"
        )
    return [
        {
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores[i::models])),
            "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gib(models)),
        }
        for i in range(models)
    ]
