"""The table of counts: by bucket of time, replica, measure and detail."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Final

WIDTHS: Final = (3600, 60, 1)
"""Seconds in a bucket; each is a multiple of the next."""
ALL_TIME: Final = 0
"""The width of the one bucket that holds everything."""


class TallyTable:
    """Counts of one batch, added to those that are stored."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Works on the writing connection."""
        self._db = db
        self._seconds: Counter[tuple[int, int, str, str]] = Counter()
        self._ever: Counter[tuple[int, str, str]] = Counter()

    def add(self, replica: int, counts: Iterable[tuple[int, str, str, int]]) -> None:
        """Adds (second since 1970, measure, detail, count), which may be negative."""
        for second, measure, detail, count in counts:
            self._seconds[second, replica, measure, detail] += count

    def add_ever(self, replica: int, measure: str, detail: str, count: int) -> None:
        """Adds a count, which may be negative, that has no place in time."""
        self._ever[replica, measure, detail] += count

    def write(self) -> None:
        """Writes what was added, at every width."""
        rows: Counter[tuple[int, int, int, str, str]] = Counter()
        for (replica, measure, detail), count in self._ever.items():
            rows[ALL_TIME, 0, replica, measure, detail] += count
        for (second, replica, measure, detail), count in self._seconds.items():
            rows[ALL_TIME, 0, replica, measure, detail] += count
            for width in WIDTHS:
                rows[width, second - second % width, replica, measure, detail] += count
        self._seconds.clear()
        self._ever.clear()
        self._db.executemany(
            "INSERT INTO tally VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET count = count + excluded.count",
            [(*key, count) for key, count in rows.items()],
        )
