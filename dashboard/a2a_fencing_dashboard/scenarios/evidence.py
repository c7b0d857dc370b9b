"""A receiver of facts that keeps them in memory: what is on record when a replica has been killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.receiver.otlp.decode import LOGS, PROTOBUF, decode

_HOST = "127.0.0.1"


class Evidence:
    """What was acknowledged.

    Attributes:
        facts: In the order in which they arrived.
        url: OTLP/HTTP base URL to send facts to.
    """

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.url = ""
        self._lock = threading.Lock()

    def take(self, body: bytes) -> None:
        """Keeps the facts of one export of log events."""
        found = decode(LOGS, PROTOBUF, body, lambda ids: set())
        with self._lock:
            self.facts += found.facts


@contextmanager
def receiving() -> Iterator[Evidence]:
    """Receives on loopback while the block runs; traces are not taken."""
    evidence = Evidence()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known = self.path == f"/v1/{LOGS}"
            if known:
                evidence.take(body)
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the table tells."""

    server = ThreadingHTTPServer((_HOST, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    evidence.url = f"http://{_HOST}:{server.server_address[1]}"
    try:
        yield evidence
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
