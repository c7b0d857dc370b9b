"""Pages of the list of tasks, in any order and however deep."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from a2a_fencing_dashboard.store.protocol import TaskFilter, Window
from a2a_fencing_dashboard.store.sqlite.sql import TASK_COLUMNS, marks
from a2a_fencing_dashboard.store.sqlite.task_sql import matching

DEEP: Final = 50_000
"""Tasks before a page from which on sorting them all costs more than counting them by value."""

_KEY: Final = ("task_id", "owner", "store", "incarnation")
"""An index has this order."""
_BY_VALUE: Final = frozenset({"verdict", "state", "facts", "conflicts", "drops", "dispatches"})
"""Sorts by what few values have, so that tasks fall into groups."""


def page(
    db: sqlite3.Connection,
    window: Window,
    where: TaskFilter,
    *,
    sort: str,
    descending: bool,
    offset: int,
    limit: int,
) -> list[tuple[Any, ...]]:
    """The `TASK_COLUMNS` of the tasks on a page.

    Those alike in what is sorted by come with the newest first; those of one id in the order of the key.
    """
    if not limit:
        return []
    direction = "DESC" if descending else "ASC"
    order = _order(sort, direction)
    conditions = matching(window, where)
    if offset >= DEEP and sort in _BY_VALUE:
        ids = _beyond(db, window, where, sort, direction, offset, limit)
        chosen, parameters = marks(ids), ids
    else:
        chosen = f"SELECT id FROM task WHERE {conditions} ORDER BY {order} LIMIT ? OFFSET ?"
        parameters = [*conditions.parameters, limit, offset]
    query = f"SELECT {TASK_COLUMNS} FROM task WHERE task.id IN ({chosen}) ORDER BY {order}"
    return db.execute(query, parameters).fetchall()


def _order(sort: str, direction: str) -> str:
    if sort == "task_id":
        return ", ".join(f"{column} {direction}" for column in _KEY)
    column = sort if sort in _BY_VALUE else "last"
    return f"{column} {direction}, last DESC, task.id DESC"


def _beyond(
    db: sqlite3.Connection,
    window: Window,
    where: TaskFilter,
    column: str,
    direction: str,
    offset: int,
    limit: int,
) -> list[int]:
    """Ids of a page that comes after many tasks: whole groups of equal value are passed over."""
    conditions = matching(window, where)
    groups = db.execute(
        f"SELECT {column}, count(*) FROM task WHERE {conditions}"
        f" GROUP BY {column} ORDER BY {column} {direction}",
        conditions.parameters,
    ).fetchall()
    ids: list[int] = []
    for value, count in groups:
        if offset >= count:
            offset -= count
            continue
        group = matching(window, where)
        group.add(f"{column} IS ?", value)
        rows = db.execute(
            f"SELECT id FROM task WHERE {group} ORDER BY last DESC, id DESC LIMIT ? OFFSET ?",
            [*group.parameters, limit - len(ids), offset],
        )
        ids += [row_id for (row_id,) in rows]
        if len(ids) == limit:
            break
        offset = 0
    return ids
