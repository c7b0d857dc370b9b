"""The executions of one task: when each ran, by its replica's own order and by the order of versions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.checker.cluster import Cluster
from a2a_fencing.checker.sightings import Sighting, Sightings, overlapping
from a2a_fencing.facts import Fact


class Execution:
    """One run of an executor.

    Attributes:
        id: Replica and `Fact.execution_id`.
        replica: Where it runs.
        start, end: The facts that tell; None when not here (yet).
        start_n, end_n: Their numbers, or 0.
    """

    __slots__ = ("end", "end_n", "id", "replica", "start", "start_n")

    def __init__(self, identity: str, replica: str) -> None:
        self.id = identity
        self.replica = replica
        self.start: Fact | None = None
        self.end: Fact | None = None
        self.start_n = 0
        self.end_n = 0

    def covers(self, n: int) -> bool:
        """Whether it was running when its replica recorded fact `n`."""
        return self.start_n < n and (self.end is None or n < self.end_n)


_NONE: Final = Sightings()
"""What replicas saw, until more than one executes."""


class Executions:
    """All executions of one incarnation and what their replicas saw of the task meanwhile.

    Attributes:
        by_id: The executions.
        running: Ids of those whose end is not here.
        latest: The latest fact that one ended or, if none did, started.
        sightings: What replicas saw of the versions; filled once more than one of them executes.
    """

    __slots__ = ("_overhanging", "_started", "by_id", "latest", "running", "sightings")

    def __init__(self) -> None:
        self.by_id: dict[str, Execution] = {}
        self.running: set[str] = set()
        self.latest: Fact | None = None
        self.sightings = _NONE
        self._started: dict[str, list[Execution]] = {}
        # Executions that had not ended when the next one on their replica began: usually none.
        self._overhanging: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self.by_id)

    @property
    def spread(self) -> bool:
        """Whether more than one replica executed."""
        return len(self._started) > 1

    def add(self, fact: Fact, n: int) -> Execution:
        """Files an execution fact; one without an id is an execution of its own."""
        identity = f"{fact.replica} {fact.execution_id or n}"
        run = self.by_id.get(identity)
        if run is None:
            run = self.by_id[identity] = Execution(identity, fact.replica)
            self.running.add(identity)
        if fact.phase == c.STARTED:
            if run.start is None or n < run.start_n:
                self._start(run, fact, n)
        else:
            if run.end is None or n < run.end_n:
                run.end, run.end_n = fact, n
                self.running.discard(identity)
            self._note_latest(fact)
        if run.start is not None:
            self._note_overhang(run)
        return run

    def at(self, replica: str, n: int) -> Execution | None:
        """The execution started last on the replica before its fact `n`, when it still ran then."""
        runs = self._started.get(replica)
        if not runs:
            return None
        at = bisect_left(runs, n, key=_start_n)
        return runs[at - 1] if at and runs[at - 1].covers(n) else None

    def on(self, replica: str) -> list[Execution]:
        """Executions on a replica by their start."""
        return self._started.get(replica, [])

    def beside(self, run: Execution) -> Iterator[Execution]:
        """Executions on the same replica that ran at the same time."""
        for identity in self._overhanging.get(run.replica, ()):
            other = self.by_id[identity]
            if other is not run and other.covers(run.start_n):
                yield other
        runs = self._started[run.replica]
        for at in range(bisect_right(runs, run.start_n, key=_start_n), len(runs)):
            if not run.covers(runs[at].start_n):
                return
            yield runs[at]

    def elsewhere(self, run: Execution, cluster: Cluster) -> Iterator[Execution]:
        """Executions on other replicas, among them all that are known to have run at the same time."""
        span = self.span(run)
        for replica, runs in self._started.items():
            if replica == run.replica:
                continue
            found = {self.by_id[identity].id for identity in self._overhanging.get(replica, ())}
            if span is not None:
                for n in self.sightings.around(replica, *span):
                    other = self.at(replica, n)
                    if other is not None:
                        found.add(other.id)
            found |= set(_by_clocks(run, runs, cluster))
            yield from (self.by_id[identity] for identity in sorted(found))

    def span(self, run: Execution) -> tuple[Sighting, Sighting] | None:
        """The first and the last moment in version order at which it is known to have run."""
        if run.start is None:
            return None
        until = run.end_n if run.end is not None else None
        return self.sightings.between(run.start, run.start_n, until)

    def interleaved(self, one: Execution, other: Execution) -> tuple[Fact, ...] | None:
        """Facts whose versions show that two executions ran at the same time: one between two."""
        first, second = self.span(one), self.span(other)
        if first is None or second is None or not overlapping(first, second):
            return None
        if second[0].moment < first[0].moment:
            first, second = second, first
        return first[0].fact, second[0].fact, first[1].fact

    def _start(self, run: Execution, fact: Fact, n: int) -> None:
        runs = self._started.setdefault(run.replica, [])
        if run.start is not None:
            runs.remove(run)
        run.start, run.start_n = fact, n
        if not runs or runs[-1].start_n < n:
            runs.append(run)
        else:
            runs.insert(bisect_left(runs, n, key=_start_n), run)

    def _note_overhang(self, run: Execution) -> None:
        """Looks again at whether the run, and the one before it, outlasted the start of the next."""
        runs = self._started[run.replica]
        at = bisect_left(runs, run.start_n, key=_start_n)
        overhanging = self._overhanging.setdefault(run.replica, set())
        for index in range(max(at - 1, 0), min(at + 1, len(runs) - 1)):
            if runs[index].covers(runs[index + 1].start_n):
                overhanging.add(runs[index].id)
            else:
                overhanging.discard(runs[index].id)

    def _note_latest(self, fact: Fact) -> None:
        known = self.latest
        if known is None or _when(fact) > _when(known):
            self.latest = fact


def _by_clocks(run: Execution, runs: list[Execution], cluster: Cluster) -> Iterator[str]:
    """Ended executions that by the clocks began before this one ended and ended after it began."""
    if run.start is None or run.end is None:
        return
    latest = cluster.latest_start(run.end, runs[0].replica)
    if latest is None:
        return
    for at in range(bisect_left(runs, latest, key=_start_time) - 1, -1, -1):
        other = runs[at]
        if other.end is not None:
            if not cluster.before(run.start, other.end):
                return
            yield other.id


def _start_n(run: Execution) -> int:
    return run.start_n


def _start_time(run: Execution) -> int:
    return run.start.time_unix_nano if run.start is not None else 0


def _when(fact: Fact) -> tuple[int, str]:
    return fact.time_unix_nano, fact.id
