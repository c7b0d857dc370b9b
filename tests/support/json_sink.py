"""An HTTP endpoint that keeps the JSON it is sent, and answers as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Received:
    """A request, and the status it was answered with."""

    path: str
    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class JsonSink:
    """What arrived. `statuses` are the answers to come; after those, everything is taken."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.statuses: list[int] = []
        self.url = ""
        self.port = 0
        self._changed = threading.Condition()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        with self._changed:
            status = self.statuses.pop(0) if self.statuses else 200
            self.requests.append(Received(path, headers, body, status))
            self._changed.notify_all()
        return status

    @property
    def taken(self) -> list[Received]:
        """Those that were answered with success."""
        return [request for request in self.requests if request.status == 200]

    def wait(self, seen: Callable[[JsonSink], object], *, timeout_s: float = 60) -> None:
        """Waits until what has arrived is what a test waits for."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: seen(self), timeout_s)
        assert arrived, [request.body[:500] for request in self.requests]


@contextmanager
def json_sink(port: int = 0) -> Iterator[JsonSink]:
    """A sink listening on loopback while the block runs."""
    sink = JsonSink()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = sink.take(self.path, dict(self.headers), body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            if 300 <= status < 400:
                self.send_header("Location", f"{sink.url}/elsewhere")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    sink.port = server.server_address[1]
    sink.url = f"http://127.0.0.1:{sink.port}"
    try:
        yield sink
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
