"""Several replicas of a real A2A server in one process: an engine, a store and a handler each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    Artifact,
    CancelTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

Work = Callable[[RequestContext, EventQueue], Awaitable[None]]


class ScriptedExecutor(AgentExecutor):
    """Runs one coroutine as its ``execute``; leaves cancelling to the framework."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await self._work(context, event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        pass


@dataclass
class Node:
    """One replica's engine, store and handler."""

    engine: AsyncEngine
    store: VersionedDatabaseTaskStore
    handler: DefaultRequestHandlerV2

    async def cancel(self, task_id: str, context: ServerCallContext | None = None) -> Task:
        request = CancelTaskRequest(id=task_id)
        return await self.handler.on_cancel_task(request, context or ServerCallContext())

    async def stored(self, task_id: str, context: ServerCallContext | None = None) -> Any:
        return await self.store.get(task_id, context or ServerCallContext())


def card() -> AgentCard:
    return AgentCard(
        name="test agent",
        description="does what the test says",
        version="1",
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )


@asynccontextmanager
async def cluster(
    dsn: str, *works: Work, poll_interval_s: float = 0.02, **store_options: Any
) -> AsyncIterator[list[Node]]:
    """One node per work, all over one database."""
    nodes = []
    for work in works:
        connect_args = {"timeout": 30} if dsn.startswith("sqlite") else {}
        engine = create_async_engine(dsn, connect_args=connect_args)
        store = VersionedDatabaseTaskStore(engine, **store_options)
        await store.initialize()
        event_table = store_options.get("event_table_name", "task_events")
        stream = DatabaseTaskEventStream(engine, table_name=event_table, poll_interval_s=poll_interval_s)
        await stream.initialize()
        handler = DefaultRequestHandlerV2(ScriptedExecutor(work), store, card(), event_stream=stream)
        nodes.append(Node(engine, store, handler))
    try:
        yield nodes
    finally:
        for node in nodes:
            await node.handler.aclose()
            await node.engine.dispose()


def message(text: str = "go", **fields: Any) -> SendMessageRequest:
    return SendMessageRequest(
        message=Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **fields)
    )


def submitted(context: RequestContext) -> Task:
    assert context.task_id
    assert context.context_id
    return Task(
        id=context.task_id,
        context_id=context.context_id,
        status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
    )


def status(context: RequestContext, state: str) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(
        task_id=context.task_id or "",
        context_id=context.context_id or "",
        status=TaskStatus(state=TaskState.Value(f"TASK_STATE_{state}")),
    )


def artifact(context: RequestContext, text: str = "result") -> TaskArtifactUpdateEvent:
    return TaskArtifactUpdateEvent(
        task_id=context.task_id or "",
        context_id=context.context_id or "",
        artifact=Artifact(artifact_id="a", parts=[Part(text=text)]),
    )


async def idle(context: RequestContext, queue: EventQueue) -> None:
    """Work of a node that only cancels and reads."""


async def collect(stream: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in stream]


async def until(condition: Callable[[], Awaitable[bool]], timeout_s: float = 10.0) -> None:
    """Waits for something that other tasks bring about."""

    async def poll() -> None:
        while not await condition():  # noqa: ASYNC110 - the database has no event to wait for
            await asyncio.sleep(0.005)

    await asyncio.wait_for(poll(), timeout_s)
