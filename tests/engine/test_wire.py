"""The messages between parent and child, over a real socket pair."""

import socket
import threading

import pytest

from ba_eval.engine.request import Completion, Request, Sampling
from ba_eval.engine.wire import Ask, Done, FromChild, Ready, Start, ToChild, receive, send


def test_messages_arrive_whole_and_in_order() -> None:
    ours, theirs = socket.socketpair()
    request = Request(id="é", seed=2**31 - 1, sampling=Sampling(stop=("a",)), prompt_token_ids=list(range(100_000)))
    sent: list[ToChild] = [Start(args={"a": [1, {"b": None}]}), *(Ask(request) for _ in range(20))]

    def write() -> None:
        with ours:
            for message in sent:
                send(ours, message)

    writer = threading.Thread(target=write)
    writer.start()
    received = [message for messages in receive(theirs, ToChild) for message in messages]
    writer.join()
    theirs.close()
    assert received == sent


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 20])
def test_a_torn_message_is_dropped(cut: int) -> None:
    ours, theirs = socket.socketpair()
    good = Ready(info={}, slots=1)
    completion = Completion(id="x", text="t", prompt_tokens=1, completion_tokens=1, finish_reason="stop", seconds=0.0)
    send(ours, good)
    send(ours, Done(completion))
    data = theirs.recv(10_000)
    theirs.close()
    ours.close()
    first = 4 + int.from_bytes(data[:4], "little")
    ours, theirs = socket.socketpair()
    ours.sendall(data[: first + cut])
    ours.close()
    assert list(receive(theirs, FromChild)) == [[good]]
    theirs.close()
