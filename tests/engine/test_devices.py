"""Which devices each of several models gets."""

import os

import pytest

from ba_eval.engine import devices
from ba_eval.errors import InputError


def test_gpus_are_disjoint_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7,2")
    shares = devices.share(2, {"tensor_parallel_size": 2})
    assert shares == [{"CUDA_VISIBLE_DEVICES": "4,5"}, {"CUDA_VISIBLE_DEVICES": "6,7"}]
    assert devices.gpus_per_model({"tensor-parallel-size": "2", "data_parallel_size": 3}) == 6


def test_gpus_may_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1a2b, MIG-3c4d")
    assert [share["CUDA_VISIBLE_DEVICES"] for share in devices.share(2, {})] == ["GPU-1a2b", "MIG-3c4d"]


def test_too_few_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    with pytest.raises(InputError, match=r"--parallel-models 2 needs 4 GPUs \(2 a model\), but there are 3; .* most 1"):
        devices.share(2, {"pipeline_parallel_size": 2})


def test_one_model_has_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert devices.share(1, {"tensor_parallel_size": 2}) == [{}]


def test_without_a_gpu_the_cores_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 8, 9})
    cores = [share["VLLM_CPU_OMP_THREADS_BIND"] for share in devices.share(2, {})]
    assert cores == ["0,2,9", "1,8"]
    with pytest.raises(InputError, match="needs a core, and there are 5"):
        devices.share(6, {})
