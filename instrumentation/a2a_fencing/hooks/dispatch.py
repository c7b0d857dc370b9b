"""One dispatch to the outside world: its attempts, and a fact for the start and the end of each.

Who reports it may be the user (``a2a_fencing.dispatch``), a client's own spans, or both: then the spans
inside the user's block are the block's attempts, and the user has the last word.
"""

from __future__ import annotations

import threading
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import Span

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing.hooks.scope import Turn
from a2a_fencing.recorder import Recorder

_DISPATCH = otel_context.create_key("a2a-fencing-dispatch")

_MAY_BE_REPEATED = frozenset({c.DISPATCH_FAILED, c.DISPATCH_REJECTED, c.UNKNOWN})


class Dispatching:
    """A dispatch under way.

    Calls of clients may begin and end on any thread.

    Args:
        recorder: Where its facts go.
        turn: The turn whose executor dispatches.
        name: What is dispatched.
        key: Logical key, or None.
        span: Our own span that records it; None: the execution's.
        unparented: Whether the execution could not be told.

    Attributes:
        id: Id of the fact that recorded its start; groups the attempts.
        attempt: Number of the current attempt, from 1; 0 before the first.
        ended: Whether the last attempt has ended.
        outcome: Outcome of the call that ended last within the current attempt, or None.
    """

    def __init__(
        self,
        recorder: Recorder,
        turn: Turn,
        *,
        name: str,
        key: str | None = None,
        span: Span | None = None,
        unparented: bool = False,
    ) -> None:
        self._recorder = recorder
        self._turn = turn
        self._span = span
        self._lock = threading.RLock()
        self._calls = 0
        self._error_type: str | None = None
        self._about: dict[str, Any] = {
            "task": turn.key,
            "writer": turn.writer,
            "execution_id": None if unparented else turn.execution_id,
            "token": None if unparented else turn.token,
            "name": name,
            "key": key,
            "unparented": True if unparented else None,
        }
        self.id: str | None = None
        self.attempt = 0
        self.ended = True
        self.outcome: str | None = None

    def start(self) -> Fact:
        """Begins the first attempt, or the next one."""
        with self._lock:
            self.attempt += 1
            self.ended = False
            self.outcome = self._error_type = None
            turn = self._turn
            fact = self._record(phase=c.STARTED, state=turn.state, version=turn.version)
            self._about["dispatch_id"] = self.id = fact.dispatch_id
            return fact

    def end(self, outcome: str | None = None, error_type: str | None = None) -> None:
        """Ends the current attempt; does nothing when it has ended.

        Args:
            outcome: One of `conventions.DISPATCH_OUTCOMES`; None: what the calls inside came to.
            error_type: Name of the exception behind it.
        """
        with self._lock:
            if self.ended:
                return
            self.ended = True
            self.outcome = outcome or self.outcome or c.UNKNOWN
            self._record(phase=c.ENDED, outcome=self.outcome, error_type=error_type or self._error_type)

    def retry(self, outcome: str | None = None, error_type: str | None = None) -> None:
        """Ends the current attempt and begins the next one."""
        with self._lock:
            self.end(outcome, error_type)
            self.start()

    def call_started(self) -> None:
        """A client inside began to call: after a call that did not succeed, that is another attempt."""
        with self._lock:
            if not self._calls and self.outcome in _MAY_BE_REPEATED:
                self.retry()
            self._calls += 1

    def call_ended(self, outcome: str, error_type: str | None) -> None:
        """A client inside ended its call."""
        with self._lock:
            self._calls -= 1
            if not self.ended:
                self.outcome, self._error_type = outcome, error_type

    def _record(self, **values: Any) -> Fact:
        return self._recorder.record(
            c.DISPATCH,
            self._span or self._turn.span,
            attempt=self.attempt,
            **self._about,
            **values,
        )


def inside(dispatching: Dispatching, context: Context) -> Context:
    """`context` with the dispatch that calls made in it are attempts of."""
    return otel_context.set_value(_DISPATCH, dispatching, context)


def dispatching_in(context: Context | None = None) -> Dispatching | None:
    """The dispatch under way in this OTel context (None: the current one), or None."""
    found = otel_context.get_value(_DISPATCH, context)
    return found if isinstance(found, Dispatching) and not found.ended else None
