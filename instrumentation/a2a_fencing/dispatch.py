"""Downstream dispatches in the user's words: what an executor does to the world outside.

    async with a2a_fencing.dispatch("charge-card", key="order-17") as d:
        response = await http.post(url, headers=d.headers)
        d.accepted() if response.is_success else d.rejected()

CAS protects the stored task; nothing protects the world from an executor that does not know yet that it
lost the right to act. This makes each attempt visible before it begins, gives the receiver a token to
refuse an old owner by, and lets the executor look once more at the store.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span

from a2a_fencing import conventions as c
from a2a_fencing import recorder
from a2a_fencing.facts import Version
from a2a_fencing.fencing.token import (
    IDEMPOTENCY_HEADER,
    TOKEN_HEADER,
    FencingToken,
    idempotency_key,
)
from a2a_fencing.hooks import dispatch as dispatches
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.dispatch import Dispatching
from a2a_fencing.hooks.leaving import detach
from a2a_fencing.hooks.scope import Scope, Turn
from a2a_fencing.hooks.tasks import state_of, version_of
from a2a_fencing.recorder import Recorder

_log = logging.getLogger("a2a_fencing")
_F = TypeVar("_F", bound=Callable[..., Any])

DEFAULT_TIMEOUT_S = 5.0

_NOTHING = frozenset({c.DISPATCH_REJECTED, c.DISPATCH_FAILED})


class DispatchOutsideExecutorError(RuntimeError):
    """There is no execution here that could dispatch."""


class DispatchNotDurableError(RuntimeError):
    """The attempt could not be put on record in time; nothing was dispatched."""


class StaleExecutorError(RuntimeError):
    """The task is finished, or somebody else acts on it now: this executor must not."""


def dispatch(
    name: str,
    *,
    key: str | Callable[..., str] | None = None,
    durable: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    context: Any = None,
) -> Dispatch:
    """One logical action on something outside, inside ``AgentExecutor.execute``.

    A context manager, async or not, and a decorator of functions, async or not. Leaving it without a
    word makes the outcome what the client spans inside came to, or else unknown; so does an exception.

    Args:
        name: What is done, such as ``"charge-card"``; from a small set.
        key: Names the action within the task, the same for every attempt on every replica. As a
            decorator, also a function of the call's arguments.
        durable: Enter only after the receiver of facts has acknowledged the attempt, so that it is
            evidence even when this process is killed.
        timeout_s: Longest wait for that, s.
        context: The executor's RequestContext, where the block runs outside the execution's own
            context: on a thread or task that was not started by it.

    Raises:
        DispatchOutsideExecutorError: On entering: there is no execution here.
        DispatchNotDurableError: On entering, with `durable`: nobody acknowledged in time.
    """
    return Dispatch(name, key=key, durable=durable, timeout_s=timeout_s, context=context)


def current() -> Dispatch:
    """The innermost dispatch here, for a decorated function that has a word to say.

    Raises:
        DispatchOutsideExecutorError: There is none.
    """
    found = otel_context.get_value(_CURRENT)
    if not isinstance(found, Dispatch):
        raise DispatchOutsideExecutorError(
            "there is no dispatch here: enter one, or decorate a function"
        )
    return found


class Dispatch:
    """A dispatch; made by `dispatch`."""

    def __init__(
        self,
        name: str,
        *,
        key: str | Callable[..., str] | None,
        durable: bool,
        timeout_s: float,
        context: Any,
    ) -> None:
        self.name = name
        self._key = key
        self._durable = durable
        self._timeout_s = timeout_s
        self._request = context
        self._turn: Turn | None = None
        self._dispatching: Dispatching | None = None
        self._span: Span | None = None
        self._attached: Any = None
        self._said: str | None = None
        self._entered = False

    # --- what the receiver is sent ---

    @property
    def key(self) -> str | None:
        """Names the action within the task, or None."""
        return None if callable(self._key) else self._key

    @property
    def token(self) -> int | None:
        """The execution's fencing token; None where the store gives no order to take one from."""
        return self._turn.token if self._turn is not None else None

    @property
    def attempt(self) -> int:
        """Number of the current attempt, from 1; 0 where nothing is instrumented."""
        return self._dispatching.attempt if self._dispatching is not None else 0

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers: the fencing token, and an idempotency key when the dispatch has a key."""
        turn, dispatching = self._turn, self._dispatching
        if turn is None or dispatching is None or turn.key is None:
            return {}
        headers = {}
        if turn.token is not None:
            token = FencingToken.of(
                turn.key, turn.token, dispatch_id=dispatching.id, attempt=dispatching.attempt
            )
            headers[TOKEN_HEADER] = token.to_header(_secret)
        else:
            _complain(turn)
        if self.key is not None:
            headers[IDEMPOTENCY_HEADER] = idempotency_key(turn.key, self.name, self.key)
        return headers

    # --- what became of it ---

    def accepted(self) -> None:
        """The receiver did it."""
        self._said = c.ACCEPTED

    def rejected(self) -> None:
        """The receiver refused."""
        self._said = c.DISPATCH_REJECTED

    def failed(self) -> None:
        """It never reached the receiver."""
        self._said = c.DISPATCH_FAILED

    def unknown(self) -> None:
        """The receiver may have done it."""
        self._said = c.UNKNOWN

    def retry(self) -> None:
        """Begins the next attempt; what was said last is the outcome of this one."""
        if self._dispatching is not None:
            self._dispatching.retry(self._said)
        self._said = None

    async def verify(self) -> None:
        """Reads the stored task once more.

        Raises:
            StaleExecutorError: It is finished or gone, or it holds a write that is not this execution's
                (which only a versioned store can tell).
        """
        turn = self._turn
        if turn is None or turn.store is None or turn.key is None:
            return
        with scopes.entered(Scope(c.DIRECT, turn=turn, read_as=c.VERIFY)):
            stored = await turn.store.get(turn.key.task_id, turn.call_context)
        task_id = turn.key.task_id
        if stored is None:
            raise StaleExecutorError(f"task {task_id!r} is not stored any more")
        state = state_of(getattr(stored, "task", stored))
        if state in c.TERMINAL_STATES:
            raise StaleExecutorError(f"task {task_id!r} is {state}")
        version = getattr(stored, "version", None)
        if _is_after(version, turn.version):
            await turn.settled()  # it may be a write of our own that has just been committed
            if _is_after(version, turn.version):
                raise StaleExecutorError(
                    f"task {task_id!r} is at version {version_of(version)}, which this execution did"
                    " not write: somebody else acts on it"
                )

    # --- entering and leaving ---

    async def __aenter__(self) -> Dispatch:
        confirm = self._begin()
        if confirm is not None:
            try:
                problem = await asyncio.to_thread(confirm, self._timeout_s)
            except BaseException as error:
                self._give_up(type(error).__qualname__)
                raise
            self._insist(problem)
        self._attach()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._leave(kind)

    def __enter__(self) -> Dispatch:
        confirm = self._begin()
        if confirm is not None:
            self._insist(confirm(self._timeout_s))
        self._attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._leave(kind)

    def __call__(self, function: _F) -> _F:
        """Makes each call of `function` such a dispatch."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def dispatched_async(*args: Any, **kwargs: Any) -> Any:
                async with self._for_call(args, kwargs):
                    return await function(*args, **kwargs)

            return cast(_F, dispatched_async)

        @functools.wraps(function)
        def dispatched(*args: Any, **kwargs: Any) -> Any:
            with self._for_call(args, kwargs):
                return function(*args, **kwargs)

        return cast(_F, dispatched)

    def _for_call(self, args: Any, kwargs: Any) -> Dispatch:
        key = self._key(*args, **kwargs) if callable(self._key) else self._key
        return Dispatch(
            self.name,
            key=key,
            durable=self._durable,
            timeout_s=self._timeout_s,
            context=self._request,
        )

    def _begin(self) -> recorder.Confirmation | None:
        """Records the first attempt; returns what to wait for before the block may run."""
        if self._entered:
            raise RuntimeError("a dispatch is entered once; make another one for the next action")
        self._entered = True
        rec = recorder.active()
        if rec is None:
            if self._durable:
                raise DispatchNotDurableError(
                    f"dispatch {self.name!r} cannot be put on record: nothing is instrumented;"
                    " call a2a_fencing.instrument() when the server starts"
                )
            return None
        turn = self._turn = self._find_turn()
        self._span = self._start_span(rec, turn)
        confirm = rec.confirmation() if self._durable else None
        self._dispatching = Dispatching(rec, turn, name=self.name, key=self.key, span=self._span)
        self._dispatching.start()
        return confirm

    def _find_turn(self) -> Turn:
        turn = scopes.turn_of(self._request) if self._request is not None else scopes.turn_in()
        if turn is None or turn.execution_id is None:
            raise DispatchOutsideExecutorError(
                f"dispatch {self.name!r} is not inside AgentExecutor.execute, so there is no task it"
                " belongs to; move it there, or pass the executor's RequestContext as context= where"
                " it runs on a thread or task that execute did not start"
            )
        return turn

    def _start_span(self, rec: Recorder, turn: Turn) -> Span:
        parent = otel_context.get_current() if scopes.turn_in() is turn else turn.context
        attributes = {"a2a.task.id": turn.task_id or "", "a2a.fencing.dispatch.name": self.name}
        return rec.tracer.start_span(c.SPAN_DISPATCH, context=parent, attributes=attributes)

    def _attach(self) -> None:
        turn, dispatching, span = self._turn, self._dispatching, self._span
        if turn is None or dispatching is None or span is None:
            return
        around = scopes.inside(turn, trace.set_span_in_context(span))
        around = dispatches.inside(dispatching, otel_context.set_value(_CURRENT, self, around))
        self._attached = otel_context.attach(around)

    def _insist(self, problem: str | None) -> None:
        if problem is not None:
            self._give_up(DispatchNotDurableError.__name__)
            raise DispatchNotDurableError(
                f"dispatch {self.name!r} was not put on record, so nothing was dispatched: {problem}"
            )

    def _give_up(self, error_type: str) -> None:
        """Ends a dispatch whose block never ran."""
        self._end(c.DISPATCH_FAILED, error_type)

    def _leave(self, kind: type[BaseException] | None) -> None:
        if self._attached is not None:
            detach(self._attached)
        outcome = self._said
        if outcome is None and kind is not None and not self._came_to_nothing():
            outcome = c.UNKNOWN
        self._end(outcome, kind.__qualname__ if kind is not None else None)

    def _came_to_nothing(self) -> bool:
        """Whether the last call inside said that the receiver did not do it."""
        return self._dispatching is not None and self._dispatching.outcome in _NOTHING

    def _end(self, outcome: str | None, error_type: str | None) -> None:
        if self._dispatching is not None:
            self._dispatching.end(outcome, error_type)
        if self._span is not None:
            self._span.end()


def _is_after(stored: Any, own: Version) -> bool:
    """Whether the store's version is later than the last one of this execution."""
    if stored is None or stored.is_missing:
        return False
    return own is None or bool(stored.is_after(type(stored)(own)))


_CURRENT = otel_context.create_key("a2a-fencing-current-dispatch")

_secret: str | None = None
_complained = False


def sign_tokens(secret: str | None) -> None:
    """Sets the secret that tokens are signed with from now on; None: they are not."""
    global _secret
    _secret = secret


def _complain(turn: Turn) -> None:
    """Says once that receivers cannot tell an old owner from a new one."""
    global _complained
    if not _complained:
        _complained = True
        _log.warning(
            "dispatches of task %r carry no fencing token: its store gives writes no whole-number"
            " version to take one from",
            turn.task_id,
        )
