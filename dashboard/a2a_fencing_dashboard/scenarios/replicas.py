"""Two replicas of a real A2A server in one process: an engine, a store and a handler each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final
from uuid import uuid4

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.types.a2a_pb2 import (
    Artifact,
    CancelTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from sqlalchemy import delete

from a2a_fencing.fencing import FencingToken, taken_over
from a2a_fencing.hooks.tasks import event_state, state_of
from a2a_fencing_dashboard.demo.agent import agent_card
from a2a_fencing_dashboard.demo.database import open_engine

LIMIT_S: Final = 30.0
"""Longest wait for something that must happen."""

Work = Callable[[RequestContext, EventQueue], Awaitable[None]]

_CALL: Final = ServerCallContext()


async def nothing(context: RequestContext, queue: EventQueue) -> None:
    """Work of a replica that runs no task of its own."""


class _Agent(AgentExecutor):
    def __init__(self, work: Work) -> None:
        self._work = work

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await self._work(context, event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Leaves cancelling to the SDK."""


class Replica:
    """One replica on a database.

    Attributes:
        store: Its task store.
        handler: Its request handler.
    """

    def __init__(self, dsn: str, work: Work) -> None:
        self._engine = open_engine(dsn)
        self.store = VersionedDatabaseTaskStore(self._engine)
        self._stream = DatabaseTaskEventStream(self._engine, poll_interval_s=0.02)
        self.handler = DefaultRequestHandlerV2(
            _Agent(work), self.store, agent_card("http://localhost/"), event_stream=self._stream
        )

    async def open(self) -> None:
        """Creates the SDK's tables where they are missing."""
        await self.store.initialize()
        await self._stream.initialize()

    async def close(self) -> None:
        """Ends its tasks and connections."""
        await self.handler.aclose()
        await self._engine.dispose()

    async def send(self, text: str = "go", **about: Any) -> None:
        """Sends a message and waits for the answer."""
        message = Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **about)
        await self.handler.on_message_send(SendMessageRequest(message=message), _CALL)

    async def cancel(self, task_id: str) -> None:
        """Cancels a task, as a client that reached this replica does."""
        await self.handler.on_cancel_task(CancelTaskRequest(id=task_id), _CALL)

    async def follow(self, task_id: str, following: asyncio.Event) -> str:
        """Streams the task to its end and returns the last state that was told."""
        told = ""
        request = SubscribeToTaskRequest(id=task_id)
        async with aclosing(self.handler.on_subscribe_to_task(request, _CALL)) as stream:
            async for event in stream:
                following.set()
                told = event_state(event) or told
        return told

    async def stored(self, task_id: str) -> str | None:
        """The stored state, or None when nothing is stored."""
        found = await self.store.get(task_id, _CALL)
        return state_of(found.task) if found is not None else None

    async def finish(self, task_id: str, state: str) -> FencingToken:
        """Writes a state as somebody else would who finishes the task.

        Returns:
            What fences off whoever began before.
        """
        found = await self.store.get(task_id, _CALL)
        assert found is not None
        task = Task()
        task.CopyFrom(found.task)
        task.status.CopyFrom(TaskStatus(state=f"TASK_STATE_{state}"))
        task.status.timestamp.GetCurrentTime()
        version = await self.store.save(
            task,
            event=TaskStatusUpdateEvent(task_id=task_id, context_id=task.context_id, status=task.status),
            prev=found.task,
            prev_version=found.version,
            context=_CALL,
        )
        return taken_over(self.store, _CALL, task_id, version)

    async def released(self, task_id: str) -> None:
        """Waits until the SDK has put the task away here."""
        await until(lambda: self._holds_no(task_id))

    async def forget(self, task_id: str) -> None:
        """Deletes the task and its events, so that a database that was lent is left as it was."""
        await self.store.delete(task_id, _CALL)
        events = self.store._event_model
        async with self._engine.begin() as connection:
            await connection.execute(delete(events).where(events.task_id == task_id))

    async def _holds_no(self, task_id: str) -> bool:
        return await self.handler._active_task_registry.get(task_id) is None


@asynccontextmanager
async def replicas(dsn: str, *works: Work) -> AsyncIterator[list[Replica]]:
    """Replicas on one database, one per work, in this process."""
    started = [Replica(dsn, work) for work in works]
    try:
        for replica in started:
            await replica.open()
        yield started
    finally:
        for replica in started:
            await replica.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Waits for something that others bring about.

    Raises:
        TimeoutError: It did not come.
    """

    async def poll() -> None:
        while not await condition():  # noqa: ASYNC110 - a database has no event to wait for
            await asyncio.sleep(0.005)

    await asyncio.wait_for(poll(), LIMIT_S)


def submitted(context: RequestContext) -> Task:
    """The first event of a task."""
    return Task(
        id=context.task_id or "",
        context_id=context.context_id or "",
        status=TaskStatus(state="TASK_STATE_SUBMITTED"),
    )


def status(context: RequestContext, state: str) -> TaskStatusUpdateEvent:
    """A status event."""
    return TaskStatusUpdateEvent(
        task_id=context.task_id or "",
        context_id=context.context_id or "",
        status=TaskStatus(state=f"TASK_STATE_{state}"),
    )


def artifact(context: RequestContext) -> TaskArtifactUpdateEvent:
    """An artifact event."""
    return TaskArtifactUpdateEvent(
        task_id=context.task_id or "",
        context_id=context.context_id or "",
        artifact=Artifact(artifact_id="receipt", parts=[Part(text="a receipt")]),
    )
