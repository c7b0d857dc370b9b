"""Jaeger's JSON, as its user interface downloads it: facts are the logs of spans.

Jaeger knows no arrays and keeps microseconds: a list comes as JSON text, times lose their last digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from a2a_fencing.facts import ATTRIBUTES, Fact, MalformedFactError, from_attributes, is_fact

FIELD: Final = "data"
"""The field of a download that holds its traces."""

_LISTS: Final = frozenset(attribute for attribute, types in ATTRIBUTES.values() if list in types)
_LAST_MICROSECOND: Final = ((1 << 63) - 1) // 1000


class _Field(Struct):
    key: str
    type: str = ""
    value: Any = None


class _Log(Struct):
    timestamp: int
    fields: list[_Field]


class _Span(Struct):
    trace_id: str = msgspec.field(name="traceID")
    span_id: str = msgspec.field(name="spanID")
    logs: list[_Log] | None = None


class _Trace(Struct):
    spans: list[_Span]


_TRACES: Final = msgspec.json.Decoder(list[_Trace])


def facts(traces: msgspec.Raw) -> Iterator[Fact]:
    """The facts among the logs of every span.

    Raises:
        MalformedFactError: A log claims to be a fact but cannot be one.
        msgspec.DecodeError, ValueError: These are not Jaeger's traces.
    """
    for trace in _TRACES.decode(traces):
        for span in trace.spans:
            for log in span.logs or ():
                attributes = {field.key: _value(field) for field in log.fields}
                name = str(attributes.get("event", ""))
                if is_fact(name, attributes):
                    if not 0 <= log.timestamp <= _LAST_MICROSECOND:
                        raise MalformedFactError(f"time {log.timestamp} is out of range")
                    yield from_attributes(
                        name,
                        attributes,
                        time_unix_nano=log.timestamp * 1000,
                        trace_id=span.trace_id,
                        span_id=span.span_id,
                    )


def _value(field: _Field) -> Any:
    if field.type == "int64" and isinstance(field.value, str):
        # Beyond what JavaScript counts exactly, Jaeger writes digits as text.
        return int(field.value)
    if field.key in _LISTS and isinstance(field.value, str):
        return msgspec.json.decode(field.value)
    return field.value
