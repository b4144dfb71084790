"""What the parent and an engine's child say to each other: msgpack messages, each behind its length, over a socket."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ba_eval.engine.request import Completion, Request

BLOCK = 2**18
"""Bytes read at once."""
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


class Note(msgspec.Struct, frozen=True, tag=True):
    """Something that the user should know of; the work goes on."""

    text: str


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The engine cannot go on. `input`: because of what the user gave; `machine`: anything else."""

    kind: Literal["input", "machine"]
    message: str


FromChild = Ready | Done | Pulse | Note | Failed


def pack(message: ToChild | FromChild) -> bytes:
    """Returns the bytes of one message."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def send(channel: socket.socket, *messages: ToChild | FromChild) -> None:
    """Sends messages, waiting for room. Raises OSError where the other side is gone."""
    channel.sendall(b"".join(map(pack, messages)))


class Splitter:
    """Cuts what arrives into messages of the union `type`."""

    def __init__(self, type: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(type)
        self._rest = b""

    def feed(self, data: bytes) -> list[Any]:
        """Returns the messages that are whole now."""
        whole = memoryview(self._rest + data)
        messages, at = [], 0
        while len(whole) - at >= _LENGTH.size:
            start = at + _LENGTH.size
            end = start + _LENGTH.unpack_from(whole, at)[0]
            if end > len(whole):
                break
            messages.append(self._decoder.decode(whole[start:end]))
            at = end
        self._rest = bytes(whole[at:])
        return messages


def receive(channel: socket.socket, type: Any) -> Iterator[list[Any]]:
    """Yields messages of the union `type`, in lists of what came together, until the other side closes or dies.

    A torn last message is dropped.
    """
    splitter = Splitter(type)
    with contextlib.suppress(OSError):  # reset: the other side died with unread data
        while data := channel.recv(BLOCK):
            if messages := splitter.feed(data):
                yield messages
