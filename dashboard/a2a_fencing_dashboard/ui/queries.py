"""The only place where pages read the store.

Answers are kept by (version of the data, question), so that any number of sessions and reruns ask the
store once. They are shared between sessions: nobody changes one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.exports import excerpt
from a2a_fencing_dashboard.store.notes import Note
from a2a_fencing_dashboard.store.protocol import (
    AlertPage,
    FindingFilter,
    FindingRow,
    Overview,
    ReplicaRow,
    SeriesPoint,
    Span,
    Store,
    TaskFilter,
    TaskRow,
    Window,
)
from a2a_fencing_dashboard.store.runs import RunDurations, RunRow
from a2a_fencing_dashboard.ui import words
from a2a_fencing_dashboard.ui.actions import Actions
from a2a_fencing_dashboard.ui.charts.schedule import Schedule, schedule

SILENT_AFTER: Final = 3
"""Heartbeat intervals without a sign of life after which a replica counts as silent."""

NEIGHBOURS: Final = 500
"""Violated tasks among which the previous and the next one are looked for."""

_DEFAULT_INTERVAL_S: Final = 10.0
_SEVERITIES: Final = (c.CRITICAL, c.WARNING, c.INFO)


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """One page of the list of tasks."""

    window: Window
    where: TaskFilter
    sort: str = "last"
    descending: bool = True
    offset: int = 0
    limit: int = 50
    count_to: int | None = None


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task with all that is known of it."""

    row: TaskRow
    ordered: Schedule
    findings: tuple[FindingRow, ...]

    @property
    def violations(self) -> tuple[FindingRow, ...]:
        """Its findings without mere information."""
        return tuple(row for row in self.findings if row.finding.violates)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Where a task stands among the violated ones, newest first. `place` counts from 1; 0: nowhere."""

    previous: TaskKey | None
    next: TaskKey | None
    place: int
    total: int


class Queries:
    """Questions to a store, answered once for each version of its data."""

    def __init__(self, store: Store, *, live: bool = True) -> None:
        """Reads `store`; one that is not live is looked at as at the moment of its last fact."""
        self._store = store
        self._end = None if live else _last_sign(store)
        self.actions = Actions(store, self.now)
        self.overview = lru_cache(16)(self._overview)
        self.series = lru_cache(16)(self._series)
        self.replicas = lru_cache(16)(self._replicas)
        self.names = lru_cache(16)(self._names)
        self.runs = lru_cache(4)(self._runs)
        self.run_rows = lru_cache(16)(self._run_rows)
        self.run_durations = lru_cache(16)(self._run_durations)
        self.tasks = lru_cache(64)(self._tasks)
        self.task = lru_cache(32)(self._task)
        self._history = lru_cache(8)(self._history_of)
        self.alerts = lru_cache(32)(self._alerts)
        self.new_violations = lru_cache(32)(self._new_violations)
        self.notes = lru_cache(4)(self._notes)
        self.findings_of = lru_cache(512)(self._findings_of)
        self.neighbours = lru_cache(32)(self._neighbours)
        self.spans = lru_cache(16)(self._spans)

    def now(self) -> int:
        """The moment to look at it from, ns since 1970."""
        return time.time_ns() if self._end is None else self._end

    def version(self) -> int:
        """Version of the data; everything else is asked *at* a version."""
        return self._store.data_version()

    def task_excerpt(self, key: TaskKey, most: int) -> excerpt.Excerpt:
        """A task to take along, at most so many of its facts."""
        return excerpt.of_task(self._store, key, most)

    def run_excerpt(self, label: str, most: int) -> excerpt.Excerpt:
        """A run to take along, at most so many of its facts."""
        return excerpt.of_run(self._store, label, most)

    def whole_excerpt(self, most: int) -> excerpt.Excerpt:
        """Everything to take along, at most so many facts."""
        return excerpt.of_store(self._store, most)

    def close(self) -> None:
        """Closes the store."""
        self._store.close()

    def _overview(self, at: int, window: Window) -> Overview:
        return self._store.overview(window)

    def _series(self, at: int, window: Window, bucket_s: int) -> tuple[SeriesPoint, ...]:
        return tuple(self._store.series(window, bucket_s))

    def _replicas(self, at: int, window: Window) -> tuple[ReplicaRow, ...]:
        """In the order in which they started."""
        rows = self._store.replicas(window)
        return tuple(sorted(rows, key=lambda row: (row.started_unix_nano or 0, row.replica)))

    def _names(self, at: int, window: Window, across_runs: bool = False) -> words.Names:
        """What to call the replicas of a window's run."""
        return words.replica_names(self.replicas(at, window), across_runs=across_runs)

    def _runs(self, at: int) -> tuple[str, ...]:
        return tuple(self._store.runs())

    def _run_rows(
        self, at: int, labels: tuple[str, ...] = (), limit: int = 50
    ) -> tuple[tuple[RunRow, ...], int]:
        rows, total = self._store.run_rows(labels, limit=limit)
        return tuple(rows), total

    def _run_durations(self, at: int, label: str) -> RunDurations:
        return self._store.run_durations(label)

    def _tasks(self, at: int, query: TaskQuery) -> tuple[tuple[TaskRow, ...], int]:
        rows, total = self._store.tasks(
            query.window,
            query.where,
            sort=query.sort,
            descending=query.descending,
            offset=query.offset,
            limit=query.limit,
            count_to=query.count_to,
        )
        return tuple(rows), total

    def _task(self, at: int, key: TaskKey) -> TaskView | None:
        row = self._store.task(key) or self._reported_as(at, key)
        if row is None:
            return None
        return TaskView(row, self._history(row.key, row.facts), self._findings_of(at, row.key))

    def _history_of(self, key: TaskKey, count: int) -> Schedule:
        """The facts of a task while it has so many: they do not change, there can only be more."""
        return schedule(self._store.facts_of(key))

    def _reported_as(self, at: int, key: TaskKey) -> TaskRow | None:
        """The task under the incarnation that replicas reported, where the checker splits further."""
        rows = [
            row
            for row in self.matching(at, key.task_id)
            if (row.key.store, row.key.owner) == (key.store, key.owner)
            and row.key.incarnation < key.incarnation
        ]
        return max(rows, key=lambda row: row.key.incarnation, default=None)

    def _alerts(
        self, at: int, window: Window, where: FindingFilter, offset: int, limit: int
    ) -> AlertPage:
        return self._store.alerts(window, where, offset=offset, limit=limit)

    def _new_violations(self, at: int, window: Window) -> int:
        return self._store.new_violations(window)

    def _notes(self, at: int) -> tuple[Note, ...]:
        return tuple(self._store.notes())

    def _findings_of(self, at: int, key: TaskKey) -> tuple[FindingRow, ...]:
        """The gravest first."""
        return tuple(sorted(self._store.findings_of(key), key=gravity))

    def _neighbours(self, at: int, key: TaskKey, window: Window) -> Neighbours:
        violated = TaskFilter(verdicts=(c.VIOLATED,))
        rows, total = self.tasks(at, TaskQuery(window, violated, limit=NEIGHBOURS))
        keys = [row.key for row in rows]
        if key not in keys:
            return Neighbours(None, keys[0] if keys else None, 0, total)
        place = keys.index(key)
        return Neighbours(
            keys[place - 1] if place else None,
            keys[place + 1] if place + 1 < len(keys) else None,
            place + 1,
            total,
        )

    def _spans(self, at: int, trace_ids: tuple[str, ...]) -> tuple[Span, ...]:
        return tuple(self._store.spans_of(trace_ids))

    def matching(self, at: int, task_id: str) -> tuple[TaskRow, ...]:
        """Tasks with exactly this id, whoever owns them."""
        rows, _ = self.tasks(at, TaskQuery(Window(), TaskFilter(text=task_id)))
        return tuple(row for row in rows if row.key.task_id == task_id)


def gravity(row: FindingRow) -> tuple[int, int]:
    """Order of findings: the most severe first, of equal ones in the order of the rules."""
    finding = row.finding
    severity = _SEVERITIES.index(finding.severity) if finding.severity in _SEVERITIES else 0
    return severity, c.RULES.index(finding.rule) if finding.rule in c.RULES else len(c.RULES)


def is_silent(replica: ReplicaRow, now_unix_nano: int) -> bool:
    """Whether a replica has missed several of the heartbeats that it announced."""
    interval_s = replica.interval_s or _DEFAULT_INTERVAL_S
    return now_unix_nano - replica.last_seen_unix_nano > SILENT_AFTER * interval_s * 1_000_000_000


def _last_sign(store: Store) -> int:
    """When the last fact arrived, ns since 1970."""
    return max((replica.last_seen_unix_nano for replica in store.replicas(Window())), default=0)
