"""The one writer: a batch becomes rows, and every figure of the pages is brought up to date with it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.store import codec
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.protocol import Batch, FindingChange, Span
from a2a_fencing_dashboard.store.sqlite.replicas import ReplicaTable
from a2a_fencing_dashboard.store.sqlite.schema import connect
from a2a_fencing_dashboard.store.sqlite.tasks import TaskTable

WIDTHS: Final = (1, 60, 3600)
"""Seconds in a bucket of `tally`; each divides the next."""

_Counts = Counter[tuple[int, int, str, str]]
"""Counts by second, replica, measure and detail."""


class Writer:
    """Writes batches; keeps what the next batch is likely to need, all of which the tables hold too."""

    def __init__(self, path: str) -> None:
        """Opens the writing connection."""
        self._db = connect(path)
        self._replicas = ReplicaTable(self._db)
        self._tasks = TaskTable(self._db)

    def known(self, ids: Collection[str]) -> set[str]:
        """Which of these fact ids are stored already."""
        found = set()
        for fact_id in ids:
            instance, _, number = fact_id.rpartition(":")
            replica = self._replicas.find(instance)
            if replica is not None and int(number) in replica.received:
                found.add(fact_id)
        return found

    def commit(self, batch: Batch, *, now_unix_nano: int) -> None:
        """Stores a batch in one transaction.

        Raises:
            StoreError: It could not be stored; nothing of it is.
        """
        with self._transaction() as db:
            counts = self._write_facts(batch.facts, now_unix_nano)
            for change in batch.changes:
                self._change_finding(change, counts, now_unix_nano)
            _write_spans(db, batch.spans)
            _write_counts(db, counts)
            self._tasks.write()
            for replica in self._replicas.write():
                self._tasks.settle_run(replica)
            db.execute("UPDATE commits SET count = count + 1")

    def close(self) -> None:
        """Lets go of the connection."""
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except BaseException as error:
            self._forget()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot write to the store: {error}") from error
            raise

    def _forget(self) -> None:
        """What is kept may be ahead of what was stored: start again from the tables."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._replicas = ReplicaTable(self._db)
        self._tasks = TaskTable(self._db)

    def _write_facts(self, facts: Collection[Fact], now_unix_nano: int) -> _Counts:
        rows = []
        counts: _Counts = Counter()
        for fact in facts:
            n = fact.n
            replica = self._replicas.get(fact.replica)
            replica.absorb(fact, n, now_unix_nano)
            task_row = 0
            if fact.task is not None:
                task = self._tasks.get(fact.task, replica)
                task.absorb(fact)
                self._tasks.touch(task, replica)
                task_row = task.id
            rows.append((task_row, replica.id, n, codec.encode(fact)))
            second = fact.time_unix_nano // 1_000_000_000
            counts[second, replica.id, m.FACTS, ""] += 1
            for measure, detail in m.measure_of(fact):
                counts[second, replica.id, measure, detail] += 1
        self._db.executemany("INSERT INTO fact VALUES (?, ?, ?, ?)", rows)
        return counts

    def _change_finding(self, change: FindingChange, counts: _Counts, now_unix_nano: int) -> None:
        finding = change.finding
        measure = m.VIOLATIONS if finding.violates else m.INFOS
        if change.retracted:
            removed = self._remove_finding(finding)
            if removed is not None:
                counts[removed[1] // 1_000_000_000, removed[0], measure, finding.rule] -= 1
        else:
            replica, at = self._add_finding(finding, now_unix_nano)
            counts[at // 1_000_000_000, replica, measure, finding.rule] += 1

    def _add_finding(self, finding: Finding, now_unix_nano: int) -> tuple[int, int]:
        task = self._tasks.of_finding(finding.task)
        replica, at = self._newest(finding, task) or (0, now_unix_nano)
        self._db.execute(
            "INSERT INTO finding (task, incarnation, rule, severity, certainty, witness, explanation,"
            " replica, at, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                task,
                finding.task.incarnation,
                finding.rule,
                finding.severity,
                finding.certainty,
                _text(finding.witness),
                finding.explanation,
                replica,
                at,
                now_unix_nano,
            ),
        )
        self._judge(task)
        return replica, at

    def _remove_finding(self, finding: Finding) -> tuple[int, int] | None:
        task = self._tasks.of_finding(finding.task)
        row = self._db.execute(
            "DELETE FROM finding WHERE id = (SELECT id FROM finding WHERE task = ? AND incarnation = ?"
            " AND rule = ? AND witness = ? AND explanation = ? LIMIT 1) RETURNING replica, at",
            (task, finding.task.incarnation, finding.rule, _text(finding.witness), finding.explanation),
        ).fetchone()
        self._judge(task)
        return row and (row[0], row[1])

    def _judge(self, task: int) -> None:
        self._db.execute(
            "UPDATE task SET verdict = 2 * EXISTS"
            " (SELECT 1 FROM finding WHERE finding.task = task.id AND severity <> ?) WHERE id = ?",
            (c.INFO, task),
        )

    def _newest(self, finding: Finding, task: int) -> tuple[int, int] | None:
        """Replica and time of the newest fact that shows the finding."""
        newest = None
        for fact_id in finding.witness:
            instance, _, number = fact_id.rpartition(":")
            replica = self._replicas.find(instance)
            row = (
                replica
                and self._db.execute(
                    "SELECT body FROM fact WHERE task = ? AND replica = ? AND n = ?",
                    (task, replica.id, int(number)),
                ).fetchone()
            )
            if replica and row:
                at = codec.decode(row[0], replica=instance, n=int(number), task=None).time_unix_nano
                if newest is None or at >= newest[1]:
                    newest = replica.id, at
        return newest


def _text(witness: tuple[str, ...]) -> str:
    return msgspec.json.encode(witness).decode()


def _write_spans(db: sqlite3.Connection, spans: Collection[Span]) -> None:
    db.executemany(
        "INSERT OR IGNORE INTO span VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                span.trace_id,
                span.span_id,
                span.parent_span_id,
                span.name,
                span.start_unix_nano,
                span.end_unix_nano,
                span.service,
                span.error,
                span.attributes,
            )
            for span in spans
        ],
    )


def _write_counts(db: sqlite3.Connection, counts: _Counts) -> None:
    rows: Counter[tuple[int, int, int, str, str]] = Counter()
    for (second, replica, measure, detail), count in counts.items():
        rows[0, 0, replica, measure, detail] += count
        for width in WIDTHS:
            rows[width, second - second % width, replica, measure, detail] += count
    db.executemany(
        "INSERT INTO tally VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count",
        [(*key, count) for key, count in rows.items()],
    )
