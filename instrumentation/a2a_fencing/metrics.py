"""Metrics of what is recorded: closed label sets, no ids, exact whatever is sampled.

Facts are counted by all that any metric asks of them, and the metrics are worked out of these counts
when the application's MeterProvider collects: a fact costs one dictionary step, not an instrument each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import Span

from a2a_fencing import conventions as c
from a2a_fencing import internal_errors
from a2a_fencing.facts import Fact


class _Counted(NamedTuple):
    """What tells apart the facts that are counted; each from a closed set."""

    kind: str
    outcome: str | None
    state: str | None
    reason: str | None
    phase: str | None
    rule: str | None


_NOWHERE: Final = Context()

_Labels = tuple[tuple[str, str], ...]
_LabelsOf = Callable[[_Counted], "_Labels | None"]
"""The labels under which a metric counts such facts, or None when it does not."""


class Metrics:
    """Counts facts for the application's MeterProvider, across any number of `instrument()` calls."""

    def __init__(self) -> None:
        self._executions: Callable[[], int] = _none
        self._lost: Callable[[], int] = _none
        self._settle: Callable[[], None] = lambda: None
        self._counts: Counter[tuple[str | None, ...]] = Counter()
        meter = metrics.get_meter(c.SCOPE)
        for name, (description, labels_of) in _COUNTERS.items():
            meter.create_observable_counter(
                name, [self._observe(labels_of)], unit="1", description=description
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

    def read(
        self,
        *,
        executions: Callable[[], int],
        lost: Callable[[], int],
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        """Says where to read what is not counted here.

        Args:
            executions: Executions running now.
            lost: Facts lost on the way out so far.
            settle: Called before counts are told, so that facts on their way here are among them.
        """
        self._executions, self._lost, self._settle = executions, lost, settle

    def take_fact(self, fact: Fact, span: Span | None) -> None:
        """Sink of the recorder."""
        self._counts[fact.kind, fact.outcome, fact.state, fact.reason, fact.phase, fact.rule] += 1
        if fact.duration_ns is not None:
            labels = {"a2a.fencing.outcome": fact.outcome or c.UNKNOWN}
            # Whatever this runs in now, it was measured under the fact's own span (exemplars).
            context = trace.set_span_in_context(span or trace.INVALID_SPAN, _NOWHERE)
            self._durations.record(fact.duration_ns / 1e9, labels, context)

    def _observe(self, labels_of: _LabelsOf) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            self._settle()
            totals: Counter[_Labels] = Counter()
            for key, count in list(self._counts.items()):
                labels = labels_of(_Counted(*key))  # type: ignore[arg-type]
                if labels is not None:
                    totals[labels] += count
            for labels, count in totals.items():
                yield Observation(count, dict(labels))

        return observe


def _of_write(fact: _Counted) -> _Labels | None:
    if fact.kind != c.WRITE:
        return None
    return ("a2a.fencing.outcome", fact.outcome or c.UNKNOWN), ("a2a.task.state", fact.state or "")


def _of_conflict(fact: _Counted) -> _Labels | None:
    if fact.kind != c.WRITE or fact.outcome == c.ACCEPTED or fact.reason is None:
        return None
    return (("a2a.fencing.reason", fact.reason),)


def _of_drop(fact: _Counted) -> _Labels | None:
    return (("a2a.fencing.reason", fact.reason or ""),) if fact.kind == c.DROPPED else None


def _of_dispatch(fact: _Counted) -> _Labels | None:
    if fact.kind != c.DISPATCH or fact.phase != c.ENDED:
        return None
    return (("a2a.fencing.outcome", fact.outcome or ""),)


def _of_violation(fact: _Counted) -> _Labels | None:
    return (("a2a.fencing.rule", fact.rule or ""),) if fact.kind == c.VIOLATION else None


_COUNTERS: Final[Mapping[str, tuple[str, _LabelsOf]]] = {
    c.METRIC_WRITES: ("Logical writes by outcome and state", _of_write),
    c.METRIC_CONFLICTS: ("Refused writes by reason", _of_conflict),
    c.METRIC_DROPPED: ("Events dropped by reason", _of_drop),
    c.METRIC_DISPATCHES: ("Dispatch attempts by outcome", _of_dispatch),
    c.METRIC_VIOLATIONS: ("Violations this process could prove alone, by rule", _of_violation),
    c.METRIC_FACTS_EMITTED: ("Facts recorded", lambda _fact: ()),
}


def _none() -> int:
    return 0


def _single(read: Callable[[], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _options: [Observation(read())]
