"""What replicas of a cluster would report, without any of them running."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey
from a2a_fencing_dashboard.ingest import Ingest
from a2a_fencing_dashboard.store.protocol import ReplicaRow, Span, Store

MS = 1_000_000
START = 1_700_000_000_000_000_000


class Replica:
    """Numbers facts as a replica does."""

    def __init__(self, cluster: Cluster, name: str, instance: str, skew_ms: float = 0) -> None:
        self.cluster = cluster
        self.name = name
        self.id = instance
        self._skew = int(skew_ms * MS)
        self._numbers = itertools.count(1)

    def report(self, kind: str, **fields: Any) -> Fact:
        fact = Fact(
            id=f"{self.id}:{next(self._numbers)}",
            kind=kind,
            time_unix_nano=self.cluster.now + self._skew,
            replica=self.id,
            **fields,
        )
        self.cluster.facts.append(fact)
        return fact

    def heartbeat(self, executing: int = 0, **fields: Any) -> Fact:
        last = next(self._numbers)
        self._numbers = itertools.count(last)
        values = {
            "last": last,
            "lost": 0,
            "executing": executing,
            "interval_s": 5.0,
            "replica_name": self.name,
            "run": self.cluster.run,
            "sdk_version": "1.3.0",
            "pid": 4242,
            "guard": False,
            "started_unix_nano": START,
        }
        return self.report(c.HEARTBEAT, **(values | fields))


class Task:
    """What replicas report of one task."""

    def __init__(self, cluster: Cluster, key: TaskKey, context_id: str, trace_id: str) -> None:
        self.key = key
        self._cluster = cluster
        self._known: dict[tuple[str, object], str] = {}
        self._common = {"task": key, "context_id": context_id, "trace_id": trace_id}

    def _report(self, replica: Replica, kind: str, after_ms: float, **fields: Any) -> Fact:
        self._cluster.now += int(after_ms * MS)
        return replica.report(kind, **(self._common | fields))

    def write(
        self,
        by: Replica,
        state: str,
        base: int | None,
        version: int | None,
        *,
        after_ms: float = 1,
        **fields: Any,
    ) -> Fact:
        if version is not None:
            self._known[by.id, version] = state
        values = {
            "writer": f"{by.id}/1",
            "state": state,
            "base_version": base,
            "base_state": self._known.get((by.id, base)),
            "version": version,
            "outcome": c.ACCEPTED,
            "event_kind": c.STATUS_EVENT,
            "origin": c.FROM_EXECUTOR,
            "attempt": 1,
            "versioned": True,
            "duration_ns": 900_000,
        }
        return self._report(by, c.WRITE, after_ms, **(values | fields))

    def refused(
        self, by: Replica, state: str, base: int, *, reason: str = c.STALE_BASE, **fields: Any
    ) -> Fact:
        outcome = c.TERMINAL_REJECTED if reason == c.TERMINAL else c.CONFLICT
        return self.write(by, state, base, None, outcome=outcome, reason=reason, **fields)

    def read(self, by: Replica, state: str, version: int, *, after_ms: float = 1) -> Fact:
        self._known[by.id, version] = state
        return self._report(by, c.READ, after_ms, state=state, version=version, origin=c.RELOAD)

    def dropped(self, by: Replica, *, after_ms: float = 1, **fields: Any) -> Fact:
        values = {"event_kind": c.ARTIFACT_EVENT, "reason": c.STALE_EXECUTOR, "queue": c.AGENT_QUEUE}
        return self._report(by, c.DROPPED, after_ms, **(values | fields))

    def execution(self, by: Replica, phase: str, *, after_ms: float = 1, name: str = "e1") -> Fact:
        return self._report(
            by, c.EXECUTION, after_ms, phase=phase, execution_id=f"{by.id}/{name}", token=1
        )

    def answer(self, by: Replica, state: str | None, *, after_ms: float = 1, **fields: Any) -> Fact:
        values = {"state": state, "method": c.CANCEL_TASK}
        return self._report(by, c.ANSWER, after_ms, **(values | fields))

    def dispatch(
        self, by: Replica, name: str, outcome: str, *, after_ms: float = 1, **fields: Any
    ) -> Fact:
        values = {"name": name, "outcome": outcome, "phase": c.ENDED, "token": 1, "attempt": 1}
        return self._report(by, c.DISPATCH, after_ms, **(values | fields))


class Cluster:
    """Replicas, tasks, and every fact they reported."""

    def __init__(self, run: str | None = "load-42", start: int = START) -> None:
        self.run = run
        self.now = start
        self.facts: list[Fact] = []
        self.spans: list[Span] = []
        self._traces = itertools.count(1)
        self.a = self.replica("api-0", "9b1e4c02-0000-4000-8000-000000000001")
        self.b = self.replica("api-1", "22c7a6d1-0000-4000-8000-000000000002")

    def replica(self, name: str, instance: str, skew_ms: float = 0) -> Replica:
        return Replica(self, name, instance, skew_ms)

    def task(
        self,
        task_id: str,
        owner: str = "alice",
        context_id: str = "91ab77de",
        store: str = "tasks @ postgresql",
    ) -> Task:
        return Task(self, TaskKey(store, owner, task_id), context_id, f"{next(self._traces):032x}")

    def overwritten(self, task_id: str = "7f3c9a2e-4b1d-4e1a-9a57-5d2f6b0c01e1", **names: str) -> Task:
        """B cancels while A executes; A's last event overwrites the cancellation."""
        a, b, task = self.a, self.b, self.task(task_id, **names)
        task.write(a, c.SUBMITTED, None, 1, event_kind=c.TASK_EVENT)
        task.execution(a, c.STARTED)
        task.write(a, c.WORKING, 1, 2, after_ms=12)
        task.write(b, c.CANCELED, 2, 3, after_ms=130, origin=c.FROM_CANCEL_REMOTE)
        task.answer(b, c.CANCELED)
        task.refused(a, c.WORKING, 2, after_ms=40, event_kind=c.ARTIFACT_EVENT)
        task.read(a, c.CANCELED, 3)
        task.dropped(a)
        task.write(a, c.COMPLETED, 3, 4, after_ms=3)
        task.answer(a, c.CANCELED, method=c.SEND_STREAMING_MESSAGE, ending=c.END_TERMINAL)
        task.execution(a, c.FINISHED)
        return task

    def completed(self, task_id: str = "11aa22bb-0000-4000-8000-00000000f1e0", **names: str) -> Task:
        """A executes a task to its end; nobody interferes."""
        a, task = self.a, self.task(task_id, **names)
        task.write(a, c.SUBMITTED, None, 1, event_kind=c.TASK_EVENT)
        task.execution(a, c.STARTED)
        task.write(a, c.WORKING, 1, 2, after_ms=10)
        task.write(a, c.COMPLETED, 2, 3, after_ms=90)
        task.answer(a, c.COMPLETED, method=c.SEND_MESSAGE)
        task.execution(a, c.FINISHED)
        return task

    def refusal(self, task_id: str = "55ee66ff-0000-4000-8000-00000000f2e0", **names: str) -> Task:
        """B cancels, and everything A still sends is refused or dropped: the fence holds."""
        a, b, task = self.a, self.b, self.task(task_id, **names)
        task.write(a, c.SUBMITTED, None, 1, event_kind=c.TASK_EVENT)
        task.execution(a, c.STARTED)
        task.write(a, c.WORKING, 1, 2, after_ms=10)
        task.write(b, c.CANCELED, 2, 3, after_ms=50, origin=c.FROM_CANCEL_REMOTE)
        task.answer(b, c.CANCELED)
        task.refused(a, c.WORKING, 2, event_kind=c.ARTIFACT_EVENT)
        task.dropped(a)
        task.refused(a, c.COMPLETED, 3, reason=c.TERMINAL)
        task.execution(a, c.CANCELLED)
        return task

    def heartbeats(self, executing: int = 0) -> None:
        self.a.heartbeat(executing)
        self.b.heartbeat(executing)

    def commit(self, store: Store, *, without: Sequence[Fact] = ()) -> None:
        """Stores everything but `without`, as it would have arrived, with what is concluded from it."""
        facts = [fact for fact in self.facts if fact not in without]
        Ingest(store, clock=lambda: self.now).add(facts, self.spans)


def replica_row(
    replica: str = "r1",
    name: str = "api-0",
    *,
    run: str = "load-42",
    started: int = START,
    last_seen: int = START,
    executing: int = 0,
    missing: int = 0,
    facts: int = 1,
    skew: int | None = None,
) -> ReplicaRow:
    return ReplicaRow(
        replica=replica,
        name=name,
        run=run,
        started_unix_nano=started,
        last_seen_unix_nano=last_seen,
        interval_s=5.0,
        sdk_version="1.3.0",
        guard=False,
        facts=facts,
        missing=missing,
        lost=0,
        executing=executing,
        skew_ns=skew,
    )
