"""Protobuf's wire format, as much of it as putting serialized parts together takes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue

from a2a_fencing.facts import AttributeValue


def tag(message: type, field: str) -> bytes:
    """Wire tag of a length-delimited field (protobuf wire type 2)."""
    return varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)  # type: ignore[attr-defined]


def framed(tag: bytes, payload: bytes) -> bytes:
    """An embedded message: tag, length, bytes."""
    return tag + length(len(payload)) + payload


def fixed(message: type, field: str) -> bytes:
    """Wire tag of an eight-byte number (protobuf wire type 1)."""
    return varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 1)  # type: ignore[attr-defined]


def varint(value: int) -> bytes:
    """A number, seven bits a byte, the low ones first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


length: Final = lru_cache(1 << 12)(varint)
"""`varint` for what repeats, as the lengths of messages do."""


def pair(key: bytes, value: AttributeValue) -> bytes:
    """A KeyValue behind its length; `key` is what `key_of` gives."""
    if type(value) is str:  # the two kinds that every fact has are put together here
        text = value.encode()
        content = _STRING + length(len(text)) + text
    elif type(value) is int and 0 <= value <= _LAST_INT:
        content = _INTEGER + varint(value)
    else:
        content = bytes(any_value(value).SerializeToString())
    body = key + length(len(content)) + content
    return length(len(body)) + body


def any_value(value: AttributeValue) -> AnyValue:
    """The value of an attribute as a message."""
    if isinstance(value, str):
        return AnyValue(string_value=value)
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))


_LAST_INT: Final = (1 << 63) - 1
_STRING: Final = tag(AnyValue, "string_value")
_INTEGER: Final = varint(AnyValue.DESCRIPTOR.fields_by_name["int_value"].number << 3)
