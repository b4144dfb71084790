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
        if (place / "huggingface").is_dir() and any(place.glob("dist_ckpt/*.distcp")):
            command = f"python -m verl.model_merger merge --backend megatron --local_dir {place}"
            return _merge(place, "verl Megatron shards", command)
    if folder.name == "huggingface" and any(folder.parent.glob("model_world_size_*_rank_*.pt")):
        place = folder.parent
        return _merge(
            place, "verl FSDP shards", f"python -m verl.model_merger merge --backend fsdp --local_dir {place}"
        )
    if (folder / "zero_to_fp32.py").is_file() or any(folder.glob("global_step*/*_optim_states.pt")):
        command = f"cd {folder} && python zero_to_fp32.py . merged --safe_serialization"
        return (
            f"{folder}: DeepSpeed ZeRO shards, not a model; merge them first: {command} "
            "(then copy config.json and the tokenizer into merged/)"
        )
    if any(folder.glob("*_optim_states.pt")) or any(folder.glob("*mp_rank_*_model_states.pt")):
        command = f"cd {folder.parent} && python zero_to_fp32.py . merged --safe_serialization"
        return (
            f"{folder}: DeepSpeed ZeRO shards, not a model; merge them first: {command} "
            "(then copy config.json and the tokenizer into merged/)"
        )
    for place in (*sorted(folder.glob("pytorch_model_fsdp_*")), folder):
        if place.is_dir() and (any(place.glob("*.distcp")) or (place / ".metadata").is_file()):
            return (
                f"{folder}: FSDP shards, not a model; merge them first: "
                f"accelerate merge-weights {place} {folder / 'merged'} "
                "(then copy config.json and the tokenizer into merged/)"
            )
    return None


def _merge(place: Path, what: str, command: str) -> str:
    return f"{place}: {what}, not a model; merge them first: {command} --target_dir {place}-merged"
