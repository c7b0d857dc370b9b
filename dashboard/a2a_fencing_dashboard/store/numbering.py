"""Which numbers of a replica have arrived, kept as ranges.

The numbering that proves completeness is also what tells a duplicate from a new fact, so that no index
over all facts is needed for either.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator


class Ranges:
    """A set of whole numbers, cheap as long as they come mostly in order."""

    __slots__ = ("_firsts", "_lasts", "count")

    def __init__(self, ranges: list[tuple[int, int]] | None = None) -> None:
        """Starts from ranges (first, last), both inclusive, ascending and apart from each other."""
        self._firsts = [first for first, _ in ranges or ()]
        self._lasts = [last for _, last in ranges or ()]
        self.count = sum(last - first + 1 for first, last in ranges or ())

    def __contains__(self, n: int) -> bool:
        at = bisect_right(self._firsts, n) - 1
        return at >= 0 and n <= self._lasts[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._lasts, strict=True)

    @property
    def highest(self) -> int:
        """The highest number, or 0."""
        return self._lasts[-1] if self._lasts else 0

    def add(self, n: int) -> None:
        """Adds a number that is not in the set yet."""
        firsts, lasts = self._firsts, self._lasts
        self.count += 1
        at = bisect_right(firsts, n)
        joins_before = at > 0 and lasts[at - 1] == n - 1
        joins_after = at < len(firsts) and firsts[at] == n + 1
        if joins_before and joins_after:
            lasts[at - 1] = lasts.pop(at)
            del firsts[at]
        elif joins_before:
            lasts[at - 1] = n
        elif joins_after:
            firsts[at] = n
        else:
            firsts.insert(at, n)
            lasts.insert(at, n)

    def holes(self, up_to: int) -> Iterator[tuple[int, int]]:
        """Ranges of 1..up_to that are not in the set."""
        next_n = 1
        for first, last in self:
            if first > next_n:
                yield next_n, first - 1
            next_n = last + 1
        if up_to >= next_n:
            yield next_n, up_to
