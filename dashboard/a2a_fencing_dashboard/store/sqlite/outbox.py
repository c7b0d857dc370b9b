"""The outbox as whoever sends alerts sees it: what is next, for whom, and what stands."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.outbox import MUTED, UNMUTED, Change, Parcel, Standing
from a2a_fencing_dashboard.store.sqlite.outbox_table import MUTED_FINDINGS, copy, prepare
from a2a_fencing_dashboard.store.sqlite.schema import connect
from a2a_fencing_dashboard.store.sqlite.tallies import ALL_TIME
from a2a_fencing_dashboard.store.summary import VIOLATIONS

_BYTES: Final = 1 << 20
"""About how large the texts of a parcel may be together; one change may exceed it."""

_GROUPS: Final = 1000
"""How many kinds of standing findings are told apart."""

_FINDING: Final = (
    "store, owner, task_id, {0}.incarnation, rule, severity, certainty, witness, explanation, key, seen"
)
_RUN_OF_FINDING: Final = "(SELECT label FROM run WHERE run.id = finding.run)"
_RUN_OF_TASK: Final = (
    "(SELECT label FROM run JOIN task ON run.id = task.run WHERE task.id = outbox_change.task)"
)


class SqliteOutbox:
    """The sending half, on a connection of its own; used from any thread, one at a time."""

    def __init__(self, path: str) -> None:
        """Works on the store at `path`."""
        self._path = path
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def listen(self, destinations: Collection[str]) -> None:
        """From now on keeps what happens for these destinations, and for no others."""
        with self._transaction() as db:
            if not db.execute("SELECT 1 FROM outbox_cursor").fetchone():  # nobody has heard of anything
                db.execute("DELETE FROM hushed")
                db.execute(f"INSERT INTO hushed {MUTED_FINDINGS} GROUP BY finding")
                _note_heeded(db)
            marks = ", ".join("?" * len(destinations))
            db.execute(
                f"DELETE FROM outbox_cursor WHERE destination NOT IN ({marks})", tuple(destinations)
            )
            (end,) = db.execute(
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox_change'"
            ).fetchone()
            db.executemany(
                "INSERT OR IGNORE INTO outbox_cursor VALUES (?, ?, ?)",
                [(destination, end, end) for destination in destinations],
            )
            _prune(db)

    def parcel(self, destination: str, *, limit: int) -> Parcel | None:
        """What this destination is to be told next; what was tried already comes again as it was."""
        with self._transaction() as db:
            delivered, sending = db.execute(
                "SELECT delivered, sending FROM outbox_cursor WHERE destination = ?", (destination,)
            ).fetchone()
            again = sending > delivered
            rows = db.execute(
                f"SELECT id, reason, {_RUN_OF_TASK}, {_FINDING.format('outbox_change')}"
                " FROM outbox_change WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
                (delivered, sending if again else 2**62, limit),
            ).fetchall()
            if not rows:
                if again:  # all of it has given way
                    db.execute(
                        "UPDATE outbox_cursor SET sending = delivered WHERE destination = ?",
                        (destination,),
                    )
                return None
            rows = rows[: _how_many(rows)]
            last = rows[-1][0]
            db.execute("UPDATE outbox_cursor SET sending = ? WHERE destination = ?", (last, destination))
            (name,) = db.execute("SELECT name FROM outbox_state").fetchone()
        changes = [
            Change(row_id, reason, _finding(columns), run, columns[-1])
            for row_id, reason, run, *columns in rows
        ]
        first = changes[0].id
        return Parcel(f"{name}-{first}-{last}", last, changes, dropped=first - delivered - 1)

    def delivered(self, destination: str, parcel: Parcel) -> None:
        """Notes that this destination is done with a parcel."""
        with self._transaction() as db:
            db.execute(
                "UPDATE outbox_cursor SET delivered = ?, sending = ? WHERE destination = ?",
                (parcel.last, parcel.last, destination),
            )
            _prune(db)

    def waiting(self, destination: str) -> int:
        """How many changes this destination has not been told of."""
        with self._connected() as db:
            (count,) = db.execute(
                "SELECT count(*) FROM outbox_change WHERE id >"
                " (SELECT delivered FROM outbox_cursor WHERE destination = ?)",
                (destination,),
            ).fetchone()
            return int(count)

    def heed_notes(self) -> None:
        """Puts what has been muted or unmuted since the last call into the outbox."""
        with self._connected() as db:
            (changes,) = db.execute("SELECT count FROM note_changes").fetchone()
            if db.execute("SELECT 1 FROM outbox_state WHERE heeded = ?", (changes,)).fetchone():
                return
        with self._transaction() as db:
            now_muted = (
                f"severity <> '{c.INFO}' AND finding.id IN ({MUTED_FINDINGS})"
                " AND finding.id NOT IN (SELECT finding FROM hushed)"
            )
            copy(db, MUTED, now_muted)
            db.execute(f"INSERT INTO hushed SELECT id FROM finding WHERE {now_muted}")
            unmuted = (
                f"finding.id IN (SELECT finding FROM hushed) AND finding.id NOT IN ({MUTED_FINDINGS})"
            )
            copy(db, UNMUTED, unmuted)
            db.execute(f"DELETE FROM hushed WHERE finding NOT IN ({MUTED_FINDINGS})")
            _note_heeded(db)

    def pulse(self) -> tuple[int, ...]:
        """Differs from what it was whenever `standing` may."""
        with self._connected() as db:
            (notes,) = db.execute("SELECT count FROM note_changes").fetchone()
            newest = db.execute("SELECT id, seen FROM finding ORDER BY id DESC LIMIT 1").fetchone()
            (changes,) = db.execute("SELECT count FROM finding_changes").fetchone()
            (violations,) = db.execute(
                "SELECT total(count) FROM tally WHERE width = ? AND bucket = 0 AND measure = ?",
                (ALL_TIME, VIOLATIONS),
            ).fetchone()
            return int(notes), int(changes), int(violations), *(newest or ())

    def standing(self, *, since_unix_nano: int = 0) -> list[Standing]:
        """What violates and is not muted, of what was concluded since then, newest first."""
        with self._connected() as db:
            rows = db.execute(
                f"SELECT count, since, {_RUN_OF_FINDING}, {_FINDING.format('finding')} FROM"
                " (SELECT count(*) AS count, min(seen) AS since, max(id) AS newest FROM finding"
                f" WHERE severity IN ('{c.CRITICAL}', '{c.WARNING}') AND seen >= ?"
                f" AND id NOT IN ({MUTED_FINDINGS}) GROUP BY severity, rule, certainty, run"
                " ORDER BY newest DESC LIMIT ?)"
                " JOIN finding ON finding.id = newest JOIN task ON task.id = finding.task"
                " ORDER BY newest DESC",
                (since_unix_nano, _GROUPS),
            ).fetchall()
        found = []
        for count, since, run, *columns in rows:
            newest = _finding(columns)
            kind = newest.rule, newest.severity, newest.certainty
            found.append(Standing(*kind, run, count, since, newest, columns[-1]))
        return found

    def close(self) -> None:
        """Lets go of the connection."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = connect(self._path)
                    prepare(self._db)
                yield self._db
            except sqlite3.Error as error:
                raise StoreError(f"cannot use the outbox: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")


def _how_many(rows: Sequence[Sequence[Any]]) -> int:
    """How many of these rows fit into a parcel."""
    room = _BYTES
    for number, row in enumerate(rows):
        room -= sum(len(value) for value in row if isinstance(value, str))
        if room < 0:
            return max(1, number)
    return len(rows)


def _note_heeded(db: sqlite3.Connection) -> None:
    db.execute("UPDATE outbox_state SET heeded = (SELECT count FROM note_changes)")


def _prune(db: sqlite3.Connection) -> None:
    """Removes what everybody was told."""
    db.execute(
        "DELETE FROM outbox_change WHERE id <= (SELECT coalesce(min(delivered), ?) FROM outbox_cursor)",
        (2**62,),
    )


def _finding(columns: Sequence[Any]) -> Finding:
    store, owner, task_id, incarnation, rule, severity, certainty, witness, explanation, key, _ = columns
    return Finding(
        rule,
        severity,
        certainty,
        TaskKey(store, owner, task_id, incarnation),
        tuple(msgspec.json.decode(witness)),
        explanation,
        key,
    )
