"""The bytes that leave the process are what OpenTelemetry's own encoders would have sent."""

from __future__ import annotations

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs as stock_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as stock_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, Status, StatusCode, set_span_in_context

from a2a_fencing import conventions as c
from a2a_fencing.encoding import (
    encode_fact,
    encode_resource,
    encode_span,
    logs_request,
    severity,
    traces_request,
)
from a2a_fencing.facts import Fact, TaskKey, to_attributes

KEY = TaskKey("postgresql://localhost:5432/app#tasks", "alice", "task-1", 2)
RESOURCE = Resource({"service.name": "agent", "service.instance.id": "r1", "process.pid": 7})
SPAN = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}

WRITE = Fact(
    id="r1:3",
    kind=c.WRITE,
    time_unix_nano=1_700_000_000_000_000_123,
    replica="r1",
    writer="r1/1",
    task=KEY,
    context_id="ctx",
    state=c.COMPLETED,
    base_version=3,
    base_state=c.CANCELED,
    version=4,
    outcome=c.ACCEPTED,
    origin=c.FROM_EXECUTOR,
    event_kind=c.STATUS_EVENT,
    attempt=1,
    duration_ns=300,
    **SPAN,
)
FACTS = [
    WRITE,
    Fact(id="r1:4", kind=c.WRITE, time_unix_nano=5, replica="r1", task=KEY, outcome=c.CONFLICT,
         reason=c.STALE_BASE, base_version="etag-1", versioned=False),
    Fact(id="r1:5", kind=c.VIOLATION, time_unix_nano=6, replica="r1", task=KEY,
         rule=c.TERMINAL_OVERWRITTEN, witness=("r1:2", "r1:3")),
    Fact(id="r1:6", kind=c.HEARTBEAT, time_unix_nano=7, replica="r1", last=6, lost=0, executing=1,
         interval_s=5.0, replica_name="api-0", run="load", sdk_version="1.3.0", pid=7, guard=False,
         started_unix_nano=1),
]  # fmt: skip


def encode_logs(facts):
    return logs_request([encode_fact(fact)[0] for fact in facts], encode_resource(RESOURCE))


def by_key(attributes):
    return sorted(attributes, key=lambda pair: pair.key)


def test_log_events_equal_the_stock_encoding() -> None:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(RESOURCE, shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    for fact in FACTS:
        provider.get_logger(c.SCOPE).emit(
            LogRecord(
                timestamp=fact.time_unix_nano,
                observed_timestamp=fact.time_unix_nano,
                severity_number=SeverityNumber(severity(fact)),
                event_name=c.event_name(fact.kind),
                attributes=to_attributes(fact),
            )
        )
    (stock,) = stock_logs(exporter.get_finished_logs()).resource_logs
    (ours,) = ExportLogsServiceRequest.FromString(encode_logs(FACTS)).resource_logs

    assert by_key(ours.resource.attributes) == by_key(stock.resource.attributes)
    assert ours.scope_logs[0].scope.name == stock.scope_logs[0].scope.name == c.SCOPE
    ours_records, stock_records = ours.scope_logs[0].log_records, stock.scope_logs[0].log_records
    assert len(ours_records) == len(FACTS)
    for mine, theirs in zip(ours_records, stock_records, strict=True):
        assert by_key(mine.attributes) == by_key(theirs.attributes)
        for name in ("time_unix_nano", "observed_time_unix_nano", "severity_number", "event_name"):
            assert getattr(mine, name) == getattr(theirs, name)


def test_a_log_event_names_the_span_that_recorded_it() -> None:
    request = ExportLogsServiceRequest.FromString(encode_logs([WRITE]))
    (record,) = request.resource_logs[0].scope_logs[0].log_records
    assert record.trace_id.hex() == SPAN["trace_id"]
    assert record.span_id.hex() == SPAN["span_id"]


def test_spans_equal_the_stock_encoding() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    ours_tracer, sql_tracer = provider.get_tracer(c.SCOPE), provider.get_tracer("sql")
    parent = ours_tracer.start_span("execute", attributes={"a2a.task.id": "task-1"})
    child = ours_tracer.start_span(
        "save", context=set_span_in_context(parent), links=[Link(parent.get_span_context())]
    )
    child.add_event(c.event_name(WRITE.kind), to_attributes(WRITE), WRITE.time_unix_nano)
    child.set_status(Status(StatusCode.ERROR, "OperationalError"))
    child.end()
    parent.end()
    sql_tracer.start_span("SELECT", attributes={"db.statement": "SELECT 1", "n": 1}).end()
    spans = exporter.get_finished_spans()
    _, event = encode_fact(WRITE)
    encoded = [
        encode_span(span, [event] if span.name == "save" else ())
        for span in spans
        if span.name != "SELECT"
    ]
    others = [span for span in spans if span.name == "SELECT"]

    stock = stock_spans(spans).resource_spans
    ours = ExportTraceServiceRequest.FromString(
        traces_request(encoded, others, encode_resource(RESOURCE))
    ).resource_spans

    def flat(resource_spans):
        return {
            span.span_id: span
            for resource in resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    stock_by_id, ours_by_id = flat(stock), flat(ours)
    assert stock_by_id.keys() == ours_by_id.keys()
    for span_id, theirs in stock_by_id.items():
        mine = ours_by_id[span_id]
        for name in (
            "trace_id", "parent_span_id", "name", "kind", "start_time_unix_nano", "end_time_unix_nano",
            "status",
        ):  # fmt: skip
            assert getattr(mine, name) == getattr(theirs, name), name
        assert by_key(mine.attributes) == by_key(theirs.attributes)
        assert [link.span_id for link in mine.links] == [link.span_id for link in theirs.links]
        assert [e.name for e in mine.events] == [e.name for e in theirs.events]
        for my_event, their_event in zip(mine.events, theirs.events, strict=True):
            assert my_event.time_unix_nano == their_event.time_unix_nano
            assert by_key(my_event.attributes) == by_key(their_event.attributes)
