"""The process that talks to servers: `python -m ba_eval.engine.server_child FD PARENT_PID`.

HTTP costs as much CPU time as all the rest of a run with a server, so it has a process, and a core, of its own.
"""

import os
import socket
import sys
import threading
import traceback

import uvloop

from ba_eval.engine.child import Child
from ba_eval.engine.server import ServerEngine
from ba_eval.engine.wire import Ask, Done, Failed, Ready, Start, ToChild, receive, send
from ba_eval.errors import BaEvalError, InputError, MachineError


class ServerChild(Child):
    """The parent's end."""

    module = "ba_eval.engine.server_child"

    def _failure(self, message: Failed) -> BaEvalError:
        return (InputError if message.kind == "input" else MachineError)(message.message)


def main(fd: int, parent: int) -> None:
    uvloop.install()  # a fifth less CPU time a request
    channel = socket.socket(fileno=fd)
    messages = receive(channel, ToChild)
    begin = next(messages, None)
    if not isinstance(begin, Start):
        return
    try:
        engine = ServerEngine(**begin.args)
        send(channel, Ready(info=dict(engine.info), slots=engine.info["concurrency"]))

        def submit() -> None:
            for message in messages:
                if isinstance(message, Ask):
                    engine.submit(message.request)
            os._exit(0)  # the parent has closed its end

        threading.Thread(target=submit, daemon=True).start()
        while True:
            send(channel, Done(engine.take()))
    except OSError:
        pass  # the parent is gone
    except BaEvalError as error:
        send(channel, Failed(kind="input" if error.exit_code == 2 else "machine", message=str(error)))
    except Exception as error:
        traceback.print_exc()
        send(channel, Failed(kind="machine", message=f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.flush()
    os._exit(0)
