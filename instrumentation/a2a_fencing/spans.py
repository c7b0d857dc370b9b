"""Our own spans where the application traces nothing: OpenTelemetry's API at a tenth of its SDK's price.

Measured, an SDK span with its attribute checks was the largest single cost of a recorded write. These
spans are what our few call sites need and what the outbox encodes: a name, two times, ids, attributes, a
status. An application that has a TracerProvider gets its own SDK's spans instead.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.span import TraceFlags
from opentelemetry.util.types import Attributes, AttributeValue

from a2a_fencing import conventions as c

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
UNSET = Status(StatusCode.UNSET)
"""What a span has that nothing was said of; compared by identity, as asking an enum costs more."""

_SCOPE = InstrumentationScope(c.SCOPE)
id_bytes = Struct(">Q").pack
"""A span id, as requests have it."""

(_CURRENT_SPAN,) = trace.set_span_in_context(trace.INVALID_SPAN, Context())
"""Where OpenTelemetry keeps the span of a context: to look there costs a quarter of asking it."""


class LightSpan(Span):
    """A span that is handed on when it ends, readable like one of the SDK's.

    Attributes:
        trace_bytes, span_bytes: Its ids, as requests have them.
        trace_hex: The trace id as facts have it; it is the same in all spans of a trace.
        parent: What it is under, a span of ours or a span context; None for a root.
        events: The facts that it records, as they stand in a request.
    """

    __slots__ = (
        "_context",
        "_on_end",
        "attributes",
        "end_time",
        "events",
        "name",
        "parent",
        "span_bytes",
        "start_time",
        "status",
        "trace_bytes",
        "trace_hex",
    )

    links: Sequence[Link] = ()
    instrumentation_scope = _SCOPE

    def __init__(
        self,
        name: str,
        trace_bytes: bytes,
        trace_hex: str,
        parent: LightSpan | SpanContext | None,
        attributes: Attributes,
        start_time: int,
        on_end: Callable[[Any], None],
    ) -> None:
        self.name = name
        self.trace_bytes = trace_bytes
        self.trace_hex = trace_hex
        self.span_bytes = id_bytes(random.getrandbits(64))
        self.parent = parent
        self.attributes: dict[str, AttributeValue] = dict(attributes) if attributes else {}
        self.start_time = start_time
        self.end_time: int | None = None
        self.status = UNSET
        self.events: list[bytes] = []
        self._context: SpanContext | None = None
        self._on_end = on_end

    def get_span_context(self) -> SpanContext:
        """The ids of this span, made when somebody asks: few do, and they cost as much as the span."""
        if self._context is None:
            trace_id = int.from_bytes(self.trace_bytes, "big")
            self._context = SpanContext(trace_id, self.span_id, False, _SAMPLED)
        return self._context

    @property
    def span_id(self) -> int:
        """Its own id."""
        return int.from_bytes(self.span_bytes, "big")

    def is_recording(self) -> bool:
        """Whether it has not ended."""
        return self.end_time is None

    def end(self, end_time: int | None = None) -> None:
        """Ends it, once, and hands it on."""
        if self.end_time is None:
            self.end_time = time.time_ns() if end_time is None else end_time
            self._on_end(self)

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Sets one attribute."""
        self.attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Sets several attributes."""
        self.attributes.update(attributes)

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        """Does nothing: the facts are its events, and the outbox adds them when it encodes the span."""

    def update_name(self, name: str) -> None:
        """Renames it."""
        self.name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Says whether the request failed."""
        self.status = status if isinstance(status, Status) else Status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        """Does nothing: exception texts stay in the host."""


def ambient(span: Span) -> Span:
    """What stands for a span in a context that the host's code runs in.

    An application that traces nothing has no-op tracers, and such a tracer, asked for a span under one
    of ours, makes a stand-in each time; a stand-in it hands on as it is.
    """
    return NonRecordingSpan(span.get_span_context()) if type(span) is LightSpan else span


class LightTracer(trace.Tracer):
    """Makes light spans, each under the span of its context.

    Args:
        on_end: Takes each span when it ends.
    """

    def __init__(self, on_end: Callable[[Any], None]) -> None:
        self._on_end = on_end

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> Span:
        """A span under the one in `context`, which is the ambient one by default."""
        start = time.time_ns() if start_time is None else start_time
        above: Any = context.get(_CURRENT_SPAN) if context is not None else None
        if above is None:
            above = trace.get_current_span(context)
        if type(above) is LightSpan:
            return LightSpan(
                name, above.trace_bytes, above.trace_hex, above, attributes, start, self._on_end
            )
        parent: SpanContext | None = above.get_span_context()
        if parent is None or not parent.is_valid:
            parent, trace_id = None, random.getrandbits(128)
        else:
            trace_id = parent.trace_id
            if not parent.trace_flags & TraceFlags.SAMPLED:
                # The request was not sampled where it began; facts travel as log events all the same.
                return NonRecordingSpan(parent)
        trace_bytes = trace_id.to_bytes(16, "big")
        return LightSpan(name, trace_bytes, trace_bytes.hex(), parent, attributes, start, self._on_end)

    @contextmanager
    def start_as_current_span(  # type: ignore[override]
        self, name: str, context: Context | None = None, **options: Any
    ) -> Iterator[Span]:
        """A span that is the ambient one while the block runs."""
        span = self.start_span(name, context)
        with trace.use_span(span, end_on_exit=True):
            yield span
