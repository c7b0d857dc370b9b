"""The table of tasks: one row a task."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import msgspec

from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing.scoped import scoped_from
from a2a_fencing_dashboard.store import codec
from a2a_fencing_dashboard.store.errors import StoreError
from a2a_fencing_dashboard.store.sqlite.replicas import Replica
from a2a_fencing_dashboard.store.sqlite.tallies import TallyTable
from a2a_fencing_dashboard.store.sqlite.task_counts import Place, TaskCountTable, place
from a2a_fencing_dashboard.store.summary import VERDICTS, TaskSummary

NO_TASK: Final = 0
"""Row id that facts of no task have."""

REMEMBERED: Final = 50_000
"""Tasks whose row is kept in memory between batches."""

_PARAMETERS: Final = 500
"""Keys that are looked up in one statement."""

_FIELDS: Final = (
    "run",
    "context_id",
    "state",
    "version",
    "version_unix_nano",
    "finished",
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

    def __init__(self, db: sqlite3.Connection, tallies: TallyTable) -> None:
        """Works on the writing connection; `tallies` counts the tasks."""
        self._db = db
        self._tallies = tallies
        self._counts = TaskCountTable(db)
        self._places: dict[int, Place] = {}
        """What the tasks that are remembered were counted as, by row id."""
        self._by_key: dict[TaskKey, TaskSummary] = {}
        self._new: dict[int, tuple[TaskKey, TaskSummary]] = {}
        self._touched: dict[int, TaskSummary] = {}
        self._new_pairs: list[tuple[int, int]] = []
        self._new_texts: list[tuple[int, str]] = []
        self._absent: set[TaskKey] = set()
        (self._next_id,) = db.execute("SELECT coalesce(max(id), 0) + 1 FROM task").fetchone()

    def absorb(self, facts: Sequence[Fact], replica: Replica) -> list[int]:
        """Takes facts that a replica reported into account; returns the row id of each one's task."""
        rows = []
        for fact in facts:
            key = fact.task
            if key is None:
                rows.append(NO_TASK)
                continue
            task = self._by_key.get(key) or self.find(key) or self._create(key, replica)
            if task.context_id is None and fact.context_id is not None:
                self._new_texts.append((2 * task.id + 1, fact.context_id))
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
        task = self.find(key)
        if task is None:
            stored = self.incarnations(key)
            if not stored:
                raise StoreError(f"a finding speaks of a task that is not stored: {key}")
            earlier = [incarnation for incarnation in stored if incarnation < key.incarnation]
            task = stored[max(earlier, default=min(stored))]
        self._touched[task.id] = task
        return task

    def incarnations(self, key: TaskKey) -> dict[int, TaskSummary]:
        """Every incarnation that is stored under this key's id."""
        self.write()
        rows = self._db.execute(
            "SELECT incarnation FROM task WHERE task_id = ? AND owner = ? AND store = ?",
            (key.task_id, key.owner, key.store),
        ).fetchall()
        found = {}
        for (incarnation,) in rows:
            task = self.find(replace(key, incarnation=incarnation))
            assert task is not None
            found[incarnation] = task
        return found

    def stored(self, keys: Collection[TaskKey]) -> list[TaskKey]:
        """Every incarnation that is stored under the ids of these keys, also as resources call it.

        Remembers which of the keys are not, so that making them needs no second look.
        """
        wanted = {scoped_from(key) for key in keys}
        found = []
        ids = list({key.task_id for key in keys})
        for start in range(0, len(ids), _PARAMETERS):
            some = ids[start : start + _PARAMETERS]
            rows = self._db.execute(
                "SELECT task_id, owner, store, incarnation FROM task"
                f" WHERE task_id IN ({', '.join('?' * len(some))})",
                some,
            )
            here = (TaskKey(store, owner, task_id, n) for task_id, owner, store, n in rows)
            found += [key for key in here if scoped_from(key) in wanted]
        self._absent = set(keys) - set(found)
        return found

    def move(self, name: TaskKey, key: TaskKey) -> None:
        """Gives a task what resources told of it, under their name for it, before it was known."""
        self.write()
        stray, task = self.find(name), self.find(key)
        if stray is None or task is None:
            return
        db = self._db
        for (body,) in db.execute("SELECT body FROM fact WHERE task = ?", (stray.id,)).fetchall():
            task.absorb(codec.decode(body, replica="", n=0, task=key))
        db.execute("UPDATE fact SET task = ? WHERE task = ?", (task.id, stray.id))
        new = [replica for replica in stray.replicas if replica not in task.replicas]
        task.replicas += new
        self._new_pairs += [(replica, task.id) for replica in new]
        self._touched[task.id] = task
        self._remove(name, stray)

    def _remove(self, key: TaskKey, task: TaskSummary) -> None:
        """Forgets a task that has no facts any more."""
        db = self._db
        for measure, detail in task.counted:
            self._tallies.add_ever(task.origin, measure, detail, -1)
        self._counts.move(self._places.pop(task.id, None), None)
        db.execute("DELETE FROM task WHERE id = ?", (task.id,))
        db.execute("DELETE FROM replica_task WHERE task = ?", (task.id,))
        db.execute(
            "INSERT INTO task_text (task_text, rowid, text) VALUES ('delete', ?, ?)",
            (2 * task.id, _text(key)),
        )
        self._by_key.pop(key, None)

    def touch(self, task: TaskSummary) -> None:
        """Notes that the row changed."""
        self._touched[task.id] = task

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
        if not self._touched:
            return
        changed, new = list(self._touched.values()), self._new
        self._touched.clear()
        for task in changed:
            self._count(task)
        self._db.executemany(_UPDATE, [(*_changing(t), t.id) for t in changed if t.id not in new])
        self._db.executemany(
            _INSERT,
            [
                (
                    row_id,
                    key.task_id,
                    key.owner,
                    key.store,
                    key.incarnation,
                    task.origin,
                    *_changing(task),
                )
                for row_id, (key, task) in new.items()
            ],
        )
        new.clear()
        self._db.executemany("INSERT INTO replica_task VALUES (?, ?)", self._new_pairs)
        self._new_pairs.clear()
        self._db.executemany("INSERT INTO task_text (rowid, text) VALUES (?, ?)", self._new_texts)
        self._new_texts.clear()
        self._absent.clear()
        self._counts.write()
        self._evict()

    def _count(self, task: TaskSummary) -> None:
        standing = task.standing
        if standing != task.counted:
            for measure, detail in task.counted:
                self._tallies.add_ever(task.origin, measure, detail, -1)
            for measure, detail in standing:
                self._tallies.add_ever(task.origin, measure, detail, 1)
            task.counted = standing
        here = place(task)
        self._counts.move(self._places.get(task.id), here)
        self._places[task.id] = here

    def _evict(self) -> None:
        for key in list(islice(self._by_key, max(0, len(self._by_key) - REMEMBERED))):
            self._places.pop(self._by_key.pop(key).id, None)

    def find(self, key: TaskKey) -> TaskSummary | None:
        """The row of a task, or None when it is not stored."""
        task = self._by_key.get(key)
        if task is None and key not in self._absent:
            task = self._load(key)
            if task is not None:
                self._by_key[key] = task
        return task

    def _create(self, key: TaskKey, replica: Replica) -> TaskSummary:
        task = TaskSummary(self._next_id, replica.id, replica.run)
        self._next_id += 1
        self._absent.discard(key)
        self._by_key[key] = task
        self._new[task.id] = key, task
        self._new_texts.append((2 * task.id, _text(key)))
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
        task.counted = task.standing
        self._places[row_id] = place(task)
        return task


def _text(key: TaskKey) -> str:
    return f"{key.task_id}\n{key.owner}"


def _changing(task: TaskSummary) -> tuple[Any, ...]:
    return (
        VERDICTS.index(task.judged),
        VERDICTS.index(task.verdict),
        msgspec.json.encode(task.replicas).decode(),
        *_values(task),
    )
