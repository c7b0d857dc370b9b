"""Tables, and how a database file becomes a store of ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.sqlite import clocks, notes
from a2a_fencing_dashboard.store.sqlite.migrations import (
    gather_save_times,
    measure_durations,
    spare_scans,
)
from a2a_fencing_dashboard.store.sqlite.task_counts import TABLE as _TASK_COUNTS

VERSION: Final = 4
APPLICATION_ID: Final = 0x41324146
"""Marks a SQLite file as ours ("A2AF"), so that no other application's database is written to."""

# Facts are appended, and found by their task through a small index: kept in the order of tasks, each
# commit would touch as many pages as there are active tasks.
# Duplicates and gaps are told by `received`, the ranges of numbers that arrived from each replica.
# `tally` holds counts at several widths of bucket, so that any window is the sum of few rows;
# width 0 is all of time.
# run is NULL until the first heartbeat of the replica has told it, 0 when it has no label.
# `task_list` holds all that lists of tasks are counted, filtered and sorted by, so that this never
# reads the rows themselves. `task.replicas` repeats `replica_task`, for the rows that are shown.
# `finding_list` has all that findings are counted and chosen by.
# `task_text` finds any part of an id: row 2 * task.id has task id and owner, row 2 * task.id + 1 the
# context id, which may become known later.
_TABLES: Final = """
CREATE TABLE commits (count INTEGER NOT NULL);
INSERT INTO commits VALUES (0);

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    label TEXT NOT NULL UNIQUE
);

CREATE TABLE replica (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL UNIQUE,
    name TEXT,
    run INTEGER,
    started INTEGER,
    last_seen INTEGER NOT NULL,
    interval_s REAL,
    sdk_version TEXT,
    guard INTEGER NOT NULL,
    announced INTEGER NOT NULL,
    first_heartbeat INTEGER NOT NULL,
    last_heartbeat INTEGER NOT NULL,
    idle_heartbeat INTEGER NOT NULL,
    facts INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    executing INTEGER NOT NULL,
    skew INTEGER,
    first_work INTEGER,
    last_work INTEGER,
    save_times BLOB
);

CREATE TABLE received (
    replica INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (replica, first)
) WITHOUT ROWID;

CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    store TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    run INTEGER,
    context_id TEXT,
    state TEXT,
    version,
    version_unix_nano INTEGER NOT NULL,
    judged INTEGER NOT NULL,
    verdict INTEGER NOT NULL,
    violations INTEGER NOT NULL,
    facts INTEGER NOT NULL,
    writes INTEGER NOT NULL,
    conflicts INTEGER NOT NULL,
    rejections INTEGER NOT NULL,
    drops INTEGER NOT NULL,
    dispatches INTEGER NOT NULL,
    replicas TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    finished INTEGER,
    UNIQUE (task_id, owner, store, incarnation)
);
CREATE INDEX task_list ON task (
    last, first, run, verdict, state, facts, conflicts, rejections, drops, dispatches
);
CREATE INDEX task_without_run ON task (origin) WHERE run IS NULL;

CREATE TABLE replica_task (
    replica INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (replica, task)
) WITHOUT ROWID;

CREATE VIRTUAL TABLE task_text USING fts5 (text, content = '', tokenize = 'trigram', columnsize = 0);

CREATE TABLE fact (
    task INTEGER NOT NULL,
    replica INTEGER NOT NULL,
    n INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX fact_task ON fact (task, replica, n);

CREATE TABLE tally (
    width INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    replica INTEGER NOT NULL,
    measure TEXT NOT NULL,
    detail TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (width, bucket, replica, measure, detail)
) WITHOUT ROWID;

CREATE TABLE finding (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    run INTEGER,
    incarnation INTEGER NOT NULL,
    rule TEXT NOT NULL,
    severity TEXT NOT NULL,
    certainty TEXT NOT NULL,
    witness TEXT NOT NULL,
    explanation TEXT NOT NULL,
    key TEXT NOT NULL,
    replica INTEGER NOT NULL,
    at INTEGER NOT NULL,
    seen INTEGER NOT NULL
);
CREATE INDEX finding_task ON finding (task);
CREATE INDEX finding_list ON finding (severity, at, run, rule, task);
CREATE INDEX finding_without_run ON finding (task) WHERE run IS NULL;

CREATE TABLE span (
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    parent_span_id TEXT,
    name TEXT NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    service TEXT NOT NULL,
    error INTEGER NOT NULL,
    attributes TEXT NOT NULL,
    UNIQUE (trace_id, span_id)
);
"""


def connect(path: str) -> sqlite3.Connection:
    """Opens a connection; transactions are begun explicitly, threads may hand it on.

    A commit is on its way to the disk when it returns: it survives the death of this process, and the
    file stays consistent over a power failure, which may cost the last moments.
    """
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    try:
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA cache_size = -65536")
    except sqlite3.Error:
        db.close()
        raise
    return db


def prepare(path: str) -> None:
    """Creates the tables where there are none.

    Raises:
        StoreError: The file is not a store, is one of a newer version, or cannot be used.
    """
    if not Path(path).resolve().parent.is_dir():
        raise StoreError(f"cannot open store {path}: no directory {Path(path).resolve().parent}")
    try:
        db = connect(path)
        try:
            _prepare(db, path)
        finally:
            db.close()
    except sqlite3.Error as error:
        raise StoreError(f"cannot open store {path}: {error}") from error


def _prepare(db: sqlite3.Connection, path: str) -> None:
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables:
        _create(db)
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise StoreError(f"cannot open store {path}: a database of another application")
    if version > VERSION:
        raise StoreError(f"cannot open store {path}: written by a newer a2a-fencing (schema {version})")
    if version < VERSION:
        _migrate(db)
    notes.prepare(db)
    clocks.prepare(db)


def _create(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN IMMEDIATE")
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables:  # else another process was faster
        for statement in (*_TABLES.split(";\n"), _TASK_COUNTS):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


_STEPS: Final = {1: measure_durations, 2: gather_save_times, 3: spare_scans}
"""By the version that a step starts from; it ends at the next one."""


def _migrate(db: sqlite3.Connection) -> None:
    """Brings a store of an older version up to date, or leaves it as it is."""
    db.execute("BEGIN IMMEDIATE")
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for step in range(version, VERSION):  # none where another process was faster
            _STEPS[step](db)
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
