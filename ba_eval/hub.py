"""Whether the Hugging Face hub can be asked: its address, whether it is switched off, and one short request to it."""

import os

DEFAULT_ENDPOINT = "https://huggingface.co"
_TRUE = {"1", "ON", "YES", "TRUE"}


def endpoint() -> str:
    """Returns the hub's address: `HF_ENDPOINT`, or the public hub."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or DEFAULT_ENDPOINT


def switched_off() -> str | None:
    """Returns the variable that forbids asking the hub (`HF_HUB_OFFLINE`), or None."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name, "").upper() in _TRUE:
            return name
    return None


def why_unreachable(timeout: float = 3.0) -> str | None:
    """Asks the hub once, for at most `timeout` seconds a step. Returns None where it answers, else the reason."""
    variable = switched_off()
    if variable:
        return f"{variable} is set"
    import httpx

    try:
        response = httpx.head(f"{endpoint()}/api/models", timeout=timeout, follow_redirects=True)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return f"no answer from {endpoint()} ({error or type(error).__name__})"
    if response.status_code >= 500:
        return f"{endpoint()} answers {response.status_code}"
    return None
