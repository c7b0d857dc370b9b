"""The outside world of the scenarios: a payment service behind real HTTP, which counts what it does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from a2a_fencing.fencing import Fence, FenceError

_HOST = "127.0.0.1"


class PaymentService:
    """Charges cards.

    Args:
        fence: Looks at the fencing token first; None: whoever asks is served.
        charged: Called after each charge, before it is answered.

    Attributes:
        attempts: Requests that arrived.
        charges: Requests that took effect.
        url: Where it listens.
    """

    def __init__(
        self, fence: Fence | None = None, *, charged: Callable[[], None] = lambda: None
    ) -> None:
        self._fence = fence
        self._charged = charged
        self._lock = threading.Lock()
        self.attempts = 0
        self.charges = 0
        self.url = ""

    def handle(self, headers: dict[str, str]) -> tuple[int, str]:
        """Serves one request: HTTP status and explanation."""
        with self._lock:
            self.attempts += 1
        if self._fence is not None:
            try:
                self._fence.admit(headers)
            except FenceError as error:
                return error.status, str(error)
        with self._lock:
            self.charges += 1
        self._charged()
        return 200, "charged"


@contextmanager
def serving(service: PaymentService) -> Iterator[PaymentService]:
    """Lets the service listen on loopback while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, explanation = service.handle(dict(self.headers))
            body = json.dumps({"detail": explanation}).encode()
            try:
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # whoever asked was killed meanwhile

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the table tells."""

    server = ThreadingHTTPServer((_HOST, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    service.url = f"http://{_HOST}:{server.server_address[1]}/charge"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
