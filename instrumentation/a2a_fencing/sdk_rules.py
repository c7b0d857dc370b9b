"""Whether the installed SDK refuses by itself what the guard would: tried out, not looked up by version.

Its own consumer and its own database store are put before the case in question, with everything around
them replaced or in memory. The originals are called, below any hook, so that no fact is made of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from a2a.types.a2a_pb2 import Task, TaskState, TaskStatus, TaskStatusUpdateEvent
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.trace import NonRecordingSpan, SpanContext

from a2a_fencing.hooks.sdk import (
    CasEventConsumer,
    ConcurrentTaskModificationError,
    VersionedDatabaseTaskStore,
)

_log = logging.getLogger("a2a_fencing")

_TASK_ID = "a2a-fencing-trial"
_LIMIT_S = 10.0


@cache
def enforced() -> frozenset[str]:
    """The rules of the guard (``"store"``, ``"consumer"``) that this SDK enforces itself."""
    trials = {"store": _store_refuses, "consumer": _consumer_drops}
    return frozenset(rule for rule, trial in trials.items() if _tried(rule, trial))


def _tried(rule: str, trial: Callable[[], Any]) -> bool:
    """Runs a trial on an event loop of its own; what cannot be tried is taken as not enforced."""
    result = [False]

    def run() -> None:
        # A parent that is not sampled keeps the SDK's own spans of this out of the host's traces.
        unseen = NonRecordingSpan(SpanContext(1, 1, is_remote=False))
        token = otel_context.attach(trace.set_span_in_context(unseen, Context()))
        try:
            with suppress_instrumentation():
                result[0] = asyncio.run(trial())
        except Exception as error:
            _log.debug("cannot tell whether this a2a-sdk has the %s rule: %r", rule, error)
        finally:
            otel_context.detach(token)

    thread = threading.Thread(target=run, name=f"a2a-fencing-trial-{rule}", daemon=True)
    thread.start()
    thread.join(_LIMIT_S)
    return result[0]


# --- the store rule: is a write on a finished task refused, though its base is right? ---


async def _store_refuses() -> bool:
    from a2a.server.cluster.version import TaskVersion
    from a2a.server.context import ServerCallContext
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import StaticPool

    engine = create_async_engine("sqlite+aiosqlite://", poolclass=StaticPool)
    try:
        store = VersionedDatabaseTaskStore(engine)
        save = _original(VersionedDatabaseTaskStore, "save")
        about: dict[str, Any] = {"event": None, "prev": None, "context": ServerCallContext()}
        finished = _task(TaskState.TASK_STATE_FAILED)
        version = await save(store, finished, prev_version=TaskVersion.MISSING, **about)
        try:
            await save(store, _task(TaskState.TASK_STATE_COMPLETED), prev_version=version, **about)
        except ConcurrentTaskModificationError:
            return True
        return False
    finally:
        await engine.dispose()


# --- the consumer rule: after a reload that shows a finished task, is the next event still applied? ---


class _Manager:
    """A TaskManager whose task somebody else has just finished."""

    context_id = ""
    current_version = None
    _call_context = None

    def __init__(self) -> None:
        self.applied = 0

    def invalidate(self) -> None:
        pass

    async def get_task(self) -> Task:
        return _task(TaskState.TASK_STATE_CANCELED)

    async def ensure_task_id(self, task_id: str, context_id: str) -> Task:
        return _task(TaskState.TASK_STATE_CANCELED)

    async def process(self, event: Any) -> Any:
        self.applied += 1
        if self.applied == 1:
            raise ConcurrentTaskModificationError(_TASK_ID)
        return event

    save_task_event = process


class _Queue:
    """A queue that takes everything and keeps nothing."""

    async def enqueue_event(self, event: Any) -> None:
        pass

    async def close(self, immediate: bool = False) -> None:
        pass

    def task_done(self) -> None:
        pass


async def _consumer_drops() -> bool:
    manager = _Manager()
    created, finished = asyncio.Event(), asyncio.Event()
    created.set()
    active_task = SimpleNamespace(
        task_id=_TASK_ID,
        _task_id=_TASK_ID,
        _task_manager=manager,
        _task_created=created,
        _is_finished=finished,
        _producer_task=None,
        _push_sender=None,
        _event_stream=None,
        _request_queue=SimpleNamespace(shutdown=lambda immediate=False: None),
        _event_queue_agent=_Queue(),
        _event_queue_subscribers=_Queue(),
    )
    consumer = CasEventConsumer(active_task)
    process = _original(CasEventConsumer, "_process_event")
    for state in (TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED):
        event = TaskStatusUpdateEvent(task_id=_TASK_ID, status=TaskStatus(state=state))
        await process(consumer, event)
    return manager.applied == 1


def _task(state: TaskState) -> Task:
    return Task(id=_TASK_ID, context_id=_TASK_ID, status=TaskStatus(state=state))


def _original(owner: type, name: str) -> Callable[..., Any]:
    """The SDK's own function, below whatever was wrapped around it."""
    function = owner.__dict__[name]
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function  # type: ignore[no-any-return]
