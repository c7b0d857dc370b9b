"""What the pages ask, from any process and any thread."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, LifoQueue
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding, Gap
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store import codec
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.notes import Note
from a2a_fencing_dashboard.store.numbering import Ranges
from a2a_fencing_dashboard.store.protocol import (
    AlertPage,
    FindingFilter,
    FindingRow,
    Overview,
    ReplicaRow,
    SeriesPoint,
    Span,
    TaskFilter,
    TaskRow,
    Window,
)
from a2a_fencing_dashboard.store.runs import RunDurations, RunRow
from a2a_fencing_dashboard.store.sqlite import alerts, notes, runs, sql, task_pages, task_sql
from a2a_fencing_dashboard.store.sqlite.schema import connect

SILENT_AFTER: Final = 3
"""Heartbeat intervals without a fact after which a replica's executions are no longer counted."""

_CACHE_KIB: Final = 8_192
"""Pages that a connection keeps. Each commit of another one makes it forget them, so that more are of no
use while facts arrive; and there is a connection for each thread that reads at the same time."""

_CHANGES: Final = "SELECT count FROM commits UNION ALL SELECT count FROM note_changes"


class Reader:
    """The reading half of the store. Each method sees one consistent state."""

    def __init__(self, path: str, *, clock: Callable[[], int] = time.time_ns) -> None:
        """Reads the store at `path`; `clock` gives ns since 1970."""
        self._path = path
        self._clock = clock
        # The last one that was used comes first: as few as possible hold pages.
        self._idle: LifoQueue[sqlite3.Connection] = LifoQueue()

    def data_version(self) -> int:
        """Grows with each commit that changed anything; pages redraw only then."""
        with self._snapshot() as db:
            return sum(count for (count,) in db.execute(_CHANGES))

    def runs(self) -> list[str]:
        """Labels of load-test runs, newest first."""
        with self._snapshot() as db:
            return [label for (label,) in db.execute("SELECT label FROM run ORDER BY id DESC")]

    def run_rows(
        self, labels: Collection[str] = (), *, offset: int = 0, limit: int = 50
    ) -> tuple[list[RunRow], int]:
        """Runs, newest first, and how many there are; `labels` asks for certain ones."""
        with self._snapshot() as db:
            return runs.rows(db, labels, offset, limit)

    def run_durations(self, label: str) -> RunDurations:
        """How long things took in this run."""
        with self._snapshot() as db:
            return runs.durations(db, label)

    def overview(self, window: Window) -> Overview:
        """The figures of the first page."""
        with self._snapshot() as db:
            totals: dict[str, dict[str, int]] = defaultdict(dict)
            for measure, detail, count in db.execute(*sql.totals(window)):
                totals[measure][detail] = count
            if window.since is not None or window.until is not None:
                for measure, detail, count in db.execute(*task_sql.counts(window)):
                    totals[measure][detail] = count
            replicas = self._replicas(db, window)
            newest = alerts.newest_violation(db, window)
            muted_tasks = alerts.muted_tasks(db, window)
        missing = sum(replica.missing for replica in replicas)
        return Overview(
            verdict=m.verdict(totals[m.TASKS], missing=missing),
            by_verdict=totals[m.TASKS],
            facts=sum(totals[m.FACTS].values()),
            missing=missing,
            tasks=sum(totals[m.TASKS].values()),
            terminal_tasks=sum(totals[m.TERMINAL_TASKS].values()),
            writes=sum(totals[m.WRITES].values()),
            conflicts=totals[m.CONFLICTS],
            terminal_rejections=sum(totals[m.REJECTIONS].values()),
            drops=totals[m.DROPS],
            dispatches=sum(totals[m.DISPATCHES].values()),
            violations=totals[m.VIOLATIONS],
            infos=totals[m.INFOS],
            violated_tasks=totals[m.TASKS].get(c.VIOLATED, 0),
            executing=sum(replica.executing for replica in replicas if self._speaks(replica)),
            newest=newest,
            muted_tasks=muted_tasks,
        )

    def series(self, window: Window, bucket_s: int) -> list[SeriesPoint]:
        """Counts over time; the buckets at the window's ends are whole."""
        with self._snapshot() as db:
            return [SeriesPoint(*row) for row in db.execute(*sql.series(window, bucket_s))]

    def replicas(self, window: Window) -> list[ReplicaRow]:
        """Every replica that ever reported in this window's run."""
        with self._snapshot() as db:
            return self._replicas(db, window)

    def gaps(self) -> list[Gap]:
        """Facts that were numbered and never arrived."""
        with self._snapshot() as db:
            replicas = db.execute(
                "SELECT id, instance, announced FROM replica WHERE missing > 0"
            ).fetchall()
            found = []
            for replica, instance, announced in replicas:
                received = Ranges(
                    db.execute(
                        "SELECT first, last FROM received WHERE replica = ? ORDER BY first", (replica,)
                    ).fetchall()
                )
                holes = received.holes(max(received.highest, announced))
                found += [Gap(instance, first, last) for first, last in holes]
            return found

    def received(self, replicas: Collection[str]) -> dict[str, list[tuple[int, int]]]:
        """Which numbers of these replicas have arrived, as in `Reported`."""
        ranges: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        with self._snapshot() as db:
            for instance, first, last in db.execute(*sql.received(replicas)):
                ranges[instance].append((first, last))
        return ranges

    def tasks(
        self,
        window: Window,
        where: TaskFilter,
        *,
        sort: str = "last",
        descending: bool = True,
        offset: int = 0,
        limit: int = 50,
        count_to: int | None = None,
    ) -> tuple[list[TaskRow], int]:
        """One page of tasks and how many match."""
        with self._snapshot() as db:
            found = task_pages.page(
                db, window, where, sort=sort, descending=descending, offset=offset, limit=limit
            )
            rows = [_task_row(db, row) for row in found]
            if rows and len(rows) < limit:
                return rows, offset + len(rows)
            (total,) = db.execute(*task_sql.total(window, where, count_to)).fetchone()
            return rows, total

    def task(self, key: TaskKey) -> TaskRow | None:
        """One task, or None when it is not stored."""
        with self._snapshot() as db:
            row = db.execute(
                f"SELECT {sql.TASK_COLUMNS} FROM task WHERE task.id = ?", (_task_id(db, key),)
            ).fetchone()
            return _task_row(db, row) if row else None

    def facts(self, run: str | None = None) -> Iterator[Fact]:
        """Every stored fact, or those of a run; also those of no task, in no particular order."""
        with self._snapshot() as db:
            rows = db.execute(*sql.facts(run))
            for taskless, store, owner, task_id, incarnation, instance, n, body in rows:
                task = None if taskless else TaskKey(store, owner, task_id, incarnation)
                yield codec.decode(body, replica=instance, n=n, task=task)

    def heartbeats(self, replicas: Collection[str]) -> list[Fact]:
        """The heartbeats of these replicas that tell most, as in `Reported`."""
        with self._snapshot() as db:
            rows = db.execute(*sql.heartbeats(replicas))
            return [codec.decode(body, replica=instance, n=n, task=None) for instance, n, body in rows]

    def facts_of(self, key: TaskKey) -> list[Fact]:
        """All facts of a task, by replica and number."""
        with self._snapshot() as db:
            rows = db.execute(
                "SELECT instance, n, body FROM fact JOIN replica ON replica.id = fact.replica"
                " WHERE task = ? ORDER BY fact.replica, n",
                (_task_id(db, key),),
            )
            return [codec.decode(body, replica=instance, n=n, task=key) for instance, n, body in rows]

    def findings_of(self, key: TaskKey) -> list[FindingRow]:
        """The standing findings of a task, most severe first."""
        with self._snapshot() as db:
            return alerts.of_task(db, _task_id(db, key))

    def findings(
        self,
        window: Window,
        *,
        rules: Collection[str] = (),
        severities: Collection[str] = (),
        offset: int = 0,
        limit: int = 50,
    ) -> tuple[list[FindingRow], int]:
        """One page of standing findings, newest first, and how many match."""
        where = FindingFilter(rules, severities, with_muted=True)
        with self._snapshot() as db:
            return alerts.rows(db, window, where, offset, limit), alerts.count(db, window, where)

    def alerts(
        self, window: Window, where: FindingFilter, *, offset: int = 0, limit: int = 20
    ) -> AlertPage:
        """One page of tasks with their standing findings, the task with the newest finding first."""
        with self._snapshot() as db:
            return alerts.page(db, window, where, offset, limit)

    def new_violations(self, window: Window) -> int:
        """How many standing violations nobody has acknowledged or muted."""
        with self._snapshot() as db:
            return alerts.new_violations(db, window)

    def notes(self) -> list[Note]:
        """Every note, newest first."""
        with self._snapshot() as db:
            return notes.every(db)

    def mutes_of(self, findings: Sequence[Finding]) -> list[Note | None]:
        """For each standing finding, the note that mutes it; for whoever sends findings out."""
        with self._snapshot() as db:
            return [notes.mute_of(db, finding) for finding in findings]

    def spans_of(self, trace_ids: Collection[str]) -> list[Span]:
        """Spans of these traces, by start."""
        with self._snapshot() as db:
            rows = db.execute(
                f"SELECT * FROM span WHERE trace_id IN ({sql.marks(trace_ids)}) ORDER BY start",
                tuple(trace_ids),
            )
            return [_span(row) for row in rows]

    def close(self) -> None:
        """Lets go of files and connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        try:
            try:
                db = self._idle.get_nowait()
            except Empty:
                db = connect(self._path)
                db.execute("PRAGMA query_only = 1")
                db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")
                self._idle.put(db)
        except sqlite3.Error as error:
            raise StoreError(f"cannot read store {self._path}: {error}") from error

    def _replicas(self, db: sqlite3.Connection, window: Window) -> list[ReplicaRow]:
        return [
            ReplicaRow(
                replica=row[0],
                name=row[1] or row[0],
                run=row[2],
                started_unix_nano=row[3],
                last_seen_unix_nano=row[4],
                interval_s=row[5],
                sdk_version=row[6],
                guard=bool(row[7]),
                facts=row[8],
                missing=row[9],
                lost=row[10],
                executing=row[11],
                skew_ns=row[12],
            )
            for row in db.execute(*sql.replicas(window))
        ]

    def _speaks(self, replica: ReplicaRow) -> bool:
        if replica.interval_s is None:
            return False
        silent_ns = self._clock() - replica.last_seen_unix_nano
        return silent_ns < SILENT_AFTER * replica.interval_s * 1e9


def _task_id(db: sqlite3.Connection, key: TaskKey) -> int:
    row = db.execute(
        "SELECT id FROM task WHERE task_id = ? AND owner = ? AND store = ? AND incarnation = ?",
        (key.task_id, key.owner, key.store, key.incarnation),
    ).fetchone()
    return int(row[0]) if row else -1


def _task_row(db: sqlite3.Connection, row: tuple[Any, ...]) -> TaskRow:
    task = row[0]
    replicas = db.execute(
        "SELECT instance FROM json_each(?) JOIN replica ON replica.id = value ORDER BY json_each.key",
        (row[16],),
    )
    rules = db.execute(
        "SELECT DISTINCT rule FROM finding WHERE task = ? AND severity <> ? ORDER BY rule",
        (task, c.INFO),
    )
    return TaskRow(
        key=TaskKey(*row[1:5]),
        context_id=row[5],
        run=row[6],
        verdict=m.VERDICTS[row[7]],
        state=row[8],
        version=row[9],
        replicas=tuple(instance for (instance,) in replicas),
        facts=row[10],
        writes=row[11],
        conflicts=row[12],
        rejections=row[13],
        drops=row[14],
        dispatches=row[15],
        rules=tuple(rule for (rule,) in rules),
        first_unix_nano=row[17],
        last_unix_nano=row[18],
    )


def _span(row: tuple[Any, ...]) -> Span:
    return Span(
        trace_id=row[0],
        span_id=row[1],
        parent_span_id=row[2],
        name=row[3],
        start_unix_nano=row[4],
        end_unix_nano=row[5],
        service=row[6],
        error=bool(row[7]),
        attributes=row[8],
    )
