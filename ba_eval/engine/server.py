"""Any OpenAI-compatible server: the same requests over HTTP, many in flight, balanced over several addresses."""

import asyncio
import contextlib
import functools
import itertools
import os
import queue
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from ba_eval.engine.request import Completion, Request, failed
from ba_eval.engine.server_api import Answer, Body, Refused, Unusable, base_url, choose_model, read_answer
from ba_eval.engine.thinking import find_stop
from ba_eval.errors import BaEvalError, InputError, MachineError

CONCURRENCY = 128
API_KEY_VARIABLES = ("BA_EVAL_API_KEY", "OPENAI_API_KEY")
_MAX_WAIT = 30.0


@dataclass
class _Address:
    url: str
    in_flight: int = 0
    failures: int = 0
    """Since its last good answer."""
    retry_at: float = 0.0
    last_good: float = 0.0


class ServerEngine:
    """Asks one or several servers for chat completions.

    Requests must have `messages`; the server applies its own chat template. A request is sent again, with growing
    waits, where the server is busy (429), failing (5xx), silent, or breaks off half-way.
    """

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
    ) -> None:
        """Asks each server which models it has.

        `model`: the id to ask for; may be left out where the server has one model. `concurrency`: requests in flight
        over all servers (128 a server). `timeout_seconds`: of one request. `give_up_seconds`: how long a request is
        tried again while nothing succeeds. The API key comes from BA_EVAL_API_KEY or OPENAI_API_KEY.
        Raises InputError for an address or a model that cannot be, MachineError where a server does not answer.
        """
        if not urls:
            raise InputError("--server: give at least one URL")
        self._addresses = [_Address(base_url(url)) for url in urls]
        self._concurrency = concurrency or CONCURRENCY * len(urls)
        self._give_up, self._backoff = give_up_seconds, backoff_seconds
        self._results: queue.SimpleQueue[Completion | BaseException] = queue.SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = self._call(self._make_client(timeout_seconds))
        try:
            model, version = self._call(self._probe(model))
        except BaseException:
            self.close()
            raise
        self._body = Body(model=model, template_args=dict(template_args or {}))
        self.info: Mapping[str, Any] = {
            "engine": "server",
            "urls": [address.url for address in self._addresses],
            "model": model,
            "version": version,
            "concurrency": self._concurrency,
        }

    def submit(self, request: Request) -> None:
        """Sends a request as soon as there is room; `take` returns its completion."""
        self._loop.call_soon_threadsafe(self._begin, request)

    def take(self) -> Completion:
        """Waits for the next completion of those submitted.

        Raises MachineError that names the server and its last answer where none of the servers can be used any more,
        InputError where the server refuses the API key, the model or a sampling parameter.
        """
        result = self._results.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Drops what is in flight and closes the connections."""
        if self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            self._call(self._cancel())
            self._call(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5.0)
        self._loop.close()

    async def _make_client(self, timeout: float) -> Any:
        # httpx, used elsewhere, costs several times the CPU time a request with many in flight.
        import aiohttp

        key = next((os.environ[name] for name in API_KEY_VARIABLES if os.environ.get(name)), None)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 10.0)),
            headers={"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
        )

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    # In the event loop's thread

    async def _probe(self, model: str | None) -> tuple[str, str | None]:
        """Finds the model's id on every server, and the first server's version."""
        for address in self._addresses:
            try:
                status, _, content = await self._fetch(f"{address.url}/models")
            except Unusable as fault:
                raise MachineError(f"{address.url}: {fault}; is the server running there?") from None
            if status in (401, 403):
                raise InputError(f"{address.url}: refuses the API key ({status}); set BA_EVAL_API_KEY")
            model = choose_model(address.url, model, content)
        assert model is not None
        version = None
        with contextlib.suppress(Unusable, msgspec.DecodeError, KeyError, TypeError):
            _, _, content = await self._fetch(f"{self._addresses[0].url.removesuffix('/v1')}/version")
            version = str(msgspec.json.decode(content)["version"])
        return model, version

    async def _fetch(self, url: str, body: bytes | None = None) -> tuple[int, Mapping[str, str], bytes]:
        """One HTTP request. Returns (status, headers, body); raises Unusable where no whole answer comes."""
        import aiohttp

        try:
            method = "GET" if body is None else "POST"
            async with self._client.request(method, url, data=body, proxy=_proxy(url)) as response:
                return response.status, response.headers, await response.read()
        except asyncio.TimeoutError as error:
            raise Unusable(f"no answer in time ({type(error).__name__})", server_down=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            what = str(error) or type(error).__name__
            raise Unusable(f"no answer ({what})", server_down=True) from None

    def _begin(self, request: Request) -> None:
        if not self._tasks:
            self._slots = asyncio.Semaphore(self._concurrency)
        task = self._loop.create_task(self._serve(request, self._results))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, request: Request, results: "queue.SimpleQueue[Any]") -> None:
        try:
            async with self._slots:
                results.put(await self._complete(request))
        except asyncio.CancelledError:
            raise
        except BaEvalError as error:
            results.put(error)
        except Exception as error:  # a fault of ours must not leave the caller waiting for ever
            results.put(MachineError(f"{self._addresses[0].url}: {type(error).__name__}: {error}"))

    async def _complete(self, request: Request) -> Completion:
        """Sends one request until it is answered. Raises what ends the whole run."""
        started = time.monotonic()
        for attempt in itertools.count():
            address = await self._pick()
            address.in_flight += 1
            sent, length_name = time.monotonic(), self._body.length_name
            try:
                answer = await self._ask(address, request)
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
            self._note_failure(address, fault)
            failing = time.monotonic() - started
            if failing > self._give_up and attempt >= 2:
                if any(other.last_good > started for other in self._addresses):  # others are answered: it is this one
                    return failed(request, f"{address.url}: {fault} ({attempt + 1} attempts)")
                raise MachineError(
                    f"{address.url}: gave up after {failing:.0f} s and {attempt + 1} attempts of a request; "
                    f"last answer: {fault}"
                )
            wait = min(_MAX_WAIT, self._backoff * 2 ** min(attempt, 10)) * random.uniform(0.5, 1.0)
            await asyncio.sleep(max(wait, fault.retry_after))
        raise AssertionError  # the loop does not end

    async def _pick(self) -> _Address:
        """The least busy server that is not resting after a failure."""
        while True:
            now = time.monotonic()
            usable = [address for address in self._addresses if address.retry_at <= now]
            if usable:
                return min(usable, key=lambda address: address.in_flight)
            await asyncio.sleep(min(address.retry_at for address in self._addresses) - now)

    def _note_failure(self, address: _Address, fault: Unusable) -> None:
        address.failures += 1
        if fault.server_down:  # others take over; one request after the other tries it again
            wait = min(_MAX_WAIT, self._backoff * 2 ** min(address.failures - 1, 10))
            address.retry_at = time.monotonic() + wait

    async def _ask(self, address: _Address, request: Request) -> Answer:
        return read_answer(
            address.url, *await self._fetch(f"{address.url}/chat/completions", self._body.encode(request))
        )


@functools.cache
def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address; the client would look it up for each request."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return getproxies().get(parts.scheme)


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
