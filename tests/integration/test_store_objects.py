"""Stores whose object, not their class, saves or reads in a way of its own, past some of our hooks."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from a2a.server.cluster import ConcurrentTaskModificationError, VersionedDatabaseTaskStore
from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import TaskState

from a2a_fencing import conventions as c
from a2a_fencing.hooks.tasks import event_state
from a2a_fencing.testing import History, capture
from support.cluster import Node, artifact, cluster, idle, message, status, submitted, until
from support.databases import Database, database

CALL = ServerCallContext()


@pytest.fixture
def sqlite(tmp_path):
    with database("sqlite", tmp_path) as found:
        yield found


class Burst:
    """An executor that sends an artifact and COMPLETED once it may."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, context, queue) -> None:
        await queue.enqueue_event(submitted(context))
        await self.go_on.wait()
        await queue.enqueue_event(artifact(context))
        await queue.enqueue_event(status(context, "COMPLETED"))
        await asyncio.Event().wait()


async def canceled_elsewhere(a: Node, b: Node, history: History) -> asyncio.Task[object]:
    """Sends a message to one replica, and cancels the task on the other before its executor goes on."""
    sending = asyncio.create_task(a.handler.on_message_send(message(), CALL))

    async def written() -> bool:
        return bool(history.of(c.WRITE))

    await until(written)
    stored = await b.stored(history.of(c.WRITE)[0].task.task_id)
    assert stored is not None
    stored.task.status.state = TaskState.TASK_STATE_CANCELED
    await b.store.save(stored.task, event=None, prev=None, prev_version=stored.version, context=CALL)
    return sending


@pytest.mark.parametrize("guard", [False, "consumer"])
async def test_an_event_that_the_store_object_saves_again_is_not_dropped(
    sqlite: Database, guard: bool | str
) -> None:
    burst = Burst()
    async with cluster(sqlite.dsn, burst, idle) as (a, b):
        with capture(guard=guard) as history:
            save = a.store.save

            async def again(task, **options):
                try:
                    return await save(task, **options)
                except ConcurrentTaskModificationError:
                    stored = await a.store.get(task.id, CALL)
                    return await save(task, **options | {"prev_version": stored.version})

            a.store.save = again
            sending = await canceled_elsewhere(a, b, history)
            burst.go_on.set()

            async def completed() -> bool:
                return any(w.state == c.COMPLETED for w in history.of(c.WRITE) + history.of(c.DROPPED))

            await until(completed)
            await sending
    assert [d.reason for d in history.of(c.DROPPED)] == []
    accepted = [w.version for w in history.of(c.WRITE) if w.outcome == c.ACCEPTED]
    assert accepted == [1, 2, 3, 4]


async def test_a_drop_and_the_guard_need_not_see_what_the_store_object_reads(sqlite: Database) -> None:
    burst = Burst()
    async with cluster(sqlite.dsn, burst, idle) as (a, b):
        with capture(guard="consumer") as history:
            a.store.get = partial(VersionedDatabaseTaskStore.get.__wrapped__, a.store)
            sending = await canceled_elsewhere(a, b, history)
            burst.go_on.set()
            assert event_state(await sending) == c.CANCELED

            async def both() -> bool:
                return len(history.of(c.DROPPED)) == 2

            await until(both)
    assert [d.reason for d in history.of(c.DROPPED)] == [c.STALE_EXECUTOR, c.FENCED_BY_GUARD]
