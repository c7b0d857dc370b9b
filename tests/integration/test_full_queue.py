"""An event that waits for room in a queue, and what becomes of it when the queue closes."""

from __future__ import annotations

import asyncio

import pytest
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import DEFAULT_MAX_QUEUE_SIZE

from a2a_fencing import conventions as c
from a2a_fencing.testing import capture
from support.cluster import artifact, cluster, collect, message, status, submitted, until
from support.databases import Database, database

CALL = ServerCallContext()

FLOOD = 2 * DEFAULT_MAX_QUEUE_SIZE


@pytest.fixture
def sqlite(tmp_path):
    with database("sqlite", tmp_path) as found:
        yield found


async def test_an_event_that_waits_when_its_queue_closes_is_told(sqlite: Database) -> None:
    floods = []

    async def leaves_a_flood_behind(context, queue):
        await queue.enqueue_event(submitted(context))

        async def flood():
            for _ in range(FLOOD):
                await queue.enqueue_event(status(context, "WORKING"))
            await queue.enqueue_event(artifact(context))

        floods.append(asyncio.create_task(flood()))
        await asyncio.Event().wait()

    async with cluster(sqlite.dsn, leaves_a_flood_behind) as (node,):

        async def stuck(*args, **kwargs):
            await asyncio.Event().wait()

        node.store._save_once = stuck
        with capture() as history:
            stream = asyncio.create_task(collect(node.handler.on_message_send_stream(message(), CALL)))

            async def full() -> bool:
                tasks = list(node.handler._active_task_registry._active_tasks.values())
                return bool(tasks) and tasks[0]._event_queue_agent._incoming_queue.full()

            await until(full)
            await node.handler.aclose()
            await floods[0]
            stream.cancel()
    told = [fact for fact in history.of(c.DROPPED) if fact.queue == c.AGENT_QUEUE]
    assert [fact.event_kind for fact in told if fact.reason == c.QUEUE_CLOSED][-1] == c.ARTIFACT_EVENT
    # Each once, whether it was in a queue, waited for room, or came later; the first is being saved.
    assert len(told) == FLOOD + 1
