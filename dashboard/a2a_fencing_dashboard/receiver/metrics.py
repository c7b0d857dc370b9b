"""What Prometheus asks for: counts of this process and figures of the store. Label sets are closed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.alerts.delivery import DESTINATIONS, OUTCOMES
from a2a_fencing_dashboard.alerts.service import Alerts
from a2a_fencing_dashboard.alerts.settings import SEVERITIES
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.receiver.counts import Counts
from a2a_fencing_dashboard.receiver.errors import STATUSES
from a2a_fencing_dashboard.store.protocol import ReplicaRow, Store, Window
from a2a_fencing_dashboard.store.summary import VERDICTS

_PREFIX: Final = "a2a_fencing_"
_ALWAYS: Final = Window()
_KINDS: Final = tuple(
    (rule, severity, certainty)
    for rule in c.RULES
    for severity in SEVERITIES
    for certainty in (c.PROVEN, c.SUSPECTED)
)
_KIND_LABELS: Final = ("rule", "severity", "certainty")
_OTHER: Final = "other"

ALIVE: Final = "alive"
SILENT: Final = "silent"
STOPPED: Final = "stopped"
"""It said that it stops."""
GONE: Final = "gone"
"""Silent for so long that nobody waits for it."""
_SILENT_AFTER: Final = 3
"""Heartbeats that must be missed."""
_INTERVAL_S: Final = 10.0
"""Of a replica whose heartbeats have not arrived."""
_GONE_AFTER_S: Final = 3600.0


class Metrics:
    """Answers a scrape."""

    def __init__(
        self,
        store: Store,
        ingest: Ingest,
        counts: Counts,
        alerts: Alerts,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Reports on these; `now` gives seconds since 1970."""
        self._registry = CollectorRegistry()
        self._registry.register(_Process(ingest, counts, alerts))
        self._registry.register(_Stored(store, alerts, now))
        ProcessCollector(registry=self._registry)

    def answer(self, accept: str) -> tuple[bytes, str]:
        """The metrics in a format that fits an ``Accept`` header, and its content type.

        Raises:
            StoreError: The store cannot be read.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _Process(Collector):
    """Counts since the start of this process."""

    def __init__(self, ingest: Ingest, counts: Counts, alerts: Alerts) -> None:
        self._ingest = ingest
        self._counts = counts
        self._alerts = alerts

    def collect(self) -> Iterator[Metric]:
        counts = self._counts
        facts = {"stored": counts.facts, "duplicate": counts.duplicates, "rejected": counts.malformed}
        yield _counter("facts_received", "Facts that arrived, by what became of them.", "result", facts)
        answers = dict.fromkeys(STATUSES, 0) | counts.requests
        requests = {str(status): number for status, number in answers.items()}
        yield _counter("requests", "OTLP requests, by HTTP status of the answer.", "status", requests)
        yield _total("spans_received", "Spans stored.", counts.spans)
        yield _total("commits", "Transactions that stored facts or spans.", counts.commits)
        forwarded = {"delivered": counts.forwarded, "dropped": counts.forward_dropped}
        yield _counter("forwarded_requests", "Requests to be sent on.", "outcome", forwarded)
        yield from counts.ingest_seconds.collect()
        concluded = CounterMetricFamily(
            f"{_PREFIX}findings", "Findings that violate, as they were concluded.", labels=_KIND_LABELS
        )
        for kind in _KINDS:
            concluded.add_metric(kind, self._ingest.concluded[kind])
        yield concluded
        messages = CounterMetricFamily(
            f"{_PREFIX}alert_messages", "Messages about findings.", labels=("destination", "outcome")
        )
        for destination in DESTINATIONS:
            for outcome in OUTCOMES:
                number = self._alerts.tallies[destination, outcome]
                messages.add_metric((destination, outcome), number)
        yield messages
        dropped = self._alerts.dropped
        yield _total("alerts_dropped", "Changes no webhook was told of: too many waited.", dropped)


class _Stored(Collector):
    """Figures of the store."""

    def __init__(self, store: Store, alerts: Alerts, now: Callable[[], float]) -> None:
        self._store = store
        self._alerts = alerts
        self._now = now

    def describe(self) -> Iterator[Metric]:
        """Nothing: else registering would ask the store."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        view = self._store.overview(_ALWAYS)
        yield _gauge(
            "verdict",
            "1 for the verdict on everything stored.",
            "verdict",
            {verdict: int(verdict == view.verdict) for verdict in VERDICTS},
        )
        tasks = {verdict: view.by_verdict.get(verdict, 0) for verdict in VERDICTS}
        yield _gauge("tasks", "Tasks, by verdict.", "verdict", tasks)
        yield self._standing()
        missing = "Facts that replicas have numbered and that have not arrived."
        yield GaugeMetricFamily(f"{_PREFIX}facts_missing", missing, value=view.missing)
        rows = self._store.replicas(_ALWAYS)
        lost = "Facts that replicas say they have lost."
        yield GaugeMetricFamily(f"{_PREFIX}facts_lost", lost, value=sum(row.lost for row in rows))
        yield _gauge("replicas", "Replicas, by what is heard of them.", "state", self._replicas(rows))
        running = "Executions on replicas that are alive."
        yield GaugeMetricFamily(f"{_PREFIX}executions", running, value=view.executing)
        yield _total("facts", "Facts stored, ever.", view.facts)
        yield _total("writes", "Writes, whatever became of them.", view.writes)
        conflicts = _closed(view.conflicts, c.CONFLICT_REASONS)
        yield _counter("conflicts", "Writes refused on a conflict.", "reason", conflicts)
        rejections = "Writes refused because the task was finished."
        yield _total("terminal_rejections", rejections, view.terminal_rejections)
        drops = _closed(view.drops, c.DROP_REASONS)
        yield _counter("dropped_events", "Events that reached nobody.", "reason", drops)
        yield _total("dispatches", "Attempts to act on the outside.", view.dispatches)
        waiting = "Changes to findings that a webhook has not been told of."
        yield GaugeMetricFamily(f"{_PREFIX}alerts_waiting", waiting, value=self._alerts.waiting())

    def _standing(self) -> Metric:
        counts = dict.fromkeys(_KINDS, 0)
        for row in self._store.outbox.standing():
            kind = row.rule, row.severity, row.certainty
            if kind in counts:
                counts[kind] += row.count
        family = GaugeMetricFamily(
            f"{_PREFIX}violations", "Findings that stand and are not muted.", labels=_KIND_LABELS
        )
        for kind, count in counts.items():
            family.add_metric(kind, count)
        return family

    def _replicas(self, rows: Collection[ReplicaRow]) -> dict[str, int]:
        counts = dict.fromkeys((ALIVE, SILENT, STOPPED, GONE), 0)
        for row in rows:
            counts[_state(row, self._now())] += 1
        return counts


def _state(replica: ReplicaRow, now: float) -> str:
    if replica.interval_s == 0:
        return STOPPED
    silent_s = now - replica.last_seen_unix_nano / 1e9
    if silent_s > _GONE_AFTER_S:
        return GONE
    return SILENT if silent_s > _SILENT_AFTER * (replica.interval_s or _INTERVAL_S) else ALIVE


def _closed(counts: Mapping[str, int], known: Collection[str]) -> dict[str, int]:
    """Counts by what we know; the rest, which came over the wire, together."""
    found = {name: counts.get(name, 0) for name in known}
    found[_OTHER] = sum(counts.values()) - sum(found.values())
    return found


def _counter(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, text, labels=(label,))
    for value, number in values.items():
        family.add_metric((value,), number)
    return family


def _total(name: str, text: str, number: int) -> Metric:
    return CounterMetricFamily(_PREFIX + name, text, value=number)


def _gauge(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, text, labels=(label,))
    for value, number in values.items():
        family.add_metric((value,), number)
    return family
