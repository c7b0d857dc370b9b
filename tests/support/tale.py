"""Histories told fact by fact, for tests of the checker."""

from __future__ import annotations

import itertools
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing.checker import Report, check
from a2a_fencing.facts import Fact, TaskKey

STORE = "tasks @ sqlite"
MS = 1_000_000


class Tale:
    """A history under construction; time passes by 1 ms a fact."""

    def __init__(self, *, store: str = STORE, owner: str = "alice", task: str = "task-1") -> None:
        self.key = TaskKey(store, owner, task)
        self.facts: list[Fact] = []
        self.now = 1_000_000 * MS

    def replica(self, name: str, *, ahead_ms: int = 0, heartbeats: bool = False) -> Narrator:
        """A replica whose clock is ahead; its id is its name."""
        narrator = Narrator(self, name, ahead_ms * MS)
        if heartbeats:
            narrator.heartbeat()
        return narrator

    def wait(self, ms: int) -> None:
        """Lets time pass."""
        self.now += ms * MS

    def check(self, *, now: int | None = None) -> Report:
        return check(self.facts, now)


class Narrator:
    """One replica; each method records a fact and returns it."""

    def __init__(self, tale: Tale, name: str, ahead: int) -> None:
        self.tale = tale
        self.name = name
        self.ahead = ahead
        self.numbers = itertools.count(1)
        self.knows: dict[tuple[TaskKey, Any], str] = {}
        self.key = tale.key
        self.store_object = 1

    @property
    def last(self) -> Fact:
        return next(fact for fact in reversed(self.tale.facts) if fact.replica == self.name)

    def tell(self, kind: str, **values: Any) -> Fact:
        """Records a fact of this kind."""
        self.tale.now += MS
        fact = Fact(
            id=f"{self.name}:{next(self.numbers)}",
            kind=kind,
            time_unix_nano=self.tale.now + self.ahead,
            replica=self.name,
            **({"task": self.key} | values),
        )
        self.tale.facts.append(fact)
        return fact

    # --- writes ---

    def write(self, state: str, on: Any = None, to: Any = None, **values: Any) -> Fact:
        """An accepted write on version `on`, which the store made version `to`."""
        if on is not None or to is None:
            values.setdefault("base_state", self.knows.get((self.key, on)))
        fact = self._write(state, on, outcome=c.ACCEPTED, version=to, **values)
        self.knows[self.key, to] = state
        return fact

    def unversioned(self, state: str, **values: Any) -> Fact:
        """An accepted write of a store that gives no versions."""
        return self.write(state, versioned=False, **values)

    def refused(self, state: str, on: Any, reason: str = c.STALE_BASE, **values: Any) -> Fact:
        values.setdefault("base_state", self.knows.get((self.key, on)))
        outcome = c.TERMINAL_REJECTED if reason == c.TERMINAL else c.CONFLICT
        return self._write(state, on, outcome=outcome, reason=reason, **values)

    def unknown(self, state: str, on: Any, **values: Any) -> Fact:
        values.setdefault("base_state", self.knows.get((self.key, on)))
        return self._write(state, on, outcome=c.UNKNOWN, error_type="OperationalError", **values)

    def cancel(self, on: Any, to: Any, **values: Any) -> Fact:
        """A cancel on behalf of another replica's executor, accepted."""
        values.setdefault("origin", c.FROM_CANCEL_REMOTE)
        return self.write(c.CANCELED, on, to, **values)

    def _write(self, state: str, on: Any, **values: Any) -> Fact:
        values.setdefault("origin", c.FROM_EXECUTOR)
        values.setdefault("event_kind", c.STATUS_EVENT)
        values.setdefault("attempt", 1)
        values.setdefault("writer", f"{self.name}/{self.store_object}")
        return self.tell(c.WRITE, state=state, base_version=on, **values)

    # --- everything else ---

    def read(self, version: Any, state: str, origin: str = c.RELOAD, **values: Any) -> Fact:
        self.knows[self.key, version] = state
        return self.tell(c.READ, version=version, state=state, origin=origin, **values)

    def answer(self, state: str | None, method: str = c.GET_TASK, **values: Any) -> Fact:
        return self.tell(c.ANSWER, state=state, method=method, **values)

    def stream_end(self, ending: str, state: str | None = None, **values: Any) -> Fact:
        return self.answer(state, c.SEND_STREAMING_MESSAGE, ending=ending, **values)

    def push(self, state: str, **values: Any) -> Fact:
        return self.answer(state, c.PUSH, **values)

    def start(self, run: str = "run", **values: Any) -> Fact:
        return self.tell(c.EXECUTION, phase=c.STARTED, execution_id=run, **values)

    def end(self, run: str = "run", phase: str = c.FINISHED, **values: Any) -> Fact:
        return self.tell(c.EXECUTION, phase=phase, execution_id=run, **values)

    def dispatch(self, identity: str = "d1", **values: Any) -> Fact:
        values.setdefault("name", "charge-card")
        return self.tell(c.DISPATCH, phase=c.STARTED, dispatch_id=identity, attempt=1, **values)

    def dispatched(self, outcome: str, identity: str = "d1", **values: Any) -> Fact:
        values.setdefault("name", "charge-card")
        values.setdefault("attempt", 1)
        return self.tell(c.DISPATCH, phase=c.ENDED, dispatch_id=identity, outcome=outcome, **values)

    def drop(self, reason: str, kind: str = c.ARTIFACT_EVENT, **values: Any) -> Fact:
        return self.tell(c.DROPPED, reason=reason, event_kind=kind, **values)

    def delete(self) -> Fact:
        fact = self.tell(c.DELETED)
        key = self.key
        self.key = TaskKey(key.store, key.owner, key.task_id, key.incarnation + 1)
        return fact

    def heartbeat(self, **values: Any) -> Fact:
        values = {"executing": 0, "interval_s": 5.0, "replica_name": self.name.lower()} | values
        return self.tell(c.HEARTBEAT, task=None, **values)
