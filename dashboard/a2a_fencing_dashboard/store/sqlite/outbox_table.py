"""The tables of what is to be told to others, and what a commit writes into them.

They are no part of the numbered schema: nothing in it depends on them, and whoever sends or writes makes
them where there are none.
"""

from __future__ import annotations

import sqlite3
import uuid
from typing import Any, Final

import msgspec

from a2a_fencing.checker import Finding
from a2a_fencing_dashboard.store import notes
from a2a_fencing_dashboard.store.outbox import CHANGED, NEW, RETRACTED

LIMIT: Final = 100_000
"""How many changes wait at most, about 1 KB each; the oldest give way."""

# `id` never comes twice, and leaves no gap. `sending` is where the parcel ends that was tried last, so
# that the next try sends the same. `hushed` has the standing findings nobody is told of. A change names
# its task itself, as the row of a task may be gone by the time it is told; `task` leads to its run.
# `finding_changes` counts commits in which a finding became more or less certain or grave.
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS outbox_change (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reason TEXT NOT NULL,
    task INTEGER NOT NULL,
    store TEXT NOT NULL,
    owner TEXT NOT NULL,
    task_id TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    rule TEXT NOT NULL,
    severity TEXT NOT NULL,
    certainty TEXT NOT NULL,
    witness TEXT NOT NULL,
    explanation TEXT NOT NULL,
    key TEXT NOT NULL,
    seen INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS outbox_cursor (
    destination TEXT PRIMARY KEY,
    delivered INTEGER NOT NULL,
    sending INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox_state (name TEXT NOT NULL, heeded INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS hushed (finding INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS finding_changes (count INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS finding_kind ON finding (severity, rule, certainty, run, seen);
"""
_TOLD: Final = "incarnation, rule, severity, certainty, witness, explanation, key, seen"
_INSERT: Final = f"INSERT INTO outbox_change (reason, task, store, owner, task_id, {_TOLD})"
MUTED_FINDINGS: Final = f"SELECT finding FROM noted WHERE kind = '{notes.MUTED}'"


def prepare(db: sqlite3.Connection) -> None:
    """Makes the tables where there are none."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'finding_changes'").fetchone():
        return
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";\n"):
        db.execute(statement)
    if not db.execute("SELECT 1 FROM outbox_state").fetchone():
        db.execute("INSERT INTO outbox_state VALUES (?, 0)", (uuid.uuid4().hex,))
    if not db.execute("SELECT 1 FROM finding_changes").fetchone():
        db.execute("INSERT INTO finding_changes VALUES (0)")
    db.execute("COMMIT")


class OutboxTable:
    """The writing half: changes to findings in the transaction that makes them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Works on the writing connection."""
        prepare(db)
        self._db = db
        self._gone: dict[Any, tuple[Finding, int, int, bool]] = {}
        self._came: dict[Any, tuple[Finding, int]] = {}

    def removed(self, finding: Finding, row_id: int, task: int, now_unix_nano: int) -> None:
        """Takes note of a finding that was removed."""
        identity = finding.identity
        if not finding.violates or self._came.pop(identity, None) is not None:
            return
        hushed = self._db.execute("DELETE FROM hushed WHERE finding = ?", (row_id,)).rowcount > 0
        self._gone[identity] = finding, task, now_unix_nano, hushed

    def added(self, finding: Finding, row_id: int) -> None:
        """Takes note of a finding that was added."""
        if finding.violates:
            self._came[finding.identity] = finding, row_id

    def write(self) -> None:
        """Writes what was noted, where somebody listens."""
        gone, came = dict(self._gone), dict(self._came)
        self._gone.clear()
        self._came.clear()
        if any(_weight(gone[i][0]) != _weight(came[i][0]) for i in gone.keys() & came.keys()):
            self._db.execute("UPDATE finding_changes SET count = count + 1")
        if not (gone or came) or not self._db.execute("SELECT 1 FROM outbox_cursor").fetchone():
            return
        for identity, (finding, task, now, hushed) in gone.items():
            if identity not in came and not hushed:
                self._retract(finding, task, now)
        for identity, (finding, row_id) in came.items():
            told = identity in gone and not gone[identity][3]
            if not told:
                self._announce(row_id, NEW)
            elif _weight(finding) != _weight(gone[identity][0]):
                self._announce(row_id, CHANGED)
        self._db.execute(
            "DELETE FROM outbox_change WHERE id <= (SELECT max(id) FROM outbox_change) - ?", (LIMIT,)
        )

    def _announce(self, row_id: int, reason: str) -> None:
        if self._db.execute(f"{MUTED_FINDINGS} AND finding = ?", (row_id,)).fetchone():
            self._db.execute("INSERT OR IGNORE INTO hushed VALUES (?)", (row_id,))
        else:
            copy(self._db, reason, "finding.id = ?", row_id)

    def _retract(self, finding: Finding, task: int, now_unix_nano: int) -> None:
        self._db.execute(
            f"{_INSERT} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                RETRACTED,
                task,
                finding.task.store,
                finding.task.owner,
                finding.task.task_id,
                finding.task.incarnation,
                finding.rule,
                finding.severity,
                finding.certainty,
                msgspec.json.encode(finding.witness).decode(),
                finding.explanation,
                finding.key,
                now_unix_nano,
            ),
        )


def _weight(finding: Finding) -> tuple[str, str]:
    """What a change of is worth telling; other words are not."""
    return finding.severity, finding.certainty


def copy(db: sqlite3.Connection, reason: str, which: str, *parameters: Any) -> None:
    """Puts these rows of the table of findings into the outbox."""
    db.execute(
        f"{_INSERT} SELECT ?, task, store, owner, task_id, finding.{_TOLD}"
        f" FROM finding JOIN task ON task.id = finding.task WHERE {which}",
        (reason, *parameters),
    )
