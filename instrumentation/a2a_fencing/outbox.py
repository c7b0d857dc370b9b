"""The way out of the process: facts and spans wait here, bounded, and leave in the background.

The host's thread encodes and appends, by the batch. What waits is bytes, which Python's garbage
collector need not look at, as it would at thousands of objects that live for half a second. One thread
sends batches to an OTLP/HTTP endpoint and holds on to a batch until it is acknowledged or refused for
good; what overflows meanwhile is counted, never silently lost.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Span

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.backlog import Backlog
from a2a_fencing.delivery import Answer, Delivery
from a2a_fencing.encoding import (
    encode_fact,
    encode_resource,
    encode_span,
    logs_request,
    traces_request,
)
from a2a_fencing.facts import Fact
from a2a_fencing.spans import LightSpan

_log = logging.getLogger("a2a_fencing")

LOGS_PATH = "/v1/logs"
TRACES_PATH = "/v1/traces"

_INTERVAL_S = 0.5
BATCH = 2048
"""Most that leaves in one request."""
_CAPACITY = 65_536
_SPANS_EVERY = 4
"""Spans leave at one sending in so many: nobody waits for them, as they repeat what facts say."""


class Outbox:
    """Sends facts and spans to OTLP/HTTP endpoints.

    Args:
        logs_url: Where facts go as log events, or None.
        traces_url: Where spans go, or None.
        resource: What identifies this process.
        headers: Sent with each request (an ingest token, say).
        interval_s: Longest wait before a batch leaves, s.
        capacity: Facts (and, apart from them, spans) that may wait; more are lost and counted.
        backlog: What is still to be taken; worked off before anything leaves.
    """

    def __init__(
        self,
        logs_url: str | None,
        traces_url: str | None,
        resource: Resource,
        *,
        headers: Mapping[str, str] | None = None,
        interval_s: float = _INTERVAL_S,
        capacity: int = _CAPACITY,
        backlog: Backlog | None = None,
    ) -> None:
        self._logs_url = logs_url
        self._traces_url = traces_url
        self._headers = headers or {}
        self._interval_s = interval_s
        self._capacity = capacity
        self._backlog = backlog if backlog is not None else Backlog()
        self.on_traces_only: Callable[[list[Fact]], None] = lambda _facts: None
        """Called once, with the facts that no span records, when the endpoint turns out to take no log
        events."""
        self.lost = 0
        self.begin(resource)
        atexit.register(self.close)

    def begin(self, resource: Resource) -> None:
        """Starts empty: at first, and again in a forked child.

        The thread did not come along into the child, and what waited is the parent's to send.
        """
        self._backlog.forget()
        self._sender = encode_resource(resource)
        self._facts: deque[bytes] = deque()
        self._spans: deque[bytes | ReadableSpan] = deque()
        self._events: dict[int, list[bytes]] = {}
        # Facts that no span records, until it is known that the endpoint takes log events.
        self._unspanned: list[Fact] | None = None if self._logs_url is None else []
        self._wake = threading.Event()
        self._sent = threading.Condition()
        self._sending = False
        self._hurried = 0
        self._times = 0
        self._in_flight = 0
        self._settled = 0
        self._closing = False
        self._delivery = Delivery(self._headers, self._in_trouble)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    # --- the host's side ---

    def take_fact(self, fact: Fact, span: Span | None) -> None:
        """Sink of the recorder: keeps a fact until it is sent."""
        try:
            log, event = encode_fact(fact)
        except Exception:
            self.lost += 1  # what OTLP cannot hold
            raise
        if self._logs_url is not None:
            if len(self._facts) >= self._capacity:
                self.lost += 1
            else:
                self._facts.append(log)
                unspanned = self._unspanned
                if unspanned is not None and fact.trace_id is None:
                    unspanned.append(fact)
        if self._traces_url is None or span is None:
            pass
        elif type(span) is LightSpan:  # it may have ended meanwhile: it comes here behind its facts
            span.events.append(event)
        elif span.is_recording():
            span_id = span.get_span_context().span_id
            events = self._events.get(span_id)
            if events is None:
                self._events[span_id] = [event]
            else:
                events.append(event)
        if self._thread is None:
            self._start()
        elif len(self._facts) >= BATCH and not self._wake.is_set():
            self._wake.set()

    def take_light_span(self, span: LightSpan) -> None:
        """Keeps a finished span of ours until it is sent, behind the facts that it recorded."""
        if self._traces_url is not None and len(self._spans) < self._capacity:
            self._spans.append(encode_span(span, span.events))
            if self._thread is None:
                self._start()

    def take_span(self, span: ReadableSpan) -> None:
        """Keeps a finished span of the SDK's until it is sent."""
        if self._traces_url is None:
            return
        events = self._events.pop(_span_id(span), ()) if self._events else ()
        if len(self._spans) < self._capacity:
            self._spans.append(encode_span(span, events) if _is_ours(span) else span)
            if self._thread is None:
                self._start()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Waits until all that was taken so far is acknowledged; False when that takes too long."""
        deadline = time.monotonic() + timeout_s
        self._backlog.settle()
        with self._sent:
            self._hurried += 1
            self._wake.set()
            try:
                while self._facts or self._spans or self._sending:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return False
                    self._sent.wait(left)
            finally:
                self._hurried -= 1
        return True

    def confirmation(self) -> Callable[[float], str | None]:
        """Ask for it before recording a fact that must not get lost.

        Returns:
            What waits, for so many seconds at most, until everything taken meanwhile is acknowledged;
            it returns None, or in a few words why that did not happen.
        """
        self._backlog.settle()
        lost = self.lost

        def confirm(timeout_s: float) -> str | None:
            url = self._logs_url
            self._backlog.settle()
            with self._sent:
                goal = self._settled + self._in_flight + len(self._facts)
                self._wake.set()
                in_time = self._sent.wait_for(
                    lambda: self._settled >= goal or self._logs_url is None, timeout_s
                )
            if url is None or self._logs_url is None:
                return "the endpoint takes no log events, by which alone a fact can leave at once"
            if not in_time:
                return f"{url} did not acknowledge it within {timeout_s:g} s"
            return f"{url} did not take it" if self.lost != lost else None

        return confirm

    def close(self, timeout_s: float = 5.0) -> None:
        """Sends what it can in the time given and stops the thread."""
        atexit.unregister(self.close)
        if self._thread is None or self._closing:
            return
        self._backlog.settle()
        self._closing = True
        self._delivery.hurry()
        self._wake.set()
        self._thread.join(timeout_s)
        self._delivery.close()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name="a2a-fencing-outbox", daemon=True)
                self._thread.start()

    # --- the thread's side ---

    def _run(self) -> None:
        # Whoever traces HTTP clients must not see ours: telling of it would never end.
        with suppress_instrumentation():
            while True:
                self._wake.wait(self._interval_s)
                self._wake.clear()
                closing = self._closing
                if closing:
                    self._backlog.watched = False
                try:
                    self._backlog.visit()
                    self._send_all()
                except Exception as error:
                    with suppress(Exception):  # where faults are let through, this thread goes on
                        internal_errors.report("outbox", error)
                self._backlog.watched = self._knows_where_facts_go and not closing
                if closing:
                    return

    @property
    def _knows_where_facts_go(self) -> bool:
        """Whether the endpoint has taken log events: else facts may have to go on spans, at once."""
        return self._logs_url is not None and self._unspanned is None

    def _in_trouble(self) -> None:
        """The endpoint does not answer: as this thread may not come by for long, nothing waits."""
        self._backlog.watched = False
        self._backlog.visit()

    def _send_all(self) -> None:
        """Sends what waits: facts in their order, spans behind the facts they recorded.

        A receiver reads facts from spans, too; one that came before those numbered below it would look
        like a gap for as long as these take. What comes meanwhile waits for the next time, unless that
        is a batch already or somebody waits for it: a request costs as much as a hundred facts in it.
        """
        while self._facts or self._spans:
            self._sending = True
            try:
                self._times += 1
                spans = _take(self._spans) if self._spans_are_due() else []
                before_them = len(self._facts)
                while before_them > 0:
                    before_them -= self._send_next_facts()
                if spans and self._traces_url is not None:
                    ours = [span for span in spans if isinstance(span, bytes)]
                    others = [span for span in spans if not isinstance(span, bytes)]
                    self._deliver(self._traces_url, traces_request(ours, others, self._sender))
            finally:
                with self._sent:
                    self._sending = False
                    self._sent.notify_all()
            behind = max(len(self._facts), len(self._spans)) >= BATCH
            if not (behind or self._hurried or self._closing):
                return

    def _spans_are_due(self) -> bool:
        carry_facts = self._logs_url is None or self._unspanned is not None
        in_a_hurry = self._hurried or self._closing or len(self._spans) >= BATCH
        return bool(carry_facts or in_a_hurry or self._times % _SPANS_EVERY == 0)

    def _send_next_facts(self) -> int:
        """Sends the oldest facts; says how many."""
        with self._sent:
            facts = _take(self._facts)
            self._in_flight = len(facts)
        try:
            if facts and self._logs_url is not None:
                self._send_facts(self._logs_url, facts)
        finally:
            with self._sent:
                self._settled += self._in_flight
                self._in_flight = 0
                self._sent.notify_all()
        return len(facts)

    def _send_facts(self, url: str, facts: list[bytes]) -> None:
        taken = self._deliver(url, logs_request(facts, self._sender))
        unspanned, self._unspanned = self._unspanned, None
        if self._logs_url is None and unspanned is not None:
            self._facts.clear()  # those that are left are on their spans
            self.on_traces_only(unspanned)
        elif not taken:
            self.lost += len(facts)

    def _deliver(self, url: str, body: bytes) -> bool:
        """Posts until acknowledged or refused for good; False when the content is lost."""
        answer = self._delivery.send(url, body)
        if answer is Answer.NOT_SERVED:
            self._drop_signal(url)
        return answer is Answer.TAKEN

    def _drop_signal(self, url: str) -> None:
        """The endpoint has no such signal (Jaeger takes traces only); nothing is wrong."""
        if url == self._logs_url:
            self._logs_url = None
        else:
            self._traces_url = None
            self._spans.clear()
            self._events.clear()
        _log.info("%s is not served there; going on without it", url)


def _take(queue: deque[Any]) -> list[Any]:
    return [queue.popleft() for _ in range(min(len(queue), BATCH))]


def _is_ours(span: ReadableSpan) -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == c.SCOPE


def _span_id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    return context.span_id if context is not None else 0
