"""How many tasks there are, by the minute of their last fact, so that nobody counts them anew."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Final, NamedTuple

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.summary import VERDICTS, TaskSummary

MINUTE_NS: Final = 60_000_000_000

TABLE: Final = """
CREATE TABLE task_count (
    minute INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    verdict INTEGER NOT NULL,
    terminal INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (minute, origin, verdict, terminal)
) WITHOUT ROWID"""


class Place(NamedTuple):
    """What a task counts as: minute since 1970, row id of a replica, verdict, whether it is finished."""

    minute: int
    origin: int
    verdict: int
    terminal: bool


def place(task: TaskSummary) -> Place:
    """What this task counts as now."""
    return Place(
        task.last // MINUTE_NS,
        task.origin,
        VERDICTS.index(task.verdict),
        task.state in c.TERMINAL_STATES,
    )


class TaskCountTable:
    """Counts of one batch, added to those that are stored."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Works on the writing connection."""
        self._db = db
        self._changes: Counter[Place] = Counter()

    def move(self, before: Place | None, after: Place | None) -> None:
        """Counts a task as `after` that was counted as `before`; None: not at all."""
        if before == after:
            return
        if before is not None:
            self._changes[before] -= 1
        if after is not None:
            self._changes[after] += 1

    def write(self) -> None:
        """Writes what changed."""
        self._db.executemany(
            "INSERT INTO task_count VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET count = count + excluded.count",
            [(*key, count) for key, count in self._changes.items() if count],
        )
        self._changes.clear()


def count_tasks(db: sqlite3.Connection) -> None:
    """Counts what is stored, for a store that has not kept count."""
    db.execute(TABLE)
    terminal = ", ".join(f"'{state}'" for state in sorted(c.TERMINAL_STATES))
    db.execute(
        f"INSERT INTO task_count SELECT last / {MINUTE_NS}, origin, verdict,"
        f" coalesce(state IN ({terminal}), 0), count(*) FROM task GROUP BY 1, 2, 3, 4"
    )
