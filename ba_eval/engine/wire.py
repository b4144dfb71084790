"""What the parent and the vLLM child say to each other: msgpack messages, each behind its length, over a socket."""

import socket
import struct
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ba_eval.engine.request import Completion, Request

_LENGTH = struct.Struct("<I")
_encoder = msgspec.msgpack.Encoder()


class Start(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Load this model. The first message to the child."""

    args: dict[str, Any]
    """Arguments of vLLM's EngineArgs."""
    adapter: str | None = None
    """Folder of a LoRA adapter that every request uses."""
    log_path: str | None = None
    """Where all that is printed goes from now on."""


class Ask(msgspec.Struct, frozen=True, tag=True):
    request: Request


class Abort(msgspec.Struct, frozen=True, tag=True):
    """Forget all requests that are not finished: nobody waits for them any more."""


ToChild = Start | Ask | Abort


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The model is loaded."""

    info: dict[str, Any]
    slots: int
    """Sequences that the engine runs at once at most."""


class Done(msgspec.Struct, frozen=True, tag=True):
    completion: Completion


class Pulse(msgspec.Struct, frozen=True, tag=True):
    """The engine makes tokens, though no sample has finished for a while."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The engine cannot go on. `input`: because of what the user gave; `machine`: anything else."""

    kind: Literal["input", "machine"]
    message: str


FromChild = Ready | Done | Pulse | Failed


def send(channel: socket.socket, message: ToChild | FromChild) -> None:
    """Sends one message, waiting for room. Raises OSError where the other side is gone."""
    body = _encoder.encode(message)
    channel.sendall(_LENGTH.pack(len(body)) + body)


def receive(channel: socket.socket, type: Any) -> Iterator[Any]:
    """Yields messages of the union `type` until the other side closes or dies; a torn last message is dropped."""
    decoder = msgspec.msgpack.Decoder(type)
    with channel.makefile("rb", buffering=2**16) as stream:
        while True:
            try:
                head = stream.read(_LENGTH.size)
                if len(head) < _LENGTH.size:
                    return
                (length,) = _LENGTH.unpack(head)
                body = stream.read(length)
            except OSError:  # reset: the other side died with unread data
                return
            if len(body) < length:
                return
            yield decoder.decode(body)
