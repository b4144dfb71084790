"""vLLM with data parallelism: only its asynchronous engine balances requests over several copies of a model."""

import asyncio
import contextlib
from typing import Any

POLL_SECONDS = 0.05
STREAM_INTERVAL = 64
"""Tokens after which a copy reports: what a request has got so far shows that the engine is not hung."""


class ParallelEngine:
    """The methods of vLLM's LLMEngine that the child process uses, over AsyncLLM.

    Where LLMEngine refuses a request by raising in `add_request`, here `step` returns (request id, error).
    """

    def __init__(self, config: Any, usage_context: Any) -> None:
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._ready = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._outputs: list[Any] = []
        self._death: Exception | None = None
        self._llm = self._loop.run_until_complete(self._create(config, usage_context))

    async def _create(self, config: Any, usage_context: Any) -> Any:
        from vllm.v1.engine.async_llm import AsyncLLM

        return AsyncLLM.from_vllm_config(config, usage_context=usage_context, disable_log_stats=True)

    def get_tokenizer(self) -> Any:
        return self._llm.get_tokenizer()

    def add_lora(self, lora: Any) -> None:
        self._loop.run_until_complete(self._llm.add_lora(lora))

    def add_request(self, request_id: str, prompt: Any, params: Any, lora_request: Any) -> None:
        task = self._loop.create_task(self._collect(request_id, prompt, params, lora_request))
        self._tasks[request_id] = task

    def abort_request(self, request_ids: list[str]) -> None:
        for request_id in request_ids:
            if task := self._tasks.get(request_id):
                task.cancel()  # AsyncLLM aborts the request then

    def step(self) -> list[Any]:
        """Returns what has come since the last call, after a short wait at most. Raises when the engine is dead."""
        self._loop.run_until_complete(self._wait())
        if self._death is not None:
            raise self._death
        outputs, self._outputs = self._outputs, []
        return outputs

    def shutdown(self) -> None:
        self._llm.shutdown()

    async def _wait(self) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._ready.wait(), POLL_SECONDS)
        self._ready.clear()

    async def _collect(self, request_id: str, prompt: Any, params: Any, lora: Any) -> None:
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            async for output in self._llm.generate(prompt, params, request_id, lora_request=lora):
                self._outputs.append(output)
                self._ready.set()
        except EngineDeadError as error:
            self._death = error
        except Exception as error:
            self._outputs.append((request_id, error))
        finally:
            del self._tasks[request_id]
            self._ready.set()
