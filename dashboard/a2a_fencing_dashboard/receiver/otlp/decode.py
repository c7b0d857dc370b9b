"""Exports to facts and spans.

A fact comes as a log event, as a span event, or as both. One that is known already costs no more than
finding its id, which is the first attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, NamedTuple

import msgspec

from a2a_fencing import conventions as c
from a2a_fencing.facts import FACT_ID, Fact, MalformedFactError, from_attributes
from a2a_fencing_dashboard.receiver.otlp import json, protobuf
from a2a_fencing_dashboard.store.protocol import Span

LOGS: Final = "logs"
TRACES: Final = "traces"
METRICS: Final = "metrics"
SIGNALS: Final = (LOGS, TRACES, METRICS)

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
ENCODINGS: Final = {PROTOBUF: protobuf, JSON: json}

_EVENT_NAME: Final = "event.name"
"""Where senders put the name before log records had a field for it."""
_SERVICE_NAME: Final = "service.name"
_ERROR: Final = 2
_LAST_TIME: Final = (1 << 63) - 1

Known = Callable[[Collection[str]], set[str]]


class UndecodableError(Exception):
    """A body is not what its content type and path say; the text says why."""


@dataclass(slots=True)
class Export:
    """What one request held.

    Attributes:
        facts: Facts that were not known.
        known: How many were.
        spans: Every span, facts or none.
        malformed: What is wrong with each record that cannot be stored.
    """

    facts: list[Fact] = field(default_factory=list)
    known: int = 0
    spans: list[Span] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)


class _Event(NamedTuple):
    """A log event or span event that claims to be a fact."""

    fact_id: str
    name: str
    time_unix_nano: int
    attributes: Any
    place: Any
    """Has the trace id and span id."""


def decode(signal: str, content_type: str, body: bytes, known: Known) -> Export:
    """Reads the facts and spans of a request.

    Args:
        signal: One of `SIGNALS`; metrics are looked at and not kept.
        content_type: One of `ENCODINGS`.
        body: The request's body, decompressed.
        known: Tells which fact ids are stored already.

    Raises:
        UndecodableError: The body as a whole cannot be read.
    """
    encoding = ENCODINGS[content_type]
    try:
        if signal == LOGS:
            return _Reader(encoding).logs(encoding.logs(body), known)
        if signal == TRACES:
            return _Reader(encoding).traces(encoding.traces(body), known)
        encoding.metrics(body)
    except (protobuf.DecodeError, json.DecodeError, RecursionError) as error:
        raise UndecodableError(f"cannot read {signal} as {content_type}: {error}") from error
    return Export()


class _Reader:
    """Walks one export, in either encoding."""

    def __init__(self, encoding: ModuleType) -> None:
        self._encoding = encoding
        self._export = Export()

    def logs(self, request: Any, known: Known) -> Export:
        events = []
        for resource in request.resource_logs or ():
            for scope in resource.scope_logs or ():
                for record in scope.log_records or ():
                    name = record.event_name or self._find(_EVENT_NAME, record.attributes)
                    if isinstance(name, str) and name.startswith(c.NAMESPACE):
                        time = record.time_unix_nano or record.observed_time_unix_nano or 0
                        events.append(self._event(name, time, record.attributes, record))
        return self._read(events, known)

    def traces(self, request: Any, known: Known) -> Export:
        events = []
        for resource in request.resource_spans or ():
            service = self._service(resource)
            for scope in resource.scope_spans or ():
                for span in scope.spans or ():
                    self._read_span(span, service)
                    for event in span.events or ():
                        name = event.name or ""
                        if name.startswith(c.NAMESPACE):
                            time = event.time_unix_nano or 0
                            events.append(self._event(name, time, event.attributes, span))
        return self._read(events, known)

    def _event(self, name: str, time: int, attributes: Any, place: Any) -> _Event:
        fact_id = self._find(FACT_ID, attributes)
        return _Event(fact_id if isinstance(fact_id, str) else "", name, time, attributes, place)

    def _find(self, wanted: str, attributes: Any) -> Any:
        return next((value for key, value in self._encoding.pairs(attributes) if key == wanted), None)

    def _service(self, resource: Any) -> str:
        described = resource.resource
        pairs = self._encoding.resource_pairs(described.attributes) if described else ()
        return str(dict(pairs).get(_SERVICE_NAME) or "")

    def _read(self, events: list[_Event], known: Known) -> Export:
        export = self._export
        stored = known([event.fact_id for event in events])
        for event in events:
            if event.fact_id in stored:
                export.known += 1
                continue
            try:
                export.facts.append(self._fact(event))
            except MalformedFactError as error:
                export.malformed.append(f"{event.name}: {error}")
        return export

    def _fact(self, event: _Event) -> Fact:
        hex_id = self._encoding.hex_id
        fact = from_attributes(
            event.name,
            dict(self._encoding.pairs(event.attributes)),
            time_unix_nano=event.time_unix_nano,
            trace_id=hex_id(event.place.trace_id),
            span_id=hex_id(event.place.span_id),
        )
        if not 0 <= fact.time_unix_nano <= _LAST_TIME:
            raise MalformedFactError(f"time {fact.time_unix_nano} is out of range")
        return fact

    def _read_span(self, span: Any, service: str) -> None:
        hex_id = self._encoding.hex_id
        trace_id, span_id = hex_id(span.trace_id), hex_id(span.span_id)
        start, end = span.start_time_unix_nano or 0, span.end_time_unix_nano or 0
        if len(trace_id) != 32 or len(span_id) != 16:
            self._export.malformed.append("a span without a valid trace id and span id")
        elif not (0 <= start <= _LAST_TIME and 0 <= end <= _LAST_TIME):
            self._export.malformed.append(f"span {span_id}: time is out of range")
        else:
            self._export.spans.append(
                Span(
                    trace_id=trace_id,
                    span_id=span_id,
                    parent_span_id=hex_id(span.parent_span_id) or None,
                    name=span.name or "",
                    start_unix_nano=start,
                    end_unix_nano=end,
                    service=service,
                    error=bool(span.status) and span.status.code == _ERROR,
                    attributes=msgspec.json.encode(dict(self._encoding.pairs(span.attributes))).decode(),
                )
            )
