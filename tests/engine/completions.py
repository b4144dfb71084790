"""All that an engine makes of some requests."""

from collections.abc import Iterable

from ba_eval.engine.request import Completion, Engine, Request


def generate(engine: Engine, requests: Iterable[Request]) -> list[Completion]:
    """Returns the completions in the order in which they finished."""
    return [completion for completions in engine.generate(requests) for completion in completions]
