from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from a2a_fencing import conventions as c
from a2a_fencing.facts import FACT_ID, Fact, TaskKey, to_attributes
from a2a_fencing_dashboard.receiver.otlp.decode import (
    LOGS,
    METRICS,
    TRACES,
    Export,
    UndecodableError,
    decode,
)
from a2a_fencing_dashboard.store.protocol import Span
from support.otlp_requests import JSON, PROTOBUF, encoded, event, logs, pairs, record, span, traces

both = pytest.mark.parametrize("content_type", [PROTOBUF, JSON])

WRITE = Fact(
    id="api-0:1",
    kind=c.WRITE,
    time_unix_nano=1_760_000_000_123_456_789,
    replica="api-0",
    writer="api-0/1",
    task=TaskKey("tasks @ postgresql", "alice", "7f3c", 2),
    context_id="ctx",
    trace_id="0a" * 16,
    span_id="0b" * 8,
    state=c.WORKING,
    base_version=(1 << 62) + 1,
    base_state=c.SUBMITTED,
    version="v-7",
    outcome=c.ACCEPTED,
    versioned=False,
    attempt=1,
)
FACTS = [
    WRITE,
    replace(
        WRITE,
        id="api-0:2",
        kind=c.VIOLATION,
        rule=c.TERMINAL_OVERWRITTEN,
        witness=("api-0:1", "api-1:9"),
    ),
    Fact(
        id="api-0:3",
        kind=c.HEARTBEAT,
        time_unix_nano=5,
        replica="api-0",
        trace_id="0a" * 16,
        span_id="0b" * 8,
        last=3,
        interval_s=2.5,
        guard=True,
        replica_name="ünï <b>",
    ),
]


def none_known(ids: Collection[str]) -> set[str]:
    return set()


def read(signal: str, request: Message | bytes, content_type: str = PROTOBUF) -> Export:
    body = request if isinstance(request, bytes) else encoded(request, content_type)
    return decode(signal, content_type, body, none_known)


@both
def test_facts_are_read_from_log_events(content_type: str) -> None:
    export = read(LOGS, logs(*map(record, FACTS)), content_type)

    assert (export.facts, export.spans, export.malformed) == (FACTS, [], [])


@both
def test_facts_are_read_from_span_events(content_type: str) -> None:
    export = read(TRACES, traces(span(FACTS)), content_type)

    assert (export.facts, export.malformed) == (FACTS, [])
    assert len(export.spans) == 1


@both
def test_every_span_is_kept(content_type: str) -> None:
    made = span(
        parent_span_id=b"\x0c" * 8,
        start_time_unix_nano=1_760_000_000_000_000_001,
        end_time_unix_nano=1_760_000_000_000_000_002,
        kind=OtlpSpan.SPAN_KIND_CLIENT,
        status=Status(code=Status.STATUS_CODE_ERROR),
        attributes=pairs({"db.system": "sqlite", "n": 1, "ok": True, "list": ["a", 2], "d": {"x": 1.5}}),
    )
    root = span(span_id=b"\x01" * 8, status=Status(code=Status.STATUS_CODE_OK))

    kept = read(TRACES, traces(made, root, service="shop"), content_type).spans

    attributes = '{"db.system":"sqlite","n":1,"ok":true,"list":["a",2],"d":{"x":1.5}}'
    assert kept == [
        Span(
            "0a" * 16,
            "0b" * 8,
            "0c" * 8,
            "save",
            1_760_000_000_000_000_001,
            1_760_000_000_000_000_002,
            "shop",
            True,
            attributes,
        ),
        Span("0a" * 16, "01" * 8, None, "save", 0, 0, "shop", False, "{}"),
    ]


@both
def test_an_older_sender_puts_the_name_into_an_attribute(content_type: str) -> None:
    older = record(WRITE)
    older.event_name = ""
    older.attributes.extend(pairs({"event.name": "a2a.fencing.write"}))

    assert read(LOGS, logs(older), content_type).facts == [WRITE]


@both
def test_a_log_without_a_time_has_the_time_it_was_observed(content_type: str) -> None:
    timeless = record(WRITE)
    timeless.time_unix_nano = 0
    timeless.observed_time_unix_nano = 77

    (fact,) = read(LOGS, logs(timeless), content_type).facts

    assert fact.time_unix_nano == 77


@both
def test_other_records_are_left_out_without_complaint(content_type: str) -> None:
    other = LogRecord(event_name="device.app.lifecycle", attributes=pairs({FACT_ID: "x"}))
    plain = LogRecord(attributes=pairs({"event.name": 5, "message": "hello"}))
    noise = OtlpSpan.Event(name="exception", attributes=pairs({FACT_ID: "api-0:1"}))
    eventful = span()
    eventful.events.append(noise)

    assert read(LOGS, logs(other, plain), content_type) == Export()
    assert read(TRACES, traces(eventful), content_type).facts == []


@both
def test_what_a_newer_sender_says_beyond_our_words_does_no_harm(content_type: str) -> None:
    newer = record(replace(WRITE, kind="prophecy"))
    newer.attributes.extend(pairs({"a2a.fencing.mood": "good", "a2a.fencing.rule": None}))

    (fact,) = read(LOGS, logs(newer), content_type).facts

    assert fact == replace(WRITE, kind="prophecy")


@both
def test_known_facts_are_counted_and_not_built_again(content_type: str) -> None:
    asked: list[str] = []

    def known(ids: Collection[str]) -> set[str]:
        asked.extend(ids)
        return {"api-0:1", "api-0:3"}

    body = encoded(traces(span(FACTS)), content_type)
    export = decode(TRACES, content_type, body, known)

    assert asked == ["api-0:1", "api-0:2", "api-0:3"]
    assert (export.facts, export.known) == ([FACTS[1]], 2)


def altered(**attributes: Any) -> LogRecord:
    """The write, with some attributes changed (None: left out); dots are written as underscores."""
    changed = to_attributes(WRITE)
    for name, value in attributes.items():
        changed[name.replace("_", ".")] = value
    return LogRecord(
        event_name="a2a.fencing.write",
        time_unix_nano=1,
        attributes=pairs({k: v for k, v in changed.items() if v is not None}),
    )


@both
@pytest.mark.parametrize(
    ("malformed", "complaint"),
    [
        (altered(a2a_fencing_fact_id=None), "fact.id"),
        (altered(a2a_fencing_fact_id="api-0"), "fact.id"),
        (altered(a2a_fencing_fact_id="api-0:0"), "fact.id"),
        (altered(a2a_fencing_fact_id="api-0:-1"), "fact.id"),
        (altered(a2a_fencing_fact_id="api-0:" + "9" * 5000), "fact.id"),
        (altered(a2a_fencing_fact_id=":1"), "fact.id"),
        (altered(a2a_fencing_fact_id=17), "fact.id"),
        (altered(a2a_task_state=5), "a2a.task.state"),
        (altered(a2a_fencing_attempt="one"), "a2a.fencing.attempt"),
        (altered(a2a_fencing_attempt=True), "a2a.fencing.attempt"),
        (altered(a2a_task_id=["7f3c"]), "a2a.task.id"),
        (altered(a2a_fencing_task_owner={"name": "alice"}), "task.owner"),
        (altered(a2a_fencing_task_incarnation=1.5), "incarnation"),
        (altered(a2a_fencing_task_incarnation=-(1 << 63)), "incarnation"),
        (altered(a2a_fencing_task_incarnation=1 << 62), "incarnation"),
        (altered(a2a_fencing_heartbeat_interval=1e300), "interval"),
        (altered(a2a_fencing_heartbeat_interval=-1.0), "interval"),
        (record(replace(WRITE, kind=c.HEARTBEAT)), "of no task"),
        (record(replace(WRITE, kind=c.OMITTED, last=5)), "of no task"),
    ],
)
def test_a_malformed_fact_is_counted_and_the_rest_is_read(
    malformed: LogRecord, complaint: str, content_type: str
) -> None:
    export = read(LOGS, logs(record(FACTS[1]), malformed, record(FACTS[2])), content_type)

    assert export.facts == FACTS[1:]
    assert len(export.malformed) == 1
    assert complaint in export.malformed[0]


@pytest.mark.parametrize("interval", [math.inf, -math.inf, math.nan])
def test_a_heartbeat_comes_after_a_finite_time(interval: float) -> None:
    heartbeat = Fact(
        id="api-0:1", kind=c.HEARTBEAT, time_unix_nano=1, replica="api-0", interval_s=interval
    )
    export = read(LOGS, logs(record(heartbeat)))

    assert export.facts == []
    assert "interval" in export.malformed[0]


def test_times_that_no_clock_shows_are_malformed() -> None:
    late = record(WRITE)
    late.time_unix_nano = 1 << 63
    ended = span(end_time_unix_nano=(1 << 64) - 1)

    assert read(LOGS, logs(late)).malformed == [
        "a2a.fencing.write: time 9223372036854775808 is out of range"
    ]
    assert read(TRACES, traces(ended)).spans == []
    assert "out of range" in read(TRACES, traces(ended)).malformed[0]


@both
@pytest.mark.parametrize("ids", [{"trace_id": b""}, {"span_id": b""}, {"trace_id": b"\x01" * 8}])
def test_a_span_without_ids_is_malformed_and_its_facts_are_read(
    ids: dict[str, bytes], content_type: str
) -> None:
    export = read(TRACES, traces(span([WRITE], **ids), span(span_id=b"\x01" * 8)), content_type)

    assert len(export.spans) == len(export.malformed) == len(export.facts) == 1


@both
def test_metrics_are_looked_at_and_not_kept(content_type: str) -> None:
    body = b'{"resourceMetrics": [{}]}' if content_type == JSON else b"\x0a\x00"

    assert read(METRICS, body, content_type) == Export()


def test_an_empty_request_is_fine() -> None:
    for signal in (LOGS, TRACES, METRICS):
        assert read(signal, b"", PROTOBUF) == Export()
        assert read(signal, b"{}", JSON) == Export()


@pytest.mark.parametrize("signal", [LOGS, TRACES, METRICS])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (PROTOBUF, b"\xff\xff\xff"),
        (PROTOBUF, b'{"resourceLogs": []}'),
        (JSON, b""),
        (JSON, b"[]"),
        (JSON, b"{"),
        (JSON, b"\xff"),
        (JSON, b"null"),
        (JSON, b'{"resourceLogs": 1, "resourceSpans": 1, "resourceMetrics": 1}'),
        (JSON, b'{"resourceLogs": [1], "resourceSpans": [1], "resourceMetrics": [1]}'),
        (JSON, b"[" * 100_000),
        (JSON, b'{"resourceLogs":' * 50_000),
    ],
)
def test_what_is_no_export_is_undecodable(signal: str, content_type: str, body: bytes) -> None:
    with pytest.raises(UndecodableError, match=f"cannot read {signal} as {content_type}"):
        read(signal, body, content_type)


def json_logs(**fields: Any) -> bytes:
    record = {"eventName": "a2a.fencing.write", "timeUnixNano": "5", "attributes": []} | fields
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()


ID = {"key": FACT_ID, "value": {"stringValue": "a:1"}}


def test_json_takes_what_senders_write() -> None:
    body = json_logs(
        timeUnixNano=5,
        severityNumber=9,
        traceId="0A" * 16,
        spanId=None,
        body=None,
        droppedAttributesCount="0",
        futureField={"x": [1]},
        attributes=[
            ID,
            {"key": "a2a.fencing.version", "value": {"intValue": "9007199254740993"}},
            {"key": "a2a.fencing.attempt", "value": {"intValue": 2}},
            {"key": "a2a.fencing.heartbeat.interval", "value": {"doubleValue": 5}},
            {"key": "a2a.fencing.witness", "value": {"arrayValue": {}}},
            {"key": "other", "value": {"bytesValue": "aGk="}},
            {"key": "empty", "value": {}},
            {"key": "missing"},
        ],
    )

    (fact,) = read(LOGS, body, JSON).facts

    assert (fact.trace_id, fact.span_id) == ("0a" * 16, None)
    assert (fact.version, fact.attempt, fact.interval_s) == (9007199254740993, 2, 5.0)
    assert fact.witness == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"traceId": "xyz"},
        {"traceId": "abc"},
        {"timeUnixNano": "soon"},
        {"timeUnixNano": str(1 << 63)},
        {"timeUnixNano": 1.5},
        {"eventName": 7},
        {"attributes": {"key": "value"}},
        {"attributes": [{"key": "n", "value": {"intValue": str(1 << 63)}}]},
        {"attributes": [{"key": "n", "value": 5}]},
        {"attributes": [{"key": 5}]},
        {"eventName": "\ud800"},
    ],
)
def test_json_of_the_wrong_type_is_undecodable(fields: dict[str, Any]) -> None:
    with pytest.raises(UndecodableError):
        read(LOGS, json_logs(**fields), JSON)


def test_attributes_that_are_no_attributes_are_undecodable() -> None:
    for garbage in (b"\xff", b"\x0a\x01\xff", b"\x0a\x03abc\x12\x02\x0a\x05"):
        request = logs(record(WRITE)).SerializeToString()
        broken = bytearray(request)
        # Attributes are field 6 of a log record, which is left as bytes at first.
        lazy = LogRecord(event_name="a2a.fencing.write").SerializeToString()
        lazy += bytes([0x32, len(garbage)]) + garbage
        scope = bytes([0x12, len(lazy)]) + lazy
        resource = bytes([0x12, len(scope)]) + scope
        broken = bytes([0x0A, len(resource)]) + resource

        with pytest.raises(UndecodableError):
            read(LOGS, broken)


def test_large_attributes_are_not_remembered() -> None:
    from a2a_fencing_dashboard.receiver.otlp import protobuf

    before = protobuf._cached_pair.cache_info().currsize
    wordy = span(attributes=pairs({f"prompt-{index}": "x" * 10_000 for index in range(20)}))

    (kept,) = read(TRACES, traces(wordy)).spans

    assert len(json.loads(kept.attributes)) == 20
    assert protobuf._cached_pair.cache_info().currsize == before


# --- whatever arrives, it is read, counted or refused

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats()
    | st.text(max_size=8)
)
anything = st.recursive(
    scalars | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
names = st.sampled_from([*to_attributes(WRITE), "event.name", "other"])


@both
@given(st.lists(st.dictionaries(names, anything, max_size=6), max_size=4))
@settings(deadline=None)
def test_records_are_read_or_counted(content_type: str, drawn: list[dict[str, Any]]) -> None:
    facts = [
        LogRecord(event_name="a2a.fencing.write", attributes=pairs(attributes)) for attributes in drawn
    ]
    eventful = span(attributes=pairs({"x": drawn}))
    eventful.events.extend(
        OtlpSpan.Event(name="a2a.fencing.write", attributes=pairs(attributes)) for attributes in drawn
    )

    from_logs = read(LOGS, logs(*facts), content_type)
    from_spans = read(TRACES, traces(eventful), content_type)

    for export in (from_logs, from_spans):
        assert len(export.facts) + len(export.malformed) == len(drawn)
    assert len(from_spans.spans) == 1


@both
@pytest.mark.parametrize("signal", [LOGS, TRACES, METRICS])
@given(st.binary(max_size=60))
@settings(deadline=None)
def test_any_bytes_are_read_or_undecodable(signal: str, content_type: str, body: bytes) -> None:
    with contextlib.suppress(UndecodableError):
        assert read(signal, body, content_type).facts == []


def test_numbers_that_json_cannot_write_do_not_break_a_span() -> None:
    (kept,) = read(TRACES, traces(span(attributes=pairs({"x": math.nan, "y": math.inf})))).spans

    assert json.loads(kept.attributes) == {"x": None, "y": None}


def test_a_fact_on_both_signals_is_one_fact() -> None:
    from_logs = read(LOGS, logs(record(WRITE))).facts
    from_spans = read(TRACES, traces(span([WRITE]))).facts

    assert from_logs == from_spans
    assert event(WRITE).name == record(WRITE).event_name
