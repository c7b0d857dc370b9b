"""Writes that got no version: what one replica did in order is all that is known of their order."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from a2a_fencing import conventions as c
from a2a_fencing.checker.clocks import begin
from a2a_fencing.facts import Fact


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    n: int
    fact: Fact = field(compare=False)


class Sequence:
    """Accepted writes without a version, and reads of such, by replica.

    Attributes:
        writes: The writes by id.
        last: The latest write by replica.
    """

    __slots__ = ("_steps", "last", "writes")

    def __init__(self) -> None:
        self.writes: dict[str, Fact] = {}
        self.last: dict[str, Fact] = {}
        self._steps: dict[str, list[_Step]] = {}

    def add(self, fact: Fact, n: int) -> list[Fact]:
        """Files a write or read; gives the writes among the two steps after it: their past changed."""
        if fact.kind == c.WRITE:
            self.writes[fact.id] = fact
            last = self.last.get(fact.replica)
            if last is None or last.n < n:
                self.last[fact.replica] = fact
        steps = self._steps.setdefault(fact.replica, [])
        step = _Step(n, fact)
        if not steps or steps[-1].n < n:
            steps.append(step)
            return []
        insort(steps, step)
        at = _position(steps, n)
        return [later.fact for later in steps[at + 1 : at + 3] if later.fact.kind == c.WRITE]

    def previous(self, fact: Fact) -> Fact | None:
        """What the replica wrote or read last before this fact of its own."""
        steps = self._steps.get(fact.replica, [])
        at = _position(steps, fact.n)
        return steps[at - 1].fact if at else None


def overlap(earlier: Fact, later: Fact) -> bool:
    """Whether two facts of one replica, numbered in this order, may have happened in the other."""
    return begin(later) < earlier.time_unix_nano


def _position(steps: list[_Step], n: int) -> int:
    return bisect_left(steps, n, key=lambda step: step.n)
