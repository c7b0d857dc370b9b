"""An OTLP/HTTP endpoint that keeps what it is sent and answers as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from a2a_fencing.facts import Fact, from_attributes, is_fact

Answer = Callable[[str, int], tuple[int, dict[str, str]]]
"""(path, how many requests it had before) -> status and headers."""


def _accept(path: str, before: int) -> tuple[int, dict[str, str]]:
    return 200, {}


class Sink:
    """What arrived."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes, int]] = []
        self.url = ""
        self._answer = answer
        self._lock = threading.Lock()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str]]:
        with self._lock:
            before = sum(1 for request in self.requests if request[0] == path)
            status, extra = self._answer(path, before)
            self.requests.append((path, headers, body, status))
        return status, extra

    def _accepted(self, path: str) -> Iterator[bytes]:
        for seen, _headers, body, status in self.requests:
            if seen == path and status == 200:
                yield body

    def facts_in_logs(self) -> list[Fact]:
        """Facts that came as log events."""
        return [
            from_attributes(
                record.event_name,
                _plain(record.attributes),
                time_unix_nano=record.time_unix_nano,
                trace_id=record.trace_id.hex(),
                span_id=record.span_id.hex(),
            )
            for body in self._accepted("/v1/logs")
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def spans(self) -> list[Span]:
        """Every span."""
        return [
            span
            for body in self._accepted("/v1/traces")
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def facts_in_spans(self) -> list[Fact]:
        """Facts that came as span events."""
        return [
            from_attributes(
                event.name,
                attributes,
                time_unix_nano=event.time_unix_nano,
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
            )
            for span in self.spans()
            for event in span.events
            if is_fact(event.name, attributes := _plain(event.attributes))
        ]


def _plain(pairs) -> dict:
    plain = {}
    for pair in pairs:
        which = pair.value.WhichOneof("value")
        value = getattr(pair.value, which)
        plain[pair.key] = (
            [item.string_value for item in value.values] if which == "array_value" else value
        )
    return plain


@contextmanager
def otlp_sink(answer: Answer = _accept) -> Iterator[Sink]:
    """A sink listening on loopback while the block runs."""
    sink = Sink(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, extra = sink.take(self.path, dict(self.headers), body)
            self.send_response(status)
            for name, value in {"Content-Length": "0", **extra}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    sink.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield sink
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
