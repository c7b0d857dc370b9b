"""The load test that `dashboard.py` shows: what three replicas report, run after run.

Tasks of about twenty facts, a hundred at once, at 2,000 facts a second of the history's own time. One in
ten is cancelled on another replica: mostly the fence holds (a conflict, a dropped event; with the guard
also a terminal rejection), in one task of a hundred the terminal state is overwritten. One task of all
has 5,000 facts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, TaskKey

NS = 1_000_000_000
RATE = 2_000
"""Facts a second."""
ACTIVE = 100
"""Tasks that are under way at once."""
REPLICAS = 3
HEARTBEAT_S = 5
BIG = 5_000
"""Facts of the one big task."""
BIG_TASK = "the-task-with-5000-facts"
STORE = "tasks @ postgresql://db/a2a"

Told = tuple[int, str, dict[str, Any]]
"""Which of the replicas tells, kind and fields of the fact."""


@dataclass
class Replica:
    """One that reports, and how many facts it has numbered."""

    instance: str
    name: str
    run: str
    guard: bool
    started: int
    n: int = 0
    beaten: int = 0
    executing: int = 0

    def tell(self, kind: str, at: int, values: dict[str, Any]) -> Fact:
        self.n += 1
        return Fact.build(
            {
                "id": f"{self.instance}:{self.n}",
                "kind": kind,
                "time_unix_nano": at,
                "replica": self.instance,
                "writer": f"{self.instance}/1",
                **values,
            }
        )

    def beat(self, at: int, *, last: bool = False) -> Fact:
        self.beaten = at
        return self.tell(
            c.HEARTBEAT,
            at,
            {
                "last": self.n + 1,
                "lost": 0,
                "executing": self.executing,
                "interval_s": 0.0 if last else float(HEARTBEAT_S),
                "replica_name": self.name,
                "run": self.run,
                "sdk_version": "1.3.0",
                "pid": 1,
                "guard": self.guard,
                "guard_rules": "store,consumer" if self.guard else None,
                "started_unix_nano": self.started,
            },
        )


@dataclass
class LoadTest:
    """One run: its facts in the order of time.

    Attributes:
        run: Its label.
        tasks: How many there are; None: no end.
        each: Facts of an ordinary task.
        start: When it begins, ns since 1970.
        big: Whether the big task is one of them.
        seed: Of all that is left to chance.
        rate: Facts a second.
    """

    run: str
    tasks: int | None
    each: int
    start: int
    guard: bool = False
    big: bool = False
    seed: int = 1
    rate: int = RATE
    replicas: list[Replica] = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(f"{self.run}/{self.seed}")
        self.replicas = [
            Replica(
                f"{self._rng.getrandbits(32):08x}-6a1b-4c5d-8e7f-0123456789ab",
                f"api-{n}",
                self.run,
                self.guard,
                self.start,
            )
            for n in range(REPLICAS)
        ]

    def facts(self) -> Iterator[Fact]:
        rng, step = self._rng, NS // self.rate
        for replica in self.replicas:
            yield replica.beat(self.start)
        numbers = iter(count() if self.tasks is None else range(self.tasks))
        under_way = [self._big(rng)] if self.big else []
        for at in count(self.start + step, step):
            while len(under_way) < ACTIVE:
                number = next(numbers, None)
                if number is None:
                    break
                under_way.append(self._task(number, rng))
            if not under_way:
                break
            # The first in the list is the big task, which has to get on.
            place = 0 if self.big and at // step % 5 == 0 else rng.randrange(len(under_way))
            told = next(under_way[place], None)
            if told is None:
                del under_way[place]
                continue
            who, kind, values = told
            replica = self.replicas[who]
            if kind == c.EXECUTION:
                replica.executing += 1 if values["phase"] == c.STARTED else -1
            yield replica.tell(kind, at, values)
            if at - replica.beaten >= HEARTBEAT_S * NS:
                yield replica.beat(at)
        for replica in self.replicas:
            yield replica.beat(at, last=True)

    def _task(self, number: int, rng: random.Random) -> Iterator[Told]:
        identity = f"{rng.getrandbits(128):032x}"
        common = _common(identity, f"user-{number % 50}", rng)
        cancelled = number % 10 == 0
        overwritten = number % 50 == 0 and not self.guard
        writes = max(2, self.each - (11 if cancelled else 6) + rng.randint(-3, 3))
        return _tell_task(
            number % REPLICAS, identity, common, writes, cancelled, overwritten, self.guard
        )

    def _big(self, rng: random.Random) -> Iterator[Told]:
        common = _common(BIG_TASK, "user-0", rng)
        # All of it but what a task tells beside its writes; it ends overwritten.
        return _tell_task(0, BIG_TASK, common, BIG - 11, True, not self.guard, self.guard)


def _common(identity: str, owner: str, rng: random.Random) -> dict[str, Any]:
    return {
        "task": TaskKey(STORE, owner, identity),
        "context_id": f"{rng.getrandbits(128):032x}",
        "trace_id": f"{rng.getrandbits(128):032x}",
        "span_id": f"{rng.getrandbits(64):016x}",
    }


def _tell_task(
    who: int,
    identity: str,
    common: dict[str, Any],
    writes: int,
    cancelled: bool,
    overwritten: bool,
    guard: bool,
) -> Iterator[Told]:
    """The facts of one task, which the replica `who` executes."""
    execution = {"execution_id": identity[:16], "token": 1, **common}
    yield who, c.EXECUTION, {"phase": c.STARTED, **execution}
    dispatch = {"name": "charge-card", "dispatch_id": identity[:8], "attempt": 1, **common}
    state, version = None, 0
    for number in range(writes):
        new = c.SUBMITTED if number == 0 else c.WORKING
        yield who, c.WRITE, _write(new, version, state) | common
        state, version = new, version + 1
        if number == 1:
            during = {**dispatch, "execution_id": identity[:16], "state": state, "version": version}
            yield who, c.DISPATCH, {"phase": c.STARTED, **during}
            yield who, c.DISPATCH, {"phase": c.ENDED, "outcome": c.ACCEPTED, **during}
    if not cancelled:
        yield who, c.WRITE, _write(c.COMPLETED, version, state) | common
        told = c.COMPLETED
    else:
        yield from _cancel(who, common, version, state, overwritten, guard)
        told = c.CANCELED
    stream = {"method": c.SEND_STREAMING_MESSAGE, "state": told, "ending": c.END_TERMINAL}
    yield who, c.ANSWER, stream | common
    yield who, c.EXECUTION, {"phase": c.CANCELLED if cancelled else c.FINISHED, **execution}


def _cancel(
    who: int,
    common: dict[str, Any],
    version: int,
    state: str | None,
    overwritten: bool,
    guard: bool,
) -> Iterator[Told]:
    """Another replica cancels; the executor's next write is refused, and what follows it perhaps not."""
    other = (who + 1) % REPLICAS
    yield other, c.WRITE, _write(c.CANCELED, version, state, c.FROM_CANCEL_REMOTE) | common
    yield other, c.ANSWER, {"method": c.CANCEL_TASK, "state": c.CANCELED, **common}
    yield who, c.WRITE, _write(c.WORKING, version, state, reason=c.STALE_BASE) | common
    reload = {"state": c.CANCELED, "version": version + 1, "origin": c.RELOAD}
    yield who, c.READ, reload | common
    dropped = {"reason": c.STALE_EXECUTOR, "event_kind": c.ARTIFACT_EVENT}
    yield who, c.DROPPED, dropped | common
    if overwritten:
        yield who, c.WRITE, _write(c.COMPLETED, version + 1, c.CANCELED) | common
    elif guard:
        yield who, c.WRITE, _write(c.COMPLETED, version + 1, c.CANCELED, reason=c.TERMINAL) | common


def _write(
    state: str,
    base: int,
    base_state: str | None,
    origin: str = c.FROM_EXECUTOR,
    reason: str | None = None,
) -> dict[str, Any]:
    outcome = c.ACCEPTED
    if reason is not None:
        outcome = c.TERMINAL_REJECTED if reason == c.TERMINAL else c.CONFLICT
    return {
        "state": state,
        "base_version": base or None,
        "base_state": base_state,
        "version": base + 1 if reason is None else None,
        "outcome": outcome,
        "reason": reason,
        "origin": origin,
        "event_kind": c.STATUS_EVENT,
        "attempt": 1,
        "duration_ns": 900_000 + base * 7_919 % 1_000_000,
        "versioned": True,
    }
