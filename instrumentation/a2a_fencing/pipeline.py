"""Where facts and spans go: the application's own providers first, then what it has not set up itself.

We never install a global provider. A global TracerProvider would switch on the SDK's own spans, dozens
a task, which cost more than everything this project does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber, get_logger_provider
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Span, Tracer
from opentelemetry.util.re import parse_env_headers

from a2a_fencing import conventions as c
from a2a_fencing.backlog import Backlog
from a2a_fencing.encoding import severity
from a2a_fencing.facts import Fact, to_attributes
from a2a_fencing.outbox import LOGS_PATH, TRACES_PATH, Outbox
from a2a_fencing.recorder import Recorder, Sink
from a2a_fencing.replica import Replica
from a2a_fencing.spans import LightTracer

DEFAULT_ENDPOINT = "http://localhost:4318"

_FOLLOWS_PARENT = "parentbased_always_on"
"""OpenTelemetry's default sampler, and the one that light spans follow."""

SQL_SCOPE = "opentelemetry.instrumentation.sqlalchemy"


@dataclass
class Pipeline:
    """What carries facts and spans away.

    Attributes:
        sinks: For the recorder.
        tracer: For our spans.
        tracer_provider: For the SQL spans under them.
        application_traces: Whether that provider is the application's own.
        outbox: Our own way out, where one was needed.
        span_per_fact: Whether traces are the only signal there is.
        backlog: Where facts wait for a batch of them; None: they are carried on at once.
        description: One line per route, for ``doctor``.
    """

    sinks: list[Sink]
    tracer: Tracer
    tracer_provider: trace.TracerProvider
    application_traces: bool
    outbox: Outbox | None
    span_per_fact: bool
    backlog: Backlog | None
    description: list[str]

    def bind(self, recorder: Recorder) -> None:
        """Lets the recorder know when an endpoint turns out to take traces only."""
        if self.outbox is None:
            return

        def traces_only(facts: list[Fact]) -> None:
            recorder.span_per_fact = True
            for fact in facts:
                if fact.trace_id is None:
                    with self.tracer.start_as_current_span(fact.kind) as span:
                        for sink in self.sinks:
                            sink(fact, span)

        self.outbox.on_traces_only = traces_only

    def confirmation(self) -> Callable[[float], str | None]:
        """See `Outbox.confirmation`."""
        if self.outbox is None:
            return lambda timeout_s: (
                "facts leave through the application's LoggerProvider, which does not tell whether they"
                " arrive; instrument(endpoint=...) does"
            )
        return self.outbox.confirmation()

    def settle(self) -> None:
        """Carries on what waits for a batch."""
        if self.backlog is not None:
            self.backlog.settle()

    def renew(self, replica: Replica) -> None:
        """Starts empty in a forked child, which is a replica of its own."""
        if self.outbox is not None:
            self.outbox.begin(_resource(replica))

    def shutdown(self) -> None:
        """Sends what waits and stops."""
        if self.outbox is not None:
            self.outbox.close()


def build(replica: Replica, endpoint: str | None) -> Pipeline:
    """Works out the routes from what the application has configured.

    Args:
        replica: Who sends.
        endpoint: An OTLP/HTTP base URL that facts go to besides the application's own pipeline.
    """
    logger_provider = _application_provider(get_logger_provider(), LoggerProvider)
    tracer_provider = _application_provider(trace.get_tracer_provider(), TracerProvider)
    logs_url, traces_url = _urls(endpoint, logger_provider is not None, tracer_provider is not None)

    sinks: list[Sink] = []
    description: list[str] = []
    if logger_provider is not None:
        sinks.append(log_sink(logger_provider))
        description.append("facts: the application's LoggerProvider")
    outbox = backlog = None
    if logs_url is not None or traces_url is not None:
        backlog = Backlog()
        outbox = Outbox(logs_url, traces_url, _resource(replica), headers=_headers(), backlog=backlog)
        description += [f"facts: {logs_url}"] if logs_url else []
        description += [f"spans: {traces_url}"] if traces_url else []

    application_traces = tracer_provider is not None
    tracer: Tracer | None = None
    if tracer_provider is None:
        tracer_provider = TracerProvider(resource=_resource(replica), shutdown_on_exit=False)
        if (
            outbox is not None
            and os.environ.get("OTEL_TRACES_SAMPLER", _FOLLOWS_PARENT) == _FOLLOWS_PARENT
        ):
            assert backlog is not None
            tracer = LightTracer(partial(backlog.later, outbox.take_light_span))
    else:
        sinks.append(span_event_sink)
        description.append("spans: the application's TracerProvider")
    if outbox is not None:
        sinks.append(outbox.take_fact)
        tracer_provider.add_span_processor(_ToOutbox(outbox, everything=not application_traces))
    return Pipeline(
        sinks=sinks,
        tracer=tracer or tracer_provider.get_tracer(c.SCOPE, metadata.version("a2a-fencing")),
        tracer_provider=tracer_provider,
        application_traces=application_traces,
        outbox=outbox,
        span_per_fact=logger_provider is None and logs_url is None,
        # An SDK's span must have its facts before it ends, and a logging pipeline of the application's
        # own is not ours to delay.
        backlog=backlog if isinstance(tracer, LightTracer) and logger_provider is None else None,
        description=description,
    )


def log_sink(provider: LoggerProvider) -> Sink:
    """Emits each fact as a log event of the application's own logging pipeline."""
    logger = provider.get_logger(c.SCOPE)

    def emit(fact: Fact, span: Span | None) -> None:
        context: Context | None = trace.set_span_in_context(span) if span is not None else None
        logger.emit(
            LogRecord(
                timestamp=fact.time_unix_nano,
                observed_timestamp=fact.time_unix_nano,
                context=context,
                severity_number=SeverityNumber(severity(fact)),
                event_name=c.event_name(fact.kind),
                attributes=dict(to_attributes(fact)),
            )
        )

    return emit


def span_event_sink(fact: Fact, span: Span | None) -> None:
    """Adds each fact to the span that records it."""
    if span is not None and span.is_recording():
        span.add_event(c.event_name(fact.kind), to_attributes(fact), fact.time_unix_nano)


class _ToOutbox(SpanProcessor):
    """Hands finished spans to the outbox: all of our own provider, or ours among the application's."""

    def __init__(self, outbox: Outbox, *, everything: bool) -> None:
        self._outbox = outbox
        self._everything = everything

    def on_end(self, span: ReadableSpan) -> None:
        scope = span.instrumentation_scope
        name = scope.name if scope is not None else ""
        context = span.get_span_context()
        if context is None or not context.trace_flags.sampled:
            return
        if self._everything or name == c.SCOPE or name.startswith(SQL_SCOPE):
            self._outbox.take_span(span)


def _application_provider(provider: Any, kind: type) -> Any:
    """The application's provider where it has really set one up, else None."""
    return provider if isinstance(provider, kind) else None


def _urls(endpoint: str | None, has_logger: bool, has_tracer: bool) -> tuple[str | None, str | None]:
    """Where our own outbox sends log events and spans."""
    env = os.environ
    if endpoint is not None:
        return _join(endpoint, LOGS_PATH), _join(endpoint, TRACES_PATH)
    base = env.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if base is None and not has_logger and not has_tracer:
        base = DEFAULT_ENDPOINT
    logs = env.get("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT") or (base and _join(base, LOGS_PATH))
    traces = env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or (base and _join(base, TRACES_PATH))
    if has_logger or env.get("OTEL_LOGS_EXPORTER") == "none":
        logs = None
    if has_tracer or env.get("OTEL_TRACES_EXPORTER") == "none":
        traces = None
    return logs, traces


def _join(base: str, path: str) -> str:
    return base.rstrip("/") + path


def _headers() -> Mapping[str, str]:
    return parse_env_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""), liberal=True)


def _resource(replica: Replica) -> Resource:
    return Resource.create().merge(
        Resource({c.SERVICE_INSTANCE_ID: replica.id, "process.pid": replica.pid})
    )
