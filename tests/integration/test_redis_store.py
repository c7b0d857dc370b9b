"""A store on Redis, built as the published ones are: a client, a prefix, no versions.

The published ``a2a-redis`` itself is for an SDK before 1.0 and cannot be imported beside a newer one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from a2a.server.context import ServerCallContext
from a2a.server.tasks.task_store import TaskStore
from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus

from a2a_fencing import conventions as c
from a2a_fencing.testing import capture

redis = pytest.importorskip("redis.asyncio", reason="the redis client is not installed")

SERVER = os.environ.get("A2A_FENCING_TEST_REDIS", "redis://127.0.0.1:6379/0")
CALL = ServerCallContext()


class RedisTaskStore(TaskStore):
    """Tasks as serialized messages, one key each."""

    def __init__(self, client, prefix: str) -> None:
        self.redis = client
        self.prefix = prefix

    async def save(self, task, context):
        await self.redis.set(self.prefix + task.id, task.SerializeToString())

    async def get(self, task_id, context):
        found = await self.redis.get(self.prefix + task_id)
        return None if found is None else Task.FromString(found)

    async def delete(self, task_id, context):
        await self.redis.delete(self.prefix + task_id)

    async def list(self, params, context):
        raise NotImplementedError


@pytest.fixture
async def replicas() -> AsyncIterator[tuple[RedisTaskStore, RedisTaskStore]]:
    """Two store objects over the same tasks, each with a connection of its own."""
    prefix = f"a2a-fencing-{uuid4().hex[:12]}:"
    clients = [redis.from_url(SERVER), redis.from_url(SERVER)]
    try:
        await clients[0].ping()
    except (redis.RedisError, OSError) as error:
        pytest.skip(f"no Redis at {SERVER} ({type(error).__name__}); set A2A_FENCING_TEST_REDIS")
    yield RedisTaskStore(clients[0], prefix), RedisTaskStore(clients[1], prefix)
    async for key in clients[0].scan_iter(f"{prefix}*"):
        await clients[0].delete(key)
    for client in clients:
        await client.aclose()


def task(state: str) -> Task:
    return Task(id="t1", status=TaskStatus(state=TaskState.Value(f"TASK_STATE_{state}")))


async def test_replicas_on_one_redis_share_a_task_and_its_overwriting_shows(replicas) -> None:
    ours, theirs = replicas
    with capture() as history:
        await ours.save(task("WORKING"), CALL)
        stale = await ours.get("t1", CALL)
        await theirs.save(task("CANCELED"), CALL)
        stale.status.state = TaskState.TASK_STATE_COMPLETED
        await theirs.get("t1", CALL)
        await ours.save(stale, CALL)
    writes = history.of(c.WRITE)
    assert [(w.state, w.base_state, w.versioned) for w in writes] == [
        ("WORKING", None, False),
        ("CANCELED", "WORKING", False),
        ("COMPLETED", "CANCELED", False),
    ]
    assert len({w.task for w in writes}) == 1
    assert len({w.writer for w in writes}) == 2
    assert {f.rule for f in history.check().findings if f.violates} == {c.TERMINAL_OVERWRITTEN}


async def test_a_store_on_redis_is_named_by_where_its_tasks_are(replicas) -> None:
    ours, _ = replicas
    other = RedisTaskStore(ours.redis, ours.prefix + "other:")
    with capture() as history:
        await ours.save(task("WORKING"), CALL)
        await other.save(task("WORKING"), CALL)
        await ours.delete("t1", CALL)
    names = [fact.task.store for fact in history.facts if fact.task is not None]
    address = ours.redis.connection_pool.connection_kwargs
    host = "localhost" if address["host"] == "127.0.0.1" else address["host"]
    own = f"redis://{host}:{address['port']}/{address.get('db', 0)}#{ours.prefix}"
    assert names == [own, f"{own}other:", own]
    assert [fact.kind for fact in history.facts][-1] == c.DELETED
