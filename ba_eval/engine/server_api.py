"""The chat completions API as servers really speak it: what is sent, and what an answer means."""

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ba_eval.engine.request import Request
from ba_eval.errors import InputError

_LONGEST_WAIT = 120.0
_MOST_TOKENS = 2**40


class Unusable(Exception):
    """No answer, or a useless one: the request is to be sent again."""

    def __init__(
        self, message: str, *, status: int | None = None, server_down: bool = False, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status, self.server_down, self.retry_after = status, server_down, retry_after


class Refused(Exception):
    """The server has something against this request (400, 413, 422); sending it again would not help."""


@dataclass(frozen=True)
class Answer:
    """One completion as the server gave it; thinking that came apart is put back into <think> tags."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    thinking_tokens: int | None


@dataclass
class Body:
    """Writes request bodies, under the name that the server knows for the length limit."""

    model: str
    template_args: dict[str, Any] = field(default_factory=dict)
    length_name: str = "max_tokens"

    def encode(self, request: Request) -> bytes:
        """Returns the JSON body. Parameters at their neutral value are left out: not every server knows them."""
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self.model,
            "messages": request.messages or (),
            self.length_name: sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": request.seed,
        }
        if sampling.top_k > 0:
            body["top_k"] = sampling.top_k
        if sampling.min_p > 0:
            body["min_p"] = sampling.min_p
        if self.template_args:
            body["chat_template_kwargs"] = self.template_args
        return msgspec.json.encode(body)

    def adapt(self, refusal: Refused, length_name: str) -> bool:
        """Changes what is sent so that the refused request can be sent again; False where nothing can be changed.

        `length_name` is the one that the refused request was sent with: several are refused at once.
        Raises InputError where the server refuses a parameter that the user asked for: leaving it out in silence would
        measure something else.
        """
        text = str(refusal)
        if "max_completion_tokens" in text and length_name == "max_tokens":
            self.length_name = "max_completion_tokens"
            return True
        if not any(
            word in text.lower() for word in ("unsupported", "unrecognized", "not supported", "extra", "unknown")
        ):
            return False
        for name in ("top_k", "min_p", "chat_template_kwargs", "seed", "top_p", "temperature"):
            if name in text:
                raise InputError(f"the server does not know the parameter {name}: {text}")
        return False


def base_url(url: str) -> str:
    """Returns the address below which `/chat/completions` lies, from what users write.

    Raises InputError for what is no http address.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an IPv6 address or a port that cannot be
        sound = False
    if sound and "@" in parts.netloc:
        raise InputError(
            f"--server {parts.hostname}: a password in the address would be written into the run folder; give a key as "
            "BA_EVAL_API_KEY"
        )
    if not sound or parts.query or parts.fragment or not url.isprintable() or " " in url:
        shown = url if url.isprintable() else ascii(url)
        raise InputError(f"--server {shown}: not an address like http://localhost:8000/v1")
    plain = url.rstrip("/").removesuffix("/chat/completions")
    return plain if urlsplit(plain).path.strip("/") else f"{plain.rstrip('/')}/v1"


def choose_model(url: str, model: str | None, listing: bytes) -> str:
    """Returns the model to ask for, given what a server lists under /models (which some do not have).

    Raises InputError where none is named and there is not just one, or where the server has no such model.
    """
    served: list[str] = []
    with contextlib.suppress(msgspec.DecodeError, KeyError, TypeError):
        served = [str(entry["id"]) for entry in msgspec.json.decode(listing)["data"]]
    if model is None and len(served) == 1:
        return served[0]
    if model is None:
        raise InputError(f"{url}: name the model: {', '.join(served[:10]) or 'the server lists none'}")
    if served and model not in served:
        raise InputError(f"{url}: has no model '{model}'; it has: {', '.join(served[:10])}")
    return model


def read_answer(url: str, status: int, retry_after: float, content: bytes) -> Answer:
    """Reads a server's answer. `retry_after`: the seconds that it asks to wait, 0 for none.

    Raises Unusable where the request should be sent again, Refused where it is at fault itself, InputError where the
    key is wrong.
    """
    if status != 200:
        message = _error_message(content) or f"HTTP {status}"
        if status in (401, 403):
            raise InputError(f"{url}: refuses the API key ({status}: {message}); set BA_EVAL_API_KEY")
        if status in (404, 408, 409, 425, 429) or status >= 500:
            down = status in (404, 502, 503)
            wait = min(_LONGEST_WAIT, retry_after)
            raise Unusable(f"HTTP {status}: {message}", status=status, server_down=down, retry_after=wait)
        raise Refused(f"HTTP {status}: {message}")
    try:
        return _read_completion(_decode(content))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError) as error:
        start = content[:80].decode("utf-8", "replace")
        raise Unusable(f"not a chat completion ({type(error).__name__}): {start!r}") from None


def _decode(content: bytes) -> Any:
    """Reads JSON, as far as it goes with bytes that are no UTF-8 and with half a surrogate pair."""
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return json.loads(content.decode("utf-8", "replace"))


def _count(value: Any) -> int | None:
    """A number of tokens, None where it cannot be one."""
    return int(value) if isinstance(value, int | float) and 0 <= value < _MOST_TOKENS else None


def _read_completion(data: Any) -> Answer:
    choice = data["choices"][0]
    message = choice["message"]
    reason = choice.get("finish_reason") or "stop"
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError("content is no text")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    usage = data.get("usage") or {}
    if reason == "abort":
        raise ValueError("the server aborted the request")
    if isinstance(reasoning, str):
        closed = text or reason != "length"  # cut inside thinking: the block was never closed
        text = f"<think>{reasoning}</think>{text}" if closed else f"<think>{reasoning}"
    details = usage.get("completion_tokens_details") or {}
    return Answer(
        text=text.encode("utf-8", "replace").decode(),
        finish_reason="length" if reason == "length" else "stop",
        prompt_tokens=_count(usage.get("prompt_tokens")) or 0,
        completion_tokens=_count(usage.get("completion_tokens")) or 0,
        thinking_tokens=_count(details.get("reasoning_tokens")),
    )


def _error_message(content: bytes) -> str:
    """The message inside an error body, in one line."""
    text = content.decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        data = _decode(content)
        if isinstance(data, dict):
            error = data.get("error", data)
            text = str(error.get("message", data.get("detail", data)) if isinstance(error, dict) else error)
    return " ".join(text.split())[:300]
