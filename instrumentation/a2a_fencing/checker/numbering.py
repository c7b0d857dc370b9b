"""Which facts of one replica have arrived, and so which are missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from a2a_fencing.checker.report import Gap


class Numbering:
    """The numbers seen of one replica, as ascending spans; as large as the history has gaps."""

    __slots__ = ("_announced", "_first_times", "_firsts", "_last_times", "_lasts", "next")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._first_times: list[int | None] = []
        self._last_times: list[int | None] = []
        self._announced = 0
        self.next = 0
        """The number after the highest one that arrived; 0 while none has."""

    def add(self, n: int, time_unix_nano: int | None) -> bool:
        """Notes that fact `n` has arrived; False when it had arrived before.

        Args:
            n: The fact's number, from 1.
            time_unix_nano: When it was recorded on the replica's clock, ns; None when not known.
        """
        if n == self.next:
            self._lasts[-1] = n
            self._last_times[-1] = time_unix_nano
            self.next = n + 1
            return True
        new = self._insert(n, time_unix_nano)
        self.next = self._lasts[-1] + 1
        return new

    def assume(self, spans: Iterable[tuple[int, int]]) -> None:
        """Notes that the facts of these spans (first, last; both inclusive) arrived long ago."""
        for first, last in spans:
            for n in (first, last):
                self._insert(n, None)
            at = bisect_right(self._firsts, first) - 1
            while self._lasts[at] < last:
                self._join(at)
            self.next = self._lasts[-1] + 1

    def announce(self, last: int) -> None:
        """Notes that the replica has numbered facts up to `last`, arrived or not."""
        self._announced = max(self._announced, last)

    @property
    def complete(self) -> bool:
        """Whether every number up to the highest one known has arrived."""
        return (
            len(self._firsts) == 1 and self._firsts[0] == 1 and self._announced <= self._lasts[0]
        ) or not (self._firsts or self._announced)

    def gaps(self, replica: str) -> Iterator[Gap]:
        """What is missing of 1 .. the highest number known."""
        expected, before = 1, None
        spans = zip(self._firsts, self._first_times, self._lasts, self._last_times, strict=True)
        for first, first_time, last, last_time in spans:
            if first > expected:
                yield Gap(replica, expected, first - 1, before, first_time)
            expected, before = last + 1, last_time
        if self._announced >= expected:
            yield Gap(replica, expected, self._announced, before, None)

    def _insert(self, n: int, time: int | None) -> bool:
        firsts, lasts = self._firsts, self._lasts
        at = bisect_right(firsts, n)
        if at and n <= lasts[at - 1]:
            return False
        if at and lasts[at - 1] == n - 1:
            lasts[at - 1], self._last_times[at - 1] = n, time
            if at < len(firsts) and firsts[at] == n + 1:
                self._join(at - 1)
        elif at < len(firsts) and firsts[at] == n + 1:
            firsts[at], self._first_times[at] = n, time
        else:
            for values, value in (
                (firsts, n),
                (lasts, n),
            ):
                values.insert(at, value)
            for times in (self._first_times, self._last_times):
                times.insert(at, time)
        return True

    def _join(self, at: int) -> None:
        """Makes span `at` and the one after it one span."""
        self._lasts[at] = self._lasts.pop(at + 1)
        self._last_times[at] = self._last_times.pop(at + 1)
        del self._firsts[at + 1], self._first_times[at + 1]
