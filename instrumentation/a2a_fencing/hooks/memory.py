"""What this process knows of stored tasks: which state each version held, and who wrote it.

Base states come from here and never from the ``prev`` argument of a save, which is the very object
being saved, already changed. What is forgotten is unknown, never guessed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

from a2a_fencing.facts import TaskKey, Version

_TASKS = 8192
_VERSIONS_PER_TASK = 8


class Known(NamedTuple):
    """A state that the store held at a version, and the fact that says so (None for a plain read)."""

    version: Version
    state: str
    fact_id: str | None


Held = tuple[str, "str | None"]
"""State at a version, and the fact that says so."""


class _Task:
    """What is known of one task: state and fact by version, the one seen last at the end.

    Plain tuples in a plain dict: of these, thousands cost Python's garbage collector nothing.
    """

    __slots__ = ("key", "known", "unresolved")

    def __init__(self, key: TaskKey) -> None:
        self.key = key
        self.known: dict[Version, Held] = {}
        self.unresolved: Version | bool = False


class TaskMemory:
    """A bounded record per task key; the task used longest ago is forgotten first.

    Args:
        tasks: How many tasks to remember.
    """

    def __init__(self, tasks: int = _TASKS) -> None:
        self._limit = tasks
        self._tasks: OrderedDict[tuple[str, str, str], _Task] = OrderedDict()
        self._lock = threading.Lock()

    def key(self, store: str, owner: str, task_id: str) -> TaskKey:
        """The task key, with the incarnation as far as this process has seen deletions."""
        task = self._tasks.get((store, owner, task_id))
        return task.key if task is not None else TaskKey(store, owner, task_id)

    def saw(self, key: TaskKey, version: Version, state: str, fact_id: str | None = None) -> None:
        """Records that the store holds `state` at `version`.

        An unversioned store has one version, ``None``, whose state is the last one seen.
        """
        with self._lock:
            known = self._task(key).known
            before = known.get(version)
            if before is not None and before[0] == state and fact_id is None:
                return  # a read that repeats what a write said keeps the write as evidence
            _keep(known, version, state, fact_id)

    def wrote(self, key: TaskKey, version: Version, state: str, fact_id: str) -> None:
        """Records what a write left in the store, which decides one that was left open."""
        with self._lock:
            task = self._task(key)
            task.unresolved = False
            _keep(task.known, version, state, fact_id)

    def base(self, key: TaskKey, version: Version) -> tuple[TaskKey, Held | None]:
        """Of a version that something is based on: the key with the incarnation, as `key` gives it, and
        what the store held, or None when this process does not know.
        """
        task = self._tasks.get((key.store, key.owner, key.task_id))
        return (key, None) if task is None else (task.key, task.known.get(version))

    def latest(self, key: TaskKey) -> Known | None:
        """What was seen last, or None."""
        task = self._tasks.get((key.store, key.owner, key.task_id))
        if task is None or not task.known:
            return None
        version = next(reversed(task.known))
        return Known(version, *task.known[version])

    def deleted(self, key: TaskKey) -> None:
        """Starts a new incarnation."""
        with self._lock:
            task = self._task(key)
            task.key = replace(task.key, incarnation=task.key.incarnation + 1)
            task.known.clear()
            task.unresolved = False

    def leave_open(self, key: TaskKey, base: Version) -> None:
        """Notes that a write on `base` may or may not have landed."""
        with self._lock:
            self._task(key).unresolved = True if base is None else base

    def open_base(self, key: TaskKey) -> Version | bool:
        """Base of the write left open (True for a first write), or False when none is."""
        task = self._tasks.get((key.store, key.owner, key.task_id))
        return task.unresolved if task is not None else False

    def resolve(self, key: TaskKey) -> None:
        """Notes that the open write was decided by a read or a later write."""
        task = self._tasks.get((key.store, key.owner, key.task_id))
        if task is not None:
            task.unresolved = False

    def __len__(self) -> int:
        return len(self._tasks)

    def _task(self, key: TaskKey) -> _Task:
        name = (key.store, key.owner, key.task_id)
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = _Task(key)
            if len(self._tasks) > self._limit:
                self._tasks.popitem(last=False)
        else:
            self._tasks.move_to_end(name)
        return task


def _keep(known: dict[Version, Held], version: Version, state: str, fact_id: str | None) -> None:
    known[version] = state, fact_id
    if len(known) > _VERSIONS_PER_TASK:
        del known[next(iter(known))]
