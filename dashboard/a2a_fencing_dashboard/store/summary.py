"""What the pages show of a task and count over time, kept up to date as facts arrive.

Nothing here depends on the order of arrival, so that it need never be computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, Version
from a2a_fencing_dashboard.store.durations import bucket

VERDICTS: Final = (c.FINE, c.UNKNOWN, c.VIOLATED)
"""From harmless to worst."""

FACTS: Final = "facts"
WRITES: Final = "writes"
CONFLICTS: Final = "conflicts"
REJECTIONS: Final = "rejections"
DROPS: Final = "drops"
DISPATCHES: Final = "dispatches"
VIOLATIONS: Final = "violations"
INFOS: Final = "infos"
TASKS: Final = "tasks"
"""By verdict."""
TERMINAL_TASKS: Final = "terminal-tasks"
TASK_TIMES: Final = "task-times"
"""How long it took from a task's first fact to its first terminal state, by `durations.bucket`."""

SERIES: Final = (WRITES, CONFLICTS, REJECTIONS, DROPS, DISPATCHES, VIOLATIONS)
"""Measures that are shown over time."""


class TaskSummary:
    """The row of one task.

    Attributes:
        origin: Row id of the replica that was the first to report the task.
        judged: Verdict by its own facts, leaving out findings.
        violations: How many standing findings violate.
        version_unix_nano: Replica's clock of the fact that told `state` and `version`.
        finished: Replica's clock of the first accepted write of a terminal state, or None.
        replicas: Row ids of the replicas that reported facts of it, in the order in which they did.
        counted: What of `standing` is in the counts already.
    """

    __slots__ = (
        "conflicts",
        "context_id",
        "counted",
        "dispatches",
        "drops",
        "facts",
        "finished",
        "first",
        "id",
        "judged",
        "last",
        "origin",
        "rejections",
        "replicas",
        "run",
        "state",
        "version",
        "version_unix_nano",
        "violations",
        "writes",
    )

    def __init__(self, row_id: int, origin: int, run: int | None) -> None:
        """Starts the summary of a task that `origin` was the first to report."""
        self.id = row_id
        self.origin = origin
        self.run = run
        self.judged = c.UNKNOWN
        self.violations = 0
        self.context_id: str | None = None
        self.state: str | None = None
        self.version: Version = None
        self.version_unix_nano = 0
        self.finished: int | None = None
        self.facts = 0
        self.writes = 0
        self.conflicts = 0
        self.rejections = 0
        self.drops = 0
        self.dispatches = 0
        self.first = 0
        self.last = 0
        self.replicas: list[int] = []
        self.counted: tuple[tuple[str, str], ...] = ()

    @property
    def verdict(self) -> str:
        """Verdict over facts and findings."""
        return c.VIOLATED if self.violations else self.judged

    @property
    def standing(self) -> tuple[tuple[str, str], ...]:
        """What the task itself counts as: (measure, detail)."""
        standing = [(TASKS, self.verdict)]
        if self.state in c.TERMINAL_STATES:
            standing.append((TERMINAL_TASKS, ""))
        if self.finished is not None:
            standing.append((TASK_TIMES, str(bucket(self.finished - self.first))))
        return tuple(standing)

    def absorb(self, fact: Fact) -> None:
        """Takes one more fact of this task into account."""
        time = fact.time_unix_nano
        if not self.facts or time < self.first:
            self.first = time
        if time > self.last:
            self.last = time
        self.facts += 1
        if self.context_id is None:
            self.context_id = fact.context_id
        kind = fact.kind
        if kind == c.WRITE:
            self._absorb_write(fact)
        elif kind == c.READ:
            self._show(fact)
        elif kind == c.DROPPED:
            self.drops += 1
        elif _is_dispatch(kind, fact.phase):
            self.dispatches += 1

    def _absorb_write(self, fact: Fact) -> None:
        self.writes += 1
        outcome = fact.outcome
        if outcome == c.ACCEPTED:
            self._show(fact)
            if is_finish(fact) and (self.finished is None or fact.time_unix_nano < self.finished):
                self.finished = fact.time_unix_nano
        elif outcome == c.CONFLICT:
            self.conflicts += 1
        elif outcome == c.TERMINAL_REJECTED:
            self.rejections += 1

    def _show(self, fact: Fact) -> None:
        state, version = fact.state, fact.version
        if state is None:
            return
        time = fact.time_unix_nano
        if self.state is None or (
            _rank(version, time, state) > _rank(self.version, self.version_unix_nano, self.state)
        ):
            self.state = state
            self.version = version
            self.version_unix_nano = time


def _rank(version: Version, time: int, state: str) -> tuple[int, int, str, str]:
    """Which fact tells the state: a total order, so that it does not matter which arrives last.

    Numbered versions decide; where a store has none, the clock.
    """
    return (version if isinstance(version, int) else -1), time, state, str(version)


def counts(facts: Iterable[Fact]) -> Iterator[tuple[int, str, str, int]]:
    """What facts add up to: (second since 1970, measure, detail, count)."""
    alike = Counter(
        [
            (fact.time_unix_nano // 1_000_000_000, fact.kind, fact.outcome, fact.reason, fact.phase)
            for fact in facts
        ]
    )
    for (second, kind, outcome, reason, phase), count in alike.items():
        if kind == c.OMITTED:
            continue
        yield second, FACTS, "", count
        if kind == c.WRITE:
            yield second, WRITES, "", count
            if outcome == c.CONFLICT:
                yield second, CONFLICTS, reason or c.UNEXPLAINED, count
            elif outcome == c.TERMINAL_REJECTED:
                yield second, REJECTIONS, "", count
        elif kind == c.DROPPED:
            yield second, DROPS, reason or "", count
        elif _is_dispatch(kind, phase):
            yield second, DISPATCHES, "", count


def save_times(facts: Iterable[Fact]) -> Counter[int]:
    """How long writes took, by `durations.bucket`. Refused ones, which end early, are left out."""
    return Counter(
        [
            bucket(fact.duration_ns)
            for fact in facts
            if fact.kind == c.WRITE and fact.outcome == c.ACCEPTED and fact.duration_ns is not None
        ]
    )


def is_finish(fact: Fact) -> bool:
    """Whether a fact says that its task was given a terminal state."""
    return fact.kind == c.WRITE and fact.outcome == c.ACCEPTED and fact.state in c.TERMINAL_STATES


def verdict(tasks: Mapping[str, int], *, missing: int) -> str:
    """The verdict over tasks, counted by theirs, where so many facts are missing."""
    if tasks.get(c.VIOLATED):
        return c.VIOLATED
    # Nothing seen proves nothing.
    return c.UNKNOWN if missing or tasks.get(c.UNKNOWN) or not tasks else c.FINE


def _is_dispatch(kind: str, phase: str | None) -> bool:
    """Whether a fact begins a dispatch attempt, so that its end is not counted again."""
    return kind == c.DISPATCH and phase != c.ENDED
