"""The table of notes: what people said of findings, written from any process.

It is no part of the numbered schema: it depends on nothing in it but the ids of tasks and findings, and
a file that has none yet is given one by whoever opens it.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Final

from a2a_fencing.checker import Finding
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.notes import MUTED, Note

# Notes are counted apart from commits: the one writer of facts tells by those that it is the only one.
# `noted` says which findings a note is about. Of notes about no task, the one that reaches furthest
# stands for all alike: their number must not slow down the lists.
_TABLES: Final = """
CREATE TABLE note_changes (count INTEGER NOT NULL);
INSERT INTO note_changes VALUES (0);

CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    "by" TEXT NOT NULL,
    because TEXT NOT NULL,
    task INTEGER,
    rule TEXT,
    run INTEGER,
    upto INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX note_task ON note (task);

CREATE VIEW noted AS
SELECT finding.id AS finding, note.id AS note, kind FROM note JOIN finding ON finding.task = note.task
WHERE (note.rule IS NULL OR note.rule = finding.rule) AND finding.id <= upto
UNION ALL
SELECT finding.id, note.id, kind FROM (
    SELECT id, kind, rule, run, max(upto) AS upto FROM note WHERE task IS NULL GROUP BY kind, rule, run
) AS note JOIN finding ON finding.id <= upto
WHERE (note.rule IS NULL OR note.rule = finding.rule) AND (note.run IS NULL OR note.run = finding.run);
"""

_EVER: Final = 2**63 - 1
"""Beyond all ids of findings."""

_COLUMNS: Final = (
    'note.id, kind, "by", because, store, owner, task_id, incarnation, rule,'
    " (SELECT label FROM run WHERE run.id = note.run), upto, at"
)
_TABLE: Final = "note LEFT JOIN task ON task.id = note.task"
_STORED_TASK: Final = (
    "SELECT id FROM task WHERE task_id = ? AND owner = ? AND store = ? AND incarnation <= ?"
    " ORDER BY incarnation DESC LIMIT 1"
)
"""The checker may tell incarnations apart that are one task in the store."""


def prepare(db: sqlite3.Connection) -> None:
    """Creates the table where there is none."""
    if _exists(db):
        return
    db.execute("BEGIN IMMEDIATE")
    if not _exists(db):  # else another process was faster
        for statement in _TABLES.split(";\n"):
            db.execute(statement)
    db.execute("COMMIT")


def _exists(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'note'").fetchone() is not None


def add(db: sqlite3.Connection, note: Note, now_unix_nano: int) -> None:
    """Keeps a note; one about a task or a run that is not stored is about nothing."""
    task = None if note.task is None else _task_row(db, note.task)
    run = None if note.run is None else _run_row(db, note.run)
    if (task is None and note.task is not None) or (run is None and note.run is not None):
        return
    db.execute(
        'INSERT INTO note (kind, "by", because, task, rule, run, upto, at)'
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            note.kind,
            note.by,
            note.because,
            task,
            note.rule,
            run,
            _EVER if note.upto is None else note.upto,
            now_unix_nano,
        ),
    )
    _count(db)


def remove(db: sqlite3.Connection, note_id: int) -> None:
    """Takes a note back."""
    if db.execute("DELETE FROM note WHERE id = ?", (note_id,)).rowcount:
        _count(db)


def every(db: sqlite3.Connection) -> list[Note]:
    """All notes, newest first."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM {_TABLE} ORDER BY note.id DESC")
    return [_note(row) for row in rows]


def of(db: sqlite3.Connection, findings: Collection[int]) -> Mapping[int, tuple[Note, ...]]:
    """The notes about each of these findings, newest first; by row id of the finding."""
    if not findings:
        return {}
    rows = db.execute(
        f"SELECT noted.finding, {_COLUMNS} FROM {_TABLE} JOIN (SELECT finding, note FROM noted"
        f" WHERE finding IN ({', '.join('?' * len(findings))})) AS noted ON noted.note = note.id"
        " ORDER BY note.id DESC",
        tuple(findings),
    )
    found: defaultdict[int, tuple[Note, ...]] = defaultdict(tuple)
    for finding, *row in rows:
        found[finding] += (_note(row),)
    return found


def mute_of(db: sqlite3.Connection, finding: Finding) -> Note | None:
    """The newest note that mutes a finding that stands."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM {_TABLE} WHERE note.id IN (SELECT note FROM noted WHERE kind = ?"
        " AND finding IN (SELECT id FROM finding WHERE task = ? AND rule = ? AND key = ?))"
        " ORDER BY note.id DESC LIMIT 1",
        (MUTED, _task_row(db, finding.task), finding.rule, finding.key),
    ).fetchone()
    return _note(row) if row else None


def _task_row(db: sqlite3.Connection, key: TaskKey) -> int | None:
    row = db.execute(_STORED_TASK, (key.task_id, key.owner, key.store, key.incarnation)).fetchone()
    return None if row is None else int(row[0])


def _run_row(db: sqlite3.Connection, label: str) -> int | None:
    row = db.execute("SELECT id FROM run WHERE label = ?", (label,)).fetchone()
    return None if row is None else int(row[0])


def _count(db: sqlite3.Connection) -> None:
    db.execute("UPDATE note_changes SET count = count + 1")


def _note(row: Any) -> Note:
    return Note(
        id=row[0],
        kind=row[1],
        by=row[2],
        because=row[3],
        task=None if row[6] is None else TaskKey(*row[4:8]),
        rule=row[8],
        run=row[9],
        upto=None if row[10] == _EVER else row[10],
        at_unix_nano=row[11],
    )
