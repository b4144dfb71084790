"""One request per sample, and what comes back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling parameters of a request, named as vLLM and the OpenAI API name them."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    max_tokens: int = 2048
    stop: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for one sample. Exactly one of `prompt_token_ids` (vLLM) and `messages` (server) is set."""

    id: str
    seed: int
    sampling: Sampling
    prompt_token_ids: Sequence[int] | None = None
    messages: Sequence[Mapping[str, Any]] | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One finished sample. `error` is set, and the text empty, where the engine could not make it."""

    id: str
    text: str
    prompt_tokens: int
    completion_tokens: int
    finish_reason: str
    """`stop`, `length`, or `error`."""
    seconds: float
    thinking_tokens: int | None = None
    """Tokens inside <think> where the response has such a block, else None."""
    error: str | None = None


def failed(request: Request, why: str) -> Completion:
    """The completion of a request that the engine could not make."""
    return Completion(
        id=request.id,
        text="",
        prompt_tokens=len(request.prompt_token_ids or ()),
        completion_tokens=0,
        finish_reason="error",
        seconds=0.0,
        error=why,
    )


class Engine(Protocol):
    """Generates samples and hands each out as it finishes, in any order."""

    info: Mapping[str, Any]
    """Engine name and version, dtype, device, maximum model length: goes into `environment.json`."""

    def generate(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yields completions as they finish, one per request, in lists of what came together.

        Raises `MachineError` with the engine's last lines when the engine dies; what was yielded stays valid.
        """
        ...

    def close(self) -> None: ...
