"""One logical write under way, through however many layers of ``save`` it passes.

The outermost call is what the caller got; the innermost is what the store did. They differ when an
adapter swallows, translates or refuses.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, Tracer

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey, Version
from a2a_fencing.hooks.leaving import restore
from a2a_fencing.hooks.memory import TaskRecord
from a2a_fencing.hooks.scope import Turn
from a2a_fencing.hooks.sdk import ConcurrentTaskModificationError
from a2a_fencing.hooks.tasks import event_kind, state_of

_TRY = "_save_once"
"""The SDK's method that is one try."""

_STORED_NOTHING_TO_TELL = True
"""What an innermost layer that returns None is taken to have returned: it did store."""


class Write:
    """A logical write.

    Args:
        store: The outermost store object.
        task: The task to be stored.
        context: The caller's ServerCallContext.
        record: What is known of the task.
        writer: Who writes.
        base: Version it was derived from.
        event: The event behind it, or None.
        origin: Who caused it (`conventions.WRITE_ORIGINS`).
        turn: The turn it is done for, or None.
        tracer: Makes its span.
        above: Where that span belongs.

    Attributes:
        key: Which task it is.
        base_state: State that the store held at the base version, if this process knows.
        base_fact: The fact that says so, if one does.
        attempt: Which try is under way or decided it: an outer layer may call an inner one again, a
            store may try again.
        open_try: The latest try that failed without being refused, so that it may be stored; 0: none.
        told: Whether the last fact of it is on its way.
        stored: What the innermost layer returned, or None when it did not return.
        inner_error: What the innermost layer raised, or None.
        state: State to be stored; the task object itself may change meanwhile.
        event_kind: Kind of that event, or None.
        context_id: A2A context id of the task.
        ended: Whether the outermost call is over; a task that it started may live on in its context.
    """

    open_try = 0
    told = False
    stored: Any = None
    inner_error: BaseException | None = None
    ended = False
    attempt = 1
    _span: Span | None = None
    _depth = 0
    _called = False
    _repeated: BaseException | None = None

    def __init__(
        self,
        store: Any,
        task: Any,
        context: Any,
        record: TaskRecord,
        writer: str | None,
        base: Version,
        event: Any,
        origin: str,
        turn: Turn | None,
        tracer: Tracer,
        above: Context,
    ) -> None:
        self.store = store
        self.task = task
        self.context = context
        self.record = record
        self.key: TaskKey = record.key
        self.writer = writer
        self.state = state_of(task)
        self.context_id: str | None = task.context_id or None
        self.base = base
        self.base_state, self.base_fact = record.held(base)
        self.event_kind = event_kind(event)
        self.origin = origin
        self.turn = turn
        self._tracer = tracer
        self._above = above
        self._started_unix_nano = time.time_ns()
        self.started_ns = time.perf_counter_ns()

    @property
    def span(self) -> Span:
        """Records it. Made when first asked for: that may be when it is all over, as long as nothing
        belongs under it.
        """
        if self._span is None:
            self._span = self._tracer.start_span(
                c.SPAN_SAVE,
                context=self._above,
                start_time=self._started_unix_nano,
                attributes={"a2a.task.id": self.key.task_id},
            )
        return self._span

    def begin_span(self) -> None:
        """Makes its span now, as more than its last fact is to be told of it: two threads might else
        make one each.
        """
        _ = self.span

    def end_span(self, end_time: int) -> None:
        """Ends its span, at a time in ns since 1970."""
        self.span.end(end_time)

    def rest_on(self, base: Version) -> None:
        """Bases it on another version, as an outer layer may when it tries again."""
        self.base = base
        self.base_state, self.base_fact = self.record.held(base)

    @property
    def was_stored(self) -> bool:
        """Whether the innermost layer succeeded, whatever an outer one made of it."""
        return self.stored is not None

    def failed_once(self, error: BaseException) -> None:
        """Notes that a try failed after which the store thinks of another one."""
        self.open_try = self.attempt
        self._repeated = error
        self.attempt += 1

    def failed(self, error: BaseException) -> None:
        """Notes how a call of the store ended that did not succeed."""
        if error is self._repeated or (self._repeated is not None and not _in_a_try(error)):
            self._repeated = None  # it gave up or was cancelled first, so there was no other try
            self.attempt -= 1
        elif not isinstance(error, ConcurrentTaskModificationError):
            self.open_try = self.attempt

    async def layer(self, save: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> Any:
        """Passes a save inside this save on, and notes what the innermost one did."""
        self._depth += 1
        if self._depth == 1:
            self.attempt += self._called
            self._called = True
        self.inner_error = None
        self.stored = innermost = object()
        try:
            result = await save(*args, **kwargs)
            if self.stored is innermost:
                self.stored = result if result is not None else _STORED_NOTHING_TO_TELL
            return result
        except BaseException as error:
            if self.stored is innermost:
                self.stored, self.inner_error = None, error
                self.failed(error)
            raise
        finally:
            self._depth -= 1


def _in_a_try(error: BaseException) -> bool:
    """Whether an error came out of a try of the SDK's store, and not out of its pause before one."""
    return any(frame.f_code.co_name == _TRY for frame, _ in traceback.walk_tb(error.__traceback__))


_current: ContextVar[Write | None] = ContextVar("a2a_fencing_write", default=None)


latest = _current.get
"""The write that is or was under way in this context, or None."""


def current() -> Write | None:
    """The write that is under way in this context, or None."""
    write = _current.get()
    return None if write is None or write.ended else write


enter = _current.set


def leave(write: Write, token: Token[Write | None]) -> None:
    """Ends a write. What is still to be told of it does not keep the task alive."""
    write.ended = True
    write.store = write.task = write.context = write.turn = None
    restore(_current, token)


_inside: ContextVar[bool] = ContextVar("a2a_fencing_inside_store", default=False)


is_inside_store = _inside.get
"""Whether a call into a store is under way, so that what it calls in turn is part of it."""


def enter_store() -> Token[bool]:
    """Marks a call into a store until `leave_store` gets what this returns."""
    return _inside.set(True)


def leave_store(token: Token[bool]) -> None:
    """Ends a call into a store."""
    restore(_inside, token)


@contextmanager
def inside_store() -> Iterator[None]:
    """Marks a call into a store, or a read of our own, while the block runs."""
    token = enter_store()
    try:
        yield
    finally:
        leave_store(token)
