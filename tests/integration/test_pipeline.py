"""Where facts go: by which signal, to whom, and what happens when nobody takes them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from a2a.server.context import ServerCallContext
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing import recorder
from a2a_fencing.instrumentor import A2AFencingInstrumentor
from support.cluster import cluster, message, status, submitted
from support.databases import database
from support.otlp_sink import otlp_sink

CALL = ServerCallContext()


@contextmanager
def instrumented(**options) -> Iterator[A2AFencingInstrumentor]:
    a2a_fencing.instrument(**options)
    try:
        yield A2AFencingInstrumentor()
    finally:
        a2a_fencing.uninstrument()


async def save(task_id: str, state: str = "WORKING") -> None:
    task = Task(id=task_id, status=TaskStatus(state=TaskState.Value(f"TASK_STATE_{state}")))
    await InMemoryTaskStore().save(task, CALL)


async def test_an_endpoint_gets_every_fact_as_log_event_and_on_its_span() -> None:
    with otlp_sink() as sink:
        with instrumented(endpoint=sink.url, run="load-1") as instrumentor:
            await save("t1")
            assert instrumentor.flush()
        facts = sink.facts_in_logs()
        assert [fact.n for fact in facts] == [1, 2, 3]
        assert [fact.kind for fact in facts] == [c.HEARTBEAT, c.WRITE, c.HEARTBEAT]
        assert facts[0].run == "load-1"
        assert facts[2].last == 3
        write = facts[1]
        assert write.task is not None
        assert write.task.task_id == "t1"
        (span,) = sink.spans()
        assert span.name == c.SPAN_SAVE
        assert (write.trace_id, write.span_id) == (span.trace_id.hex(), span.span_id.hex())
        assert sink.facts_in_spans() == [write]


async def test_the_end_of_an_execution_is_on_its_span_too(tmp_path) -> None:
    """Its fact waits for a batch, and the span has ended when that is worked off."""

    async def completes(context, queue):
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    with otlp_sink() as sink, database("sqlite", tmp_path) as db:
        with instrumented(endpoint=sink.url) as instrumentor:
            assert instrumentor.flush()
            while not instrumentor._run.pipeline.backlog.watched:
                pass  # from then on, facts wait
            async with cluster(db.dsn, completes) as (node,):
                await node.handler.on_message_send(message("go"), CALL)
            assert instrumentor.flush()
        traced = {fact.id for fact in sink.facts_in_logs() if fact.span_id is not None}
        assert {fact.id for fact in sink.facts_in_spans()} == traced
        phases = [fact.phase for fact in sink.facts_in_spans() if fact.kind == c.EXECUTION]
        assert sorted(phases) == [c.FINISHED, c.STARTED]


async def test_an_endpoint_that_takes_only_traces_gets_every_fact_and_sees_no_second_log_export(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def jaeger(path: str, before: int):
        return (200, {}) if path == "/v1/traces" else (404, {})

    with otlp_sink(jaeger) as sink, caplog.at_level(logging.WARNING):
        with instrumented(endpoint=sink.url) as instrumentor:
            await save("t1")
            assert instrumentor.flush()
            await save("t2")
            assert instrumentor.flush()
        assert sorted(fact.n for fact in sink.facts_in_spans()) == [1, 2, 3, 4]
        assert len([r for r in sink.requests if r[0] == "/v1/logs"]) == 1
        assert caplog.records == []


async def test_facts_without_a_span_recorded_while_the_endpoint_thinks_go_on_spans_too() -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow_jaeger(path: str, before: int):
        if path == "/v1/traces":
            return 200, {}
        asked.set()
        assert answer.wait(10)
        return 404, {}

    with otlp_sink(slow_jaeger) as sink, instrumented(endpoint=sink.url) as instrumentor:
        assert asked.wait(10)
        record = recorder.active().record
        for _ in range(5):
            record(c.OMITTED)
        answer.set()
        assert instrumentor.flush()
        assert sorted(fact.n for fact in sink.facts_in_spans()) == [1, 2, 3, 4, 5, 6]


async def test_a_receiver_that_is_full_is_asked_again_and_gets_every_fact_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full_at_first(path: str, before: int):
        return (503, {"Retry-After": "0"}) if path == "/v1/logs" and before < 2 else (200, {})

    with otlp_sink(full_at_first) as sink:
        with instrumented(endpoint=sink.url) as instrumentor:
            await save("t1")
            assert instrumentor.flush(20)
        assert [fact.n for fact in sink.facts_in_logs()] == [1, 2, 3]
    said = [record.message for record in caplog.records if record.name == "a2a_fencing"]
    assert ["facts wait" in said[0], "takes facts again" in said[1], len(said)] == [True, True, 2]


async def test_what_is_refused_for_good_is_counted_as_lost() -> None:
    def refuse_first(path: str, before: int):
        return (400, {}) if path == "/v1/logs" and before == 0 else (200, {})

    with otlp_sink(refuse_first) as sink:
        with instrumented(endpoint=sink.url) as instrumentor:
            await save("t1")
            assert instrumentor.flush()
        (last,) = sink.facts_in_logs()
        assert last.kind == c.HEARTBEAT
        assert last.lost == 2


async def test_nobody_listening_costs_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    with otlp_sink() as gone:
        pass
    with caplog.at_level(logging.INFO, "a2a_fencing"), instrumented(endpoint=gone.url):
        for n in range(50):
            await save(f"t{n}")
        assert not A2AFencingInstrumentor().flush(0.7)
    assert len([r for r in caplog.records if "facts wait" in r.message]) == 1


# The application's own providers are global and cannot be taken back: each case has its own process.
_PROGRAM = """
import asyncio, json, os, sys
from opentelemetry import trace, _logs, metrics
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import a2a_fencing
from a2a.server.context import ServerCallContext
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus

async def save(task_id="t", store=None):
    task = Task(id=task_id, status=TaskStatus(state=TaskState.TASK_STATE_WORKING))
    await (store or InMemoryTaskStore()).save(task, ServerCallContext())

def tell(**values):
    print(json.dumps(values))

spans, logs, reader = InMemorySpanExporter(), InMemoryLogRecordExporter(), InMemoryMetricReader()

def trace_with(sampler=None):
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)

def log():
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    _logs.set_logger_provider(provider)

def routes():
    from a2a_fencing.instrumentor import A2AFencingInstrumentor
    return list(A2AFencingInstrumentor().status().routes)

def logged():
    return [r.log_record.event_name for r in logs.get_finished_logs()]

def span_events():
    return [e.name for s in spans.get_finished_spans() for e in s.events]

"""


def program(source: str, **environment: str) -> dict:
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM + textwrap.dedent(source)],
        capture_output=True, text=True, check=False, env=env, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_applications_logger_provider_is_used() -> None:
    told = program("""
        trace_with(); log()
        a2a_fencing.instrument()
        asyncio.run(save())
        a2a_fencing.uninstrument()
        tell(logged=logged(), span_events=span_events(), routes=routes(),
             names=[s.name for s in spans.get_finished_spans()])
    """)
    assert told["logged"] == ["a2a.fencing.heartbeat", "a2a.fencing.write", "a2a.fencing.heartbeat"]
    assert told["span_events"] == ["a2a.fencing.write"]
    assert told["names"] == ["save"]


def test_with_head_sampling_at_zero_every_fact_still_arrives_and_metrics_are_exact() -> None:
    told = program("""
        trace_with(sampling.ALWAYS_OFF); log()
        metrics.set_meter_provider(MeterProvider([reader]))
        a2a_fencing.instrument()
        for n in range(20):
            asyncio.run(save(f"t{n}"))
        points = {
            m.name: sum(p.value for p in m.data.data_points)
            for r in reader.get_metrics_data().resource_metrics
            for s in r.scope_metrics for m in s.metrics if hasattr(m.data.data_points[0], "value")
        }
        tell(logged=logged().count("a2a.fencing.write"), spans=len(spans.get_finished_spans()),
             points=points)
    """)
    assert told["logged"] == 20
    assert told["spans"] == 0
    assert told["points"]["a2a.fencing.writes"] == 20
    assert told["points"]["a2a.fencing.facts.emitted"] == 21
    assert told["points"]["a2a.fencing.internal_errors"] == 0


def test_metrics_are_exact_while_facts_wait_for_a_batch() -> None:
    with otlp_sink() as sink:
        told = program(f"""
            metrics.set_meter_provider(MeterProvider([reader]))
            a2a_fencing.instrument(endpoint={sink.url!r})
            from a2a_fencing.instrumentor import A2AFencingInstrumentor
            assert A2AFencingInstrumentor().flush()
            while not A2AFencingInstrumentor()._run.pipeline.backlog.watched:
                pass
            for n in range(70):
                asyncio.run(save(f"t{{n}}"))
            points = {{
                m.name: sum(getattr(p, "value", getattr(p, "count", 0)) for p in m.data.data_points)
                for r in reader.get_metrics_data().resource_metrics
                for s in r.scope_metrics for m in s.metrics
            }}
            tell(points=points)
        """)
    assert told["points"]["a2a.fencing.writes"] == 70
    assert told["points"]["a2a.fencing.save.duration"] == 70


def test_switching_off_and_on_again_counts_nothing_twice() -> None:
    told = program("""
        log()
        metrics.set_meter_provider(MeterProvider([reader]))
        for _ in range(2):
            a2a_fencing.instrument()
            asyncio.run(save())
            a2a_fencing.uninstrument()
        points = {
            m.name: sum(p.value for p in m.data.data_points)
            for r in reader.get_metrics_data().resource_metrics
            for s in r.scope_metrics for m in s.metrics if hasattr(m.data.data_points[0], "value")
        }
        tell(points=points, logged=logged().count("a2a.fencing.write"))
    """)
    assert told["logged"] == 2
    assert told["points"]["a2a.fencing.writes"] == 2


def test_a_span_processor_that_fails_does_not_fail_a_save() -> None:
    told = program("""
        from opentelemetry.sdk.trace import SpanProcessor

        class Fails(SpanProcessor):
            def on_start(self, span, parent_context=None):
                raise RuntimeError("the application's own")

        trace_with(); log()
        trace.get_tracer_provider().add_span_processor(Fails())
        a2a_fencing.instrument()
        store = InMemoryTaskStore()
        asyncio.run(save("t", store))
        tell(stored=asyncio.run(store.get("t", ServerCallContext())) is not None)
    """)
    assert told["stored"]


def test_an_application_that_only_traces_gets_every_fact_on_a_span() -> None:
    told = program("""
        trace_with()
        a2a_fencing.instrument()
        asyncio.run(save())
        a2a_fencing.uninstrument()
        tell(span_events=span_events(), routes=routes())
    """)
    assert told["span_events"] == ["a2a.fencing.heartbeat", "a2a.fencing.write", "a2a.fencing.heartbeat"]


def test_with_nothing_configured_facts_go_to_the_otlp_default() -> None:
    told = program("""
        a2a_fencing.instrument()
        tell(routes=routes(), tracing=type(trace.get_tracer_provider()).__name__)
    """)
    assert told["routes"] == [
        "facts: http://localhost:4318/v1/logs",
        "spans: http://localhost:4318/v1/traces",
    ]
    # A global provider would switch on the SDK's own spans, dozens a task.
    assert told["tracing"] == "ProxyTracerProvider"


def test_the_otlp_variables_are_honoured() -> None:
    told = program(
        """
        a2a_fencing.instrument()
        tell(routes=routes())
        """,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9/base/",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://127.0.0.1:8/t",
    )
    assert told["routes"] == ["facts: http://127.0.0.1:9/base/v1/logs", "spans: http://127.0.0.1:8/t"]


def test_a_forked_worker_is_a_replica_of_its_own() -> None:
    with otlp_sink() as sink:
        program(
            """
            a2a_fencing.instrument()
            store = InMemoryTaskStore()
            asyncio.run(save("parent", store))
            pid = os.fork()
            if pid == 0:
                asyncio.run(save("child", store))
                a2a_fencing.uninstrument()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            a2a_fencing.uninstrument()
            tell(done=True)
            """,
            A2A_FENCING_ENDPOINT=sink.url,
            PYTHONWARNINGS="ignore",
        )
        facts = sink.facts_in_logs()
    by_task = {fact.task.task_id: fact for fact in facts if fact.task is not None}
    assert by_task.keys() == {"parent", "child"}
    assert by_task["parent"].replica != by_task["child"].replica
    # Its copy of an in-memory store is a store of its own.
    assert by_task["parent"].task.store != by_task["child"].task.store
    for replica in {fact.replica for fact in facts}:
        assert sorted(fact.n for fact in facts if fact.replica == replica) == [1, 2, 3]
