"""OTLP in JSON: ids in hexadecimal, 64-bit integers as strings or numbers, unknown fields left out.

The structures carry the names of the protobuf messages' fields, so that both are walked alike; null is
the same as left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import DecodeError, Meta, Struct

from a2a_fencing.facts import read_attribute

Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Hex = Annotated[str, Meta(pattern="^([0-9a-fA-F]{2})*$")]


class _Array(Struct):
    values: list[_Value] | None = None


class _KeyValues(Struct):
    values: list[_Pair] | None = None


class _Value(Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: Int64 | None = None
    double_value: float | None = None
    bytes_value: str | None = None
    array_value: _Array | None = None
    kvlist_value: _KeyValues | None = None

    @property
    def plain(self) -> Any:
        """The value itself, or None."""
        if self.array_value is not None:
            return tuple(item.plain for item in self.array_value.values or ())
        if self.kvlist_value is not None:
            return dict(pairs(self.kvlist_value.values))
        plain = (self.string_value, self.bool_value, self.int_value, self.double_value, self.bytes_value)
        return next((value for value in plain if value is not None), None)


class _Pair(Struct):
    key: str | None = ""
    value: _Value | None = None


class _Resource(Struct):
    attributes: list[_Pair] | None = None


class _LogRecord(Struct, rename="camel"):
    time_unix_nano: Int64 | None = 0
    observed_time_unix_nano: Int64 | None = 0
    event_name: str | None = ""
    trace_id: Hex | None = ""
    span_id: Hex | None = ""
    attributes: list[_Pair] | None = None


class _ScopeLogs(Struct, rename="camel"):
    log_records: list[_LogRecord] | None = None


class _ResourceLogs(Struct, rename="camel"):
    resource: _Resource | None = None
    scope_logs: list[_ScopeLogs] | None = None


class _Logs(Struct, rename="camel"):
    resource_logs: list[_ResourceLogs] | None = None


class _Event(Struct, rename="camel"):
    name: str | None = ""
    time_unix_nano: Int64 | None = 0
    attributes: list[_Pair] | None = None


class _Status(Struct):
    code: int | None = 0


class _Span(Struct, rename="camel"):
    trace_id: Hex | None = ""
    span_id: Hex | None = ""
    parent_span_id: Hex | None = ""
    name: str | None = ""
    start_time_unix_nano: Int64 | None = 0
    end_time_unix_nano: Int64 | None = 0
    attributes: list[_Pair] | None = None
    events: list[_Event] | None = None
    status: _Status | None = None


class _ScopeSpans(Struct):
    spans: list[_Span] | None = None


class _ResourceSpans(Struct, rename="camel"):
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] | None = None


class _Traces(Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] | None = None


class _Metrics(Struct, rename="camel"):
    resource_metrics: list[dict[str, Any]] | None = None


_LOGS: Final = msgspec.json.Decoder(_Logs, strict=False)
_TRACES: Final = msgspec.json.Decoder(_Traces, strict=False)
_METRICS: Final = msgspec.json.Decoder(_Metrics, strict=False)


def logs(body: bytes) -> Any:
    """Parses an export of log records.

    Raises:
        DecodeError: It is not one.
    """
    return _LOGS.decode(body)


def traces(body: bytes) -> Any:
    """Parses an export of spans.

    Raises:
        DecodeError: It is not one.
    """
    return _TRACES.decode(body)


def metrics(body: bytes) -> Any:
    """Parses an export of metrics.

    Raises:
        DecodeError: It is not one.
    """
    return _METRICS.decode(body)


def parts(attributes: Iterable[_Pair] | None) -> dict[str, Any]:
    """What the attributes of a record tell of a fact, for `facts.from_parts`.

    Raises:
        MalformedFactError: An attribute has a type that it cannot have.
    """
    return dict(read_attribute(key, value) for key, value in pairs(attributes))


def pairs(attributes: Iterable[_Pair] | None) -> Iterator[tuple[str, Any]]:
    """Keys and values of attributes."""
    return ((pair.key or "", pair.value and pair.value.plain) for pair in attributes or ())


resource_pairs = pairs


def hex_id(value: str | None) -> str:
    """A trace or span id in hexadecimal; empty when there is none."""
    return (value or "").lower()


__all__ = ["DecodeError", "hex_id", "logs", "metrics", "pairs", "parts", "resource_pairs", "traces"]
