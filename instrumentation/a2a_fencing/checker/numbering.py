"""Which facts of each replica have arrived, and so which are missing."""

from __future__ import annotations

from bisect import bisect_right

from a2a_fencing.checker.report import Gap


class Numbering:
    """The numbers seen of one replica, as disjoint ascending spans; bounded by the number of gaps."""

    __slots__ = ("_announced", "_firsts", "_lasts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._announced = 0

    def add(self, n: int) -> bool:
        """Notes that fact `n` has arrived; False when it had arrived before."""
        lasts = self._lasts
        if lasts and n == lasts[-1] + 1:
            lasts[-1] = n
            return True
        return self._insert(n)

    def announce(self, last: int) -> None:
        """Notes that the replica has numbered facts up to `last`, arrived or not."""
        self._announced = max(self._announced, last)

    def gaps(self, replica: str) -> list[Gap]:
        """What is missing of 1 .. the highest number known."""
        gaps = []
        expected = 1
        for first, last in zip(self._firsts, self._lasts, strict=True):
            if first > expected:
                gaps.append(Gap(replica, expected, first - 1))
            expected = last + 1
        if self._announced >= expected:
            gaps.append(Gap(replica, expected, self._announced))
        return gaps

    def _insert(self, n: int) -> bool:
        firsts, lasts = self._firsts, self._lasts
        at = bisect_right(firsts, n)
        if at and n <= lasts[at - 1]:
            return False
        joins_left = at > 0 and lasts[at - 1] == n - 1
        joins_right = at < len(firsts) and firsts[at] == n + 1
        if joins_left and joins_right:
            lasts[at - 1] = lasts.pop(at)
            del firsts[at]
        elif joins_left:
            lasts[at - 1] = n
        elif joins_right:
            firsts[at] = n
        else:
            firsts.insert(at, n)
            lasts.insert(at, n)
        return True
