"""The table of tasks: one row a task, kept up to date fact by fact."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from operator import attrgetter
from typing import Final

from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.sqlite.replicas import Replica
from a2a_fencing_dashboard.store.summary import TaskSummary

KEPT: Final = 50_000
"""Tasks whose row is kept in memory between batches."""

_FIELDS: Final = (
    "run",
    "context_id",
    "state",
    "version",
    "version_unix_nano",
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
_ALL: Final = ("id", "task_id", "owner", "store", "incarnation", "origin", *_FIELDS)
_INSERT: Final = f"INSERT INTO task ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))})"
_UPDATE: Final = f"UPDATE task SET {', '.join(f'{name} = ?' for name in _FIELDS)} WHERE id = ?"
_SELECT: Final = (
    f"SELECT id, origin, {', '.join(_FIELDS)} FROM task"
    " WHERE task_id = ? AND owner = ? AND store = ? AND incarnation = ?"
)


class TaskTable:
    """Rows of tasks by key; the ones used last are kept."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Works on the writing connection."""
        self._db = db
        self._by_key: OrderedDict[TaskKey, TaskSummary] = OrderedDict()
        self._new: dict[int, TaskKey] = {}
        self._touched: dict[int, TaskSummary] = {}
        self._new_pairs: list[tuple[int, int]] = []
        (self._next_id,) = db.execute("SELECT coalesce(max(id), 0) + 1 FROM task").fetchone()

    def get(self, key: TaskKey, replica: Replica) -> TaskSummary:
        """The row of a task, a new one where none is stored."""
        task = self._by_key.get(key)
        if task is not None:
            return task
        task = self._load(key)
        if task is None:
            task = TaskSummary(self._next_id, replica.id, replica.run)
            self._next_id += 1
            self._new[task.id] = key
        self._by_key[key] = task
        return task

    def touch(self, task: TaskSummary, replica: Replica) -> None:
        """Notes that the row changed through a fact of this replica."""
        self._touched[task.id] = task
        if replica.id not in task.replicas:
            task.replicas.add(replica.id)
            self._new_pairs.append((task.id, replica.id))

    def of_finding(self, key: TaskKey) -> int:
        """Row id of the task a finding speaks of.

        The checker may split incarnations further than the replicas did: then it is the last
        incarnation they reported up to that one.
        """
        self.write()
        row = self._db.execute(
            "SELECT id FROM task WHERE task_id = ? AND owner = ? AND store = ?"
            " ORDER BY incarnation > ?, abs(incarnation - ?) LIMIT 1",
            (key.task_id, key.owner, key.store, key.incarnation, key.incarnation),
        ).fetchone()
        return int(row[0]) if row else 0

    def settle_run(self, replica: Replica) -> None:
        """Fills in the run of tasks that were reported before their replica said which run it is in."""
        self._db.execute(
            "UPDATE task SET run = ? WHERE run IS NULL AND origin = ?", (replica.run, replica.id)
        )
        for task in self._by_key.values():
            if task.run is None and task.origin == replica.id:
                task.run = replica.run

    def write(self) -> None:
        """Writes the rows that changed."""
        touched, new = self._touched, self._new
        self._db.executemany(
            _INSERT,
            [
                (row_id, key.task_id, key.owner, key.store, key.incarnation, task.origin, *_values(task))
                for row_id, key in new.items()
                if (task := touched.pop(row_id))
            ],
        )
        self._db.executemany(_UPDATE, [(*_values(task), row_id) for row_id, task in touched.items()])
        self._db.executemany("INSERT OR IGNORE INTO task_replica VALUES (?, ?)", self._new_pairs)
        touched.clear()
        new.clear()
        self._new_pairs.clear()
        while len(self._by_key) > KEPT:
            self._by_key.popitem(last=False)

    def _load(self, key: TaskKey) -> TaskSummary | None:
        row = self._db.execute(_SELECT, (key.task_id, key.owner, key.store, key.incarnation)).fetchone()
        if row is None:
            return None
        task = TaskSummary(row[0], row[1], row[2])
        for name, value in zip(_FIELDS, row[2:], strict=True):
            setattr(task, name, value)
        task.replicas = {
            replica
            for (replica,) in self._db.execute(
                "SELECT replica FROM task_replica WHERE task = ?", (task.id,)
            )
        }
        return task
