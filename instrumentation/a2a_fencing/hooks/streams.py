"""What one client's stream has carried so far, and whether the SDK threw its subscriber out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing.hooks.leaving import restore
from a2a_fencing.hooks.tasks import event_kind, event_state


class StreamWatch:
    """One stream to one client.

    Attributes:
        last: The newest status or task event, or else the first event; None before any.
        state: The newest state the client was told.
        message: Whether the agent answered with a Message.
        evicted: Whether the subscriber fell behind and was dropped.
    """

    __slots__ = ("__weakref__", "evicted", "last", "message", "state")

    def __init__(self) -> None:
        self.last: Any = None
        self.state: str | None = None
        self.message = False
        self.evicted = False

    def saw(self, event: Any) -> None:
        """Takes note of an event on its way to the client."""
        state = event_state(event)
        if state is not None or self.last is None:
            self.last = event
        self.state = state or self.state
        self.message = self.message or event_kind(event) == c.MESSAGE_EVENT


_watch: ContextVar[StreamWatch | None] = ContextVar("a2a_fencing_stream", default=None)


def current() -> StreamWatch | None:
    """The stream that is being advanced right now, or None."""
    return _watch.get()


@contextmanager
def watching(watch: StreamWatch) -> Iterator[None]:
    """Makes `watch` current for one step of its stream."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        restore(_watch, token)
