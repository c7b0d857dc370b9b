"""A fact is made here: numbered, stamped, and handed to whatever carries it on.

Sinks carry facts: to a log event, a span event, a metric, a list in a test. They are called on the
host's own thread, at once or by the batch, and must be quick; one that fails is accounted for and does
not stop the others.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, Tracer

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.backlog import Backlog
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing.replica import Replica
from a2a_fencing.spans import LightSpan

# The fact of its start names an execution or a dispatch: no second id to make and to send.
_NAMED_BY_START = {c.EXECUTION: "execution_id", c.DISPATCH: "dispatch_id"}

Sink = Callable[[Fact, "Span | None"], None]
"""Takes a fact and the span that records it, if one is open."""

Stamp = tuple[str, int]
"""Id of a fact, and when it was observed, ns since 1970."""

Confirmation = Callable[[float], "str | None"]
"""Waits so many seconds for what was recorded meanwhile to be safe; None, or what prevented it."""

_log = logging.getLogger("a2a_fencing")


class Recorder:
    """Numbers the facts of one replica and hands them to its sinks.

    Args:
        replica: Whose facts these are.
        sinks: Called in order with each fact.
        tracer: Makes our spans (execute, save, cancel, dispatch).
        clock: Wall clock, ns since 1970.
        nests: Whether others may make spans under ours, so that ours must be the ambient one meanwhile.
        span_per_fact: Give a fact that no span records a span of its own, so that an endpoint which
            takes only traces still gets every fact.
        confirmation: Makes what waits for recorded facts to be safe.
        backlog: Where sinks that are in no hurry wait for a batch of facts.
    """

    def __init__(
        self,
        replica: Replica,
        sinks: Sequence[Sink] = (),
        *,
        tracer: Tracer | None = None,
        clock: Callable[[], int] = time.time_ns,
        nests: bool = True,
        span_per_fact: bool = False,
        confirmation: Callable[[], Confirmation] = lambda: lambda timeout_s: None,
        backlog: Backlog | None = None,
    ) -> None:
        self.replica = replica
        self.confirmation = confirmation
        self.tracer = tracer or trace.NoOpTracer()
        self.nests = nests
        self.span_per_fact = span_per_fact
        self._sinks = tuple(sinks)
        self.later: Callable[..., None] = backlog.later if backlog is not None else _at_once
        """Calls a function with arguments, now or with a batch of others, in their order."""
        self._numbers = itertools.count(1)
        self._last = 0
        self._clock = clock
        self._prefix = replica.id + ":"

    @property
    def last(self) -> int:
        """Number of the newest fact, 0 before the first."""
        return self._last

    def writer(self, store_number: int) -> str:
        """The writer label of the process's k-th store object."""
        return f"{self.replica.id}/{store_number}"

    def record(self, kind: str, span: Span | None = None, /, **values: Any) -> Fact:
        """Makes a fact of this kind and sends it on.

        Args:
            kind: One of `conventions.KINDS`.
            span: The open span that records it.
            **values: Fields of `Fact`.
        """
        own_span = None
        if span is None and self.span_per_fact:
            span = own_span = self.tracer.start_span(kind)
        fact_id, time_unix_nano = self.stamp()
        fact = self._make(kind, fact_id, time_unix_nano, span, values)
        self.later(self._carry, fact, span)
        if own_span is not None:
            own_span.end()
        return fact

    def stamp(self) -> Stamp:
        """Id and time of a fact that is observed now; what it says may be put together later."""
        # One bytecode-atomic step makes the number unique; no lock on the host's path.
        number = next(self._numbers)
        self._last = number
        return self._prefix + str(number), self._clock()

    def tell(
        self, kind: str, fact_id: str, time_unix_nano: int, span: Span | None, values: dict[str, Any]
    ) -> None:
        """Makes a fact that was stamped before, owning `values`, and sends it on."""
        self._carry(self._make(kind, fact_id, time_unix_nano, span, values), span)

    def _make(
        self, kind: str, fact_id: str, time_unix_nano: int, span: Span | None, values: dict[str, Any]
    ) -> Fact:
        values["id"] = fact_id
        values["time_unix_nano"] = time_unix_nano
        values["kind"] = kind
        identity = _NAMED_BY_START.get(kind)
        if identity is not None:
            values.setdefault(identity, values["id"])
        values["replica"] = self.replica.id
        if type(span) is LightSpan:
            values["trace_id"], values["span_id"] = span.trace_hex, span.span_bytes.hex()
        elif span is not None:
            context = span.get_span_context()
            if context.is_valid:
                values["trace_id"] = f"{context.trace_id:032x}"
                values["span_id"] = f"{context.span_id:016x}"
        return Fact.build(values)

    def _carry(self, fact: Fact, span: Span | None) -> None:
        for sink in self._sinks:
            try:
                sink(fact, span)
            except Exception as error:
                internal_errors.report(f"sink {getattr(sink, '__qualname__', sink)!s}", error)

    def violation(
        self, span: Span | None, *, task: TaskKey, rule: str, witness: tuple[str, ...], **values: Any
    ) -> Fact:
        """Records what this process can prove alone, and says so in the host's log."""
        fact = self.record(c.VIOLATION, span, task=task, rule=rule, witness=witness, **values)
        _log.error(
            "%s: task %r was %s and became %s",
            rule,
            task.task_id,
            values.get("base_state"),
            values.get("state"),
        )
        return fact


def _at_once(work: Callable[..., None], *args: Any) -> None:
    try:
        work(*args)
    except Exception as error:
        internal_errors.report(f"{getattr(work, '__qualname__', work)!s}", error)


_active: list[Recorder | None] = [None]

active: Callable[[], Recorder | None] = partial(itemgetter(0), _active)
"""The recorder that hooks write to, or None while nothing is instrumented.

Every hook begins with this, so it is a call into C: one of Python's own costs several times as much.
"""


def activate(recorder: Recorder | None) -> Recorder | None:
    """Makes `recorder` the one that hooks write to; returns the previous one."""
    previous, _active[0] = _active[0], recorder
    return previous
