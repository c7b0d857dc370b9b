"""The table of tasks: one row a task."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import msgspec

from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.sqlite.replicas import Replica
from a2a_fencing_dashboard.store.summary import VERDICTS, TaskSummary

NO_TASK: Final = 0
"""Row id that facts of no task have."""

REMEMBERED: Final = 50_000
"""Tasks whose row is kept in memory between batches."""

_FIELDS: Final = (
    "run",
    "context_id",
    "state",
    "version",
    "version_unix_nano",
    "violations",
    "facts",
    "writes",
    "conflicts",
    "rejections",
    "drops",
    "dispatches",
    "first",
    "last",
)
_values = attrgetter(*_FIELDS)
_KEY: Final = ("id", "task_id", "owner", "store", "incarnation", "origin")
_CHANGING: Final = ("judged", "verdict", "replicas", *_FIELDS)
_ALL: Final = (*_KEY, *_CHANGING)
_INSERT: Final = f"INSERT INTO task ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))})"
_UPDATE: Final = f"UPDATE task SET {', '.join(f'{name} = ?' for name in _CHANGING)} WHERE id = ?"
_SELECT: Final = (
    f"SELECT id, origin, judged, replicas, {', '.join(_FIELDS)} FROM task"
    " WHERE task_id = ? AND owner = ? AND store = ? AND incarnation = ?"
)


class TaskTable:
    """Rows of tasks by key; those read or made last are remembered."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Works on the writing connection."""
        self._db = db
        self._by_key: dict[TaskKey, TaskSummary] = {}
        self._new: dict[TaskKey, TaskSummary] = {}
        self._touched: dict[int, TaskSummary] = {}
        self._new_pairs: list[tuple[int, int]] = []
        (self._next_id,) = db.execute("SELECT coalesce(max(id), 0) + 1 FROM task").fetchone()

    def absorb(self, facts: Sequence[Fact], replica: Replica) -> list[int]:
        """Takes facts that a replica reported into account; returns the row id of each one's task."""
        rows = []
        for fact in facts:
            key = fact.task
            if key is None:
                rows.append(NO_TASK)
                continue
            task = self._by_key.get(key) or self._find(key) or self._create(key, replica)
            task.absorb(fact)
            rows.append(task.id)
            self._touched[task.id] = task
            if replica.id not in task.replicas:
                task.replicas.append(replica.id)
                self._new_pairs.append((replica.id, task.id))
        return rows

    def of(self, key: TaskKey) -> TaskSummary:
        """The task that the checker speaks of; it will be written.

        The checker may split incarnations further than the replicas did: then it is the last
        incarnation they reported up to that one.
        """
        task = self._find(key)
        if task is None:
            self.write()
            (incarnation,) = self._db.execute(
                "SELECT incarnation FROM task WHERE task_id = ? AND owner = ? AND store = ?"
                " ORDER BY incarnation > ?, abs(incarnation - ?) LIMIT 1",
                (key.task_id, key.owner, key.store, key.incarnation, key.incarnation),
            ).fetchone() or (None,)
            if incarnation is not None:
                task = self._find(TaskKey(key.store, key.owner, key.task_id, incarnation))
        if task is None:
            raise StoreError(f"a finding speaks of a task that is not stored: {key}")
        self._touched[task.id] = task
        return task

    def incarnations(self, key: TaskKey) -> list[tuple[int, int]]:
        """Row id and incarnation of everything that is stored under this key's id."""
        return self._db.execute(
            "SELECT id, incarnation FROM task WHERE task_id = ? AND owner = ? AND store = ?",
            (key.task_id, key.owner, key.store),
        ).fetchall()

    def settle_run(self, replica: Replica) -> None:
        """Fills in the run of tasks that were reported before their replica said which run it is in."""
        self._db.execute(
            "UPDATE finding SET run = ? WHERE run IS NULL"
            " AND task IN (SELECT id FROM task WHERE origin = ?)",
            (replica.run, replica.id),
        )
        self._db.execute(
            "UPDATE task SET run = ? WHERE run IS NULL AND origin = ?", (replica.run, replica.id)
        )
        for task in self._by_key.values():
            if task.run is None and task.origin == replica.id:
                task.run = replica.run

    def write(self) -> None:
        """Writes the rows that changed."""
        self._db.executemany(
            _INSERT,
            [
                (task.id, k.task_id, k.owner, k.store, k.incarnation, task.origin, *_changing(task))
                for k, task in self._new.items()
            ],
        )
        for task in self._new.values():
            self._touched.pop(task.id, None)
        self._db.executemany(_UPDATE, [(*_changing(t), row_id) for row_id, t in self._touched.items()])
        self._db.executemany("INSERT INTO replica_task VALUES (?, ?)", self._new_pairs)
        self._new.clear()
        self._touched.clear()
        self._new_pairs.clear()
        for key in list(islice(self._by_key, max(0, len(self._by_key) - REMEMBERED))):
            del self._by_key[key]

    def _find(self, key: TaskKey) -> TaskSummary | None:
        task = self._by_key.get(key)
        if task is None:
            task = self._load(key)
            if task is not None:
                self._by_key[key] = task
        return task

    def _create(self, key: TaskKey, replica: Replica) -> TaskSummary:
        task = TaskSummary(self._next_id, replica.id, replica.run)
        self._next_id += 1
        self._by_key[key] = self._new[key] = task
        return task

    def _load(self, key: TaskKey) -> TaskSummary | None:
        row = self._db.execute(_SELECT, (key.task_id, key.owner, key.store, key.incarnation)).fetchone()
        if row is None:
            return None
        row_id, origin, judged, replicas, *values = row
        task = TaskSummary(row_id, origin, None)
        task.judged = VERDICTS[judged]
        for name, value in zip(_FIELDS, values, strict=True):
            setattr(task, name, value)
        task.replicas = msgspec.json.decode(replicas, type=list[int])
        return task


def _changing(task: TaskSummary) -> tuple[Any, ...]:
    return (
        VERDICTS.index(task.judged),
        VERDICTS.index(task.verdict),
        msgspec.json.encode(task.replicas).decode(),
        *_values(task),
    )
