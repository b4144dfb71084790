"""One place where checkpoints are evaluated one after the other: its devices, and the engine that runs on them."""

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ba_eval.config import RunConfig
from ba_eval.engine import restart
from ba_eval.engine.child import Child
from ba_eval.engine.remote import RemoteEngine
from ba_eval.engine.request import Completion, Engine, Request
from ba_eval.engine.vllm_args import DETERMINISTIC
from ba_eval.plan import Subject
from ba_eval.prefetch import Fetched

_WAITING = 16
"""Lists of completions that may wait to be recorded; past that, engines wait, so that memory stays flat."""
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Ended:
    """A model's last event: its lane is free again."""

    lane: "Lane"
    error: BaseException | None


Events = queue.Queue[tuple[str, list[Completion] | Ended | Fetched]]
"""Model name, and what came of it. One thread takes them all, so that records have one writer."""


def events() -> Events:
    return queue.Queue(_WAITING)


class Lane:
    """Runs one model at a time in a thread of its own, which passes each completion on as it finishes."""

    def __init__(self, config: RunConfig, environment: Mapping[str, str], note: Callable[[str], None]) -> None:
        """`environment`: variables that give its engines their own devices."""
        self._config, self._tell = config, note
        self._environment = {**environment, **({DETERMINISTIC: "1"} if config.deterministic else {})}
        self._lock = threading.Lock()
        self._spare: Child | None = None
        self._in_use: Child | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        self._gpus = 0
        self.seconds_loading = 0.0
        self.seconds_generating = 0.0
        self.gpu_seconds = 0.0

    def preload(self) -> None:
        """Starts a process that imports vLLM (many seconds) before its model is known or needed; one at most.

        Raises InputError where vLLM is not installed.
        """
        from ba_eval.engine.vllm import preload

        with self._lock:
            if self._closed:
                raise _Closed
            if self._spare is None:
                self._spare = preload(
                    self._config.engine_args,
                    trust_remote_code=self._config.trust_remote_code,
                    environment=self._environment,
                )

    def start(
        self,
        subject: Subject,
        requests: Iterable[Request],
        max_model_len: int,
        *,
        more: bool,
        on_engine: Callable[[str, Engine], None],
        events: Events,
    ) -> None:
        """Generates `requests` in the background; ends with an `Ended` event.

        `max_model_len`: the longest prompt + response in tokens. `more`: whether another model may follow, whose vLLM
        is imported meanwhile. `on_engine` is told of each engine that is ready.
        """
        name = subject.model.name

        def put(event: list[Completion] | Ended) -> None:
            while not self._closed or isinstance(event, list):
                with suppress(queue.Full):
                    events.put((name, event), timeout=_LOOK_SECONDS)
                    return

        def work() -> None:
            error: BaseException | None = None
            started, loading = time.monotonic(), self.seconds_loading
            try:
                with closing(self._completions(subject, requests, max_model_len, more, on_engine)) as stream:
                    for completions in stream:
                        put(completions)
            except BaseException as problem:
                error = problem
            self.seconds_generating += time.monotonic() - started - (self.seconds_loading - loading)
            put(Ended(self, error))

        self._thread = threading.Thread(target=work, name=f"lane of {name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends its engine at once, whatever it is doing. Completions that it has made are still passed on."""
        with self._lock:
            self._closed = True
            children = [child for child in (self._in_use, self._spare) if child is not None]
        for child in children:
            child.close()

    def join(self, timeout: float) -> bool:
        """Waits for its thread after `close`; returns whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    # In the lane's thread

    def _completions(
        self,
        subject: Subject,
        requests: Iterable[Request],
        max_model_len: int,
        more: bool,
        on_engine: Callable[[str, Engine], None],
    ) -> Generator[list[Completion], None, None]:
        if subject.checkpoint is None:
            yield from self._from_server(subject, requests, on_engine)
            return

        def start(max_num_seqs: int | None) -> Engine:
            engine = self._start_vllm(subject, max_model_len, max_num_seqs)
            if more:
                self.preload()
            on_engine(subject.model.name, engine)
            return engine

        started = time.monotonic()
        try:
            yield from restart.generate(start, requests, self._note)
        finally:
            self.gpu_seconds += (time.monotonic() - started) * self._gpus

    def _from_server(
        self, subject: Subject, requests: Iterable[Request], on_engine: Callable[[str, Engine], None]
    ) -> Iterator[list[Completion]]:
        from ba_eval.engine.server_child import ServerChild

        config = self._config
        with self._lock:
            if self._closed:
                raise _Closed
            child = self._in_use = ServerChild()
        name = subject.model.name
        args = {"urls": config.server, "model": subject.model.path, "template_args": config.template_args}
        child.load(name, args, None, self._log(name))
        with closing(RemoteEngine(child, note=self._note)) as server:
            on_engine(name, server)
            yield from server.generate(requests)

    def _start_vllm(self, subject: Subject, max_model_len: int, max_num_seqs: int | None) -> Engine:
        from ba_eval.engine.vllm import VllmEngine

        assert subject.checkpoint is not None
        started = time.monotonic()
        name = subject.model.name
        self._note(f"{name}: loading {subject.checkpoint.path} into vLLM")
        self.preload()
        with self._lock:
            child, self._spare = self._spare, None
            self._in_use = child
        smaller = {} if max_num_seqs is None else {"max_num_seqs": max_num_seqs}
        engine = VllmEngine(
            subject.checkpoint,
            {**self._config.engine_args, **smaller},
            max_model_len=max_model_len,
            log_path=self._log(name),
            child=child,
        )
        self._gpus = int(engine.info.get("gpus") or 0)
        self.seconds_loading += time.monotonic() - started
        return engine

    def _note(self, text: str) -> None:
        if not self._closed:  # what an engine says that was ended on purpose is no news
            self._tell(text)

    def _log(self, model: str) -> Path:
        return Path(self._config.out) / "logs" / f"{quote(model, safe='@+=, ')}.log"


class _Closed(Exception):
    """The lane was closed while it worked."""
