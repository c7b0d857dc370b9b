"""Protobuf's wire format, put together here, is what protobuf itself would have written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from a2a_fencing.encoding.attributes import key_of
from a2a_fencing.encoding.wire import any_value, pair, tag

_VALUES = (
    st.integers(-(1 << 63), (1 << 63) - 1)
    | st.sampled_from([0, 0x7F, 0x80, 0x3FFF, 0x4000, (1 << 21) - 1, 1 << 21, 1 << 28])
    | st.text(max_size=300)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.lists(st.text(max_size=20), max_size=4)
)


@given(key=st.text(min_size=1, max_size=140), value=_VALUES)
def test_an_attribute_is_read_as_what_it_was(key: str, value: object) -> None:
    encoded = tag(LogRecord, "attributes") + pair(key_of(key), value)

    (read,) = LogRecord.FromString(encoded).attributes
    assert read == KeyValue(key=key, value=any_value(value))
