"""Metrics of what is recorded: closed label sets, no ids, exact whatever is sampled.

Counts are kept here and read by the application's MeterProvider when it collects, so that a fact costs a
dictionary step and not a synchronous instrument per label set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import Span

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.facts import Fact

_Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts facts for the application's MeterProvider, across any number of `instrument()` calls."""

    def __init__(self) -> None:
        self._executions: Callable[[], int] = _none
        self._lost: Callable[[], int] = _none
        self._counts: dict[str, Counter[_Labels]] = {name: Counter() for name in _COUNTERS}
        meter = metrics.get_meter(c.SCOPE)
        for name, description in _COUNTERS.items():
            meter.create_observable_counter(
                name, [self._observe(name)], unit="1", description=description
            )
        meter.create_observable_counter(
            c.METRIC_FACTS_LOST,
            [_single(lambda: self._lost())],
            unit="1",
            description="Facts lost on the way out",
        )
        meter.create_observable_counter(
            c.METRIC_INTERNAL_ERRORS,
            [_single(lambda: sum(internal_errors.counts().values()))],
            unit="1",
            description="Faults of the instrumentation itself",
        )
        meter.create_observable_up_down_counter(
            c.METRIC_EXECUTIONS,
            [_single(lambda: self._executions())],
            unit="{execution}",
            description="Executions running on this replica",
        )
        self._durations = meter.create_histogram(
            c.METRIC_SAVE_DURATION, unit="s", description="Time a logical write took"
        )

    def read(self, *, executions: Callable[[], int], lost: Callable[[], int]) -> None:
        """Says where to read what is not counted here.

        Args:
            executions: Executions running now.
            lost: Facts lost on the way out so far.
        """
        self._executions, self._lost = executions, lost

    def take_fact(self, fact: Fact, span: Span | None) -> None:
        """Sink of the recorder."""
        counts = self._counts
        counts[c.METRIC_FACTS_EMITTED][()] += 1
        kind = fact.kind
        if kind == c.WRITE:
            outcome = ("a2a.fencing.outcome", fact.outcome or c.UNKNOWN)
            counts[c.METRIC_WRITES][(outcome, ("a2a.task.state", fact.state or ""))] += 1
            if fact.outcome != c.ACCEPTED and fact.reason is not None:
                counts[c.METRIC_CONFLICTS][(("a2a.fencing.reason", fact.reason),)] += 1
            if fact.duration_ns is not None:
                self._durations.record(fact.duration_ns / 1e9, dict((outcome,)))
        elif kind == c.DROPPED:
            counts[c.METRIC_DROPPED][(("a2a.fencing.reason", fact.reason or ""),)] += 1
        elif kind == c.DISPATCH and fact.phase == c.ENDED:
            counts[c.METRIC_DISPATCHES][(("a2a.fencing.outcome", fact.outcome or ""),)] += 1
        elif kind == c.VIOLATION:
            counts[c.METRIC_VIOLATIONS][(("a2a.fencing.rule", fact.rule or ""),)] += 1

    def _observe(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            for labels, count in list(self._counts[name].items()):
                yield Observation(count, dict(labels))

        return observe


_COUNTERS = {
    c.METRIC_WRITES: "Logical writes by outcome and state",
    c.METRIC_CONFLICTS: "Refused writes by reason",
    c.METRIC_DROPPED: "Events dropped by reason",
    c.METRIC_DISPATCHES: "Dispatch attempts by outcome",
    c.METRIC_VIOLATIONS: "Violations this process could prove alone, by rule",
    c.METRIC_FACTS_EMITTED: "Facts recorded",
}


def _none() -> int:
    return 0


def _single(read: Callable[[], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _options: [Observation(read())]
