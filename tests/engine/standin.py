"""A stand-in for an OpenAI-compatible server: real HTTP over real sockets, and real faults on request."""

import asyncio
import contextlib
import gzip
import json
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ba_eval.engine.request import Completion, Request
from ba_eval.engine.server import ServerClient

Fault = int | Literal["silent", "half", "reset", "garbage"]
"""A status code, or: no answer at all, half a body, a closed connection, a body that is no completion."""


@dataclass
class StandIn:
    """Serves on a free port of localhost between `with` and its end.

    `behave(number, body)` decides on the fault of the number-th request (from 0), None for a good answer.
    `answer(body)` makes the message of a good answer.
    """

    behave: Callable[[int, dict[str, Any]], Fault | None] = lambda number, body: None
    answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: {"content": f"seed {body['seed']}"}
    models: tuple[str, ...] = ("m",)
    delay: float = 0.0
    finish_reason: str = "stop"
    retry_after: str | None = None
    packed: bool = False
    """Whether answers are sent with gzip, unasked."""
    moved_to: str | None = None
    """Where an answer 307 sends the client."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    paths: list[str] = field(default_factory=list)
    """As asked for: whole addresses where the client takes this for its proxy."""
    most_at_once: int = 0
    url: str = ""
    _at_once: int = 0

    def __enter__(self) -> "StandIn":
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls))
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lines = head.split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                path = lines[0].split()[1]
                self.paths.append(path)
                if path.endswith("/chat/completions"):
                    self._at_once += 1
                    self.most_at_once = max(self.most_at_once, self._at_once)
                    try:
                        if not await self._complete(json.loads(body), headers, writer):
                            return
                    finally:
                        self._at_once -= 1
                elif path.endswith("/models"):
                    self._write(writer, 200, {"data": [{"id": name} for name in self.models]})
                elif path == "/version":
                    self._write(writer, 200, {"version": "stand-in"})
                else:
                    self._write(writer, 404, {"error": {"message": f"no {path}"}})
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _complete(self, body: dict[str, Any], headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        """Answers one request. Returns whether the connection lives on."""
        number = len(self.bodies)
        self.bodies.append(body)
        self.keys.append(headers.get("authorization", ""))
        if self.delay:
            await asyncio.sleep(self.delay)
        fault = self.behave(number, body)
        good = {
            "choices": [{"message": self.answer(body), "finish_reason": self.finish_reason}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }
        if fault is None:
            self._write(writer, 200, good)
        elif fault == "garbage":
            self._write(writer, 200, {"choices": "none"})
        elif fault == "silent":
            await asyncio.sleep(3600)
        elif fault == "half":
            text = json.dumps(good).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text[: len(text) // 2])
            await writer.drain()
            return False
        elif fault == "reset":
            writer.transport.abort()
            return False
        else:
            self._write(writer, fault, {"error": {"message": f"fault {fault}"}})
        return True

    def _write(self, writer: asyncio.StreamWriter, status: int, data: Any) -> None:
        text = json.dumps(data).encode()
        extra = f"Retry-After: {self.retry_after}\r\n" if self.retry_after and status == 429 else ""
        if self.packed:
            text, extra = gzip.compress(text), "Content-Encoding: gzip\r\n"
        if self.moved_to and status == 307:
            extra = f"Location: {self.moved_to}/chat/completions\r\n"
        head = (
            f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(text)}\r\n\r\n"
        )
        writer.write(head.encode() + text)


class Client:
    """A client in an event loop of its own, called from plain code."""

    def __init__(self, urls: Sequence[str], model: str | None = None, **options: Any) -> None:
        self._client = ServerClient(urls, model, **options)
        self._loop = asyncio.new_event_loop()
        try:
            self._loop.run_until_complete(self._client.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        self.info = self._client.info

    def generate(self, requests: Sequence[Request], done: list[Completion] | None = None) -> list[Completion]:
        """Returns the completions as they came; `done` has them even where an error ends it."""
        return self._loop.run_until_complete(self._generate(requests, [] if done is None else done))

    async def _generate(self, requests: Sequence[Request], done: list[Completion]) -> list[Completion]:
        waiting: asyncio.Queue[Request] = asyncio.Queue()
        whole = asyncio.Event()

        def take(completion: Completion) -> None:
            done.append(completion)
            if len(done) == len(requests):
                whole.set()

        for request in requests:
            waiting.put_nowait(request)
        serving, ended = asyncio.create_task(self._client.serve(waiting, take)), asyncio.create_task(whole.wait())
        await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
        for task in (serving, ended):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        return done

    def in_flight(self, number: int) -> int:
        """Requests that wait for the answer of this one of the servers."""
        return self._client._addresses[number].in_flight

    def close(self) -> None:
        self._loop.run_until_complete(self._client.__aexit__())
        self._loop.close()
