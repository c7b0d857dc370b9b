"""Facts and spans as OTLP/protobuf bytes, at a price a busy server does not notice.

Stock encoders build every attribute of every record anew, once for the log event and once for the span
event; measured, that was most of what a naive hook costs. A serialized message is the concatenation of
its serialized fields, so parts that repeat are serialized once and kept. What arrives is what the stock
encoder would have sent; the numbers of the fields are protobuf's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status as StatusMessage
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode, TraceFlags

from a2a_fencing import conventions as c
from a2a_fencing.encoding.attributes import attribute, fields_of, severity
from a2a_fencing.encoding.wire import any_value, fixed, framed, length, tag, varint
from a2a_fencing.facts import Fact
from a2a_fencing.spans import UNSET, LightSpan, id_bytes

_CACHED = 8192


def encode_fact(fact: Fact) -> tuple[bytes, bytes]:
    """A fact as it stands in a request: as log event, and as event of the span that records it."""
    time = fact.time_unix_nano
    log, event = fields_of(fact)
    if fact.trace_id is None or fact.span_id is None:
        head = _LOG_HEAD.pack(_LOG_TIME, time, _LOG_OBSERVED, time)
    else:
        trace_id, span_id = bytes.fromhex(fact.trace_id), bytes.fromhex(fact.span_id)
        head = _TRACED_LOG_HEAD.pack(
            _LOG_TIME, time, _LOG_OBSERVED, time, _LOG_TRACE, trace_id, _LOG_SPAN, span_id
        )
    event_head = _EVENT_HEAD.pack(_EVENT_TIME, time)
    return (
        b"".join((_LOG_RECORDS, length(len(head) + len(log)), head, log)),
        b"".join((_EVENTS, length(len(event_head) + len(event)), event_head, event)),
    )


def encode_span(span: ReadableSpan | LightSpan, events: Iterable[bytes]) -> bytes:
    """An ended span of ours as it stands in a request, with its facts as `encode_fact` gives them."""
    return framed(_SPANS, _span(span, events))


def encode_resource(resource: Resource) -> bytes:
    """Who sends, as it stands in each request of a process."""
    return bytes(ResourceLogs(resource=_resource(resource)).SerializeToString())


def logs_request(records: Iterable[bytes], sender: bytes) -> bytes:
    """An ExportLogsServiceRequest of encoded facts, from whom `encode_resource` encoded."""
    return framed(_RESOURCE, sender + framed(_SCOPES, _OUR_SCOPE + b"".join(records)))


def traces_request(ours: Sequence[bytes], others: Sequence[ReadableSpan], sender: bytes) -> bytes:
    """An ExportTraceServiceRequest of our encoded spans and of what others recorded under them."""
    request = b""
    if ours:
        request = framed(_RESOURCE, sender + framed(_SCOPES, _OUR_SCOPE + b"".join(ours)))
    return request + (encode_spans(others).SerializeToString() if others else b"")


# --- messages ---------------------------------------------------------------------------------------

_STATUS: Final = {
    StatusCode.OK: StatusMessage.STATUS_CODE_OK,
    StatusCode.ERROR: StatusMessage.STATUS_CODE_ERROR,
}


def _span(span: ReadableSpan | LightSpan, events: Iterable[bytes]) -> bytes:
    if isinstance(span, LightSpan):
        trace_id, span_id, flags = span.trace_bytes, span.span_bytes, TraceFlags.SAMPLED
        rest = span.status is not UNSET
    else:
        context = span.get_span_context()
        assert context is not None
        trace_id, span_id = context.trace_id.to_bytes(16, "big"), id_bytes(context.span_id)
        flags = int(context.trace_flags)
        rest = True
    head = _SPAN_HEAD.pack(
        _SPAN_TRACE, trace_id, _SPAN_ID, span_id,
        _SPAN_START, span.start_time or 0, _SPAN_END, span.end_time or 0,
    )  # fmt: skip
    parts = [head, _span_kind(span.name, flags)]
    parent = span.parent
    if parent is not None:
        above = parent.span_bytes if isinstance(parent, LightSpan) else id_bytes(parent.span_id)
        parts += _SPAN_PARENT, above
    if rest:
        parts.append(_span_rest(span))
    for key, value in (span.attributes or {}).items():
        parts += _SPAN_ATTRIBUTES, attribute(key, value)
    parts += events
    return b"".join(parts)


@lru_cache(_CACHED)
def _span_kind(name: str, flags: int) -> bytes:
    return SpanMessage(name=name, flags=flags, kind=SpanMessage.SPAN_KIND_INTERNAL).SerializeToString()


def _span_rest(span: ReadableSpan | LightSpan) -> bytes:
    """What few spans have."""
    context = span.get_span_context()
    message = SpanMessage(trace_state=context.trace_state.to_header() if context is not None else "")
    for link in span.links:
        message.links.add(
            trace_id=link.context.trace_id.to_bytes(16, "big"),
            span_id=id_bytes(link.context.span_id),
        )
    if span.status.status_code is not StatusCode.UNSET:
        message.status.code = _STATUS[span.status.status_code]
        message.status.message = span.status.description or ""
    return bytes(message.SerializeToString())


def _resource(resource: Resource) -> ResourceMessage:
    return ResourceMessage(
        attributes=[
            KeyValue(key=key, value=any_value(value))  # type: ignore[arg-type]
            for key, value in resource.attributes.items()
        ]
    )


__all__ = [
    "encode_fact",
    "encode_resource",
    "encode_span",
    "logs_request",
    "severity",
    "traces_request",
]

_OUR_SCOPE: Final = ScopeLogs(scope=InstrumentationScope(name=c.SCOPE)).SerializeToString()
_RESOURCE: Final = tag(ExportLogsServiceRequest, "resource_logs")
_SCOPES: Final = tag(ResourceLogs, "scope_logs")
_LOG_RECORDS: Final = tag(ScopeLogs, "log_records")
_SPANS: Final = tag(ScopeSpans, "spans")
_EVENTS: Final = tag(SpanMessage, "events")
_SPAN_ATTRIBUTES: Final = tag(SpanMessage, "attributes")
_LOG_TIME: Final = fixed(LogRecord, "time_unix_nano")
_LOG_OBSERVED: Final = fixed(LogRecord, "observed_time_unix_nano")
_LOG_TRACE: Final = tag(LogRecord, "trace_id") + varint(16)
_LOG_SPAN: Final = tag(LogRecord, "span_id") + varint(8)
_EVENT_TIME: Final = fixed(SpanMessage.Event, "time_unix_nano")
_SPAN_TRACE: Final = tag(SpanMessage, "trace_id") + varint(16)
_SPAN_ID: Final = tag(SpanMessage, "span_id") + varint(8)
_SPAN_PARENT: Final = tag(SpanMessage, "parent_span_id") + varint(8)
_SPAN_START: Final = fixed(SpanMessage, "start_time_unix_nano")
_SPAN_END: Final = fixed(SpanMessage, "end_time_unix_nano")

# Tags and values of fixed size, as each record begins.
_LOG_HEAD: Final = Struct("<cQcQ")
_TRACED_LOG_HEAD: Final = Struct("<cQcQ2s16s2s8s")
_EVENT_HEAD: Final = Struct("<cQ")
_SPAN_HEAD: Final = Struct("<2s16s2s8scQcQ")

# One framing serves both signals only because OTLP numbers these fields alike.
assert tag(ResourceSpans, "resource") == tag(ResourceLogs, "resource")
assert tag(ScopeSpans, "scope") == tag(ScopeLogs, "scope")
assert tag(ExportTraceServiceRequest, "resource_spans") == _RESOURCE
assert tag(ResourceSpans, "scope_spans") == _SCOPES
