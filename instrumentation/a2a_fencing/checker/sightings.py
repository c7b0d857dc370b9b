"""What replicas saw of a task's versions while they executed it: a clock that needs no clock.

Two executions on two replicas ran at the same time when the order of versions puts something one of them
did between two things the other one did.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from a2a_fencing import conventions as c
from a2a_fencing.checker.clocks import begin
from a2a_fencing.checker.versions import Known
from a2a_fencing.facts import Fact

Moment = tuple[Known, int]
"""(v, 0) is when version v was committed, (v, 1) some time while it was the stored one."""


@dataclass(frozen=True, slots=True, order=True)
class Sighting:
    """A version that a replica wrote or read."""

    moment: Moment
    n: int
    fact: Fact = field(compare=False)


class Sightings:
    """Sightings by replica, in the replica's own order and in the order of versions."""

    __slots__ = ("_by_moment", "_by_number")

    def __init__(self) -> None:
        self._by_number: dict[str, list[Sighting]] = {}
        self._by_moment: dict[str, list[Sighting]] = {}

    def add(self, fact: Fact, n: int, version: Known) -> None:
        """Files an accepted write or a read."""
        sighting = Sighting((version, 0 if fact.kind == c.WRITE else 1), n, fact)
        insort(self._by_number.setdefault(fact.replica, []), sighting, key=_number)
        insort(self._by_moment.setdefault(fact.replica, []), sighting)

    def between(self, start: Fact, after: int, until: int | None) -> tuple[Sighting, Sighting] | None:
        """The first and last moment among what `start`'s replica saw between two of its numbers.

        A write that had begun before `start` may have been committed before it and is no sighting.
        """
        seen = self._by_number.get(start.replica)
        if not seen:
            return None
        first = bisect_right(seen, after, key=_number)
        end = len(seen) if until is None else bisect_left(seen, until, key=_number)
        while first < end and begin(seen[first].fact) < start.time_unix_nano:
            first += 1
        if first >= end:
            return None
        one, other = seen[first], seen[end - 1]
        return (one, other) if one.moment <= other.moment else (other, one)

    def around(self, replica: str, first: Sighting, last: Sighting) -> Iterator[int]:
        """Numbers under which a replica saw the versions from one moment to another, and one beside."""
        seen = self._by_moment.get(replica, [])
        low = bisect_left(seen, first.moment, key=_moment)
        high = bisect_right(seen, last.moment, key=_moment)
        return (seen[at].n for at in range(max(low - 1, 0), min(high + 1, len(seen))))


def overlapping(first: tuple[Sighting, Sighting], second: tuple[Sighting, Sighting]) -> bool:
    """Whether two spans of version order share a stretch, or one holds the other's only moment."""
    low = max(first[0].moment, second[0].moment)
    high = min(first[1].moment, second[1].moment)
    inside = any(span[0].moment < low < span[1].moment for span in (first, second))
    return low < high or (low == high and inside)


def _number(sighting: Sighting) -> int:
    return sighting.n


def _moment(sighting: Sighting) -> Moment:
    return sighting.moment
