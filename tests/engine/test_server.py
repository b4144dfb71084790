"""The server engine against a real HTTP server that fails in every way a server can."""

import contextlib
import json
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
import trustme

from ba_eval.engine.request import Completion, Request, Sampling
from ba_eval.engine.server_api import Unusable, base_url, read_answer
from ba_eval.errors import InputError, MachineError
from tests.engine.standin import Client, StandIn


def requests(count: int, **sampling: Any) -> list[Request]:
    """`count` requests with their numbers as seeds."""
    return [
        Request(id=f"r{i}", seed=i, sampling=Sampling(**sampling), messages=[{"role": "user", "content": f"q{i}"}])
        for i in range(count)
    ]


def connect(server: StandIn, **options: Any) -> Client:
    return Client([server.url], **{"backoff_seconds": 0.01, "timeout_seconds": 5.0, **options})


def test_every_request_is_answered_once_with_its_own_seed() -> None:
    with StandIn() as server:
        served = connect(server)
        completions = served.generate(requests(300))
        served.close()
    assert sorted((c.id, c.text) for c in completions) == sorted((f"r{i}", f"seed {i}") for i in range(300))
    assert {(c.prompt_tokens, c.completion_tokens, c.finish_reason, c.error) for c in completions} == {
        (7, 3, "stop", None)
    }
    assert served.info["model"] == "m"
    assert served.info["version"] == "stand-in"


def test_sampling_is_sent_and_neutral_values_are_left_out() -> None:
    with StandIn() as server:
        served = connect(server, template_args={"enable_thinking": True})
        served.generate(requests(1, temperature=0.6, top_p=0.9, top_k=20, min_p=0.1, max_tokens=99))
        served.generate(requests(1, stop=("x",)))
        served.close()
    assert server.bodies[0] == {
        "model": "m",
        "messages": [{"role": "user", "content": "q0"}],
        "temperature": 0.6,
        "top_p": 0.9,
        "top_k": 20,
        "min_p": 0.1,
        "max_tokens": 99,
        "seed": 0,
        "chat_template_kwargs": {"enable_thinking": True},
    }
    assert not {"top_k", "min_p", "stop"} & set(server.bodies[1])


@pytest.mark.parametrize("fault", [429, 500, 502, 503, "half", "reset", "garbage"])
def test_requests_that_fail_at_first_are_sent_again(fault: Any) -> None:
    failed: set[int] = set()

    def behave(number: int, body: dict[str, Any]) -> Any:
        if body["seed"] % 3 == 0 and body["seed"] not in failed:
            failed.add(body["seed"])
            return fault
        return None

    with StandIn(behave=behave) as server:
        served = connect(server)
        completions = served.generate(requests(30))
        served.close()
    assert sorted(c.text for c in completions) == sorted(f"seed {i}" for i in range(30))
    assert len(server.bodies) >= 40


def test_a_silent_answer_times_out_and_is_asked_for_again() -> None:
    with StandIn(behave=lambda number, body: "silent" if number == 0 else None) as server:
        served = connect(server, timeout_seconds=0.3)
        completions = served.generate(requests(3))
        served.close()
    assert sorted(c.text for c in completions) == ["seed 0", "seed 1", "seed 2"]


def test_retry_after_is_obeyed() -> None:
    with StandIn(behave=lambda number, body: 429 if number == 0 else None, retry_after="1") as server:
        served = connect(server)
        start = time.monotonic()
        served.generate(requests(1))
        served.close()
    assert time.monotonic() - start >= 1.0


def test_a_server_that_stays_down_is_given_up_and_named() -> None:
    with StandIn(behave=lambda number, body: 503 if number >= 5 else None) as server:
        served = connect(server, give_up_seconds=0.3, concurrency=1)
        done: list[Completion] = []
        with pytest.raises(MachineError, match=r"127\.0\.0\.1.*last answer: HTTP 503: fault 503"):
            served.generate(requests(20), done)
        served.close()
    assert len(done) == 5


def test_it_is_given_up_in_time_whichever_request_asks() -> None:
    with StandIn(behave=lambda number, body: 503) as server:
        served = connect(server, give_up_seconds=1.0, concurrency=100)
        start = time.monotonic()
        with pytest.raises(MachineError, match=r"gave up after .* attempts; last answer: HTTP 503"):
            served.generate(requests(300))
        served.close()
    assert time.monotonic() - start < 10
    assert len(server.bodies) < 200  # one at a time after the first hundred


def test_a_server_whose_model_is_gone_is_left_out_while_others_work() -> None:
    with StandIn() as good, StandIn(behave=lambda number, body: 404 if number >= 5 else None) as gone:
        served = Client([good.url, gone.url], backoff_seconds=0.05)
        assert len({completion.id for completion in served.generate(requests(200))}) == 200
        served.close()
        assert len(good.bodies) > 100


def test_one_request_that_always_fails_does_not_stop_the_others() -> None:
    with StandIn(behave=lambda number, body: 500 if body["seed"] == 7 else None, delay=0.02) as server:
        served = connect(server, give_up_seconds=0.2, concurrency=2)
        completions = {c.id: c for c in served.generate(requests(200))}
        served.close()
    assert len(completions) == 200
    assert completions["r7"].finish_reason == "error"
    assert "fault 500" in (completions["r7"].error or "")
    assert sum(c.error is not None for c in completions.values()) == 1


def test_a_refused_request_is_an_error_of_its_own() -> None:
    with StandIn(behave=lambda number, body: 400 if body["seed"] == 1 else None) as server:
        served = connect(server)
        completions = {c.id: c for c in served.generate(requests(3))}
        served.close()
    assert completions["r1"].error is not None
    assert completions["r0"].error is None
    assert len(server.bodies) == 3


def test_several_servers_share_the_work_and_one_may_die() -> None:
    with StandIn(delay=0.01) as one, StandIn(delay=0.01) as two:
        served = Client([one.url, two.url], concurrency=8, backoff_seconds=0.01)
        assert len(served.generate(requests(100))) == 100
        assert len(one.bodies) > 30
        assert len(two.bodies) > 30
        two.behave = lambda number, body: "reset"
        completions = served.generate(requests(60))
        served.close()
    assert sorted(c.text for c in completions) == sorted(f"seed {i}" for i in range(60))


def test_a_server_that_is_down_at_the_start_is_left_to_the_others_and_told_once() -> None:
    notes: list[str] = []
    with StandIn(delay=0.01) as up, socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        closed.close()
        served = Client([dead, up.url], concurrency=8, backoff_seconds=0.01, note=notes.append)
        completions = served.generate(requests(60))
        served.close()
    assert sorted(c.text for c in completions) == sorted(f"seed {i}" for i in range(60))
    assert len(notes) == 1
    assert notes[0].startswith(f"{dead}: no answer")


def test_a_server_that_swallows_connections_holds_up_one_request_at_a_time() -> None:
    """Its queue of connections is full: a further one waits until it is given up."""
    held: list[int] = []
    with StandIn(delay=0.01) as up, socket.socket() as full, contextlib.ExitStack() as fillers:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        swallowing = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        served = Client([swallowing, up.url], concurrency=8, backoff_seconds=0.01, timeout_seconds=1.0)
        up.behave = lambda number, body: held.append(served.in_flight(0))
        completions = served.generate(requests(400))
        served.close()
    assert len(completions) == len(held) == 400
    assert max(held) == 1


def test_no_more_than_the_concurrency_in_flight() -> None:
    with StandIn(delay=0.01) as server:
        served = connect(server, concurrency=5)
        served.generate(requests(60))
        served.close()
    assert server.most_at_once == 5


def test_thinking_that_comes_apart_is_put_back_into_tags() -> None:
    with StandIn(answer=lambda body: {"content": "42", "reasoning_content": "6 times 7 stop"}) as server:
        served = connect(server)
        (completion,) = served.generate(requests(1, stop=("stop", "2")))
        served.close()
    assert completion.text == "<think>6 times 7 stop</think>4"

    with StandIn(answer=lambda body: {"content": None, "reasoning": "6 times"}, finish_reason="length") as server:
        served = connect(server)
        (completion,) = served.generate(requests(1))
        served.close()
    assert (completion.text, completion.finish_reason) == ("<think>6 times", "length")


def test_the_api_key_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BA_EVAL_API_KEY", "k1")
    with StandIn() as server:
        served = connect(server)
        served.generate(requests(1))
        served.close()
    assert server.keys == ["Bearer k1"]


@pytest.mark.parametrize("count", ["12", 12.5, -1, 2**70, 1e300, None, [], {}])
def test_counts_that_are_none_cost_no_answer(count: Any) -> None:
    usage = {
        "prompt_tokens": count,
        "completion_tokens": count,
        "completion_tokens_details": {"reasoning_tokens": count},
    }
    choice = {"message": {"content": "x"}, "finish_reason": "stop"}
    answer = read_answer("u", 200, 0.0, json.dumps({"choices": [choice], "usage": usage}).encode())
    assert (answer.text, answer.prompt_tokens) == ("x", 12 if count == 12.5 else 0)
    assert answer.thinking_tokens == (12 if count == 12.5 else None)


def test_text_that_is_none_is_replaced() -> None:
    content = rb'{"choices": [{"message": {"content": "a\ud800b' + b"\xff" + b'"}}]}'
    assert read_answer("u", 200, 0.0, content).text == "a?b\ufffd"


@pytest.mark.parametrize("status", [200, 500])
def test_a_deep_answer_is_to_be_asked_for_again(status: int) -> None:
    with pytest.raises(Unusable):
        read_answer("u", status, 0.0, b"[" * 200_000)


def test_a_packed_answer_is_unpacked() -> None:
    with StandIn(packed=True) as server:
        served = connect(server)
        assert [completion.text for completion in served.generate(requests(1))] == ["seed 0"]
        served.close()


def test_what_breaks_for_all_at_once_is_one_failure() -> None:
    seen: set[int] = set()

    def behave(number: int, body: dict[str, Any]) -> Any:
        first = body["seed"] not in seen
        seen.add(body["seed"])
        return "reset" if first else None

    with StandIn(behave=behave, delay=0.05) as server:
        served = connect(server, backoff_seconds=0.2)
        start = time.monotonic()
        assert len(served.generate(requests(100))) == 100
        served.close()
    assert time.monotonic() - start < 5  # 30 s where each counted


@pytest.mark.parametrize("key", ["schlüssel", "a\r\nX-Evil: 1", "\udcff"])
def test_keys_that_cannot_be(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BA_EVAL_API_KEY", key)
    with pytest.raises(InputError, match="BA_EVAL_API_KEY"):
        Client(["http://127.0.0.1:1"])


def test_a_redirected_request_is_sent_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BA_EVAL_API_KEY", "k1")
    with StandIn() as there, StandIn(behave=lambda number, body: 307, moved_to=there.url) as here:
        served = connect(here)
        (completion,) = served.generate(requests(1))
        served.close()
    assert completion.text == "seed 0"
    assert there.bodies == here.bodies
    assert (here.keys, there.keys) == (["Bearer k1"], [""])  # the key is for the host that the user named


def test_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        served = Client(["http://models.invalid/v1"], backoff_seconds=0.01)
        (completion,) = served.generate(requests(1))
        served.close()
        assert completion.text == "seed 0"
        assert proxy.paths[0] == "http://models.invalid/v1/models"
        with StandIn() as server:
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            served = connect(server)
            served.close()
            assert server.paths[0] == "/v1/models"


def test_certificates_are_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with StandIn(tls=context) as server:
        with pytest.raises(MachineError, match="certificate"):
            connect(server)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        served = connect(server)
        assert [completion.text for completion in served.generate(requests(1))] == ["seed 0"]
        served.close()


def test_max_completion_tokens_where_the_server_asks_for_it() -> None:
    with StandIn(delay=0.02) as server:
        message = {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}
        write = server._write
        server.behave = lambda number, body: 400 if "max_tokens" in body else None
        server._write = lambda writer, status, data: write(writer, status, message if status == 400 else data)  # type: ignore[method-assign]
        served = connect(server)
        completions = served.generate(requests(10))
        served.close()
    assert [c.error for c in completions] == [None] * 10
    assert "max_completion_tokens" in server.bodies[-1]


def test_what_bad_input_gets() -> None:
    with StandIn(models=("a", "b")) as server:
        with pytest.raises(InputError, match="has no model 'c'; it has: a, b"):
            connect(server, model="c")
        with pytest.raises(InputError, match="name the model: a, b"):
            connect(server)
    with StandIn(behave=lambda number, body: 401) as server:
        served = connect(server)
        with pytest.raises(InputError, match="API key"):
            served.generate(requests(1))
        served.close()
    with pytest.raises(InputError, match="not an address"):
        Client(["localhost:8000"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(MachineError, match="is the server running there"):
            Client([f"http://127.0.0.1:{free.getsockname()[1]}"])


@pytest.mark.parametrize(
    "url",
    [
        *("http://[::1/v1", "http://h:99999", "http://h:abc", "http://h/a b", "http://h\n", "http://h?x=1"),
        *("http://h#x", "http://h\udcff", "ftp://h", "http://", ""),
    ],
)
def test_addresses_that_cannot_be(url: str) -> None:
    with pytest.raises(InputError, match="not an address") as error:
        base_url(url)
    assert "\n" not in str(error.value)


def test_a_password_is_not_kept() -> None:
    with pytest.raises(InputError, match="BA_EVAL_API_KEY") as error:
        base_url("http://user:secret@h/v1")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("http://h:8000/v1/", "http://h:8000/v1"),
        ("https://h/api/v3/chat/completions", "https://h/api/v3"),
    ],
)
def test_addresses_as_users_write_them(given: str, wanted: str) -> None:
    assert base_url(given) == wanted
