"""A reference model of a cluster on one versioned store: what happened, and what replicas reported.

It knows nothing of the checker. A history is made by interpreting a list of steps; each step is one
operation of one replica on one task. The model keeps the truth (every committed write with the state
that it replaced) apart from the facts (what each replica could see and number).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey

MS = 1_000_000
STATES = (c.WORKING, c.WORKING, c.INPUT_REQUIRED, c.COMPLETED, c.FAILED, c.REJECTED)
OPERATIONS = (
    "save",
    "save",
    "save",
    "cancel",
    "lost-commit",
    "lost-rollback",
    "read",
    "answer",
    "delete",
    "restart",
    "execute",
    "dispatch",
    "end",
)
CLIENTS = ("push", "stream", "beat")
"""What is told to clients and of replicas besides."""
BYPASSES = ("raw-state", "raw-bump")
"""What writes to the database past the SDK."""
SCHEMES = ("counter", "jumping", "text")
"""How a store makes versions; the SDK's own counts."""
UNVERSIONED = "none"

Version = int | str | None


@dataclass(frozen=True)
class Step:
    """One operation: what, by which replica, on which task, and two free choices."""

    operation: str
    replica: int
    task: int
    choice: int
    flag: bool


@dataclass
class Commit:
    """A write that the store holds or held."""

    task: TaskKey
    version: Version
    state: str
    replaced: str | None
    write: Fact
    known: bool
    """Whether the writer learned that it was stored."""


@dataclass
class Row:
    state: str
    version: Version


@dataclass
class Run:
    """An execution, in real time."""

    replica: str
    task: TaskKey
    life: int
    start: int
    end: int | None = None


@dataclass
class Effect:
    """A dispatch that began, and whether the task had been finished by somebody else by then."""

    start: Fact
    finished_by_other: bool


@dataclass
class Process:
    """One replica: its numbering, its clock and what it holds of tasks."""

    name: str
    host: str
    ahead: int
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    handles: dict[int, Row] = field(default_factory=dict)
    reported: dict[int, int] = field(default_factory=dict)
    runs: dict[int, tuple[str, Run]] = field(default_factory=dict)


class Cluster:
    """The model.

    Args:
        terminal_rule: Whether the store refuses every write on a terminal task, as a fixed SDK would.
        skews_ms: How far each replica's clock is ahead.
        tasks: How many tasks there are.
        scheme: How the store makes versions.
        audit: Whether replicas read the stored state before each write, and report it.
        faulty: Whether the store accepts a write from an old base where a step's flag says so.
    """

    def __init__(
        self,
        *,
        terminal_rule: bool = False,
        skews_ms: Iterable[int] = (0, 0, 0),
        tasks: int = 2,
        scheme: str = "counter",
        audit: bool = False,
        faulty: bool = False,
    ) -> None:
        self.terminal_rule = terminal_rule
        self.scheme = scheme
        self.audit = audit
        self.faulty = faulty
        self.forks: set[str] = set()
        self.bypassed: set[TaskKey] = set()
        self.facts: list[Fact] = []
        self.commits: list[Commit] = []
        self.told: list[tuple[Fact, int]] = []
        self.runs: list[Run] = []
        self.effects: list[Effect] = []
        self.rows: dict[int, Row] = {}
        self.lives: dict[int, int] = {}
        self.now = 1_000_000 * MS
        self.keys = [TaskKey("tasks @ model", "alice", f"t{n}") for n in range(tasks)]
        self._names = itertools.count(1)
        self.processes = [self._process(f"host-{at}", skew) for at, skew in enumerate(skews_ms)]

    def __repr__(self) -> str:
        return "\n".join(["", *map(shown, self.facts)])

    def _process(self, host: str, skew_ms: int) -> Process:
        process = Process(f"r{next(self._names)}", host, skew_ms * MS)
        started = self.now + process.ahead
        self._heartbeat(process, started_unix_nano=started)
        return process

    # --- interpretation ---

    def play(self, steps: Iterable[Step]) -> Cluster:
        """Plays the steps, then lets everybody look once more at everything."""
        for step in steps:
            process = self.processes[step.replica % len(self.processes)]
            task = step.task % len(self.keys)
            getattr(self, "_" + step.operation.replace("-", "_"))(process, task, step)
        for process in self.processes:
            for task in range(len(self.keys)):
                if task in self.rows:
                    self._read(process, task, Step("read", 0, 0, 0, True))
        for process in self.processes:
            self._heartbeat(process)
        return self

    def _save(self, process: Process, task: int, step: Step) -> None:
        state = STATES[step.choice % len(STATES)]
        handle = process.handles.get(task)
        if handle is None and task in self.rows and step.flag:
            self._read(process, task, step)
            return
        self._write(process, task, state, handle, executor=task in process.runs, careless=step.flag)

    def _cancel(self, process: Process, task: int, step: Step) -> None:
        self._refresh(process, task, step.flag)
        handle = process.handles.get(task)
        if handle is None or handle.state in c.TERMINAL_STATES:
            return
        if self._write(process, task, c.CANCELED, handle, executor=False) is not None:
            self._answer_with(process, task, c.CANCELED, c.CANCEL_TASK)

    def _lost_commit(self, process: Process, task: int, step: Step) -> None:
        state = STATES[step.choice % len(STATES)]
        self._write(process, task, state, process.handles.get(task), executor=True, lose="answer")

    def _lost_rollback(self, process: Process, task: int, step: Step) -> None:
        state = STATES[step.choice % len(STATES)]
        self._write(process, task, state, process.handles.get(task), executor=True, lose="write")

    def _read(self, process: Process, task: int, step: Step) -> None:
        row = self.rows.get(task)
        if row is None:
            process.handles.pop(task, None)
            return
        process.handles[task] = Row(row.state, row.version)
        self._tell(process, c.READ, task, state=row.state, version=row.version, origin=c.RELOAD)

    def _answer(self, process: Process, task: int, step: Step) -> None:
        row = self.rows.get(task)
        if row is not None:
            self._answer_with(process, task, row.state, c.GET_TASK)

    def _delete(self, process: Process, task: int, step: Step) -> None:
        if task not in self.rows or not step.flag:
            return
        del self.rows[task]
        self.lives[task] = self.lives.get(task, 0) + 1
        # Whoever still held a version of the deleted task lets go of it: a version of the next
        # incarnation with the same number would satisfy the store, and nobody could tell.
        for other in self.processes:
            other.handles.pop(task, None)
        self._tell(process, c.DELETED, task)
        process.reported[task] = process.reported.get(task, 0) + 1

    def _restart(self, process: Process, task: int, step: Step) -> None:
        if not step.flag:
            return
        for _, run in process.runs.values():
            run.end = self.now
        again = self._process(process.host, process.ahead // MS)
        self.processes[self.processes.index(process)] = again

    def _execute(self, process: Process, task: int, step: Step) -> None:
        if task in process.runs:
            return
        name = f"e{len(self.runs)}"
        fact = self._tell(process, c.EXECUTION, task, phase=c.STARTED, execution_id=name)
        run = Run(process.name, self.keys[task], self.lives.get(task, 0), self.now)
        self.runs.append(run)
        process.runs[task] = (name, run)
        assert fact.execution_id == name

    def _end(self, process: Process, task: int, step: Step) -> None:
        if task not in process.runs:
            return
        name, run = process.runs.pop(task)
        self._tell(process, c.EXECUTION, task, phase=c.FINISHED, execution_id=name)
        run.end = self.now

    def _dispatch(self, process: Process, task: int, step: Step) -> None:
        if task not in process.runs:
            return
        name, run = process.runs[task]
        identity = f"d{len(self.effects)}"
        start = self._tell(
            process,
            c.DISPATCH,
            task,
            phase=c.STARTED,
            name="charge",
            key=f"order-{step.choice}",
            dispatch_id=identity,
            execution_id=name,
        )
        self.effects.append(Effect(start, self._finished_by_other(process, task, run.life)))
        self._tell(
            process,
            c.DISPATCH,
            task,
            phase=c.ENDED,
            name="charge",
            key=f"order-{step.choice}",
            dispatch_id=identity,
            execution_id=name,
            outcome=c.ACCEPTED if step.flag else c.DISPATCH_REJECTED,
        )

    def _push(self, process: Process, task: int, step: Step) -> None:
        row = self.rows.get(task)
        if row is not None:
            outcome = c.ACCEPTED if step.flag else c.DISPATCH_FAILED
            self._tell(process, c.ANSWER, task, state=row.state, method=c.PUSH, outcome=outcome)

    def _stream(self, process: Process, task: int, step: Step) -> None:
        row = self.rows.get(task)
        if row is None:
            return
        ending = c.STREAM_ENDS[step.choice % len(c.STREAM_ENDS)]
        if ending == c.END_TERMINAL:
            self._answer_with(process, task, row.state, c.SUBSCRIBE_TO_TASK)
        else:
            method = c.SUBSCRIBE_TO_TASK
            self._tell(process, c.ANSWER, task, state=c.WORKING, method=method, ending=ending)

    def _beat(self, process: Process, task: int, step: Step) -> None:
        self.now += (step.choice * 1000) * MS
        self._heartbeat(process)

    def _heartbeat(self, process: Process, **values: Any) -> None:
        self._tell(
            process,
            c.HEARTBEAT,
            None,
            replica_name=process.host,
            interval_s=5.0,
            executing=len(process.runs),
            **values,
        )

    def _raw_state(self, process: Process, task: int, step: Step) -> None:
        """Changes the stored state and leaves the version."""
        row = self.rows.get(task)
        state = STATES[step.choice % len(STATES)]
        if row is not None and row.state != state:
            self.rows[task] = Row(state, row.version)
            self.bypassed.add(self._key(task))

    def _raw_bump(self, process: Process, task: int, step: Step) -> None:
        """Writes state and version, as a replica would that does not report."""
        row = self.rows.get(task)
        if row is not None:
            self.rows[task] = Row(STATES[step.choice % len(STATES)], self._next(row))
            self.bypassed.add(self._key(task))

    def _plain(self, process: Process, task: int, step: Step) -> None:
        """Saves through the store's unversioned face: a fact, and no new version."""
        row, handle = self.rows.get(task), process.handles.get(task)
        if row is None:
            return
        state = STATES[step.choice % len(STATES)]
        fact = self._tell(
            process,
            c.WRITE,
            task,
            outcome=c.ACCEPTED,
            versioned=False,
            state=state,
            base_state=handle.state if handle is not None and step.flag else None,
            origin=c.DIRECT,
            writer=f"{process.name}/2",
        )
        self.commits.append(Commit(self._key(task), row.version, state, row.state, fact, True))
        self.rows[task] = Row(state, row.version)
        self.bypassed.add(self._key(task))

    # --- the store ---

    def _next(self, row: Row | None) -> Version:
        if self.scheme == UNVERSIONED:
            return None
        if self.scheme == "text":
            return f"{len(self.facts):08d}"
        if self.scheme == "jumping":
            return 10 * len(self.facts)
        return (row.version or 0) + 1 if row is not None else 1  # type: ignore[operator]

    def _refresh(self, process: Process, task: int, wanted: bool) -> None:
        row = self.rows.get(task)
        if wanted and row is not None:
            self._read(process, task, Step("read", 0, 0, 0, True))

    def _write(
        self,
        process: Process,
        task: int,
        state: str,
        handle: Row | None,
        *,
        executor: bool,
        lose: str | None = None,
        careless: bool = False,
    ) -> Fact | None:
        row = self.rows.get(task)
        base = handle.version if handle is not None else None
        if self.audit and row is not None:
            self._tell(process, c.READ, task, state=row.state, version=row.version, origin=c.AUDIT)
        accepted = self._accepts(row, base, state)
        forked = self.faulty and careless and not accepted and row is not None and base is not None
        accepted = accepted or (forked and state != c.CANCELED)
        values = {
            "state": state,
            "base_version": base,
            "base_state": handle.state if handle is not None else None,
            "event_kind": c.STATUS_EVENT,
            "origin": c.FROM_EXECUTOR if executor else c.FROM_CANCEL_REMOTE,
            "writer": f"{process.name}/1",
            "duration_ns": MS // 2,
        }
        if not accepted:
            if lose is None:
                self._refuse(process, task, row, base, values)
                return None
            self._tell(process, c.WRITE, task, outcome=c.UNKNOWN, error_type="Error", **values)
            process.handles.pop(task, None)
            return None
        if lose == "write":
            self._tell(process, c.WRITE, task, outcome=c.UNKNOWN, error_type="Error", **values)
            process.handles.pop(task, None)
            return None
        version = self._next(row)
        self.rows[task] = Row(state, version)
        if lose == "answer":
            fact = self._tell(process, c.WRITE, task, outcome=c.UNKNOWN, error_type="Error", **values)
            process.handles.pop(task, None)
        else:
            fact = self._tell(
                process,
                c.WRITE,
                task,
                outcome=c.ACCEPTED,
                version=version,
                versioned=None if version is not None else False,
                **values,
            )
            process.handles[task] = Row(state, version)
        if forked and row is not None and base != row.version:
            self.forks.add(fact.id)
        replaced = row.state if row is not None else None
        self.commits.append(Commit(self._key(task), version, state, replaced, fact, lose is None))
        return fact

    def _accepts(self, row: Row | None, base: Version | None, state: str) -> bool:
        if self.scheme == UNVERSIONED:
            return True
        if row is None:
            return base is None and state != c.CANCELED
        if row.state in c.TERMINAL_STATES and (state == c.CANCELED or self.terminal_rule):
            return False
        return state == c.CANCELED or base == row.version

    def _refuse(
        self, process: Process, task: int, row: Row | None, base: Version | None, values: dict[str, Any]
    ) -> None:
        stale = row is not None and base != row.version and values["state"] != c.CANCELED
        reason = c.STALE_BASE if stale else c.TERMINAL if row is not None else c.ABSENT
        outcome = c.TERMINAL_REJECTED if reason == c.TERMINAL else c.CONFLICT
        self._tell(process, c.WRITE, task, outcome=outcome, reason=reason, **values)
        process.handles.pop(task, None)
        if row is not None:
            self._read(process, task, Step("read", 0, 0, 0, True))

    # --- the truth ---

    def overwritten(self) -> set[str]:
        """Ids of the writes that replaced a terminal state by a different one."""
        return {
            commit.write.id
            for commit in self.commits
            if commit.replaced in c.TERMINAL_STATES and commit.state != commit.replaced
        }

    def mutated(self) -> set[str]:
        """Ids of the writes that saved a terminal state again, the first after each end."""
        found = set()
        last: dict[TaskKey, bool] = {}
        for commit in self.commits:
            same = commit.replaced in c.TERMINAL_STATES and commit.state == commit.replaced
            if same and not last.get(commit.task, False):
                found.add(commit.write.id)
            last[commit.task] = same
        return found

    def contradicted(self) -> set[tuple[TaskKey, str]]:
        """Task (of this life) and state of each answer that did not hold."""
        final: dict[TaskKey, str] = {}
        for commit in self.commits:
            final[commit.task] = commit.state
        found = set()
        for answer, life in self.told:
            key = self._life(answer.task, life)
            if answer.state in c.TERMINAL_STATES and final[key] != answer.state:
                found.add((key, answer.state))
        return found

    def misinformed(self) -> set[TaskKey]:
        """Finished tasks of whose end the last notification that was delivered does not tell."""
        last = {f.task: f for f in self.facts if f.method == c.PUSH and f.outcome == c.ACCEPTED}
        return {
            key
            for task, row in self.rows.items()
            if row.state in c.TERMINAL_STATES
            and (key := self.keys[task]) in last
            and last[key].state != row.state
        }

    def overlapping(self) -> set[frozenset[str]]:
        """Pairs of replicas whose executions of one task ran at the same time."""
        found = set()
        for one, other in itertools.combinations(self.runs, 2):
            if one.task == other.task and one.replica != other.replica:
                ends = [run.end if run.end is not None else self.now for run in (one, other)]
                if one.start < ends[1] and other.start < ends[0]:
                    found.add(frozenset((one.replica, other.replica)))
        return found

    def _finished_by_other(self, process: Process, task: int, life: int) -> bool:
        key = self._life(self.keys[task], life)
        return any(
            commit.task == key
            and commit.state in c.TERMINAL_STATES
            and not (commit.write.replica == process.name and commit.write.origin == c.FROM_EXECUTOR)
            for commit in self.commits
        )

    # --- facts ---

    def _answer_with(self, process: Process, task: int, state: str, method: str) -> None:
        fact = self._tell(process, c.ANSWER, task, state=state, method=method)
        self.told.append((fact, self.lives.get(task, 0)))

    def _tell(self, process: Process, kind: str, task: int | None, **values: Any) -> Fact:
        self.now += MS
        key = None
        if task is not None:
            key = self._life(self.keys[task], process.reported.get(task, 0))
        fact = Fact(
            id=f"{process.name}:{next(process.numbers)}",
            kind=kind,
            time_unix_nano=self.now + process.ahead,
            replica=process.name,
            task=key,
            **values,
        )
        self.facts.append(fact)
        return fact

    def _key(self, task: int) -> TaskKey:
        return self._life(self.keys[task], self.lives.get(task, 0))

    @staticmethod
    def _life(key: TaskKey | None, life: int) -> TaskKey:
        assert key is not None
        return TaskKey(key.store, key.owner, key.task_id, life)


def shown(fact: Fact) -> str:
    """A fact on one line, for the eye that looks at a failed example."""
    left_out = {
        "replica",
        "writer",
        "time_unix_nano",
        "duration_ns",
        "event_kind",
        "replica_name",
        "task",
    }
    values = {
        k: v for k, v in vars(fact).items() if v is not None and k not in left_out | {"id", "kind"}
    }
    task = f"{fact.task.task_id}/{fact.task.incarnation}" if fact.task is not None else "-"
    return f"{fact.id} {fact.kind} {task} " + " ".join(f"{k}={v}" for k, v in values.items())
