"""The consumer that applies an executor's events under CAS: which it drops, and for whom it works.

Two SDK classes are called ``EventConsumer``; this is about the one in ``agent_execution.active_task``.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.facts import TaskKey
from a2a_fencing.guard import in_force
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.scope import Scope, Turn
from a2a_fencing.hooks.sdk import ActiveTask, CasEventConsumer, ConcurrentTaskModificationError
from a2a_fencing.hooks.store import StoreHooks
from a2a_fencing.hooks.tasks import event_kind, event_state
from a2a_fencing.recorder import Recorder

Method = Callable[..., Awaitable[Any]]

# An SDK without cluster mode applies each event once: what does not raise is applied.
_TRIES_AGAIN = hasattr(CasEventConsumer, "_process_event_inner")


class ConsumerHooks:
    """What happens around a task's event consumer and its requests.

    Args:
        stores: Names tasks and writers.
    """

    def __init__(self, stores: StoreHooks) -> None:
        self._stores = stores
        self._turns: weakref.WeakKeyDictionary[Any, Turn] = weakref.WeakKeyDictionary()
        self._fenced: weakref.WeakSet[Any] = weakref.WeakSet()
        self._sees_applying = False

    def install(self, patches: Patches) -> list[str]:
        """Hooks consumer and active task; returns the targets this SDK does not have."""
        # An SDK that applies events elsewhere cannot be seen to drop one.
        self._sees_applying = hasattr(CasEventConsumer, "_process_event_inner")
        return patches.wrap_all(
            (CasEventConsumer, "EventConsumer", "_process_event", self.process_event),
            (CasEventConsumer, "EventConsumer", "_process_event_inner", self.apply_event),
            (CasEventConsumer, "EventConsumer", "_handle_initial_task", self.initial_task),
            (CasEventConsumer, "EventConsumer", "_write_failed_status", self.write_failed),
            (ActiveTask, "ActiveTask", "enqueue_request", self.enqueue_request),
            (ActiveTask, "ActiveTask", "cancel", self.cancel),
        )

    def key_of(self, active_task: Any) -> TaskKey:
        """The task key of an ActiveTask."""
        manager = active_task._task_manager
        return self._stores.key_of(manager.task_store, manager._call_context, active_task.task_id)

    async def enqueue_request(self, wrapped: Method, active_task: Any, args: Any, kwargs: Any) -> Any:
        """Around the arrival of a request: only here its own span is the ambient one."""
        rec = recorder.active()
        if rec is not None:
            try:
                request = args[0] if args else kwargs["request_context"]
                turn = scopes.turn_of(request)
                manager = active_task._task_manager
                turn.key = self._stores.key_of(
                    manager.task_store, request.call_context, active_task.task_id
                )
                turn.writer = self._stores.writer_of(rec, manager.task_store)
                turn.store, turn.call_context = manager.task_store, request.call_context
                turn.manager = manager
                turn.named_by = rec
            except Exception as error:
                internal_errors.report("arrival of a request", error)
        return await wrapped(*args, **kwargs)

    async def process_event(self, wrapped: Method, consumer: Any, args: Any, kwargs: Any) -> Any:
        """Around one event: what did not reach the store was dropped."""
        rec = recorder.active()
        if rec is None:
            return await wrapped(*args, **kwargs)
        event = args[0] if args else kwargs.get("event")
        if event_kind(event) is None:
            return await self._process_marker(wrapped, consumer, event, args, kwargs)
        scope = Scope(c.FROM_EXECUTOR, self._turns.get(consumer), event)
        scope.applied = not _TRIES_AGAIN
        if in_force().consumer and consumer in self._fenced:
            self._dropped(rec, consumer, scope, c.FENCED_BY_GUARD)
            # The SDK takes an event off its queue's account once it has been applied.
            consumer.active_task._event_queue_agent.task_done()
            return None
        token = scopes.enter(scope)
        try:
            result = await wrapped(*args, **kwargs)
        except ConcurrentTaskModificationError:
            self._dropped(rec, consumer, scope, c.STALE_EXECUTOR)
            raise
        finally:
            scopes.leave(token)
        if not scope.applied and self._sees_applying:
            # Refused, and what was reloaded is finished: the executor works for nothing.
            self._fenced.add(consumer)
            self._dropped(rec, consumer, scope, c.STALE_EXECUTOR)
        return result

    async def _process_marker(
        self, wrapped: Method, consumer: Any, marker: Any, args: Any, kwargs: Any
    ) -> Any:
        """Around the SDK's own: a request that begins or is completed, or why the executor failed."""
        # A message, too, would look long for a field that it does not have.
        request = getattr(marker, "request_context", None)
        if request is not None:
            self._turns[consumer] = scopes.turn_of(request)
        if not isinstance(marker, BaseException):
            return await wrapped(*args, **kwargs)  # no store gets to see it
        with scopes.entered(Scope(c.FROM_EXECUTOR, self._turns.get(consumer))):
            return await wrapped(*args, **kwargs)  # reloads, where it is the store's refusal

    async def apply_event(self, wrapped: Method, consumer: Any, args: Any, kwargs: Any) -> Any:
        """Around one try to apply an event; after a conflict the consumer reloads."""
        scope = scopes.current()
        if scope is None:
            return await wrapped(*args, **kwargs)
        try:
            result = await wrapped(*args, **kwargs)
        except ConcurrentTaskModificationError:
            scope.read_as = c.RELOAD
            raise
        scope.applied = True
        return result

    async def initial_task(self, wrapped: Method, consumer: Any, args: Any, kwargs: Any) -> Any:
        """Around a Task event; the SDK ignores one that would replace a stored task."""
        rec, scope = recorder.active(), scopes.current()
        writes = scope.writes if scope is not None else 0
        result = await wrapped(*args, **kwargs)
        if rec is not None and scope is not None and scope.writes == writes:
            self._dropped(rec, consumer, scope, c.REPLACEMENT_IGNORED)
        return result

    async def write_failed(self, wrapped: Method, consumer: Any, args: Any, kwargs: Any) -> Any:
        """Around the FAILED that the consumer writes when the event stream broke."""
        with scopes.entered(Scope(c.FROM_CONSUMER_FAILURE, turn=self._turns.get(consumer))):
            return await wrapped(*args, **kwargs)

    async def cancel(self, wrapped: Method, active_task: Any, args: Any, kwargs: Any) -> Any:
        """Around a cancel on the replica that runs the task."""
        with scopes.entered(Scope(c.FROM_CANCEL_LOCAL)):
            return await wrapped(*args, **kwargs)

    def _dropped(self, rec: Recorder, consumer: Any, scope: Scope, reason: str) -> None:
        try:
            active_task = consumer.active_task
            turn = scope.turn
            rec.record(
                c.DROPPED,
                turn.span if turn is not None else None,
                task=self.key_of(active_task),
                writer=self._stores.writer_of(rec, active_task._task_manager.task_store),
                reason=reason,
                queue=c.AGENT_QUEUE,
                event_kind=event_kind(scope.event),
                state=event_state(scope.event),
                execution_id=turn.execution_id if turn is not None else None,
            )
        except Exception as error:
            internal_errors.report("a dropped event", error)
