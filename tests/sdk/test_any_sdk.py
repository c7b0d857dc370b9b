"""What must work on every supported a2a-sdk: ``make test-sdk-matrix`` runs this folder on each."""

from __future__ import annotations

import warnings
from importlib import metadata
from uuid import uuid4

import pytest
from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.default_request_handler import LegacyRequestHandler
from a2a.server.request_handlers.default_request_handler_v2 import DefaultRequestHandlerV2
from a2a.server.tasks.database_task_store import DatabaseTaskStore
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    Artifact,
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
from sqlalchemy.ext.asyncio import create_async_engine

from a2a_fencing import conventions as c
from a2a_fencing.hooks import Hooks
from a2a_fencing.testing import capture

SDK = tuple(int(part) for part in metadata.version("a2a-sdk").split(".")[:3])
CALL = ServerCallContext()

BEFORE_CLUSTER_MODE = {
    "VersionedTaskStore",
    "EventConsumer._process_event_inner",
    "EventConsumer._write_failed_status",
    "DefaultRequestHandlerV2._cancel_remote",
}
BEFORE_EVICTION = {"EventQueueSource._deliver_to_sink"}


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        ids = {"task_id": context.task_id, "context_id": context.context_id}
        submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(
            Task(id=context.task_id, context_id=context.context_id, status=submitted)
        )
        part = Artifact(artifact_id="a", parts=[Part(text="result")])
        await event_queue.enqueue_event(TaskArtifactUpdateEvent(**ids, artifact=part))
        done = TaskStatus(state=TaskState.TASK_STATE_COMPLETED)
        await event_queue.enqueue_event(TaskStatusUpdateEvent(**ids, status=done))

    async def cancel(self, context, event_queue):
        pass


def message() -> SendMessageRequest:
    return SendMessageRequest(
        message=Message(message_id=str(uuid4()), role=Role.ROLE_USER, parts=[Part(text="go")])
    )


def expected_missing() -> set[str]:
    missing = set()
    if SDK < (1, 2, 0):
        missing |= BEFORE_CLUSTER_MODE
    if SDK < (1, 1, 0):
        missing |= BEFORE_EVICTION
    return missing


def test_each_hook_names_a_target_that_this_sdk_has_or_is_known_to_lack() -> None:
    hooks = Hooks("replica")
    hooks.install()
    hooks.remove()
    assert set(hooks.missing) == expected_missing()


@pytest.fixture(params=["memory", "database"])
async def store(request: pytest.FixtureRequest, tmp_path):
    if request.param == "memory":
        yield InMemoryTaskStore()
    else:
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/t.db")
        yield DatabaseTaskStore(engine)
        await engine.dispose()


@pytest.fixture(params=[DefaultRequestHandlerV2, LegacyRequestHandler])
def handler(request: pytest.FixtureRequest, store):
    card = AgentCard(name="agent", version="1", capabilities=AgentCapabilities(streaming=True))
    return request.param(Agent(), store, card)


STORED = [("SUBMITTED", "task"), ("SUBMITTED", "artifact-update"), ("COMPLETED", "status-update")]


async def test_a_request_is_followed_from_execution_to_answer(handler) -> None:
    with capture() as history:
        result = await handler.on_message_send(message(), CALL)
        if hasattr(handler, "aclose"):
            await handler.aclose()
    assert result.status.state == TaskState.TASK_STATE_COMPLETED
    writes = history.of(c.WRITE)
    assert [(w.state, w.event_kind) for w in writes if w.event_kind] == STORED
    assert {w.outcome for w in writes} == {c.ACCEPTED}
    assert {w.versioned for w in writes} == {False}
    assert [e.phase for e in history.of(c.EXECUTION)][:2] == [c.STARTED, c.FINISHED]
    assert [(a.method, a.state) for a in history.of(c.ANSWER)] == [(c.SEND_MESSAGE, c.COMPLETED)]
    assert history.of(c.DROPPED) == []
    assert len({f.task for f in history.facts}) == 1
    assert {f.rule for f in history.check().findings} == {c.UNFENCED_STORE}


async def test_a_stream_is_followed_to_its_end(handler) -> None:
    with capture() as history:
        events = [event async for event in handler.on_message_send_stream(message(), CALL)]
    assert events
    (answer,) = history.of(c.ANSWER)
    assert (answer.method, answer.ending) == (c.SEND_STREAMING_MESSAGE, c.END_TERMINAL)


async def test_nothing_changes_for_the_host(handler) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bare = [event async for event in handler.on_message_send_stream(message(), CALL)]
        with capture():
            seen = [event async for event in handler.on_message_send_stream(message(), CALL)]
    assert [type(event) for event in bare] == [type(event) for event in seen]
