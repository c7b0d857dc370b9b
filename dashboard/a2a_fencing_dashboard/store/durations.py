"""How long things took, as counts in buckets that grow by a fixed factor.

Counts add up whatever the order of arrival, and are rows in the table of counts like any others. A
sketch such as DDSketch places values in the same way, but it is one object that each commit would have
to read, merge and write back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import ceil, log2
from types import MappingProxyType
from typing import Final

_PER_DOUBLING: Final = 8

ACCURACY: Final = 2 ** (0.5 / _PER_DOUBLING) - 1
"""How far a quantile may be off, as a part of it: half a bucket."""


def bucket(nanoseconds: int) -> int:
    """The bucket of a duration; what took no time counts as one nanosecond."""
    return int(log2(max(nanoseconds, 1)) * _PER_DOUBLING)


@dataclass(frozen=True)
class Durations:
    """How many durations fell into each bucket."""

    counts: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    @cached_property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    def quantile(self, part: float) -> int | None:
        """The duration, in ns, that this part of them did not exceed; None when there are none."""
        if not self.total:
            return None
        buckets = sorted(self.counts)
        reached = list(accumulate(self.counts[index] for index in buckets))
        found = buckets[bisect_left(reached, max(1, ceil(part * self.total)))]
        return round(2 ** ((found + 0.5) / _PER_DOUBLING))

    def shares(self) -> list[tuple[int, float]]:
        """Duration in ns, and the part of them that did not exceed it, where a bucket ends."""
        buckets = sorted(self.counts)
        reached = accumulate(self.counts[index] for index in buckets)
        return [
            (round(2 ** ((index + 1) / _PER_DOUBLING)), sofar / self.total)
            for index, sofar in zip(buckets, reached, strict=True)
        ]
