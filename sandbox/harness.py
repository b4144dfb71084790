"""The connection to the harness: jobs and calls come in, answers leave."""

import socket
from typing import Any

from sandbox import wire


class HarnessGone(Exception):
    """The connection closed."""


class Harness:
    """Frames to and from the harness."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._frames = control, wire.FrameBuffer()
        self.fd = control.fileno()

    def wait(self) -> tuple[dict[str, Any], bytes]:
        """The next frame, however long it takes."""
        while (frame := self._frames.next()) is None:
            self.read()
        return frame

    def read(self) -> None:
        """Takes in what has come; waits where nothing has."""
        data = self._control.recv(1 << 16)
        if not data:
            raise HarnessGone
        self._frames.feed(data)

    def next(self) -> tuple[dict[str, Any], bytes] | None:
        """The next frame of what was read, if it is whole."""
        return self._frames.next()

    def reply(self, header: dict[str, Any], *body: bytes) -> None:
        self._control.sendall(wire.pack_frame(header, *body))
