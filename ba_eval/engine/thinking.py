"""How much of a response is thinking: what stands inside <think> ... </think>."""

from collections.abc import Callable, Sequence

OPEN, CLOSE = "<think>", "</think>"


def in_thinking(text: str, *, opened: bool) -> bool:
    """Whether a response that goes on after `text` is still thinking. `opened`: the prompt ends inside <think>."""
    return (opened or text.lstrip().startswith(OPEN)) and CLOSE not in text


def find_stop(text: str, stops: Sequence[str], *, opened: bool, start: int = 0) -> int | None:
    """Returns where the first stop string outside thinking begins, or None. None is known to begin before `start`."""
    if not stops or in_thinking(text, opened=opened):
        return None
    if opened or text.lstrip().startswith(OPEN):
        start = max(start, text.find(CLOSE) + len(CLOSE))
    return min((at for at in (text.find(stop, start) for stop in stops) if at >= 0), default=None)


def thinking_tokens(
    token_ids: Sequence[int], text: str, *, opened: bool, decode: Callable[[Sequence[int]], str]
) -> int | None:
    """Returns how many of a response's tokens came before </think>; all of them where it was never closed.

    None where the response has no thinking block. `decode` turns token ids into text.
    """
    if not opened and not text.lstrip().startswith(OPEN):
        return None
    if CLOSE not in text:
        return len(token_ids)
    # The shortest prefix that holds the closing tag, whether that tag is one token or several.
    low, high = 1, len(token_ids)
    while low < high:
        middle = (low + high) // 2
        if CLOSE in decode(token_ids[:middle]):
            high = middle
        else:
            low = middle + 1
    return low - 1
