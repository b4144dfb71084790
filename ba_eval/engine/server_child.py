"""The process that talks to servers: `python -m ba_eval.engine.server_child FD PARENT_PID`.

HTTP costs as much CPU time as all the rest of a run with a server, so it has a process, and a core, of its own.
"""

import asyncio
import os
import socket
import sys
import traceback
from contextlib import suppress

import uvloop

from ba_eval.engine.child import Child
from ba_eval.engine.request import Request
from ba_eval.engine.server import ServerClient
from ba_eval.engine.wire import BLOCK, Ask, Done, Failed, FromChild, Note, Ready, Splitter, Start, ToChild, pack
from ba_eval.errors import BaEvalError, InputError, MachineError


class ServerChild(Child):
    """The parent's end."""

    module = "ba_eval.engine.server_child"

    def _failure(self, message: Failed) -> BaEvalError:
        return (InputError if message.kind == "input" else MachineError)(message.message)


async def main(fd: int) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=fd))
    begin: asyncio.Queue[Start] = asyncio.Queue()
    requests: asyncio.Queue[Request] = asyncio.Queue()

    def tell(message: FromChild) -> None:
        writer.write(pack(message))

    async def read() -> None:
        splitter = Splitter(ToChild)
        with suppress(OSError):  # reset: the parent died with unread data
            while data := await reader.read(BLOCK):
                for message in splitter.feed(data):
                    if isinstance(message, Start):
                        begin.put_nowait(message)
                    elif isinstance(message, Ask):
                        requests.put_nowait(message.request)

    async def serve() -> None:
        try:
            args = (await begin.get()).args
            async with ServerClient(**args, note=lambda text: tell(Note(text))) as client:
                tell(Ready(info=dict(client.info), slots=client.info["concurrency"]))
                await client.serve(requests, lambda completion: tell(Done(completion)))
        except BaEvalError as error:
            tell(Failed(kind="input" if error.exit_code == 2 else "machine", message=str(error)))
        except Exception as error:  # a fault of ours must not leave the parent waiting for ever
            traceback.print_exc()
            tell(Failed(kind="machine", message=f"{type(error).__name__}: {error}"))

    # Until the parent has closed its end, or there is nothing more to be had.
    await asyncio.wait([asyncio.create_task(work()) for work in (read, serve)], return_when=asyncio.FIRST_COMPLETED)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


if __name__ == "__main__":
    uvloop.install()  # a sixth less CPU time a request
    asyncio.run(main(int(sys.argv[1])))
    sys.stdout.flush()
    os._exit(0)
