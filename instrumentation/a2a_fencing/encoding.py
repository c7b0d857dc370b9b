"""Facts and spans as OTLP/protobuf bytes, at a price a busy server does not notice.

Stock encoders build every attribute of every record anew, once for the log event and once for the span
event; measured, that was most of what a naive hook costs. Here protobuf encodes what repeats (the task
key; states, outcomes and other closed sets) once per distinct value, and the bytes are kept: a
serialized message is the concatenation of its serialized fields. What arrives is what the stock encoder
would have sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status as StatusMessage
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from a2a_fencing import conventions as c
from a2a_fencing import facts
from a2a_fencing.facts import AttributeValue, Fact, TaskKey

_CACHED = 8192

# Fields whose values come from small sets, encoded together.
_CLOSED: Final = (
    "state",
    "base_state",
    "outcome",
    "reason",
    "origin",
    "event_kind",
    "attempt",
    "versioned",
    "queue",
    "phase",
    "method",
    "ending",
    "rule",
    "error_type",
)
_KEYED: Final = frozenset({"task", "context_id", "writer"})
_WARNED: Final = int(SeverityNumber.SEVERITY_NUMBER_WARN)
_ERROR: Final = int(SeverityNumber.SEVERITY_NUMBER_ERROR)
_INFORMED: Final = int(SeverityNumber.SEVERITY_NUMBER_INFO)


def severity(fact: Fact) -> int:
    """OTel severity number: ERROR for violations, WARN where the fence held, INFO otherwise."""
    if fact.kind == c.VIOLATION:
        return _ERROR
    if fact.kind == c.DROPPED or (fact.kind == c.WRITE and fact.outcome != c.ACCEPTED):
        return _WARNED
    return _INFORMED


def encode_logs(batch: Iterable[Fact], resource: Resource) -> bytes:
    """An ExportLogsServiceRequest with one log event per fact."""
    scope = ScopeLogs(scope=_SCOPE).SerializeToString() + b"".join(
        _framed(_LOG_RECORDS, _log_record(fact)) for fact in batch
    )
    resource_logs = ResourceLogs(resource=_resource(resource)).SerializeToString()
    return _framed(_RESOURCE, resource_logs + _framed(_SCOPES, scope))


def encode_traces(
    spans: Sequence[ReadableSpan], events: Mapping[int, Sequence[Fact]], resource: Resource
) -> bytes:
    """An ExportTraceServiceRequest; `events` are the facts each of our spans recorded, by span id."""
    ours: list[ReadableSpan] = []
    others: list[ReadableSpan] = []
    for span in spans:
        scope = span.instrumentation_scope
        (ours if scope is not None and scope.name == c.SCOPE else others).append(span)
    request = b""
    if ours:
        body = ScopeSpans(scope=_SCOPE).SerializeToString() + b"".join(
            _framed(_SPANS, _span(span, events)) for span in ours
        )
        resource_spans = ResourceSpans(resource=_resource(resource)).SerializeToString()
        request = _framed(_RESOURCE, resource_spans + _framed(_SCOPES, body))
    return request + (encode_spans(others).SerializeToString() if others else b"")


# --- messages ---------------------------------------------------------------------------------------

_SCOPE: Final = InstrumentationScope(name=c.SCOPE)
_STATUS: Final = {
    StatusCode.OK: StatusMessage.STATUS_CODE_OK,
    StatusCode.ERROR: StatusMessage.STATUS_CODE_ERROR,
}


def _log_record(fact: Fact) -> bytes:
    record = LogRecord(
        time_unix_nano=fact.time_unix_nano,
        observed_time_unix_nano=fact.time_unix_nano,
        severity_number=severity(fact),  # type: ignore[arg-type]
        event_name=c.event_name(fact.kind),
    )
    if fact.trace_id is not None and fact.span_id is not None:
        record.trace_id = bytes.fromhex(fact.trace_id)
        record.span_id = bytes.fromhex(fact.span_id)
    return record.SerializeToString() + _seldom(_LOG_ATTRIBUTES, fact) + _often(LogRecord, fact)


def _span_event(fact: Fact) -> bytes:
    event = SpanMessage.Event(
        time_unix_nano=fact.time_unix_nano,
        name=c.event_name(fact.kind),
    )
    return event.SerializeToString() + _seldom(_EVENT_ATTRIBUTES, fact) + _often(SpanMessage.Event, fact)


def _span(span: ReadableSpan, events: Mapping[int, Sequence[Fact]]) -> bytes:
    context = span.get_span_context()
    assert context is not None
    message = SpanMessage(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        trace_state=context.trace_state.to_header(),
        flags=int(context.trace_flags),
        name=span.name,
        kind=SpanMessage.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.start_time or 0,
        end_time_unix_nano=span.end_time or 0,
    )
    if span.parent is not None:
        message.parent_span_id = span.parent.span_id.to_bytes(8, "big")
    for link in span.links:
        message.links.add(
            trace_id=link.context.trace_id.to_bytes(16, "big"),
            span_id=link.context.span_id.to_bytes(8, "big"),
        )
    if span.status.status_code is not StatusCode.UNSET:
        message.status.code = _STATUS[span.status.status_code]
        message.status.message = span.status.description or ""
    parts = [message.SerializeToString()]
    for key, value in (span.attributes or {}).items():
        pair = _framed(_KEY, key.encode()) + _framed(_VALUE, _any_bytes(value))  # type: ignore[arg-type]
        parts.append(_framed(_SPAN_ATTRIBUTES, pair))
    for fact in events.get(context.span_id, ()):
        parts.append(_framed(_EVENTS, _span_event(fact)))
    return b"".join(parts)


# --- attributes -------------------------------------------------------------------------------------


def _seldom(tag: bytes, fact: Fact) -> bytes:
    """The attributes whose values seldom repeat, each as the field that `tag` names."""
    pairs = [_framed(tag, _FACT_ID + _framed(_VALUE, _any_bytes(fact.id)))]
    for name, value in fact.__dict__.items():
        key = _OPEN.get(name)
        if key is not None and value is not None:
            pairs.append(_framed(tag, key + _framed(_VALUE, _any_bytes(value))))
    return b"".join(pairs)


def _often(message: type, fact: Fact) -> bytes:
    """The attributes whose values repeat from fact to fact."""
    values = fact.__dict__
    return _keyed(message, fact.task, fact.context_id, fact.writer) + _closed(
        message, tuple([values.get(name) for name in _CLOSED])
    )


@lru_cache(_CACHED)
def _keyed(message: type, task: TaskKey | None, context_id: str | None, writer: str | None) -> bytes:
    return _serialized(message, {"task": task, "context_id": context_id, "writer": writer})


@lru_cache(_CACHED)
def _closed(message: type, values: tuple[Any, ...]) -> bytes:
    return _serialized(message, dict(zip(_CLOSED, values, strict=True)))


def _serialized(message: type, values: dict[str, Any]) -> bytes:
    """Field `attributes` of `message`, holding these fields of a fact."""
    attributes = facts.to_attributes(Fact.build({"id": "", **values}))
    del attributes[facts.FACT_ID]
    pairs = [KeyValue(key=key, value=_any_value(value)) for key, value in attributes.items()]
    return bytes(message(attributes=pairs).SerializeToString())


def _any_bytes(value: AttributeValue) -> bytes:
    """A serialized AnyValue; the two kinds that every fact has are put together here."""
    if type(value) is str:
        return _framed(_STRING, value.encode())
    if type(value) is int and value >= 0:
        return _INTEGER + _varint(value)
    return bytes(_any_value(value).SerializeToString())


def _any_value(value: AttributeValue) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[_any_value(item) for item in value]))


def _resource(resource: Resource) -> ResourceMessage:
    return ResourceMessage(
        attributes=[
            KeyValue(key=key, value=_any_value(value))  # type: ignore[arg-type]
            for key, value in resource.attributes.items()
        ]
    )


# --- framing ----------------------------------------------------------------------------------------


def _tag(message: type, field: str) -> bytes:
    """Wire tag of a length-delimited field (protobuf wire type 2)."""
    return _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)  # type: ignore[attr-defined]


def _framed(tag: bytes, payload: bytes) -> bytes:
    """An embedded message: tag, length, bytes."""
    return tag + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE: Final = tuple(bytes([value]) for value in range(0x80))
_RESOURCE: Final = _tag(ExportLogsServiceRequest, "resource_logs")
_SCOPES: Final = _tag(ResourceLogs, "scope_logs")
_LOG_RECORDS: Final = _tag(ScopeLogs, "log_records")
_SPANS: Final = _tag(ScopeSpans, "spans")
_EVENTS: Final = _tag(SpanMessage, "events")
_LOG_ATTRIBUTES: Final = _tag(LogRecord, "attributes")
_EVENT_ATTRIBUTES: Final = _tag(SpanMessage.Event, "attributes")
_SPAN_ATTRIBUTES: Final = _tag(SpanMessage, "attributes")
_KEY: Final = _tag(KeyValue, "key")
_VALUE: Final = _tag(KeyValue, "value")
_STRING: Final = _tag(AnyValue, "string_value")
_INTEGER: Final = _varint(AnyValue.DESCRIPTOR.fields_by_name["int_value"].number << 3)

# Serialized keys of the attributes whose values seldom repeat, by field of a fact.
_FACT_ID: Final = bytes(KeyValue(key=facts.FACT_ID).SerializeToString())
_OPEN: Final = {
    name: bytes(KeyValue(key=attribute).SerializeToString())
    for name, (attribute, _) in facts.ATTRIBUTES.items()
    if name not in _CLOSED and name not in _KEYED
}

# One framing serves both signals only because OTLP numbers these fields alike.
assert _tag(ExportTraceServiceRequest, "resource_spans") == _RESOURCE
assert _tag(ResourceSpans, "scope_spans") == _SCOPES
