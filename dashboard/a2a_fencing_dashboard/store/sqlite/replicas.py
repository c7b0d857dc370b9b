"""The table of replicas, and which of their facts have arrived."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.store.numbering import Ranges


class Replica:
    """The row of one replica."""

    def __init__(self, row_id: int, instance: str) -> None:
        """Starts a replica of which nothing has arrived."""
        self.id = row_id
        self.instance = instance
        self.run: int | None = None
        self.name: str | None = None
        self.run_label: str | None = None
        self.started: int | None = None
        self.last_seen = 0
        self.interval_s: float | None = None
        self.sdk_version: str | None = None
        self.guard = False
        self.last = 0
        self.heartbeat = 0
        self.lost = 0
        self.executing = 0
        self.skew: int | None = None
        self.received = Ranges()
        self.stored: dict[int, int] = {}

    @property
    def missing(self) -> int:
        """How many of its facts were numbered and have not arrived."""
        return max(self.received.highest, self.last) - self.received.count

    def absorb(self, facts: Sequence[Fact], numbers: Sequence[int], now_unix_nano: int) -> None:
        """Takes new facts of this replica, with their numbers, into account."""
        self.received.add(numbers)
        self.last_seen = now_unix_nano
        skew = max([fact.time_unix_nano for fact in facts]) - now_unix_nano
        self.skew = skew if self.skew is None else max(self.skew, skew)
        for fact in facts:
            if fact.kind == c.HEARTBEAT:
                self._absorb_heartbeat(fact)

    def _absorb_heartbeat(self, fact: Fact) -> None:
        self.last = max(self.last, fact.last or 0)
        if fact.n < self.heartbeat:
            return
        self.heartbeat = fact.n
        self.name = fact.replica_name
        self.run_label = fact.run
        self.started = fact.started_unix_nano
        self.interval_s = fact.interval_s
        self.sdk_version = fact.sdk_version
        self.guard = bool(fact.guard)
        self.lost = fact.lost or 0
        self.executing = fact.executing or 0


_COLUMNS = (
    "id, instance, run, name, started, last_seen, interval_s, sdk_version, guard, last, heartbeat, lost,"
    " executing, skew"
)


class ReplicaTable:
    """Replicas by instance id, read when first needed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Works on the writing connection."""
        self._db = db
        self._by_instance: dict[str, Replica] = {}
        self._touched: dict[int, Replica] = {}
        (self._next_id,) = db.execute("SELECT coalesce(max(id), 0) + 1 FROM replica").fetchone()

    def find(self, instance: str) -> Replica | None:
        """The replica, or None when nothing of it is stored."""
        replica = self._by_instance.get(instance)
        if replica is None:
            replica = self._load(instance)
            if replica is not None:
                self._by_instance[instance] = replica
        return replica

    def get(self, instance: str) -> Replica:
        """The replica, a new one where none is stored; it will be written."""
        replica = self._by_instance.get(instance) or self.find(instance)
        if replica is None:
            replica = self._by_instance[instance] = Replica(self._next_id, instance)
            self._next_id += 1
        self._touched[replica.id] = replica
        return replica

    def write(self) -> list[Replica]:
        """Writes what changed; returns the replicas whose run has just become known."""
        settled = []
        for replica in self._touched.values():
            if replica.run is None and replica.heartbeat:
                replica.run = self._run_id(replica.run_label)
                settled.append(replica)
            self._write_row(replica)
            self._write_ranges(replica)
        self._touched.clear()
        return settled

    def _load(self, instance: str) -> Replica | None:
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM replica WHERE instance = ?", (instance,)
        ).fetchone()
        if row is None:
            return None
        replica = Replica(row[0], instance)
        (
            replica.run,
            replica.name,
            replica.started,
            replica.last_seen,
            replica.interval_s,
            replica.sdk_version,
            replica.guard,
            replica.last,
            replica.heartbeat,
            replica.lost,
            replica.executing,
            replica.skew,
        ) = row[2:]
        ranges = self._db.execute(
            "SELECT first, last FROM received WHERE replica = ? ORDER BY first", (replica.id,)
        ).fetchall()
        replica.received = Ranges(ranges)
        replica.stored = dict(ranges)
        return replica

    def _run_id(self, label: str | None) -> int:
        if label is None:
            return 0
        self._db.execute("INSERT OR IGNORE INTO run (label) VALUES (?)", (label,))
        (run,) = self._db.execute("SELECT id FROM run WHERE label = ?", (label,)).fetchone()
        return int(run)

    def _write_row(self, replica: Replica) -> None:
        self._db.execute(
            f"INSERT OR REPLACE INTO replica ({_COLUMNS}, facts, missing)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                replica.id,
                replica.instance,
                replica.run,
                replica.name,
                replica.started,
                replica.last_seen,
                replica.interval_s,
                replica.sdk_version,
                replica.guard,
                replica.last,
                replica.heartbeat,
                replica.lost,
                replica.executing,
                replica.skew,
                replica.received.count,
                replica.missing,
            ),
        )

    def _write_ranges(self, replica: Replica) -> None:
        ranges = dict(replica.received)
        changed = ranges.items() - replica.stored.items()
        self._db.executemany(
            "DELETE FROM received WHERE replica = ? AND first = ?",
            [(replica.id, first) for first in replica.stored.keys() - ranges.keys()],
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO received VALUES (?, ?, ?)",
            [(replica.id, first, last) for first, last in changed],
        )
        replica.stored = ranges
