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


class TaskRecord:
    """What is known of one task.

    Texts in plain dicts: of these, thousands cost Python's garbage collector nothing. Each step is one
    that no thread can interrupt.

    Attributes:
        key: Its key, with the incarnation as far as this process has seen deletions.
        states: State by version, the one seen last at the end.
        facts: By version, the fact that says so; none where it was only read.
        unresolved: Base of a write that may or may not have landed (True for a first write), False when
            there is none.
        forgotten: Whether the memory has let go of it.
    """

    __slots__ = ("facts", "forgotten", "key", "states", "unresolved")

    def __init__(self, key: TaskKey) -> None:
        self.key = key
        self.states: dict[Version, str] = {}
        self.facts: dict[Version, str] = {}
        self.unresolved: Version | bool = False
        self.forgotten = False

    def wrote(self, version: Version, state: str, fact_id: str) -> None:
        """Records what a write left in the store, which decides one that was left open."""
        self.unresolved = False
        states, facts = self.states, self.facts
        facts.pop(version, None)  # first: whoever reads meanwhile must not take it for the new state's
        states[version] = state
        facts[version] = fact_id
        if len(states) > _VERSIONS_PER_TASK:
            self._forget_one()

    def saw(self, version: Version, state: str) -> None:
        """Records that the store holds `state` at `version`, as a read shows.

        An unversioned store has one version, ``None``, whose state is the last one seen.
        """
        states = self.states
        if states.get(version) == state:
            return  # a read that repeats what a write said keeps the write as evidence
        self.facts.pop(version, None)
        states[version] = state
        if len(states) > _VERSIONS_PER_TASK:
            self._forget_one()

    def held(self, version: Version) -> tuple[str | None, str | None]:
        """The state at a version and the fact that says so, as far as they are known."""
        state, fact_id = self.states.get(version), self.facts.get(version)
        return state, fact_id if self.states.get(version) == state else None

    def leave_open(self, base: Version) -> None:
        """Notes that a write on `base` may or may not have landed."""
        self.unresolved = True if base is None else base

    def latest(self) -> Known | None:
        """What was seen last, or None."""
        seen = list(self.states.items())
        if not seen:
            return None
        version, state = seen[-1]
        return Known(version, state, self.facts.get(version))

    def deleted(self) -> None:
        """Starts a new incarnation."""
        self.key = replace(self.key, incarnation=self.key.incarnation + 1)
        self.states.clear()
        self.facts.clear()
        self.unresolved = False

    def _forget_one(self) -> None:
        oldest = list(self.states)[0]  # noqa: RUF015 - no other thread can interrupt a list
        self.states.pop(oldest, None)
        self.facts.pop(oldest, None)


class TaskMemory:
    """A bounded record per task key; the task used longest ago is forgotten first.

    Args:
        tasks: How many tasks to remember.
    """

    def __init__(self, tasks: int = _TASKS) -> None:
        self._limit = tasks
        self._records: OrderedDict[tuple[str, str, str], TaskRecord] = OrderedDict()
        self._lock = threading.Lock()

    def key(self, store: str, owner: str, task_id: str) -> TaskKey:
        """The task key, with the incarnation as far as this process has seen deletions."""
        record = self._records.get((store, owner, task_id))
        return record.key if record is not None else TaskKey(store, owner, task_id)

    def record(self, key: TaskKey) -> TaskRecord:
        """What is known of a task, to be added to. A write keeps it, to be looked up once."""
        name = (key.store, key.owner, key.task_id)
        with self._lock:
            record = self._records.get(name)
            if record is None:
                record = self._records[name] = TaskRecord(key)
                if len(self._records) > self._limit:
                    self._records.popitem(last=False)[1].forgotten = True
            else:
                self._records.move_to_end(name)
            return record

    def latest(self, key: TaskKey) -> Known | None:
        """See `TaskRecord.latest`."""
        record = self._records.get((key.store, key.owner, key.task_id))
        return record.latest() if record is not None else None

    def __len__(self) -> int:
        return len(self._records)
