"""What a client reads in a list of tasks is an answer too, where it says that a task is finished."""

from __future__ import annotations

import pytest
from a2a.server.context import ServerCallContext
from a2a.types.a2a_pb2 import ListTasksRequest, TaskState

from a2a_fencing import conventions as c
from a2a_fencing.testing import capture
from support.cluster import Node, cluster, idle, message, status, submitted
from support.databases import Database, database

CALL = ServerCallContext()


@pytest.fixture
def sqlite(tmp_path):
    with database("sqlite", tmp_path) as found:
        yield found


async def completes(context, queue):
    await queue.enqueue_event(submitted(context))
    await queue.enqueue_event(status(context, "COMPLETED"))


async def asks(context, queue):
    await queue.enqueue_event(submitted(context))
    await queue.enqueue_event(status(context, "INPUT_REQUIRED"))


async def test_a_finished_task_in_a_list_is_an_answer_told_once(sqlite: Database) -> None:
    async with cluster(sqlite.dsn, completes, asks) as (a, b):
        with capture() as history:
            done = await a.handler.on_message_send(message(), CALL)
            await b.handler.on_message_send(message(), CALL)
            for _ in range(3):
                page = await b.handler.on_list_tasks(ListTasksRequest(), CALL)
                assert len(page.tasks) == 2
    listed = [fact for fact in history.of(c.ANSWER) if fact.method == c.LIST_TASKS]
    assert [(fact.task.task_id, fact.state) for fact in listed] == [(done.id, c.COMPLETED)]
    assert listed[0].context_id == done.context_id
    assert history.check().findings == ()


async def test_a_task_listed_as_canceled_that_then_completed_contradicts_it(sqlite: Database) -> None:
    async with cluster(sqlite.dsn, asks, idle) as (a, b):
        with capture() as history:
            task = await a.handler.on_message_send(message(), CALL)
            await write(b, task.id, TaskState.TASK_STATE_CANCELED)
            await b.handler.on_list_tasks(ListTasksRequest(), CALL)
            await write(b, task.id, TaskState.TASK_STATE_COMPLETED)
    (listed,) = (fact.id for fact in history.of(c.ANSWER) if fact.method == c.LIST_TASKS)
    (contradicted,) = (f for f in history.check().findings if f.rule == c.ANSWER_CONTRADICTED)
    assert listed in contradicted.witness


async def write(node: Node, task_id: str, state: TaskState) -> None:
    stored = await node.store.get(task_id, CALL)
    stored.task.status.state = state
    await node.store.save(stored.task, context=CALL, prev_version=stored.version, event=None)
