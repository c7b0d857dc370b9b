"""Dispatches seen without a word from the user: every CLIENT or PRODUCER span of an executor's context.

A client span inside another (an HTTP request of an LLM client, say) is an attempt of the outer one; so
is one that repeats a sibling that did not succeed. Every span of an executor's context is given the task
id, so that a trace is found by its task.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanKind

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors, recorder
from a2a_fencing.hooks import dispatch as dispatches
from a2a_fencing.hooks import scope as scopes
from a2a_fencing.hooks.dispatch import Dispatching
from a2a_fencing.hooks.dispatch_outcome import CallOutcome, outcome_of
from a2a_fencing.hooks.patches import Patches
from a2a_fencing.hooks.scope import Turn
from a2a_fencing.recorder import Recorder

_OUTGOING = frozenset({SpanKind.CLIENT, SpanKind.PRODUCER})
_DATABASE = ("db.system.name", "db.system")
_URLS = ("url.full", "http.url")
_HOSTS = ("server.address", "net.peer.name")
_TARGETS = (*_URLS, *_HOSTS, "rpc.method", "messaging.destination.name")
_TAKING = frozenset({"receive", "process", "settle"})
"""Messaging operations that take something in instead of sending it out."""

_NOT_CALLS = frozenset({c.SCOPE, "a2a-python-sdk"})
"""Scopes whose spans are no calls: ours, and the SDK's, whose CLIENT spans also cover ``close`` and end
before a stream's request is sent. The HTTP or gRPC client below it is what tells."""

_OPEN_SPANS = 4096
_REPEATABLE = 32


class DispatchSpans:
    """Watches the application's tracing for what executors send out."""

    def __init__(self) -> None:
        self._patches: Patches | None = None

    def install(self, patches: Patches) -> None:
        """Starts with the provider the application has now; `watch_application` looks again."""
        self._patches = patches
        self._sampling = False
        self.watch_application()

    def watch_application(self) -> None:
        """Watches the application's tracer provider, which it may have set up since the last look."""
        provider = trace.get_tracer_provider()
        if isinstance(provider, TracerProvider):
            self.watch(provider)
            rec = recorder.active()
            if rec is not None:
                rec.nests = True

    def watch(self, provider: TracerProvider) -> None:
        """Watches a provider's spans. The processor stays with it and does nothing while we are off."""
        if provider not in _watched:
            _watched.add(provider)
            provider.add_span_processor(_processor)
        if not self._sampling and self._patches is not None:
            self._sampling = True
            self._patches.wrap_overrides(Sampler, "should_sample", _should_sample)


def _should_sample(wrapped: Callable[..., Any], sampler: Any, args: Any, kwargs: Any) -> Any:
    """Around a sampler: an executor's outgoing call that is not sampled is still recorded here.

    RECORD_ONLY shows the span to processors and exports it nowhere; its trace flags stay unsampled.
    """
    result = wrapped(*args, **kwargs)
    try:
        if result.decision is not Decision.DROP or recorder.active() is None:
            return result
        given = dict(
            zip(("parent_context", "trace_id", "name", "kind", "attributes"), args, strict=False)
        )
        given.update(kwargs)
        if given.get("kind") in _OUTGOING and scopes.turn_in(given.get("parent_context")) is not None:
            return SamplingResult(Decision.RECORD_ONLY, given.get("attributes"), result.trace_state)
    except Exception as error:
        internal_errors.report("sampling of a dispatch", error)
    return result


class _Call(NamedTuple):
    """A client's call under way.

    Attributes:
        dispatching: What it belongs to.
        repeatable_as: Set on the span that is the dispatch itself; what a repetition would look like.
        cancelled_before: Whether it began while a cancellation was being handled.
        between: Set on spans between an outer and an inner call.
    """

    dispatching: Dispatching
    turn: Turn | None = None
    repeatable_as: tuple[Any, ...] | None = None
    cancelled_before: bool = False
    between: bool = False


class _Processor(SpanProcessor):
    """Follows the spans of executors' contexts."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._repeatable: weakref.WeakKeyDictionary[Turn, OrderedDict[Any, Dispatching]] = (
            weakref.WeakKeyDictionary()
        )

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        rec = recorder.active()
        if rec is None:
            return
        try:
            self._started(rec, span, parent_context)
        except Exception as error:
            internal_errors.report("start of a span", error)

    def on_end(self, span: ReadableSpan) -> None:
        if not self._calls:
            return
        try:
            context = span.get_span_context()
            call = self._calls.pop(context.span_id, None) if context is not None else None
            if call is not None and not call.between:
                self._ended(span, call)
        except Exception as error:
            internal_errors.report("end of a span", error)

    # --- start ---

    def _started(self, rec: Recorder, span: Span, parent_context: Context | None) -> None:
        outgoing = span.kind in _OUTGOING
        turn, certain = scopes.turn_in(parent_context), True
        if turn is None and outgoing and span.parent is not None:
            turn, certain = scopes.turn_of_parent(span.parent)
        if turn is None:
            turn, certain = scopes.turn_in(), False
        if turn is None:
            return
        if turn.task_id:
            span.set_attribute("a2a.task.id", turn.task_id)
        outer = self._calls.get(_parent_id(span))
        if outgoing and _calls_out(span):
            call = self._call(rec, turn, span, parent_context, outer, not certain)
            if call.dispatching.id is not None:
                span.set_attribute("a2a.fencing.dispatch.id", call.dispatching.id)
            self._keep(span, call)
        elif outer is not None:
            self._keep(span, outer._replace(between=True))

    def _call(
        self,
        rec: Recorder,
        turn: Turn,
        span: Span,
        parent_context: Context | None,
        outer: _Call | None,
        unparented: bool,
    ) -> _Call:
        cancelled = _cancelled_now()
        around = dispatches.dispatching_in(parent_context)
        if around is None and outer is not None and not outer.dispatching.ended:
            around = outer.dispatching
        if around is not None:
            around.call_started()
            return _Call(around, cancelled_before=cancelled)
        looks = (_parent_id(span), span.name, *(_attribute(span, name) for name in _TARGETS))
        repeatable = self._repeatable.get(turn)
        dispatching = repeatable.pop(looks, None) if repeatable is not None else None
        if dispatching is None:
            dispatching = Dispatching(rec, turn, name=_name(span), unparented=unparented)
        dispatching.start()
        return _Call(dispatching, turn, looks, cancelled)

    def _keep(self, span: Span, call: _Call) -> None:
        if len(self._calls) >= _OPEN_SPANS:
            self._calls.pop(next(iter(self._calls)), None)  # a span that nobody ends
        self._calls[span.get_span_context().span_id] = call

    # --- end ---

    def _ended(self, span: ReadableSpan, call: _Call) -> None:
        result = outcome_of(span, interrupted=_cancelled_now() and not call.cancelled_before)
        dispatching = call.dispatching
        if call.turn is None or call.repeatable_as is None:
            dispatching.call_ended(*result)
            return
        # The calls inside know whether the receiver was reached, the outer one what it made of it:
        # accepted is what both call accepted.
        inner = dispatching.outcome
        if inner is not None and inner != c.ACCEPTED:
            result = CallOutcome(inner)
        dispatching.end(*result)
        if result.outcome != c.ACCEPTED:
            repeatable = self._repeatable.setdefault(call.turn, OrderedDict())
            repeatable[call.repeatable_as] = dispatching
            if len(repeatable) > _REPEATABLE:
                repeatable.popitem(last=False)


def _calls_out(span: Span) -> bool:
    scope = span.instrumentation_scope
    return not (
        (scope is not None and scope.name in _NOT_CALLS)
        or any(_attribute(span, name) is not None for name in _DATABASE)
        or _attribute(span, "messaging.operation.type") in _TAKING
    )


def _name(span: Span) -> str:
    """The span's name and, for HTTP, whom it calls; never a path, which may hold anything."""
    host = next((found for name in _HOSTS if (found := _attribute(span, name))), None)
    if host is None:
        url = next((found for name in _URLS if (found := _attribute(span, name))), None)
        host = urlsplit(str(url)).hostname if url else None
    spoke_http = _attribute(span, "http.request.method") or _attribute(span, "http.method")
    return f"{span.name} {host}" if host and spoke_http else span.name


def _attribute(span: Span, name: str) -> Any:
    attributes = span.attributes
    return attributes.get(name) if attributes else None


def _parent_id(span: Span) -> int:
    return span.parent.span_id if span.parent is not None else 0


def _cancelled_now() -> bool:
    """Whether a cancellation is passing through right now: OTel records none on the span it ends."""
    return isinstance(sys.exc_info()[1], asyncio.CancelledError | GeneratorExit)


_processor = _Processor()
_watched: weakref.WeakSet[TracerProvider] = weakref.WeakSet()
