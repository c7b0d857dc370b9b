"""Exports to facts and spans.

A fact comes as a log event, as a span event, or as both. Most have come as a log event when their span
arrives: then a fact costs no more than finding its id, which is the first attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

import msgspec

from a2a_fencing import conventions as c
from a2a_fencing.facts import FACT_ID, Fact, MalformedFactError, from_parts
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
        facts: Facts, without span events of facts that are known.
        known: How many those were.
        spans: Every span, facts or none.
        malformed: What is wrong with each record that cannot be stored.
    """

    facts: list[Fact] = field(default_factory=list)
    known: int = 0
    spans: list[Span] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)


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
            return _Reader(encoding).logs(encoding.logs(body))
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

    def logs(self, request: Any) -> Export:
        for resource in request.resource_logs or ():
            for scope in resource.scope_logs or ():
                for record in scope.log_records or ():
                    name = record.event_name or self._find(_EVENT_NAME, record.attributes)
                    if isinstance(name, str) and name.startswith(c.NAMESPACE):
                        time = record.time_unix_nano or record.observed_time_unix_nano
                        self._read_fact(name, time, record.attributes, record)
        return self._export

    def traces(self, request: Any, known: Known) -> Export:
        events: list[tuple[str, Any, Any]] = []
        for resource in request.resource_spans or ():
            service = self._service(resource)
            for scope in resource.scope_spans or ():
                for span in scope.spans or ():
                    self._read_span(span, service)
                    events += [
                        (self._fact_id(event.attributes), event, span)
                        for event in span.events or ()
                        if (event.name or "").startswith(c.NAMESPACE)
                    ]
        stored = known([fact_id for fact_id, _, _ in events])
        for fact_id, event, span in events:
            if fact_id in stored:
                self._export.known += 1
            else:
                self._read_fact(event.name, event.time_unix_nano, event.attributes, span)
        return self._export

    def _read_fact(self, name: str, time: int | None, attributes: Any, place: Any) -> None:
        """Reads a fact that was recorded in `place`, which has a trace id and a span id."""
        hex_id = self._encoding.hex_id
        time = time or 0
        try:
            if not 0 <= time <= _LAST_TIME:
                raise MalformedFactError(f"time {time} is out of range")
            fact = from_parts(
                name,
                self._encoding.parts(attributes),
                time_unix_nano=time,
                trace_id=hex_id(place.trace_id),
                span_id=hex_id(place.span_id),
            )
        except MalformedFactError as error:
            self._export.malformed.append(f"{name}: {error}")
        else:
            self._export.facts.append(fact)

    def _fact_id(self, attributes: Any) -> str:
        fact_id = self._find(FACT_ID, attributes)
        return fact_id if isinstance(fact_id, str) else ""

    def _find(self, wanted: str, attributes: Any) -> Any:
        return next((value for key, value in self._encoding.pairs(attributes) if key == wanted), None)

    def _service(self, resource: Any) -> str:
        described = resource.resource
        pairs = self._encoding.resource_pairs(described.attributes) if described else ()
        return str(dict(pairs).get(_SERVICE_NAME) or "")

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
