"""SQL spans sit under the save that caused them, on the SQLAlchemy that the SDK resolves to today."""

from __future__ import annotations

from a2a.server.context import ServerCallContext

import a2a_fencing
from a2a_fencing import conventions as c
from a2a_fencing.instrumentor import A2AFencingInstrumentor
from support.cluster import cluster, message, status, submitted
from support.databases import Database
from support.otlp_sink import otlp_sink


async def completes(context, queue):
    await queue.enqueue_event(submitted(context))
    await queue.enqueue_event(status(context, "COMPLETED"))


async def test_sql_spans_are_under_the_save_that_caused_them(db: Database) -> None:
    with otlp_sink() as sink:
        async with cluster(db.dsn, completes) as (node,):  # engines made before us are observed too
            a2a_fencing.instrument(endpoint=sink.url, sql_spans=True)
            try:
                assert "SQL spans: on" in A2AFencingInstrumentor().status().routes
                await node.handler.on_message_send(message(), ServerCallContext())
                assert A2AFencingInstrumentor().flush()
            finally:
                a2a_fencing.uninstrument()
        spans = {span.span_id: span for span in sink.spans()}
    writes = [
        span
        for span in spans.values()
        if span.name.split()[0] in ("INSERT", "UPDATE", "insert", "update")
    ]
    assert len(writes) >= 4
    assert {spans[span.parent_span_id].name for span in writes} == {c.SPAN_SAVE}
    save = spans[writes[0].parent_span_id]
    assert spans[save.parent_span_id].name == c.SPAN_EXECUTE
    assert {span.trace_id for span in writes} == {save.trace_id}


async def test_without_being_asked_there_are_none_as_they_cost_more_than_everything_else(
    db: Database,
) -> None:
    with otlp_sink() as sink:
        a2a_fencing.instrument(endpoint=sink.url)
        try:
            async with cluster(db.dsn, completes) as (node,):
                await node.handler.on_message_send(message(), ServerCallContext())
                assert A2AFencingInstrumentor().flush()
        finally:
            a2a_fencing.uninstrument()
        assert {span.name for span in sink.spans()} == {c.SPAN_EXECUTE, c.SPAN_SAVE}
