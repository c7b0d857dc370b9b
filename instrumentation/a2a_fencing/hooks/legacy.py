"""The legacy handler's path: its executor runs beside the request, which consumes the events itself."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.scope import Scope
from a2a_fencing.hooks.sdk import LegacyRequestHandler, ResultAggregator
from a2a_fencing.hooks.store import StoreHooks
from a2a_fencing.hooks.tasks import event_kind

Method = Callable[..., Awaitable[Any]]

_PROCESS = "process"
"""The SDK's method that applies an event and saves what becomes of the task."""


class LegacyHooks:
    """What happens around ``LegacyRequestHandler`` and its task manager.

    Args:
        stores: Names tasks and writers.
    """

    def __init__(self, stores: StoreHooks) -> None:
        self._stores = stores
        self._managers: weakref.WeakSet[Any] = weakref.WeakSet()

    def install(self, patches: Patches) -> list[str]:
        """Hooks the legacy path; returns the targets this SDK does not have."""
        return patches.wrap_all(
            (LegacyRequestHandler, "LegacyRequestHandler", "_run_event_stream", self.run),
            (ResultAggregator, "ResultAggregator", "__init__", self.new_aggregator),
        )

    def remove(self) -> None:
        """Takes off what was put on task managers that are still there."""
        for manager in list(self._managers):
            ours = getattr(manager, "__dict__", {}).get(_PROCESS)
            if isinstance(ours, partial) and ours.func == self._process:
                delattr(manager, _PROCESS)

    async def run(self, wrapped: Method, handler: Any, args: Any, kwargs: Any) -> Any:
        """Around the executor's run: here the handler still says which store the task is in."""
        rec = recorder.active()
        if rec is not None:
            try:
                request = args[0] if args else kwargs["request"]
                turn = scopes.turn_of(request)
                store = handler.task_store
                turn.key = self._stores.key_of(store, request.call_context, request.task_id)
                turn.writer = self._stores.writer_of(rec, store)
                turn.store, turn.call_context = store, request.call_context
            except Exception as error:
                internal_errors.report("a legacy execution", error)
        return await wrapped(*args, **kwargs)

    def new_aggregator(self, wrapped: Any, aggregator: Any, args: Any, kwargs: Any) -> None:
        """Around the construction of a ResultAggregator, which has its task manager apply the events."""
        wrapped(*args, **kwargs)
        try:
            manager = aggregator.task_manager
            if manager not in self._managers:
                # On this manager and not in its class: the current consumer's applies events, too, for
                # which there is a scope already.
                setattr(manager, _PROCESS, partial(self._process, getattr(manager, _PROCESS)))
                self._managers.add(manager)
        except Exception as error:
            internal_errors.report("a legacy task manager", error)

    async def _process(self, wrapped: Method, *args: Any, **kwargs: Any) -> Any:
        """Around one event."""
        event = args[0] if args else kwargs.get("event")
        applied = event if event_kind(event) is not None else None
        with scopes.entered(Scope(c.FROM_EXECUTOR, event=applied)):
            return await wrapped(*args, **kwargs)
