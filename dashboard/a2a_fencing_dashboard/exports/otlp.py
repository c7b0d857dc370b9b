"""Facts and spans as OTLP in JSON, one export a line, as the Collector's file exporter writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final

import msgspec

from a2a_fencing import conventions as c
from a2a_fencing.encoding import severity
from a2a_fencing.facts import Fact, to_attributes
from a2a_fencing_dashboard.store.protocol import Span

_A_LINE: Final = 200
"""Records at most in one line, so that a reader never has to hold much."""
_ERROR: Final = 2
_encode: Final = msgspec.json.Encoder().encode


def lines(facts: Iterable[Fact], spans: Sequence[Span] = ()) -> Iterator[bytes]:
    """Lines of a file that gives these facts and spans back."""
    for replica, reported in groupby(facts, key=lambda fact: fact.replica):
        while some := [_record(fact) for fact in islice(reported, _A_LINE)]:
            yield _line("Logs", "logRecords", {c.SERVICE_INSTANCE_ID: replica}, some)
    for service, recorded in groupby(spans, key=lambda span: span.service):
        while told := [_span(span) for span in islice(recorded, _A_LINE)]:
            yield _line("Spans", "spans", {"service.name": service}, told)


def _line(signal: str, field: str, resource: Mapping[str, Any], records: list[dict[str, Any]]) -> bytes:
    scope = {"scope": {"name": c.SCOPE}, field: records}
    about = {"resource": {"attributes": _pairs(resource)}, f"scope{signal}": [scope]}
    return _encode({f"resource{signal}": [about]}) + b"\n"


def _record(fact: Fact) -> dict[str, Any]:
    time = str(fact.time_unix_nano)
    record: dict[str, Any] = {
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "severityNumber": severity(fact),
        "eventName": c.event_name(fact.kind),
        "attributes": _pairs(to_attributes(fact)),
    }
    if fact.trace_id:
        record["traceId"] = fact.trace_id
    if fact.span_id:
        record["spanId"] = fact.span_id
    return record


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id or "",
        "name": span.name,
        "startTimeUnixNano": str(span.start_unix_nano),
        "endTimeUnixNano": str(span.end_unix_nano),
        "attributes": _pairs(msgspec.json.decode(span.attributes)),
        "status": {"code": _ERROR} if span.error else {},
    }


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, int):
        # 64 bits are more than JavaScript counts exactly: OTLP has them as text.
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _pairs(value)}}
    if value is None:
        return {}
    return {"arrayValue": {"values": [_value(item) for item in value]}}
