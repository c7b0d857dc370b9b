"""Which numbers of a replica have arrived, kept as ranges.

The numbering that proves completeness is also what tells a duplicate from a new fact, so that no index
over all facts is needed for either.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence


class Ranges:
    """A set of whole numbers, cheap as long as they come mostly in order."""

    __slots__ = ("_firsts", "_lasts", "count")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Starts from ranges (first, last), both inclusive, ascending and apart from each other."""
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self.count = 0
        for first, last in ranges:
            self._firsts.append(first)
            self._lasts.append(last)
            self.count += last - first + 1

    def __contains__(self, n: int) -> bool:
        if n > self.highest:
            return False
        at = bisect_right(self._firsts, n) - 1
        return at >= 0 and n <= self._lasts[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._lasts, strict=True)

    @property
    def highest(self) -> int:
        """The highest number, or 0."""
        return self._lasts[-1] if self._lasts else 0

    def add(self, numbers: Sequence[int]) -> None:
        """Adds numbers, each once, none of which is in the set yet."""
        first, last = min(numbers), max(numbers)
        if last - first + 1 == len(numbers):
            self._join(first, last)
        else:
            for n in numbers:
                self._join(n, n)

    def fill(self, first: int, last: int) -> None:
        """Adds those of the numbers first..last, both inclusive, that are not in the set."""
        for begin, end in list(self.holes(last)):
            begin, end = max(begin, first), min(end, last)
            if begin <= end:
                self._join(begin, end)

    def _join(self, first: int, last: int) -> None:
        """Adds a range that overlaps none, and closes up with its neighbours."""
        self.count += last - first + 1
        begin, end = bisect_left(self._firsts, first), bisect_left(self._firsts, last)
        if begin and self._lasts[begin - 1] == first - 1:
            begin -= 1
            first = self._firsts[begin]
        if end < len(self._firsts) and self._firsts[end] == last + 1:
            last = self._lasts[end]
            end += 1
        self._firsts[begin:end] = (first,)
        self._lasts[begin:end] = (last,)

    def holes(self, up_to: int) -> Iterator[tuple[int, int]]:
        """Ranges of 1..up_to that are not in the set."""
        next_n = 1
        for first, last in self:
            if first > next_n:
                yield next_n, first - 1
            next_n = last + 1
        if up_to >= next_n:
            yield next_n, up_to
