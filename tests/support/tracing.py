"""An application's own tracing, for tests of what its clients' spans become."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind


class Traced:
    """The application's tracing: its provider and what its exporter got."""

    def __init__(self, sampler: sampling.Sampler = sampling.ALWAYS_ON) -> None:
        self.exported = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exported))
        self.tracer = self.provider.get_tracer("application")

    def client(self, name: str = "call", kind: SpanKind = SpanKind.CLIENT, **attributes: Any) -> Any:
        return self.tracer.start_as_current_span(name, kind=kind, attributes=attributes)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Inside, this is what the application has set up."""
        with mock.patch.object(trace, "_TRACER_PROVIDER", self.provider):
            yield
        self.provider.shutdown()
