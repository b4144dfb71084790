"""The connection to the harness: jobs and calls come in, answers leave."""

import os
from typing import Any

from sandbox import wire


class HarnessGone(Exception):
    """The connection closed."""


class Harness:
    """Frames to and from the harness."""

    def __init__(self, fd: int) -> None:
        """`fd`: of a socket."""
        self.fd, self._frames = fd, wire.FrameBuffer()

    def wait(self) -> tuple[dict[str, Any], bytes]:
        """The next frame, however long it takes."""
        while (frame := self._frames.next()) is None:
            self.read()
        return frame

    def read(self) -> None:
        """Takes in what has come; waits where nothing has."""
        data = os.read(self.fd, 1 << 16)
        if not data:
            raise HarnessGone
        self._frames.feed(data)

    def next(self) -> tuple[dict[str, Any], bytes] | None:
        """The next frame of what was read, if it is whole."""
        return self._frames.next()

    def reply(self, header: dict[str, Any], *body: bytes) -> None:
        data = memoryview(wire.pack_frame(header, *body))
        while data:
            data = data[os.write(self.fd, data) :]

    def close(self) -> None:
        os.close(self.fd)

    def end(self) -> None:
        """Ends the connection, and by that the server, at the one place where it looks: never in a clean-up. For a
        signal handler."""
        os.dup2(os.open("/dev/null", os.O_RDONLY), self.fd)
