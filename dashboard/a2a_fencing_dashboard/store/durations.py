"""How long things took, as counts in buckets that grow by a fixed factor.

Counts add up whatever the order of arrival, in a table as in memory. Sketches such as DDSketch place
values in the same way, bounded for any value; nanoseconds are bounded anyway: 64 bits have 504 buckets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import ceil, log2
from types import MappingProxyType
from typing import Final

import msgspec

_PER_DOUBLING: Final = 8

ACCURACY: Final = 2 ** (0.5 / _PER_DOUBLING) - 1
"""How far a quantile may be off, as a part of it: half a bucket."""


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(dict[int, int]).decode


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

    @classmethod
    def decode(cls, stored: bytes | None) -> Durations:
        """What `encode` gave; of nothing, none."""
        return cls(_decode(stored)) if stored else cls()

    def encode(self) -> bytes:
        """As bytes that are the same for the same counts."""
        return _encode(dict(sorted(self.counts.items())))

    @classmethod
    def together(cls, several: Iterable[Durations]) -> Durations:
        """All durations of several."""
        counts: Counter[int] = Counter()
        for some in several:
            counts.update(some.counts)
        return cls(counts)

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
