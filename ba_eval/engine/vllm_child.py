"""The process that holds vLLM for one checkpoint: `python -m ba_eval.engine.vllm_child FD PARENT_PID`.

It speaks with its parent over the socket FD alone; whatever vLLM and its libraries print goes to the log file that is
its standard output. Its own process group holds every process that vLLM starts.
"""

import contextlib
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ba_eval.engine import seeded_sampling
from ba_eval.engine.request import Completion, Request, failed
from ba_eval.engine.thinking import find_stop, thinking_tokens
from ba_eval.engine.vllm_args import DETERMINISTIC, cpu_defaults
from ba_eval.engine.vllm_parallel import STREAM_INTERVAL, ParallelEngine
from ba_eval.engine.wire import Abort, Ask, Done, Failed, Pulse, Ready, Start, ToChild, receive, send

PULSE_SECONDS = 5.0


def main(fd: int, parent: int) -> None:
    guard_group(parent)
    os.set_inheritable(fd, False)
    channel = socket.socket(fileno=fd)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(channel, inbox), daemon=True).start()
    with contextlib.suppress(Exception):  # reported below, where there is someone to report to
        _import_vllm()
    start = inbox.get()
    if not isinstance(start, Start):  # the parent closed before it asked
        return
    if start.log_path:
        print_to(start.log_path)
    try:
        worker = _Worker(channel, start)
    except _BadInput as error:
        send(channel, Failed(kind="input", message=str(error)))
        return
    except Exception as error:
        _log_traceback()
        send(channel, Failed(kind="machine", message=_one_line(error)))
        return
    try:
        worker.run(inbox)
    except OSError:
        _log_traceback()  # the parent is gone, or the log's disk is full
    except Exception as error:
        _log_traceback()
        with contextlib.suppress(OSError):
            send(channel, Failed(kind="machine", message=_one_line(error)))
    worker.shutdown()


def guard_group(parent: int) -> None:
    """Forks a process that does nothing but kill this process group once the parent or this process is dead.

    vLLM's own workers outlive a kill -9 of either otherwise, and hold the GPU's memory.
    """
    child = os.getpid()
    try:
        watched = [os.pidfd_open(parent), os.pidfd_open(child)]
    except ProcessLookupError:
        os._exit(0)
    if os.fork():
        for fd in watched:
            os.close(fd)
        return
    os.closerange(3, min(watched))
    select.select(watched, [], [])  # a pidfd is readable once its process has ended
    os.killpg(child, signal.SIGKILL)
    os._exit(0)


def _read(channel: socket.socket, inbox: "queue.SimpleQueue[Any]") -> None:
    for messages in receive(channel, ToChild):
        for message in messages:
            inbox.put(message)
    inbox.put(None)


def _import_vllm() -> None:
    """All that takes long and does not depend on the model."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    import vllm.v1.engine.core
    import vllm.v1.engine.llm_engine  # noqa: F401


def print_to(log_path: str) -> None:
    """Sends all that this process and its libraries print to the end of a file."""
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


class _BadInput(Exception):
    """vLLM refuses its arguments or the model."""


@dataclass
class _Running:
    """A request inside the engine."""

    request: Request
    opened: bool
    started: float = field(default_factory=time.monotonic)
    text: str = ""
    token_ids: list[int] = field(default_factory=list)


class _Worker:
    """Feeds the engine and sends on what it finishes."""

    def __init__(self, channel: socket.socket, start: Start) -> None:
        self.channel = channel
        self.parallel = int(start.args.get("data_parallel_size") or 1) > 1
        self.engine, self.info, self.slots = _load(start.args, self.parallel)
        self.lora: Any = None
        if start.adapter:
            from vllm.lora.request import LoRARequest

            self.lora = LoRARequest("adapter", 1, start.adapter)
            self.engine.add_lora(self.lora)
        self.tokenizer = self.engine.get_tokenizer()
        special = set(getattr(self.tokenizer, "all_special_tokens", ()))
        # A tag that is a special token would be missing in the text, and thinking be taken for the answer.
        self.keep_special = "</think>" in special
        self.running: dict[str, _Running] = {}
        self.last_message = time.monotonic()
        self._say(Ready(info=self.info, slots=self.slots))

    def run(self, inbox: "queue.SimpleQueue[Any]") -> None:
        """Works until the parent closes the channel."""
        while True:
            while not inbox.empty() or not self.running:
                message = inbox.get()
                if message is None:
                    return
                if isinstance(message, Ask):
                    self._add(message.request)
                elif isinstance(message, Abort):
                    self.engine.abort_request(list(self.running))
                    self.running.clear()
            outputs = self.engine.step()
            for output in outputs:
                refused = isinstance(output, tuple)
                running = self.running.get(output[0] if refused else output.request_id)
                if running is not None and refused:
                    self._refuse(running.request, output[1])
                elif running is not None:
                    self._take(output, running)
            # A step of a single engine makes tokens; one of a parallel engine may have waited in vain.
            if (outputs or not self.parallel) and time.monotonic() - self.last_message > PULSE_SECONDS:
                self._say(Pulse())

    def shutdown(self) -> None:
        """Lets vLLM end its processes and free shared memory."""
        with contextlib.suppress(Exception):
            (self.engine if self.parallel else self.engine.engine_core).shutdown()

    def _add(self, request: Request) -> None:
        try:
            prompt = {"prompt_token_ids": list(request.prompt_token_ids or ())}
            self.engine.add_request(request.id, prompt, self._params(request), lora_request=self.lora)
        except Exception as error:  # whatever vLLM has against a request ends that request, not the engine
            self._refuse(request, error)
            return
        self.running[request.id] = _Running(request, opened=self._opens_thinking(request.prompt_token_ids or ()))

    def _refuse(self, request: Request, error: Exception) -> None:
        traceback.print_exception(error)
        self.running.pop(request.id, None)
        self._say(Done(failed(request, _one_line(error))))

    def _params(self, request: Request) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        sampling = request.sampling
        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            min_p=sampling.min_p,
            max_tokens=sampling.max_tokens,
            seed=request.seed,
            skip_special_tokens=not self.keep_special,
            # Stop strings are looked for here (`_take`), because vLLM's own fire inside thinking.
            output_kind=RequestOutputKind.DELTA if self.parallel or sampling.stop else RequestOutputKind.FINAL_ONLY,
        )

    def _take(self, output: Any, running: _Running) -> None:
        part = output.outputs[0]
        before = len(running.text)
        running.text += part.text
        running.token_ids += part.token_ids
        stops = running.request.sampling.stop
        begin = max(0, before - max(map(len, stops), default=0) + 1)
        cut = find_stop(running.text, stops, opened=running.opened, start=begin)
        if cut is not None:
            if not output.finished:
                self.engine.abort_request([running.request.id])
            self._finish(running, running.text[:cut], "stop")
        elif output.finished:
            reason = part.finish_reason or "stop"
            if reason in ("stop", "length"):
                self._finish(running, running.text, reason)
            else:
                del self.running[running.request.id]
                self._say(Done(failed(running.request, f"vLLM ended the request: {reason}")))

    def _finish(self, running: _Running, text: str, reason: str) -> None:
        del self.running[running.request.id]
        ids = running.token_ids
        thinking = thinking_tokens(ids, running.text, opened=running.opened, decode=self._decode)
        self._say(
            Done(
                Completion(
                    id=running.request.id,
                    text=text,
                    prompt_tokens=len(running.request.prompt_token_ids or ()),
                    completion_tokens=len(ids),
                    finish_reason=reason,
                    seconds=time.monotonic() - running.started,
                    thinking_tokens=thinking,
                )
            )
        )

    def _decode(self, token_ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(token_ids), skip_special_tokens=not self.keep_special))

    def _opens_thinking(self, prompt: Sequence[int]) -> bool:
        tail = self.tokenizer.decode(list(prompt[-16:]), skip_special_tokens=False)
        return bool(tail.rstrip().endswith("<think>"))

    def _say(self, message: Any) -> None:
        send(self.channel, message)
        self.last_message = time.monotonic()


def _load(args: dict[str, Any], parallel: bool) -> tuple[Any, dict[str, Any], int]:
    """Starts vLLM. Returns (engine, info, sequences it runs at once)."""
    _import_vllm()
    from vllm.platforms import current_platform

    deterministic = os.environ.get(DETERMINISTIC) == "1"
    how = "batch-invariant kernels" if deterministic else None
    if current_platform.is_cpu():
        args, variables = cpu_defaults(args, os.environ)
        os.environ.update(variables)
        os.environ.pop(DETERMINISTIC, None)
        how = "one sequence at a time" if deterministic and args["max_num_seqs"] == 1 else None
        seeded_sampling.install()

    import torch
    import transformers
    import vllm
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.llm_engine import LLMEngine

    if parallel:
        args = {"stream_interval": STREAM_INTERVAL} | args
    try:
        config = EngineArgs(**args).create_engine_config(UsageContext.LLM_CLASS)
    except (ValueError, TypeError, NotImplementedError, AssertionError) as error:  # pydantic's errors are ValueErrors
        _log_traceback()
        raise _BadInput(_one_line(error)) from None
    engine = (
        ParallelEngine(config, UsageContext.LLM_CLASS)
        if parallel
        else LLMEngine.from_vllm_config(config, usage_context=UsageContext.LLM_CLASS, disable_log_stats=True)
    )
    info = {
        "engine": "vllm",
        "version": vllm.__version__,
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "device": str(current_platform.get_device_name()),
        "dtype": str(config.model_config.dtype).removeprefix("torch."),
        "attention_backend": _attention_backend(config),
        "max_model_len": config.model_config.max_model_len,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "kv_cache_tokens": (config.cache_config.num_gpu_blocks or 0) * config.cache_config.block_size,
        "deterministic": how,
        "gpus": 0 if current_platform.is_cpu() else config.parallel_config.world_size_across_dp,
        "args": {name: value for name, value in args.items() if name not in ("model", "tokenizer")},
    }
    return engine, info, config.scheduler_config.max_num_seqs * config.parallel_config.data_parallel_size


def _attention_backend(config: Any) -> str | None:
    """The backend's name where the model is in this process; elsewhere it stands in the log alone."""
    for layer in config.compilation_config.static_forward_context.values():
        if hasattr(layer, "get_attn_backend"):
            return str(layer.get_attn_backend().get_name())
    return None


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:500]}" if text else type(error).__name__


def _log_traceback() -> None:
    with contextlib.suppress(OSError):
        traceback.print_exc()
        sys.stderr.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)  # no destructors: the operating system frees everything, and faster
