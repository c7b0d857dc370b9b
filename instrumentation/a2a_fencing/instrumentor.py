"""Switching the instrumentation on and off, as any other OpenTelemetry instrumentation."""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]
    BaseInstrumentor,
)

from a2a_fencing import internal_errors, pipeline, recorder
from a2a_fencing.dispatch import sign_tokens
from a2a_fencing.guard import OFF, Guard, enforce, in_force, wanted
from a2a_fencing.heartbeat import Heartbeat
from a2a_fencing.hooks import Hooks
from a2a_fencing.metrics import Metrics
from a2a_fencing.options import Options
from a2a_fencing.recorder import Recorder
from a2a_fencing.replica import Replica
from a2a_fencing.sql import SqlSpans


@dataclass(frozen=True, slots=True)
class Status:
    """What is on, for ``doctor`` and for people who wonder.

    Attributes:
        enabled: Whether the instrumentation is on.
        replica: Id of this process, or None.
        missing: Hook targets that this SDK does not have.
        routes: Where facts and spans go, a line each.
        internal_errors: Our own faults so far, by kind.
        guard: What is enforced.
    """

    enabled: bool
    replica: str | None
    missing: tuple[str, ...]
    routes: tuple[str, ...]
    internal_errors: dict[str, int]
    guard: Guard = OFF


class A2AFencingInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Observes an A2A server: task stores, consumers, executors, queues and handlers."""

    _run: _Instrumentation | None = None
    _metrics: Metrics | None = None
    """Made once: a meter cannot take an instrument back, and a second one would count twice."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Which releases of the SDK this is made for."""
        return ("a2a-sdk >= 1.0",)

    def status(self) -> Status:
        """What is on now."""
        run = self._run
        if run is None:
            return Status(False, None, (), (), internal_errors.counts())
        return Status(
            True,
            run.replica.id,
            tuple(run.hooks.missing),
            tuple(run.routes),
            internal_errors.counts(),
            in_force(),
        )

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Waits until the facts recorded so far are acknowledged; False when that takes longer."""
        run = self._run
        outbox = run.pipeline.outbox if run is not None else None
        return outbox.flush(timeout_s) if outbox is not None else True

    def _instrument(self, **kwargs: Any) -> None:
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return
        # opentelemetry-instrument passes keywords of its own along; ours are told by name.
        options = Options.resolve({k: v for k, v in kwargs.items() if k in Options.__slots__})
        if self._metrics is None:
            self._metrics = Metrics()
        self._run = _Instrumentation(options, self._metrics)
        self._run.start()

    def _uninstrument(self, **kwargs: Any) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.stop()


class _Instrumentation:
    """Everything that one `instrument()` set up."""

    def __init__(self, options: Options, metrics: Metrics) -> None:
        self._options = options
        self._metrics = metrics
        self.hooks: Hooks
        self._sql = SqlSpans()
        self.routes: list[str] = []
        self._set_up()
        this = weakref.ref(self)

        def after_fork() -> None:
            run = this()
            if run is not None and run._started:
                run._renew()

        os.register_at_fork(after_in_child=after_fork)

    def _set_up(self) -> None:
        self._started = False
        self.replica = Replica(run=self._options.run)
        self.hooks = Hooks(self.replica.id, audit=self._options.audit)
        self.pipeline = pipeline.build(self.replica, self._options.endpoint)
        self._metrics.read(
            executions=lambda: self.hooks.executors.running,
            lost=self._lost,
            settle=self.pipeline.settle,
        )
        self._connect([*self.pipeline.sinks, self._metrics.take_fact])

    def _connect(self, sinks: list[recorder.Sink]) -> None:
        self._sinks = sinks
        self.recorder = Recorder(
            self.replica,
            sinks,
            tracer=self.pipeline.tracer,
            nests=self._nests,
            span_per_fact=self.pipeline.span_per_fact,
            confirmation=self.pipeline.confirmation,
            backlog=self.pipeline.backlog,
        )
        self.pipeline.bind(self.recorder)
        self._heartbeat = Heartbeat(
            self.recorder,
            executing=lambda: self.hooks.executors.running,
            lost=self._lost,
            guard=in_force,
            interval_s=self._options.heartbeat_interval,
        )

    def start(self) -> None:
        self.routes = list(self.pipeline.description)
        if self._sees_sql:
            self.routes.append(self._sql.install(self.pipeline.tracer_provider))
        enforce(wanted(self._options.guard))
        sign_tokens(self._options.token_secret)
        recorder.activate(self.recorder)
        self.hooks.install()
        self._heartbeat.start()
        self._started = True

    @property
    def _sees_sql(self) -> bool:
        wanted = self._options.sql_spans
        return self.pipeline.application_traces if wanted is None else wanted

    @property
    def _nests(self) -> bool:
        return self.pipeline.application_traces or self._sees_sql

    def stop(self) -> None:
        self._started = False
        self._heartbeat.stop()
        self.hooks.remove()
        recorder.activate(None)
        enforce(OFF)
        sign_tokens(None)
        self._sql.remove()
        self.pipeline.shutdown()

    def _renew(self) -> None:
        """A forked child is a replica of its own: new id, numbers from 1, its own threads."""
        self._heartbeat.forget()
        try:
            self.replica = Replica(run=self._options.run)
            self.hooks.renew(self.replica.id)
            self.pipeline.renew(self.replica)
            self._connect(self._sinks)
            recorder.activate(self.recorder)
            self._heartbeat.start()
        except Exception as error:
            internal_errors.report("fork", error)

    def _lost(self) -> int:
        outbox = self.pipeline.outbox
        return outbox.lost if outbox is not None else 0
