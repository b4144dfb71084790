"""The hub's reachability, against real sockets."""

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ba_eval import hub


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(params=[200, 503])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(request.param)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}", request.param
        http.shutdown()


def test_answer_of_a_server(server: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    url, status = server
    monkeypatch.setenv("HF_ENDPOINT", url + "/")
    assert hub.endpoint() == url
    assert hub.why_unreachable() == (None if status == 200 else f"{url} answers 503")


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_switched_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert hub.why_unreachable() == f"{name} is set"
    monkeypatch.setenv(name, "0")
    assert hub.switched_off() is None


def test_silent_server_costs_the_timeout_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.monotonic()
        reason = hub.why_unreachable(timeout=0.3)
    assert reason is not None and reason.startswith("no answer from http://127.0.0.1")
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "not an address", "http://[::1", "file:///etc"])
def test_unusable_endpoint_is_a_reason_not_a_traceback(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    assert "no answer from" in str(hub.why_unreachable())
