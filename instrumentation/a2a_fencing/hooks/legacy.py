"""The legacy handler's path: its executor runs beside the request, which consumes the events itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.scope import Scope
from a2a_fencing.hooks.sdk import LegacyRequestHandler, TaskManager
from a2a_fencing.hooks.store import StoreHooks
from a2a_fencing.hooks.tasks import event_kind

Method = Callable[..., Awaitable[Any]]


class LegacyHooks:
    """What happens around ``LegacyRequestHandler`` and its task manager.

    Args:
        stores: Names tasks and writers.
    """

    def __init__(self, stores: StoreHooks) -> None:
        self._stores = stores

    def install(self, patches: Patches) -> list[str]:
        """Hooks the legacy path; returns the targets this SDK does not have."""
        return patches.wrap_all(
            (LegacyRequestHandler, "LegacyRequestHandler", "_run_event_stream", self.run),
            (TaskManager, "TaskManager", "process", self.process),
        )

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

    def process(self, wrapped: Method, manager: Any, args: Any, kwargs: Any) -> Awaitable[Any]:
        """Around one event, which only the current consumer applies in a scope of its own."""
        if scopes.current() is not None:
            return wrapped(*args, **kwargs)
        return self._in_scope(wrapped, args, kwargs)

    async def _in_scope(self, wrapped: Method, args: Any, kwargs: Any) -> Any:
        event = args[0] if args else kwargs.get("event")
        applied = event if event_kind(event) is not None else None
        with scopes.entered(Scope(c.FROM_EXECUTOR, event=applied)):
            return await wrapped(*args, **kwargs)
