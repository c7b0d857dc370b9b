"""OTLP in JSON: facts are log events and span events.

Ids are hexadecimal and 64-bit integers are strings here, unlike in protobuf's own JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from a2a_fencing.facts import Fact, from_attributes, is_fact

_SIGNALS: Final = ("resourceLogs", "resourceSpans", "resourceMetrics")
_Json = Mapping[str, Any]


def is_document(document: Any) -> bool:
    """Whether this is an OTLP export of any signal."""
    return isinstance(document, dict) and any(signal in document for signal in _SIGNALS)


def facts(document: _Json) -> Iterator[Fact]:
    """The facts among the log records and span events of one export.

    Raises:
        MalformedFactError: An event claims to be a fact but cannot be one.
        AttributeError, KeyError, TypeError, ValueError: The document is not OTLP.
    """
    for record in _records(document, "resourceLogs", "scopeLogs", "logRecords"):
        yield from _fact(
            record.get("eventName", ""),
            record,
            record.get("timeUnixNano") or record.get("observedTimeUnixNano", 0),
            record,
        )
    for span in _records(document, "resourceSpans", "scopeSpans", "spans"):
        for event in span.get("events", ()):
            yield from _fact(event.get("name", ""), event, event.get("timeUnixNano", 0), span)


def _records(document: _Json, signal: str, scopes: str, records: str) -> Iterator[_Json]:
    for resource in document.get(signal, ()):
        for scope in resource.get(scopes, ()):
            yield from scope.get(records, ())


def _fact(name: str, event: _Json, time: str | int, span: _Json) -> Iterator[Fact]:
    attributes = _attributes(event.get("attributes", ()))
    if is_fact(name, attributes):
        yield from_attributes(
            name,
            attributes,
            time_unix_nano=int(time),
            trace_id=span.get("traceId"),
            span_id=span.get("spanId"),
        )


def _attributes(pairs: Iterable[_Json]) -> dict[str, Any]:
    return {pair["key"]: _value(pair.get("value", {})) for pair in pairs}


def _value(value: _Json) -> Any:
    if "stringValue" in value:
        return value["stringValue"]
    if "intValue" in value:
        return int(value["intValue"])
    if "boolValue" in value:
        return value["boolValue"]
    if "doubleValue" in value:
        return float(value["doubleValue"])
    if "arrayValue" in value:
        return [_value(item) for item in value["arrayValue"].get("values", ())]
    return None
