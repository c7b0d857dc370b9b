"""An application that traces the SDK sees the same spans of it, whether a2a-fencing watches or not."""

from __future__ import annotations

from collections import Counter

import pytest
from a2a.server.context import ServerCallContext
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from a2a_fencing.testing import capture
from support.cluster import artifact, cluster, message, status, submitted
from support.databases import Database, database


@pytest.fixture
def sqlite(tmp_path):
    with database("sqlite", tmp_path) as found:
        yield found


async def completes(context, queue):
    await queue.enqueue_event(submitted(context))
    await queue.enqueue_event(status(context, "WORKING"))
    await queue.enqueue_event(artifact(context))
    await queue.enqueue_event(status(context, "COMPLETED"))


async def test_hooks_call_nothing_that_the_sdk_traces(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)

    async def spans() -> Counter[str]:
        exporter.clear()
        async with cluster(sqlite.dsn, completes) as (node,):
            await node.handler.on_message_send(message(), ServerCallContext())
        return Counter(
            span.name
            for span in exporter.get_finished_spans()
            if span.instrumentation_scope.name == "a2a-python-sdk"
        )

    bare = await spans()
    with capture():
        watched = await spans()
    assert watched == bare
    assert bare.total() > 20
