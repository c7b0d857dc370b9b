from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey, to_attributes
from a2a_fencing_dashboard.histories import HistoryError, read_history
from a2a_fencing_dashboard.store import open_store
from a2a_fencing_dashboard.store.protocol import Batch

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TASK = TaskKey("tasks @ sqlite", "alice", "7f3c")
FACTS = [
    Fact(
        id="api-0:1",
        kind=c.WRITE,
        time_unix_nano=1_700_000_000_000_001_000,
        replica="api-0",
        writer="api-0/1",
        task=TASK,
        trace_id=TRACE,
        span_id=SPAN,
        state=c.WORKING,
        base_version=1,
        version=2,
        outcome=c.ACCEPTED,
        versioned=True,
    ),
    Fact(
        id="api-0:2",
        kind=c.VIOLATION,
        time_unix_nano=1_700_000_000_000_002_000,
        replica="api-0",
        task=TASK,
        trace_id=TRACE,
        span_id=SPAN,
        rule=c.TERMINAL_OVERWRITTEN,
        witness=("api-0:1", "api-1:9"),
    ),
    Fact(
        id="api-0:3",
        kind=c.HEARTBEAT,
        time_unix_nano=1_700_000_000_000_003_000,
        replica="api-0",
        trace_id=TRACE,
        span_id=SPAN,
        last=3,
        interval_s=5.0,
        replica_name="the first",
    ),
]


def any_value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [any_value(item) for item in value]}}


def otlp_attributes(fact: Fact) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in to_attributes(fact).items()]


def as_logs(facts: list[Fact]) -> dict[str, Any]:
    records = [
        {
            "timeUnixNano": str(fact.time_unix_nano),
            "eventName": c.event_name(fact.kind),
            "attributes": otlp_attributes(fact),
            "traceId": fact.trace_id,
            "spanId": fact.span_id,
        }
        for fact in facts
    ]
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}


def as_spans(facts: list[Fact]) -> dict[str, Any]:
    events = [
        {
            "timeUnixNano": str(fact.time_unix_nano),
            "name": c.event_name(fact.kind),
            "attributes": otlp_attributes(fact),
        }
        for fact in facts
    ]
    span = {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "save",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000000000004000",
        "events": events,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def jaeger_field(key: str, value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"key": key, "type": "bool", "value": value}
        case int():
            return {"key": key, "type": "int64", "value": value if value < 2**53 else str(value)}
        case float():
            return {"key": key, "type": "float64", "value": value}
        case str():
            return {"key": key, "type": "string", "value": value}
        case _:
            return {"key": key, "type": "string", "value": json.dumps(value)}


def as_jaeger(facts: list[Fact]) -> dict[str, Any]:
    logs = [
        {
            "timestamp": fact.time_unix_nano // 1000,
            "fields": [
                jaeger_field("event", c.event_name(fact.kind)),
                *(jaeger_field(key, value) for key, value in to_attributes(fact).items()),
            ],
        }
        for fact in facts
    ]
    silent = {"traceID": TRACE, "spanID": "01", "operationName": "SELECT", "logs": None}
    span = {"traceID": TRACE, "spanID": SPAN, "operationName": "save", "logs": logs}
    return {"data": [{"traceID": TRACE, "spans": [silent, span], "processes": {}}], "errors": None}


def written(path: Path, *documents: Any, indent: int | None = None) -> Path:
    path.write_text("".join(json.dumps(document, indent=indent) + "\n" for document in documents))
    return path


def test_log_records_one_export_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", as_logs(FACTS[:1]), as_logs(FACTS[1:]))
    assert list(read_history(path)) == FACTS


def test_span_events_and_metrics(tmp_path: Path) -> None:
    path = written(tmp_path / "traces.jsonl", {"resourceMetrics": []}, as_spans(FACTS))
    assert list(read_history(path)) == FACTS


def test_other_log_records_are_no_facts(tmp_path: Path) -> None:
    export = as_logs(FACTS)
    export["resourceLogs"][0]["scopeLogs"][0]["logRecords"].insert(0, {"body": {"stringValue": "hello"}})
    assert list(read_history(written(tmp_path / "logs.jsonl", export))) == FACTS


def test_a_download_from_jaeger(tmp_path: Path) -> None:
    assert list(read_history(written(tmp_path / "trace.json", as_jaeger(FACTS)))) == FACTS


@pytest.mark.parametrize("time", [-5, 10**30])
def test_a_download_from_jaeger_with_a_time_that_no_clock_shows(tmp_path: Path, time: int) -> None:
    download = as_jaeger(FACTS)
    download["data"][0]["spans"][1]["logs"][0]["timestamp"] = time
    with pytest.raises(HistoryError, match="out of range"):
        list(read_history(written(tmp_path / "trace.json", download)))


def test_an_odd_span_does_not_hide_its_facts(tmp_path: Path) -> None:
    export = as_spans(FACTS)
    export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["endTimeUnixNano"] = "-1"
    assert list(read_history(written(tmp_path / "traces.jsonl", export))) == FACTS


@pytest.mark.parametrize("form", [as_logs, as_jaeger])
def test_one_document_over_many_lines(tmp_path: Path, form: Any) -> None:
    path = written(tmp_path / "pretty.json", form(FACTS), indent=2)
    assert list(read_history(path)) == FACTS


def test_a_store_of_the_dashboard(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    store = open_store(f"sqlite:///{path}")
    store.commit(Batch(facts=FACTS), now_unix_nano=0)
    store.close()
    assert sorted(read_history(path), key=lambda fact: fact.n) == FACTS


def test_an_empty_file_has_no_facts(tmp_path: Path) -> None:
    assert list(read_history(written(tmp_path / "empty"))) == []


def spoilt(key: str, value: Any) -> dict[str, Any]:
    export = as_logs(FACTS[:1])
    record = export["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    for pair in record["attributes"]:
        if pair["key"] == key:
            pair["value"] = value
    return export


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"hello\n", "expected OTLP JSON lines, Jaeger's JSON download or a dashboard store"),
        (b"\x00\xff\xfe\n", "expected OTLP JSON lines"),
        (b"[1, 2]\n", "line 1: "),
        (b'{"name": "x"}\n', "line 1: expected OTLP JSON lines"),
        (b'{"resourceLogs": []}\n{"resourceLogs": [\n', "line 2: "),
        (b'{"resourceLogs": [3]}\n', "line 1: "),
        (b'{"resourceLogs": []}\n{"x": "\xff"}\n', "line 2: "),
        (b'{"data": [{"traceID": "1"}]}\n', "line 1: "),
        (b'{"data": 3}\n', "line 1: "),
        (b'{"resourceLogs": ' + b"[" * 100_000, "line 1: "),
        (b'{"resourceLogs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "line 1: "),
        (b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "line 1: "),
        (b'{\n"data": ' + b"[" * 100_000, ": "),
        (b"SQLite format 3\x00 and then nothing of the kind", "cannot open store"),
        (json.dumps(spoilt("a2a.fencing.fact.id", {"stringValue": "seven"})).encode(), "malformed fact"),
        (json.dumps(spoilt("a2a.task.state", {"intValue": "3"})).encode(), "malformed fact"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_the_place(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "history"
    path.write_bytes(content)
    with pytest.raises(HistoryError) as caught:
        list(read_history(path))
    text = str(caught.value)
    assert complaint in text
    assert str(path) in text
    assert "\n" not in text


def test_a_store_with_a_damaged_fact_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(f"sqlite:///{path}")
    store.commit(Batch(FACTS, [], [], {}), now_unix_nano=1)
    store.close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE fact SET body = x'ffff'")
    database.close()
    with pytest.raises(HistoryError, match="damaged"):
        list(read_history(path))
