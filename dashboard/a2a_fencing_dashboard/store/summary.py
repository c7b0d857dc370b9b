"""What the pages show of a task and count over time, kept up to date fact by fact."""

from __future__ import annotations

from typing import Final

from a2a_fencing import conventions as c
from a2a_fencing.facts import Fact, Version

FACTS: Final = "facts"
WRITES: Final = "writes"
CONFLICTS: Final = "conflicts"
REJECTIONS: Final = "rejections"
DROPS: Final = "drops"
DISPATCHES: Final = "dispatches"
VIOLATIONS: Final = "violations"
INFOS: Final = "infos"

SERIES: Final = (WRITES, CONFLICTS, REJECTIONS, DROPS, DISPATCHES, VIOLATIONS)
"""Measures that are shown over time."""


class TaskSummary:
    """The row of one task.

    Attributes:
        version_unix_nano: Replica's clock of the fact that told `state` and `version`.
        replicas: Row ids of the replicas that reported facts of it.
    """

    __slots__ = (
        "conflicts",
        "context_id",
        "dispatches",
        "drops",
        "facts",
        "first",
        "id",
        "last",
        "origin",
        "rejections",
        "replicas",
        "run",
        "state",
        "version",
        "version_unix_nano",
        "writes",
    )

    def __init__(self, row_id: int, origin: int, run: int | None) -> None:
        """Starts the summary of a task that `origin` was the first to report."""
        self.id = row_id
        self.origin = origin
        self.run = run
        self.context_id: str | None = None
        self.state: str | None = None
        self.version: Version = None
        self.version_unix_nano = 0
        self.facts = 0
        self.writes = 0
        self.conflicts = 0
        self.rejections = 0
        self.drops = 0
        self.dispatches = 0
        self.first = 0
        self.last = 0
        self.replicas: set[int] = set()

    def absorb(self, fact: Fact) -> None:
        """Takes one more fact of this task into account; the order of arrival does not matter."""
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
        elif kind == c.DISPATCH and fact.phase != c.ENDED:
            self.dispatches += 1

    def _absorb_write(self, fact: Fact) -> None:
        self.writes += 1
        outcome = fact.outcome
        if outcome == c.ACCEPTED:
            self._show(fact)
        elif outcome == c.CONFLICT:
            self.conflicts += 1
        elif outcome == c.TERMINAL_REJECTED:
            self.rejections += 1

    def _show(self, fact: Fact) -> None:
        if fact.state is not None and self._is_newer(fact):
            self.state = fact.state
            self.version = fact.version
            self.version_unix_nano = fact.time_unix_nano

    def _is_newer(self, fact: Fact) -> bool:
        if self.state is None:
            return True
        mine, theirs = self.version, fact.version
        if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
            return theirs > mine
        return fact.time_unix_nano >= self.version_unix_nano


def measure_of(fact: Fact) -> tuple[tuple[str, str], ...]:
    """What a fact counts as, besides being a fact: (measure, detail) pairs."""
    kind = fact.kind
    if kind == c.WRITE:
        if fact.outcome == c.CONFLICT:
            return (WRITES, ""), (CONFLICTS, fact.reason or c.UNEXPLAINED)
        if fact.outcome == c.TERMINAL_REJECTED:
            return (WRITES, ""), (REJECTIONS, "")
        return ((WRITES, ""),)
    if kind == c.DROPPED:
        return ((DROPS, fact.reason or ""),)
    if kind == c.DISPATCH and fact.phase != c.ENDED:
        return ((DISPATCHES, ""),)
    return ()
