"""The one writer: a batch becomes rows, and every figure of the pages is brought up to date with it."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat

from a2a_fencing.checker import Finding
from a2a_fencing.facts import Fact, MalformedFactError, TaskKey, split_id
from a2a_fencing_dashboard.store import codec, summary
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.protocol import Batch, Past, Reported, Span
from a2a_fencing_dashboard.store.sqlite import clocks
from a2a_fencing_dashboard.store.sqlite.findings import FindingTable
from a2a_fencing_dashboard.store.sqlite.outbox_table import OutboxTable
from a2a_fencing_dashboard.store.sqlite.replicas import Replica, ReplicaTable
from a2a_fencing_dashboard.store.sqlite.schema import connect
from a2a_fencing_dashboard.store.sqlite.tallies import TallyTable
from a2a_fencing_dashboard.store.sqlite.tasks import NO_TASK, TaskTable


class Writer:
    """Writes batches; remembers what the next one is likely to need, which the tables hold too."""

    def __init__(self, path: str) -> None:
        """Opens the writing connection."""
        self._db = connect(path)
        self._remember()

    def known(self, ids: Collection[str]) -> set[str]:
        """Which of these fact ids are stored already."""
        found = set()
        replica, last = None, None
        for fact_id in ids:
            try:
                instance, n = split_id(fact_id)
            except MalformedFactError:
                continue
            if instance != last:  # those of one replica come together
                replica, last = self._replicas.find(instance), instance
            if replica is not None and n in replica.received:
                found.add(fact_id)
        return found

    def past(self, keys: Collection[TaskKey]) -> Past:
        """All facts of these tasks, and the findings that stand for them; see `Store.past`."""
        facts: list[Fact] = []
        findings: list[Finding] = []
        for key in self._tasks.stored(keys):
            task = self._tasks.find(key)
            assert task is not None
            rows = self._db.execute(
                "SELECT instance, n, body FROM fact JOIN replica ON replica.id = fact.replica"
                " WHERE task = ?",
                (task.id,),
            )
            facts += [codec.decode(body, replica=r, n=n, task=key) for r, n, body in rows]
            findings += self._findings.of(task.id, key)
        return Past(facts, findings)

    def reports(self) -> list[Reported]:
        """What every replica has reported."""
        return [self._report(replica) for replica in self._replicas.all()]

    def clocks(self) -> dict[tuple[str, str], int]:
        """What was measured of the clocks of replicas."""
        return clocks.read(self._db)

    def commit(self, batch: Batch, *, now_unix_nano: int) -> None:
        """Stores a batch in one transaction.

        Raises:
            StoreError: It could not be stored; nothing of it is.
        """
        with self._transaction() as db:
            self._write_facts(batch.facts, now_unix_nano)
            for name, key in batch.moved.items():
                self._tasks.move(name, key)
            for key, verdict in batch.verdicts.items():
                self._tasks.of(key).judged = verdict
            self._findings.apply(batch.changes, now_unix_nano=now_unix_nano)
            _write_spans(db, batch.spans)
            clocks.write(db, batch.clocks)
            self._tasks.write()
            self._tallies.write()
            for replica in self._replicas.write():
                self._tasks.settle_run(replica)
            self._outbox.write()

    def close(self) -> None:
        """Lets go of the connection."""
        self._db.close()

    def _report(self, replica: Replica) -> Reported:
        heartbeats = []
        for n in replica.telling_heartbeats:
            (body,) = self._db.execute(
                "SELECT body FROM fact WHERE task = ? AND replica = ? AND n = ?",
                (NO_TASK, replica.id, n),
            ).fetchone()
            heartbeats.append(codec.decode(body, replica=replica.instance, n=n, task=None))
        return Reported(replica.instance, list(replica.received), heartbeats)

    def _remember(self) -> None:
        self._commits = self._count_commits()
        self._replicas = ReplicaTable(self._db)
        self._tallies = TallyTable(self._db)
        self._tasks = TaskTable(self._db, self._tallies)
        self._outbox = OutboxTable(self._db)
        self._findings = FindingTable(self._db, self._replicas, self._tasks, self._tallies, self._outbox)

    def _count_commits(self) -> int:
        return int(self._db.execute("SELECT count FROM commits").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            # What is remembered tells duplicates: it must be of the state that is written to.
            if self._count_commits() != self._commits:
                raise StoreError("cannot write to the store: another process writes to it, too")
            yield self._db
            self._db.execute("UPDATE commits SET count = count + 1")
            self._db.execute("COMMIT")
            self._commits += 1
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            # What is remembered may be ahead of what is stored.
            self._remember()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"cannot write to the store: {error}") from error
            raise

    def _write_facts(self, facts: Collection[Fact], now_unix_nano: int) -> None:
        by_replica: defaultdict[str, list[Fact]] = defaultdict(list)
        for fact in facts:
            by_replica[fact.replica].append(fact)
        for instance, reported in by_replica.items():
            self._write_facts_of(instance, reported, now_unix_nano)

    def _write_facts_of(self, instance: str, facts: Sequence[Fact], now_unix_nano: int) -> None:
        replica = self._replicas.get(instance)
        numbers = [fact.n for fact in facts]
        replica.absorb(facts, numbers, now_unix_nano)
        self._tallies.add(replica.id, summary.counts(facts))
        self._db.executemany(
            "INSERT INTO fact VALUES (?, ?, ?, ?)",
            zip(
                self._tasks.absorb(facts, replica),
                repeat(replica.id),
                numbers,
                map(codec.encode, facts),
                strict=False,
            ),
        )


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
