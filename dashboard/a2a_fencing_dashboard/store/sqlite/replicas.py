"""The table of replicas, and which of their facts have arrived."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact
from a2a_fencing_dashboard.store.durations import Durations
from a2a_fencing_dashboard.store.numbering import Ranges
from a2a_fencing_dashboard.store.summary import save_times

_FIELDS: Final = (
    "run",
    "name",
    "started",
    "last_seen",
    "interval_s",
    "sdk_version",
    "guard",
    "announced",
    "first_heartbeat",
    "last_heartbeat",
    "idle_heartbeat",
    "lost",
    "executing",
    "skew",
    "first_work",
    "last_work",
    "save_times",
)
_values = attrgetter(*_FIELDS)
_SELECT: Final = f"SELECT id, instance, {', '.join(_FIELDS)} FROM replica"
_ALL: Final = ("id", "instance", *_FIELDS, "facts", "missing")
_REPLACE: Final = f"REPLACE INTO replica ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))})"


class Replica:
    """The row of one replica.

    Attributes:
        run: Row id of its run; None while no heartbeat has told, 0 when it has no label.
        announced: Highest number it says it has given to a fact.
        first_heartbeat, last_heartbeat, idle_heartbeat: Numbers of its first heartbeat, its last, and
            its last without an execution; 0 for none.
        received: Numbers of the facts that arrived.
        skew: Its clock minus ours, ns, at the fact that was delivered fastest.
        first_work, last_work: Its clock at its first and its last fact about a task, ns.
        saves: How long its accepted writes took, by `durations.bucket`.
    """

    def __init__(self, row_id: int, instance: str) -> None:
        """Starts a replica of which nothing has arrived."""
        self.id = row_id
        self.instance = instance
        self.run: int | None = None
        self.run_label: str | None = None
        self.name: str | None = None
        self.started: int | None = None
        self.last_seen = 0
        self.interval_s: float | None = None
        self.sdk_version: str | None = None
        self.guard = False
        self.announced = 0
        self.first_heartbeat = 0
        self.last_heartbeat = 0
        self.idle_heartbeat = 0
        self.lost = 0
        self.executing = 0
        self.skew: int | None = None
        self.first_work: int | None = None
        self.last_work: int | None = None
        self.saves: Counter[int] = Counter()
        self.received = Ranges()
        self.stored_ranges: dict[int, int] = {}

    @property
    def save_times(self) -> bytes:
        """Its `saves` as they are stored."""
        return Durations(self.saves).encode()

    @save_times.setter
    def save_times(self, stored: bytes | None) -> None:
        self.saves = Counter(Durations.decode(stored).counts)

    @property
    def missing(self) -> int:
        """How many of its facts were numbered and have not arrived."""
        return max(self.received.highest, self.announced) - self.received.count

    @property
    def telling_heartbeats(self) -> set[int]:
        """Numbers of the heartbeats that tell all that its heartbeats told."""
        return {self.first_heartbeat, self.last_heartbeat, self.idle_heartbeat} - {0}

    def absorb(self, facts: Sequence[Fact], numbers: Sequence[int], now_unix_nano: int) -> None:
        """Takes new facts of this replica, with their numbers, into account."""
        self.received.add(numbers)
        self.last_seen = now_unix_nano
        skew = max([fact.time_unix_nano for fact in facts]) - now_unix_nano
        self.skew = skew if self.skew is None else max(self.skew, skew)
        for fact, n in zip(facts, numbers, strict=True):
            if fact.kind == c.HEARTBEAT:
                self._hear(fact, n)
            elif fact.kind == c.OMITTED and fact.last is not None:
                self.received.fill(n, fact.last)
        self.saves.update(save_times(facts))
        self._work([fact.time_unix_nano for fact in facts if fact.task is not None])

    def _work(self, times: Sequence[int]) -> None:
        if times:
            first, last = min(times), max(times)
            self.first_work = first if self.first_work is None else min(self.first_work, first)
            self.last_work = last if self.last_work is None else max(self.last_work, last)

    def _hear(self, heartbeat: Fact, n: int) -> None:
        self.announced = max(self.announced, heartbeat.last or 0)
        self.first_heartbeat = min(self.first_heartbeat or n, n)
        if heartbeat.executing == 0:
            self.idle_heartbeat = max(self.idle_heartbeat, n)
        if n < self.last_heartbeat:
            return
        self.last_heartbeat = n
        self.name = heartbeat.replica_name
        self.run_label = heartbeat.run
        self.started = heartbeat.started_unix_nano
        self.interval_s = heartbeat.interval_s
        self.sdk_version = heartbeat.sdk_version
        self.guard = bool(heartbeat.guard)
        self.lost = heartbeat.lost or 0
        self.executing = heartbeat.executing or 0


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
            row = self._db.execute(f"{_SELECT} WHERE instance = ?", (instance,)).fetchone()
            replica = None if row is None else self._load(row)
        return replica

    def get(self, instance: str) -> Replica:
        """The replica, a new one where none is stored; it will be written."""
        replica = self.find(instance)
        if replica is None:
            replica = self._by_instance[instance] = Replica(self._next_id, instance)
            self._next_id += 1
        self._touched[replica.id] = replica
        return replica

    def all(self) -> Iterator[Replica]:
        """Every replica that is stored."""
        for row in self._db.execute(_SELECT).fetchall():
            yield self._by_instance.get(row[1]) or self._load(row)

    def write(self) -> list[Replica]:
        """Writes what changed; returns the replicas whose run has just become known."""
        settled = []
        for replica in self._touched.values():
            if replica.run is None and replica.last_heartbeat:
                replica.run = self._run_id(replica.run_label)
                settled.append(replica)
            self._db.execute(
                _REPLACE,
                (
                    replica.id,
                    replica.instance,
                    *_values(replica),
                    replica.received.count,
                    replica.missing,
                ),
            )
            self._write_ranges(replica)
        self._touched.clear()
        return settled

    def _load(self, row: tuple[Any, ...]) -> Replica:
        row_id, instance, *values = row
        replica = Replica(row_id, instance)
        for name, value in zip(_FIELDS, values, strict=True):
            setattr(replica, name, value)
        ranges = self._db.execute(
            "SELECT first, last FROM received WHERE replica = ? ORDER BY first", (row_id,)
        ).fetchall()
        replica.received = Ranges(ranges)
        replica.stored_ranges = dict(ranges)
        self._by_instance[instance] = replica
        return replica

    def _run_id(self, label: str | None) -> int:
        if label is None:
            return 0
        self._db.execute("INSERT OR IGNORE INTO run (label) VALUES (?)", (label,))
        (run,) = self._db.execute("SELECT id FROM run WHERE label = ?", (label,)).fetchone()
        return int(run)

    def _write_ranges(self, replica: Replica) -> None:
        ranges = dict(replica.received)
        stored = replica.stored_ranges
        self._db.executemany(
            "DELETE FROM received WHERE replica = ? AND first = ?",
            [(replica.id, first) for first in stored.keys() - ranges.keys()],
        )
        self._db.executemany(
            "REPLACE INTO received VALUES (?, ?, ?)",
            [(replica.id, first, last) for first, last in ranges.items() - stored.items()],
        )
        replica.stored_ranges = ranges
