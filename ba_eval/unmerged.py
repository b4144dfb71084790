"""Recognises sharded training checkpoints, which have to be merged before anything can load them."""

from pathlib import Path


def explain_unmerged(folder: Path) -> str | None:
    """Returns what a sharded checkpoint is and the command that merges it, or None for any other folder.

    A folder that holds merged weights beside the shards is no such case.
    """
    if any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin")):
        return None
    for place in (folder, folder / "actor"):
        if any(place.glob("model_world_size_*_rank_*.pt")):
            return _merge(
                place, "verl FSDP shards", f"python -m verl.model_merger merge --backend fsdp --local_dir {place}"
            )
        if any(place.glob("dist_ckpt/*.distcp")):
            command = f"python -m verl.model_merger merge --backend megatron --local_dir {place}"
            return _merge(place, "verl Megatron shards", command)
    if folder.name == "huggingface" and any(folder.parent.glob("model_world_size_*_rank_*.pt")):
        place = folder.parent
        return _merge(
            place, "verl FSDP shards", f"python -m verl.model_merger merge --backend fsdp --local_dir {place}"
        )
    states = ("*_optim_states.pt", "*mp_rank_*_model_states.pt")
    if (folder / "zero_to_fp32.py").is_file() or any(any(folder.glob(f"global_step*/{name}")) for name in states):
        return _deepspeed(folder, folder)
    if any(any(folder.glob(name)) for name in states):
        return _deepspeed(folder, folder.parent)
    steps = sorted(folder.glob("global_step_*"), key=lambda step: (len(step.name), step.name))
    if steps and (found := explain_unmerged(steps[-1])):
        return f"{folder} is a training run, not a model; its last step: {found}"
    for place in (*sorted(folder.glob("pytorch_model_fsdp_*")), folder):
        if place.is_dir() and (any(place.glob("*.distcp")) or (place / ".metadata").is_file()):
            return (
                f"{folder}: FSDP shards, not a model; merge them first: "
                f"accelerate merge-weights {place} {folder / 'merged'} "
                "(then copy config.json and the tokenizer into merged/)"
            )
    return None


def _deepspeed(folder: Path, place: Path) -> str:
    """`place`: the folder above the shards, where DeepSpeed leaves its script (some copies lack it)."""
    script = "zero_to_fp32.py" if (place / "zero_to_fp32.py").is_file() else "-m deepspeed.utils.zero_to_fp32"
    return (
        f"{folder}: DeepSpeed ZeRO shards, not a model; merge them first: cd {place} && python {script} . merged "
        "--safe_serialization (then copy config.json and the tokenizer into merged/)"
    )


def _merge(place: Path, what: str, command: str) -> str:
    return f"{place}: {what}, not a model; merge them first: {command} --target_dir {place}-merged"
