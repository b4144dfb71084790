"""A small stand-in for the Hugging Face hub: serves folders as datasets over the endpoints its clients ask."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Hub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self._answer(body)

    def _answer(self, body: str = "") -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        parts = [unquote(part) for part in urlparse(self.path).path.strip("/").split("/")]
        if parts[:2] == ["api", "datasets"] and len(parts) >= 4:
            self._api(parts[2], parts[3], parts[4:], body)
        elif parts[:1] == ["datasets"] and parts[3:4] == ["resolve"]:
            self._file(self.server.folder / parts[1] / parts[2] / "/".join(parts[5:]))
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    def _api(self, owner: str, name: str, rest: list[str], body: str) -> None:
        root = self.server.folder / owner / name
        if not root.is_dir():
            self._send(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})
            return
        entries = [_entry(path, root) for path in sorted(root.rglob("*"))]
        if not rest or rest[0] == "revision":
            siblings = [{"rfilename": entry["path"]} for entry in entries if entry["type"] == "file"]
            info = {"_id": "1", "id": f"{owner}/{name}", "sha": COMMIT, "private": False, "gated": False}
            self._json({**info, "disabled": False, "tags": [], "downloads": 0, "likes": 0, "siblings": siblings})
        elif rest[0] == "tree":
            under = "/".join(rest[2:])
            inside = [entry for entry in entries if str(entry["path"]).startswith(f"{under}/" if under else "")]
            if "recursive=true" not in self.path.lower():
                depth = under.count("/") + 1 if under else 0
                inside = [entry for entry in inside if str(entry["path"]).count("/") == depth]
            self._json(inside)
        elif rest[0] == "paths-info":
            form = json.loads(body) if body.startswith("{") else parse_qs(body)
            wanted = form.get("paths", [])
            self._json([entry for entry in entries if entry["path"] in wanted])
        elif rest[0] == "resolve":
            self._file(root / "/".join(rest[2:]))
        else:
            self._send(404, b"{}", {})

    def _file(self, path: Path) -> None:
        if not path.is_file():
            self._send(404, b"Entry not found", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
            return
        data = path.read_bytes()
        headers = {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        span = self.headers.get("Range", "")
        if span.startswith("bytes="):
            first, _, last = span.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or len(data) - 1), len(data) - 1)
            headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
            self._send(206, data[start : end + 1], headers)
        else:
            self._send(200, data, headers)

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json", "X-Repo-Commit": COMMIT})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _entry(path: Path, root: Path) -> dict[str, object]:
    data = path.read_bytes() if path.is_file() else b""
    kind = "file" if path.is_file() else "directory"
    return {"type": kind, "path": path.relative_to(root).as_posix(), "size": len(data), "oid": _oid(data)}


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@contextmanager
def hub(folder: Path) -> Iterator[_Hub]:
    """Serves `folder/<owner>/<name>/...`; the address is `http://127.0.0.1:{server.server_port}`."""
    server = _Hub(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
