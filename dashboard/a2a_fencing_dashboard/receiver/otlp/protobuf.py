"""OTLP in protobuf, with attributes left as bytes until somebody reads them.

Most attributes of a fact repeat from fact to fact (states, outcomes, names of stores). Left as bytes, a
repeated one is found in a cache and not parsed again, which halves the price of a fact. The messages are
OTLP's own, changed in this one respect; on the wire a message and bytes look the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from a2a_fencing.facts import read_attribute

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_LAZY_IN: Final = frozenset({"LogRecord", "Span", "Event"})
_CACHED_BYTES: Final = 256
"""Longer attributes are parsed each time, so that the cache stays small."""


def _lazy(descriptor: FileDescriptor) -> descriptor_pb2.FileDescriptorProto:
    """The same file, with the attributes of records as bytes."""
    file = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(file)
    messages = list(file.message_type)
    while messages:
        message = messages.pop()
        messages += message.nested_type
        if message.name in _LAZY_IN:
            for field in message.field:
                if field.name == "attributes":
                    field.type = _FIELD.TYPE_BYTES
                    field.ClearField("type_name")
    return file


def _messages(*modules: Any) -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    files: dict[str, FileDescriptor] = {}

    def add(file: FileDescriptor) -> None:
        if file.name not in files:
            files[file.name] = file
            for dependency in file.dependencies:
                add(dependency)
            pool.Add(_lazy(file))

    for module in modules:
        add(module.DESCRIPTOR)
    return pool


_pool = _messages(logs_pb2, trace_pb2)
_Logs = message_factory.GetMessageClass(
    _pool.FindMessageTypeByName("opentelemetry.proto.logs.v1.LogsData")
)
_Traces = message_factory.GetMessageClass(
    _pool.FindMessageTypeByName("opentelemetry.proto.trace.v1.TracesData")
)


def logs(body: bytes) -> Any:
    """Parses an export of log records.

    Raises:
        DecodeError: It is not one.
    """
    return _Logs.FromString(body)


def traces(body: bytes) -> Any:
    """Parses an export of spans.

    Raises:
        DecodeError: It is not one.
    """
    return _Traces.FromString(body)


def metrics(body: bytes) -> Any:
    """Parses an export of metrics.

    Raises:
        DecodeError: It is not one.
    """
    return metrics_service_pb2.ExportMetricsServiceRequest.FromString(body)


def parts(attributes: Iterable[bytes]) -> dict[str, Any]:
    """What the attributes of a record tell of a fact, for `facts.from_parts`.

    Raises:
        DecodeError: An attribute is not one.
        MalformedFactError: An attribute has a type that it cannot have.
    """
    return dict([_cached_part(raw) if len(raw) <= _CACHED_BYTES else _part(raw) for raw in attributes])


def pairs(attributes: Iterable[bytes]) -> Iterator[tuple[str, Any]]:
    """Keys and values of the attributes of a record.

    Raises:
        DecodeError: An attribute is not one.
    """
    return (_cached_pair(raw) if len(raw) <= _CACHED_BYTES else _pair(raw) for raw in attributes)


def resource_pairs(attributes: Iterable[KeyValue]) -> Iterator[tuple[str, Any]]:
    """Keys and values of the attributes of a resource."""
    return ((pair.key, _value(pair.value)) for pair in attributes)


def hex_id(value: bytes) -> str:
    """A trace or span id in hexadecimal; empty when there is none."""
    return value.hex()


def _pair(raw: bytes) -> tuple[str, Any]:
    pair = KeyValue.FromString(raw)
    return pair.key, _value(pair.value)


def _part(raw: bytes) -> tuple[str, Any]:
    return read_attribute(*_pair(raw))


_cached_pair = lru_cache(maxsize=1 << 13)(_pair)
_cached_part = lru_cache(maxsize=1 << 15)(_part)


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(item) for item in value.array_value.values)
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


__all__ = ["DecodeError", "hex_id", "logs", "metrics", "pairs", "parts", "resource_pairs", "traces"]
