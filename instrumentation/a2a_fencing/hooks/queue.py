"""Event queues: what a closed queue swallows, what a forced close discards, which subscriber is evicted.

SDK markers and the tuples on subscriber queues are no events of the executor; what reached a
subscriber queue is stored already, so closing one loses nothing that is not in the store.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.hooks import streams
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.sdk import ActiveTask, EventQueueSink, EventQueueSource
from a2a_fencing.hooks.store import StoreHooks
from a2a_fencing.hooks.tasks import event_kind, event_state

Method = Callable[..., Awaitable[Any]]

_DELIVER = "_deliver_to_sink"
"""The SDK's method that evicts."""

_ENQUEUE = "enqueue_event"


class _Owner(NamedTuple):
    """Whose queue it is: an SDK TaskManager and the task id."""

    manager: Any
    task_id: str


class QueueHooks:
    """What happens around the queues of an active task.

    Args:
        stores: Names tasks and writers.
        adopt: Called with each new ActiveTask, whose executor and store may be of classes that no
            hook has seen.
    """

    def __init__(self, stores: StoreHooks, adopt: Callable[[Any], None]) -> None:
        self._stores = stores
        self._adopt = adopt
        # An executor may hold its queue for longer than the SDK holds the active task, so what names
        # the task is kept with the queue.
        self._agent_queues: weakref.WeakKeyDictionary[Any, _Owner] = weakref.WeakKeyDictionary()
        self._subscriber_queues: weakref.WeakKeyDictionary[Any, _Owner] = weakref.WeakKeyDictionary()
        self._watches: weakref.WeakKeyDictionary[Any, streams.StreamWatch] = weakref.WeakKeyDictionary()

    def install(self, patches: Patches) -> list[str]:
        """Hooks active tasks and their queues; returns the targets this SDK does not have."""
        missing = patches.wrap_all(
            (ActiveTask, "ActiveTask", "__init__", self.new_active_task),
            (EventQueueSource, "EventQueueSource", "close", self.close),
            (EventQueueSource, "EventQueueSource", "tap", self.tap),
            (EventQueueSink, "EventQueueSink", "close", self.close_sink),
        )
        for name in (_DELIVER, _ENQUEUE):
            if not hasattr(EventQueueSource, name):
                missing.append(f"EventQueueSource.{name}")
        return missing

    def remove(self) -> None:
        """Takes off what was put on queues that are still there."""
        for queue in list(self._agent_queues):
            ours = getattr(queue, "__dict__", {}).get(_ENQUEUE)
            if isinstance(ours, partial) and ours.func == self._enqueue:
                delattr(queue, _ENQUEUE)

    def new_active_task(self, wrapped: Any, active_task: Any, args: Any, kwargs: Any) -> None:
        """Around the construction of an ActiveTask."""
        wrapped(*args, **kwargs)
        try:
            owner = _Owner(active_task._task_manager, active_task.task_id)
            queue = active_task._event_queue_agent
            self._agent_queues[queue] = owner
            self._subscriber_queues[active_task._event_queue_subscribers] = owner
            self._adopt(active_task)
            # On this queue and not in its class: half of the events pass subscribers' queues.
            setattr(queue, _ENQUEUE, partial(self._enqueue, queue, getattr(queue, _ENQUEUE)))
        except Exception as error:
            internal_errors.report("a new active task", error)

    async def _enqueue(self, queue: Any, wrapped: Method, *args: Any, **kwargs: Any) -> Any:
        """Around ``enqueue_event``, which returns normally although a closed queue drops the event.

        It may close while the event waits for room.
        """
        result = await wrapped(*args, **kwargs)
        try:
            if _is_closed(queue):
                event = args[0] if args else kwargs.get("event")
                if not any(event is waiting for waiting in _waiting(queue._incoming_queue)):
                    self._dropped(self._agent_queues, queue, [event], c.QUEUE_CLOSED, c.AGENT_QUEUE)
        except Exception as error:
            internal_errors.report("an event for an agent's queue", error)
        return result

    async def close(self, wrapped: Method, queue: Any, args: Any, kwargs: Any) -> Any:
        """Around ``close``; a forced one discards what the consumer has not taken yet."""
        immediate = args[0] if args else kwargs.get("immediate", False)
        if immediate and queue in self._agent_queues:
            try:
                waiting = [*_waiting(queue._incoming_queue), *_waiting(queue.queue)]
                self._dropped(self._agent_queues, queue, waiting, c.DISCARDED_AT_CLOSE, c.AGENT_QUEUE)
            except Exception as error:
                internal_errors.report("closing of an agent's queue", error)
        return await wrapped(*args, **kwargs)

    async def tap(self, wrapped: Method, queue: Any, args: Any, kwargs: Any) -> Any:
        """Around ``tap``, which gives a client's stream its own sink."""
        sink = await wrapped(*args, **kwargs)
        watch = streams.current()
        if watch is not None:
            self._watches[sink] = watch
        return sink

    async def close_sink(self, wrapped: Method, sink: Any, args: Any, kwargs: Any) -> Any:
        """Around the closing of one sink; a delivery closes one that is full, which loses all it holds.

        Here and not around each delivery, of which there are twenty a task.
        """
        if (args[0] if args else kwargs.get("immediate", False)) and not _is_closed(sink):
            try:
                if sink.queue.full() and _is_delivering():
                    self._evicted(sink)
            except Exception as error:
                internal_errors.report("closing of a sink", error)
        return await wrapped(*args, **kwargs)

    def _evicted(self, sink: Any) -> None:
        watch = self._watches.get(sink)
        if watch is not None:
            watch.evicted = True
        lost = [payload[0] for payload in _waiting(sink.queue) if isinstance(payload, tuple)]
        self._dropped(
            self._subscriber_queues, sink._parent, lost[-1:], c.SUBSCRIBER_EVICTED, c.SUBSCRIBER_QUEUE
        )

    def _dropped(self, owners: Any, queue: Any, events: list[Any], reason: str, which: str) -> None:
        rec, owner = recorder.active(), owners.get(queue)
        if rec is None or owner is None:
            return
        try:
            for event in events:
                kind = event_kind(event)
                if kind is not None:
                    rec.record(
                        c.DROPPED,
                        None,
                        task=self._stores.key_of(
                            owner.manager.task_store, owner.manager._call_context, owner.task_id
                        ),
                        writer=self._stores.writer_of(rec, owner.manager.task_store),
                        reason=reason,
                        queue=which,
                        event_kind=kind,
                        state=event_state(event),
                    )
        except Exception as error:
            internal_errors.report("a dropped event", error)


def _is_closed(queue: Any) -> bool:
    """Whether an SDK queue is closed.

    Asked past its method, which the SDK's tracing makes a span of: a tenth of what an event costs.
    """
    closed = getattr(queue, "_is_closed", None)
    return bool(queue.is_closed() if closed is None else closed)


def _is_delivering() -> bool:
    """Whether one of the SDK's deliveries is what called: a client that leaves closes, too.

    The frames tell, whatever others have wrapped around the coroutine or its task.
    """
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == _DELIVER:
            return True
        frame = frame.f_back
    return False


def _waiting(queue: Any) -> list[Any]:
    """What an SDK queue holds: asyncio's own queue, or the backport that Python < 3.13 gets."""
    own = getattr(queue, "_queue", None)
    if own is not None:
        return list(own)
    return list(getattr(getattr(queue, "wrapped", None), "_Queue__data", ()))
