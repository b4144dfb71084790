"""Any OpenAI-compatible server: requests over HTTP, many in flight, balanced over several addresses."""

import asyncio
import contextlib
import functools
import itertools
import math
import os
import random
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi
import msgspec
import pycurl  # of the clients of good repute, the one that costs least CPU time a request: half of aiohttp's

from ba_eval.engine.request import Completion, Request, failed
from ba_eval.engine.server_api import Answer, Body, Refused, Unusable, base_url, choose_model, read_answer
from ba_eval.engine.thinking import find_stop
from ba_eval.errors import InputError, MachineError

CONCURRENCY = 128
API_KEY_VARIABLES = ("BA_EVAL_API_KEY", "OPENAI_API_KEY")
_MAX_WAIT = 30.0
_MAX_REDIRECTS = 10
_PROBE_SECONDS = 60.0
_NOTE_SECONDS = 60.0
_LOOK_SECONDS = 0.1


@dataclass
class _Address:
    url: str
    in_flight: int = 0
    failures: int = 0
    """Since its last good answer; those of requests that were under way together count once."""
    failed_at: float = 0.0
    retry_at: float = 0.0
    """When it may be tried again, by one request alone (`trying`); 0 for one that answers."""
    trying: bool = False
    last_good: float = 0.0
    noted_at: float = -math.inf


class ServerClient:
    """Asks one or several servers for chat completions; belongs to one event loop, as an async context manager.

    Requests must have `messages`; the server applies its own chat template. A request is sent again, with growing
    waits, where the server is busy (429), failing (5xx), silent, or breaks off half-way.
    """

    info: Mapping[str, Any]
    """The engine's name, the addresses, the model, the server's version, the requests in flight at most."""

    def __init__(
        self,
        urls: Sequence[str],
        model: str | None = None,
        *,
        concurrency: int | None = None,
        template_args: Mapping[str, Any] | None = None,
        timeout_seconds: float = 3600.0,
        give_up_seconds: float = 300.0,
        backoff_seconds: float = 0.5,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`model`: the id to ask for; may be left out where the server has one model. `concurrency`: requests in flight
        over all servers (128 a server). `timeout_seconds`: of one request. `give_up_seconds`: how long a request is
        tried again while nothing succeeds. `note` is told, once a minute at most, of a server that fails.
        The API key comes from BA_EVAL_API_KEY or OPENAI_API_KEY.
        Raises InputError for an address that cannot be.
        """
        if not urls:
            raise InputError("--server: give at least one URL")
        self._addresses = [_Address(base_url(url)) for url in urls]
        name = next((name for name in API_KEY_VARIABLES if os.environ.get(name)), None)
        self._key = os.environ[name].strip() if name else ""
        if not self._key.isascii() or not (self._key + " ").isprintable():
            raise InputError(f"{name}: holds characters that no API key has")
        self._model, self._template_args = model, dict(template_args or {})
        self._concurrency = concurrency or CONCURRENCY * len(urls)
        self._timeout, self._give_up, self._backoff = timeout_seconds, give_up_seconds, backoff_seconds
        self._note = note

    async def __aenter__(self) -> "ServerClient":
        """Asks each server which models it has.

        Raises InputError for a model that cannot be, MachineError where none of the servers answers.
        """
        self._transfers = pycurl.AsyncCurlMulti(close_handles=True)
        self._transfers.setopt(pycurl.M_MAXCONNECTS, 2 * self._concurrency)
        try:
            model, version = await self._probe()
        except BaseException:
            await self._transfers.aclose()
            raise
        self._body = Body(model=model, template_args=self._template_args)
        self.info = {
            "engine": "server",
            "urls": [address.url for address in self._addresses],
            "model": model,
            "version": version,
            "concurrency": self._concurrency,
        }
        return self

    async def __aexit__(self, *_: object) -> None:
        """Drops what is in flight and closes the connections."""
        await self._transfers.aclose()

    async def serve(self, requests: "asyncio.Queue[Request]", done: Callable[[Completion], None]) -> None:
        """Answers requests as they come, `concurrency` at once, until it is cancelled.

        Raises MachineError that names the server and its last answer where none of the servers can be used any more,
        InputError where the server refuses the API key, the model or a sampling parameter.
        """

        async def work() -> None:
            curl = self._handle(self._timeout)
            while True:
                done(await self._complete(curl, await requests.get()))

        workers = [asyncio.create_task(work()) for _ in range(self._concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _handle(self, timeout: float) -> Any:
        """What makes one transfer after the other, each within `timeout` seconds."""
        curl = pycurl.Curl()
        authorization = [f"Authorization: Bearer {self._key}"] if self._key else []
        curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json", "Expect:", *authorization])
        curl.setopt(pycurl.ACCEPT_ENCODING, "")  # all that can be unpacked
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.FOLLOWLOCATION, 1)
        curl.setopt(pycurl.MAXREDIRS, _MAX_REDIRECTS)
        curl.setopt(pycurl.POSTREDIR, pycurl.REDIR_POST_ALL)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.TCP_KEEPALIVE, 1)  # a long response sends nothing for minutes
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, int(1000 * min(timeout, 10.0)))
        curl.setopt(pycurl.TIMEOUT_MS, int(1000 * timeout))
        trusted = ssl.get_default_verify_paths()  # of the system, or SSL_CERT_FILE and SSL_CERT_DIR
        curl.setopt(pycurl.CAINFO, trusted.cafile or certifi.where())
        if trusted.capath:
            curl.setopt(pycurl.CAPATH, trusted.capath)
        return curl

    async def _probe(self) -> tuple[str, str | None]:
        """Finds the model's id on every server that answers, and the first one's version."""
        curl, model = self._handle(min(self._timeout, _PROBE_SECONDS)), self._model
        silent: list[tuple[_Address, Unusable]] = []
        for address in self._addresses:
            try:
                status, _, content = await self._fetch(curl, f"{address.url}/models")
            except Unusable as fault:
                silent.append((address, fault))
                continue
            if status in (401, 403):
                raise InputError(f"{address.url}: refuses the API key ({status}); set BA_EVAL_API_KEY")
            model = choose_model(address.url, model, content)
        if len(silent) == len(self._addresses):
            raise MachineError("\n".join(_unreachable(address.url, cause) for address, cause in silent))
        for address, cause in silent:
            self._note_failure(address, cause, time.monotonic())
        assert model is not None
        version = None
        first = next(address.url for address in self._addresses if not address.failures)
        with contextlib.suppress(Unusable, msgspec.DecodeError, KeyError, TypeError):
            _, _, content = await self._fetch(curl, f"{first.removesuffix('/v1')}/version")
            version = str(msgspec.json.decode(content)["version"])
        return model, version

    async def _fetch(self, curl: Any, url: str, body: bytes | None = None) -> tuple[int, float, bytes]:
        """One HTTP request. Returns (status, seconds to wait before the next, body); raises Unusable where no whole
        answer comes."""
        content: list[bytes] = []
        curl.setopt(pycurl.URL, url.encode())
        curl.setopt(pycurl.PROXY, _proxy(url))
        curl.setopt(pycurl.WRITEFUNCTION, content.append)
        if body is not None:
            curl.setopt(pycurl.POSTFIELDS, body)
        try:
            await self._transfers.perform(curl)
        except pycurl.error as error:
            raise Unusable(f"no answer ({error.args[-1]})", server_down=True) from None
        return curl.getinfo(pycurl.RESPONSE_CODE), float(curl.getinfo(pycurl.RETRY_AFTER)), b"".join(content)

    async def _complete(self, curl: Any, request: Request) -> Completion:
        """Sends one request until it is answered. Raises what ends the whole run."""
        started = time.monotonic()
        for attempt in itertools.count():
            address = await self._pick()
            trying = address.trying = address.retry_at > 0
            address.in_flight += 1
            sent, length_name = time.monotonic(), self._body.length_name
            try:
                answer = await self._ask(curl, address, request)
            except Refused as refusal:
                if self._body.adapt(refusal, length_name):
                    continue
                return failed(request, f"{address.url}: {refusal}")
            except Unusable as error:
                fault = error
                if error.status == 404 and not any(other.last_good for other in self._addresses):
                    raise InputError(
                        f"{address.url}: not found: {error}; check the address (…/v1) and the model's name"
                    ) from None
            else:
                address.failures, address.retry_at, address.last_good = 0, 0.0, time.monotonic()
                return _completion(request, answer, time.monotonic() - sent)
            finally:
                address.in_flight -= 1
                if trying:
                    address.trying = False
            self._note_failure(address, fault, sent)
            failing = time.monotonic() - started
            answered = any(other.last_good > started for other in self._addresses)
            if failing > self._give_up and answered and attempt >= 2:  # others are answered: it is this one
                return failed(request, f"{address.url}: {fault} ({attempt + 1} attempts)")
            if failing > self._give_up and not answered and address.failures > 2:
                raise MachineError(
                    f"{address.url}: gave up after {failing:.0f} s, {address.failures} attempts; last answer: {fault}"
                )
            wait = min(_MAX_WAIT, self._backoff * 2 ** min(attempt, 10)) * random.uniform(0.5, 1.0)
            await asyncio.sleep(max(wait, fault.retry_after))
        raise AssertionError  # the loop does not end

    async def _pick(self) -> _Address:
        """The least busy server that is not resting after a failure."""
        while True:
            now = time.monotonic()
            usable = [address for address in self._addresses if address.retry_at <= now and not address.trying]
            if usable:
                return min(usable, key=lambda address: address.in_flight)
            await asyncio.sleep(max(_LOOK_SECONDS, min(address.retry_at for address in self._addresses) - now))

    def _note_failure(self, address: _Address, fault: Unusable, sent: float) -> None:
        if sent <= address.failed_at:  # under way when another failed: the same trouble
            return
        now = time.monotonic()
        address.failures, address.failed_at = address.failures + 1, now
        if fault.server_down:  # others take over; one request after the other tries it again
            wait = min(_MAX_WAIT, self._backoff * 2 ** min(address.failures - 1, 10))
            address.retry_at = now + wait
        if now - address.noted_at > _NOTE_SECONDS:
            address.noted_at = now
            self._note(f"{address.url}: {fault}; what it does not answer is sent again")

    async def _ask(self, curl: Any, address: _Address, request: Request) -> Answer:
        body = self._body.encode(request)
        return read_answer(address.url, *await self._fetch(curl, f"{address.url}/chat/completions", body))


def _unreachable(url: str, fault: Unusable) -> str:
    certificate = "certificate" in str(fault)
    hint = "SSL_CERT_FILE may name the certificates to trust" if certificate else "is the server running there?"
    return f"{url}: {fault}; {hint}"


@functools.cache
def _proxy(url: str) -> str:
    """The proxy that the environment names for an address, as Python's own clients find it; empty for none."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    return getproxies().get(parts.scheme, "")


def _completion(request: Request, answer: Answer, seconds: float) -> Completion:
    text, reason = answer.text, answer.finish_reason
    # Stop strings are applied here: a server's own fire inside thinking.
    cut = find_stop(text, request.sampling.stop, opened=False)
    if cut is not None:
        text, reason = text[:cut], "stop"
    return Completion(
        id=request.id,
        text=text,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        finish_reason=reason,
        seconds=seconds,
        thinking_tokens=answer.thinking_tokens,
    )
