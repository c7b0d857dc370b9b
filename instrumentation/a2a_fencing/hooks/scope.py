"""Why the SDK is doing what it does right now: which turn, whose wish, which event.

The SDK's consumer task lives in the context of the *first* request it served, so the ambient span says
nothing about later turns. What belongs to a turn is therefore kept with the turn's own RequestContext
and looked up when the SDK works for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import Span

from a2a_fencing.facts import TaskKey


class Turn:
    """One request that an executor works on.

    Attributes:
        parent: OTel context of the request that caused it.
        inside: OTel context with the execution's span, once it runs; our spans go under it.
        span: The execution's span while it runs.
        execution_id: Id of the fact that recorded its start.
        token: Fencing token of the execution.
        key: The task it works on, once a handler that knows the store has seen it.
        writer: Label of that store object.
    """

    __slots__ = (
        "__weakref__",
        "execution_id",
        "inside",
        "key",
        "parent",
        "span",
        "token",
        "writer",
    )

    def __init__(self, parent: Context) -> None:
        self.parent = parent
        self.inside: Context | None = None
        self.span: Span | None = None
        self.execution_id: str | None = None
        self.token: int | None = None
        self.key: TaskKey | None = None
        self.writer: str | None = None

    @property
    def context(self) -> Context:
        """Where spans made on behalf of this turn belong."""
        return self.inside if self.inside is not None else self.parent


class Scope:
    """What the current coroutine does on the SDK's behalf.

    Attributes:
        origin: Origin of the writes made here (`conventions.WRITE_ORIGINS`).
        turn: The turn it is done for, if one is known.
        event: The executor's event being applied, if one is.
        read_as: Origin to record the next read under, or None when reads decide nothing here.
        writes: Logical writes begun here.
        applied: Whether the event went all the way to store and readers.
    """

    __slots__ = ("applied", "event", "origin", "read_as", "turn", "writes")

    def __init__(
        self,
        origin: str,
        *,
        turn: Turn | None = None,
        event: Any = None,
        read_as: str | None = None,
    ) -> None:
        self.origin = origin
        self.turn = turn
        self.event = event
        self.read_as = read_as
        self.writes = 0
        self.applied = False


_scope: ContextVar[Scope | None] = ContextVar("a2a_fencing_scope", default=None)
_turns: weakref.WeakKeyDictionary[Any, Turn] = weakref.WeakKeyDictionary()


def current() -> Scope | None:
    """The innermost scope, or None outside the SDK's own work."""
    return _scope.get()


@contextmanager
def entered(scope: Scope) -> Iterator[Scope]:
    """Makes `scope` current while the block runs. Not across a generator's ``yield``."""
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def turn_of(request_context: Any) -> Turn:
    """The turn of a RequestContext; made from the ambient OTel context when seen first."""
    turn = _turns.get(request_context)
    if turn is None:
        turn = _turns[request_context] = Turn(otel_context.get_current())
    return turn
