"""OTLP requests made by hand, in either encoding, without the code under test."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, to_attributes

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
_IDS = ("traceId", "spanId", "parentSpanId")


def any_value(value: Any) -> AnyValue:
    made = AnyValue()
    match value:
        case None:
            pass
        case bool():
            made.bool_value = value
        case int():
            made.int_value = value
        case float():
            made.double_value = value
        case str():
            made.string_value = value
        case bytes():
            made.bytes_value = value
        case Mapping():
            made.kvlist_value.values.extend(pairs(value))
            made.kvlist_value.SetInParent()
        case _:
            made.array_value.values.extend(any_value(item) for item in value)
            made.array_value.SetInParent()
    return made


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def record(fact: Fact) -> LogRecord:
    """A fact as a log event."""
    return LogRecord(
        time_unix_nano=fact.time_unix_nano,
        event_name=c.event_name(fact.kind),
        attributes=pairs(to_attributes(fact)),
        trace_id=bytes.fromhex(fact.trace_id or ""),
        span_id=bytes.fromhex(fact.span_id or ""),
    )


def event(fact: Fact) -> Span.Event:
    """A fact as a span event."""
    return Span.Event(
        time_unix_nano=fact.time_unix_nano,
        name=c.event_name(fact.kind),
        attributes=pairs(to_attributes(fact)),
    )


def span(facts: Iterable[Fact] = (), **fields: Any) -> Span:
    """A span with facts as its events."""
    made = {"trace_id": b"\x0a" * 16, "span_id": b"\x0b" * 8, "name": "save"} | fields
    return Span(events=[event(fact) for fact in facts], **made)


def logs(*records: LogRecord) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.extend(records)
    return request


def traces(*spans: Span, service: str = "agent") -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(pairs({"service.name": service}))
    resource.scope_spans.add().spans.extend(spans)
    return request


def encoded(request: Message, content_type: str) -> bytes:
    """A request as its sender would encode it."""
    if content_type == PROTOBUF:
        return request.SerializeToString()
    document = json_format.MessageToDict(request, use_integers_for_enums=True)
    return json.dumps(_with_hex_ids(document)).encode()


def _with_hex_ids(document: Any) -> Any:
    """OTLP's JSON writes ids in hexadecimal, protobuf's in base64."""
    if isinstance(document, list):
        return [_with_hex_ids(item) for item in document]
    if isinstance(document, dict):
        return {
            key: base64.b64decode(value).hex() if key in _IDS else _with_hex_ids(value)
            for key, value in document.items()
        }
    return document
