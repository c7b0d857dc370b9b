"""The table of clocks: how far apart those of two replicas can be, as the checker measured it.

It is no part of the numbered schema: a file that has none yet is given one by whoever opens it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS clock (
    one TEXT NOT NULL,
    other TEXT NOT NULL,
    ahead INTEGER NOT NULL,
    PRIMARY KEY (one, other)
) WITHOUT ROWID
"""


def prepare(db: sqlite3.Connection) -> None:
    """Creates the table where there is none."""
    db.execute(_TABLE)


def read(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Everything that was measured, ns."""
    return {
        (one, other): ahead for one, other, ahead in db.execute("SELECT one, other, ahead FROM clock")
    }


def write(db: sqlite3.Connection, measured: Mapping[tuple[str, str], int | None]) -> None:
    """Stores what was measured anew, ns; None is no longer known."""
    for (one, other), ahead in measured.items():
        if ahead is None:
            db.execute("DELETE FROM clock WHERE one = ? AND other = ?", (one, other))
        else:
            db.execute("INSERT OR REPLACE INTO clock VALUES (?, ?, ?)", (one, other, ahead))
