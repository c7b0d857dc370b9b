"""Threads that an executor starts: they go on in its OTel context, which the standard library forgets.

Only work begun inside an execution is concerned, so a host's other threads trace as they always did.
(``opentelemetry-instrumentation-threading`` would carry the context of every thread of the process.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from opentelemetry import context as otel_context

from a2a_fencing import recorder
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.patches import Patches

# A pool starts its threads while it takes work; they outlive the execution and serve others too.
_pooling: ContextVar[bool] = ContextVar("a2a_fencing_pooling", default=False)


class ThreadHooks:
    """What happens around threads and thread pools."""

    def install(self, patches: Patches) -> None:
        """Hooks the standard library's ways to start work on another thread."""
        patches.wrap(threading.Thread, "start", self.start)
        patches.wrap(ThreadPoolExecutor, "submit", self.submit)

    def start(self, wrapped: Callable[[], None], thread: Any, args: Any, kwargs: Any) -> None:
        """Around the start of a thread."""
        if recorder.active() is not None and not _pooling.get() and scopes.turn_in() is not None:
            thread.run = _carried(thread.run)
        wrapped(*args, **kwargs)

    def submit(self, wrapped: Callable[..., Any], pool: Any, args: Any, kwargs: Any) -> Any:
        """Around work handed to a pool."""
        if recorder.active() is None or scopes.turn_in() is None or not args:
            return wrapped(*args, **kwargs)
        token = _pooling.set(True)
        try:
            return wrapped(_carried(args[0]), *args[1:], **kwargs)
        finally:
            _pooling.reset(token)


def _carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, to be run in the context of now."""
    context = otel_context.get_current()

    def run(*args: Any, **kwargs: Any) -> Any:
        token = otel_context.attach(context)
        try:
            return function(*args, **kwargs)
        finally:
            otel_context.detach(token)

    return run
