"""A child process that speaks the engine's protocol without vLLM, and fails as a request's prompt tells it to."""

import os
import signal
import socket
import subprocess
import sys
import time
from itertools import chain

from ba_eval.engine.request import Completion
from ba_eval.engine.vllm_child import guard_group, print_to
from ba_eval.engine.wire import Abort, Ask, Done, Failed, Pulse, Ready, Start, ToChild, receive, send

DIE, SILENT, PULSE, FAIL, TORN = 1, 2, 3, 4, 5
"""First prompt tokens that make it: be killed, say nothing more, live on without a sample, report, break off."""
SLOTS = 4


def main(fd: int, parent: int) -> None:
    guard_group(parent)
    channel = socket.socket(fileno=fd)
    grandchild = subprocess.Popen(["sleep", "600"])
    print("printed early", flush=True)
    asked = 0
    for message in chain.from_iterable(receive(channel, ToChild)):
        if isinstance(message, Start):
            print_to(str(message.log_path))
            print("\x1b[31ma line of the engine's log\x1b[0m", flush=True)
            if message.args.get("seed") == 1:
                send(channel, Failed(kind="input", message="ValueError: seed 1"))
                return
            if message.args.get("seed") == 2:
                print("RuntimeError: out of memory", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            info = {"args": message.args, "pids": [os.getpid(), grandchild.pid]}
            send(channel, Ready(info=info, slots=SLOTS))
        elif isinstance(message, Abort):
            asked = 0
        elif isinstance(message, Ask):
            asked += 1
            request = message.request
            what = (request.prompt_token_ids or [0])[0]
            if what == DIE:
                print("fatal: the device is gone", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            elif what == SILENT:
                time.sleep(600)
            elif what == PULSE:
                for _ in range(10):
                    send(channel, Pulse())
                    time.sleep(0.1)
            elif what == FAIL:
                send(channel, Failed(kind="machine", message="RuntimeError: step failed"))
                return
            elif what == TORN:
                channel.sendall(b"\xff\x00\x00\x00torn")
                return
            completion = Completion(
                id=request.id,
                text=f"seed {request.seed}",
                prompt_tokens=len(request.prompt_token_ids or ()),
                completion_tokens=asked,
                finish_reason="stop",
                seconds=0.0,
            )
            send(channel, Done(completion))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
    os._exit(0)
