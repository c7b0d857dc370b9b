"""A cancel on one replica and an executor that does not know of it on another (DESIGN, scenario)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from a2a.server.context import ServerCallContext

from a2a_fencing import conventions as c
from a2a_fencing.hooks.tasks import event_state, state_of
from a2a_fencing.testing import capture
from support.cluster import artifact, cluster, collect, idle, message, status, submitted, until
from support.databases import Database


@dataclass
class Outcome:
    task_id: str
    stored: str
    streamed: list[str]


async def stale_burst(db: Database, *, cancel: bool) -> Outcome:
    """A works, B may cancel; then A emits an artifact and COMPLETED."""
    started, go_on = asyncio.Event(), asyncio.Event()
    task_id = ""

    async def work(context, queue):
        nonlocal task_id
        task_id = context.task_id
        await queue.enqueue_event(submitted(context))
        await queue.enqueue_event(status(context, "WORKING"))
        started.set()
        await go_on.wait()
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))

    async with cluster(db.dsn, work, idle) as (a, b):
        call = ServerCallContext()
        stream = asyncio.create_task(collect(a.handler.on_message_send_stream(message(), call)))
        await asyncio.wait_for(started.wait(), 10)

        async def working_is_stored():
            stored = await b.stored(task_id)
            return stored is not None and state_of(stored.task) == c.WORKING

        async def finished():
            return await a.handler._active_task_registry.get(task_id) is None

        await until(working_is_stored)
        if cancel:
            await b.cancel(task_id)
        go_on.set()
        events = await asyncio.wait_for(stream, 10)
        await until(finished)
        stored = await b.stored(task_id)
        states = [state for event in events if (state := event_state(event))]
        return Outcome(task_id, state_of(stored.task), states)


async def test_remote_cancel_stale_burst(db: Database) -> None:
    with capture() as history:
        outcome = await stale_burst(db, cancel=True)

    assert outcome.stored == c.COMPLETED
    assert outcome.streamed[-1] == c.CANCELED

    writes = [
        (w.state, w.base_version, w.base_state, w.version, w.outcome, w.reason, w.origin)
        for w in history.of(c.WRITE)
    ]
    assert writes == [
        ("SUBMITTED", None, None, 1, "accepted", None, "executor"),
        ("WORKING", 1, "SUBMITTED", 2, "accepted", None, "executor"),
        ("CANCELED", 2, "WORKING", 3, "accepted", None, "cancel-remote"),
        ("WORKING", 2, "WORKING", None, "conflict", "stale-base", "executor"),
        ("COMPLETED", 3, "CANCELED", 4, "accepted", None, "executor"),
    ]
    (dropped,) = history.of(c.DROPPED)
    assert (dropped.reason, dropped.event_kind) == (c.STALE_EXECUTOR, c.ARTIFACT_EVENT)
    (violation,) = history.of(c.VIOLATION)
    assert violation.rule == c.TERMINAL_OVERWRITTEN

    report = history.check()
    (overwritten,) = (f for f in report.findings if f.rule == c.TERMINAL_OVERWRITTEN)
    assert overwritten.certainty == c.PROVEN
    assert overwritten.task.task_id == outcome.task_id
    cancel_fact, stale_fact = history.of(c.WRITE)[2], history.of(c.WRITE)[4]
    assert {cancel_fact.id, stale_fact.id} <= set(overwritten.witness)
    assert cancel_fact.writer != stale_fact.writer
    assert report.complete
    assert report.verdict == c.VIOLATED


async def test_the_same_without_a_cancel_finds_nothing(db: Database) -> None:
    with capture() as history:
        outcome = await stale_burst(db, cancel=False)

    assert outcome.stored == c.COMPLETED
    assert [w.outcome for w in history.of(c.WRITE)] == ["accepted"] * 4
    assert history.of(c.DROPPED) == []
    assert history.of(c.VIOLATION) == []
    report = history.check()
    assert report.findings == ()
    assert report.ok
