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
    if value <= 0x7F:
        return _BYTE[value]
    if value <= 0x3FFF:
        return _BYTE[value & 0x7F | 0x80] + _BYTE[value >> 7]
    # Of a duration in ns, the upper part repeats.
    return _BYTE[value & 0x7F | 0x80] + _BYTE[value >> 7 & 0x7F | 0x80] + length(value >> 14)


_BYTE: Final = tuple(bytes((value,)) for value in range(256))
"""Made once, as making one costs more than all else that a number takes."""

length: Final = lru_cache(1 << 12)(varint)
"""`varint` for what repeats, as the lengths of messages do."""


def pair(key: bytes, value: AttributeValue) -> bytes:
    """A KeyValue behind its length; `key` is what `key_of` gives."""
    if type(value) is str:  # the two kinds that every fact has are put together here
        text = value.encode()
        return _string_head(key, len(text)) + text
    if type(value) is int and 0 <= value <= _LAST_INT:
        number = varint(value)
        return _number_head(key, len(number)) + number
    content = bytes(any_value(value).SerializeToString())
    return _head(key, len(content)) + content


@lru_cache(1 << 12)
def _string_head(key: bytes, size: int) -> bytes:
    """What comes before a text of so many bytes."""
    kind = _STRING + varint(size)
    return _head(key, len(kind) + size) + kind


@lru_cache(1 << 10)
def _number_head(key: bytes, size: int) -> bytes:
    """What comes before a number of so many bytes."""
    return _head(key, len(_INTEGER) + size) + _INTEGER


def _head(key: bytes, size: int) -> bytes:
    """What comes before a value of so many bytes."""
    before = key + varint(size)
    return varint(len(before) + size) + before


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
