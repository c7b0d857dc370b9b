"""Why the SDK is doing what it does right now: which turn, whose wish, which event.

The SDK's consumer task lives in the context of the *first* request it served, so the ambient span says
nothing about later turns. What belongs to a turn is therefore kept with the turn's own RequestContext
and looked up when the SDK works for it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext

from a2a_fencing.facts import TaskKey, Version
from a2a_fencing.hooks.leaving import restore
from a2a_fencing.recorder import Recorder


class Turn:
    """One request that an executor works on.

    Attributes:
        parent: OTel context of the request that caused it.
        inside: OTel context with the execution's span, once it runs; our spans go under it.
        span: The execution's span while it runs.
        execution_id: Id of the fact that recorded its start.
        token: Fencing token of the execution; None where the store gives no order to take it from.
        key: The task it works on, once a handler that knows the store has seen it.
        writer: Label of that store object.
        task_id: The task's id as the request says.
        named_by: The recorder that was active when `key` and `writer` were given.
        store, call_context: How the task is read again.
        manager: The SDK's TaskManager for it, which knows the version that was read.
        version, state: What the execution believes is stored: what it started from, then what its own
            events became.
        saving: Saves of its events under way now.
        waiting: Who waits until there is none.
    """

    __slots__ = (
        "__weakref__",
        "call_context",
        "execution_id",
        "inside",
        "key",
        "manager",
        "named_by",
        "parent",
        "saving",
        "span",
        "state",
        "store",
        "task_id",
        "token",
        "version",
        "waiting",
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
        self.named_by: Recorder | None = None
        self.task_id: str | None = None
        self.store: Any = None
        self.call_context: Any = None
        self.manager: Any = None
        self.version: Version = None
        self.state: str | None = None
        self.saving = 0
        self.waiting: list[asyncio.Future[None]] = []

    @property
    def context(self) -> Context:
        """Where spans made on behalf of this turn belong."""
        return self.inside if self.inside is not None else self.parent

    def own_key(self, named_by: Recorder, store: Any, call_context: Any, task_id: str) -> TaskKey | None:
        """Its task's key, where it is this task, asked for in the way that was used to name it."""
        key = self.key
        if (
            named_by is self.named_by
            and store is self.store
            and call_context is self.call_context
            and key is not None
            and key.task_id == task_id
        ):
            return key
        return None

    def saved(self) -> None:
        """Wakes who waits for the last save that counted in `saving`, where that has ended."""
        if not self.saving:
            waiting, self.waiting = self.waiting, []
            for future in waiting:
                future.get_loop().call_soon_threadsafe(_wake, future)

    async def settled(self) -> None:
        """Waits until no save of its events is under way."""
        if self.saving:
            future = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future


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


_TURN = otel_context.create_key("a2a-fencing-turn")

_scope: ContextVar[Scope | None] = ContextVar("a2a_fencing_scope", default=None)
_turns: weakref.WeakKeyDictionary[Any, Turn] = weakref.WeakKeyDictionary()
_executing: dict[int, set[Turn]] = {}
"""Turns whose execution runs now, by its trace id."""


current = _scope.get
"""The innermost scope, or None outside the SDK's own work."""

enter = _scope.set
"""Makes a scope current until `leave` gets what this returns. Not across a generator's ``yield``."""


def leave(token: Token[Scope | None]) -> None:
    """Makes the scope current again that was before."""
    restore(_scope, token)


@contextmanager
def entered(scope: Scope) -> Iterator[None]:
    """Makes a scope current while the block runs; where each event passes, `enter` costs a fifth."""
    token = enter(scope)
    try:
        yield
    finally:
        leave(token)


def turn_of(request_context: Any) -> Turn:
    """The turn of a RequestContext; made from the ambient OTel context when seen first."""
    turn = _turns.get(request_context)
    if turn is None:
        turn = _turns[request_context] = Turn(otel_context.get_current())
    return turn


def inside(turn: Turn, context: Context) -> Context:
    """`context` with the turn whose execution it belongs to.

    It is OTel's context that carries the turn, so that whatever propagates that (child tasks,
    ``gather``, ``asyncio.to_thread``, instrumented thread pools) propagates the turn too.
    """
    return otel_context.set_value(_TURN, turn, context)


def turn_in(context: Context | None = None) -> Turn | None:
    """The turn whose execution this OTel context (None: the current one) belongs to, or None."""
    turn = otel_context.get_value(_TURN, context)
    return turn if isinstance(turn, Turn) else None


def begins(turn: Turn) -> None:
    """Makes a turn findable by its trace while it executes."""
    _executing.setdefault(_trace_id(turn), set()).add(turn)


def ends(turn: Turn) -> None:
    """Makes it so no more."""
    trace_id = _trace_id(turn)
    turns = _executing.get(trace_id, set())
    turns.discard(turn)
    if not turns:
        _executing.pop(trace_id, None)


def _trace_id(turn: Turn) -> int:
    return turn.span.get_span_context().trace_id if turn.span is not None else 0


def turn_of_parent(parent: SpanContext) -> tuple[Turn | None, bool]:
    """The execution that a span with this parent belongs to, when its context did not come along.

    Returns:
        The turn, or None when no or more than one execution runs in the trace; and whether the parent
        is the execution's own span, which leaves no doubt.
    """
    turns = _executing.get(parent.trace_id, ())
    for turn in turns:
        if turn.span is not None and turn.span.get_span_context().span_id == parent.span_id:
            return turn, True
    return (next(iter(turns)), False) if len(turns) == 1 else (None, False)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
