"""Findings as the pages list them: filtered, by task, with what people said of them."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from a2a_fencing import conventions as c
from a2a_fencing.checker import Finding
from a2a_fencing.facts import TaskKey
from a2a_fencing_dashboard.store.notes import MUTED
from a2a_fencing_dashboard.store.protocol import (
    AlertPage,
    FindingFilter,
    FindingRow,
    TaskAlerts,
    Window,
)
from a2a_fencing_dashboard.store.sqlite import notes, sql

_VIOLATING: Final = FindingFilter(severities=(c.CRITICAL, c.WARNING), with_muted=True)
_MUTED: Final = f"finding.id IN (SELECT finding FROM noted WHERE kind = '{MUTED}')"
_LISTED: Final = f"NOT {_MUTED}"


def rows(
    db: sqlite3.Connection,
    window: Window,
    where: FindingFilter,
    offset: int,
    limit: int,
) -> list[FindingRow]:
    """A page of findings, newest first."""
    condition, parameters = _where(window, where)
    selection = f"WHERE {condition} ORDER BY finding.id DESC LIMIT ? OFFSET ?"
    return [row for _, row in _rows(db, selection, [*parameters, limit, offset])]


def count(db: sqlite3.Connection, window: Window, where: FindingFilter) -> int:
    """How many findings match."""
    condition, parameters = _where(window, where)
    return _number(db, f"SELECT count(*) FROM finding WHERE {condition}", parameters)


def of_task(db: sqlite3.Connection, task: int) -> list[FindingRow]:
    """The findings of the task with this row id, most severe first."""
    selection = f"WHERE finding.task = ? ORDER BY {sql.SEVERITY_ORDER}, finding.id"
    return [row for _, row in _rows(db, selection, [task])]


def page(
    db: sqlite3.Connection, window: Window, where: FindingFilter, offset: int, limit: int
) -> AlertPage:
    """Tasks with their findings, the task with the newest finding first; no task is on two pages."""
    condition, parameters = _where(window, where)
    found, tasks = db.execute(
        f"SELECT count(*), count(DISTINCT finding.task) FROM finding WHERE {condition}", parameters
    ).fetchone()
    matching, its_parameters = _where(window, replace(where, with_muted=True))
    muted = _number(db, f"SELECT count(*) FROM finding WHERE {matching} AND {_MUTED}", its_parameters)
    chosen = db.execute(
        "SELECT task.id, store, owner, task_id, incarnation FROM"
        f" (SELECT finding.task, max(finding.id) AS newest FROM finding WHERE {condition}"
        " GROUP BY finding.task ORDER BY newest DESC LIMIT ? OFFSET ?) AS found"
        " CROSS JOIN task ON task.id = found.task ORDER BY newest DESC",
        [*parameters, limit, offset],
    ).fetchall()
    if not chosen:
        return AlertPage((), tasks, found, muted)
    listed = _rows(
        db,
        f"WHERE finding.task IN ({sql.marks(chosen)}) AND {condition} ORDER BY finding.id DESC",
        [*(task for task, *_ in chosen), *parameters],
    )
    by_task: defaultdict[int, list[FindingRow]] = defaultdict(list)
    for task, row in listed:
        by_task[task].append(row)
    groups = [TaskAlerts(TaskKey(*key), tuple(by_task[task])) for task, *key in chosen]
    return AlertPage(tuple(groups), tasks, found, muted)


def newest_violation(db: sqlite3.Connection, window: Window) -> FindingRow | None:
    """The newest finding that violates; one that is muted only where all are."""
    for with_muted in (False, True):
        found = rows(db, window, replace(_VIOLATING, with_muted=with_muted), 0, 1)
        if found:
            return found[0]
    return None


def muted_tasks(db: sqlite3.Connection, window: Window) -> int:
    """How many violated tasks have no violation that is not muted."""
    condition, parameters = _where(window, _VIOLATING)
    return _number(
        db,
        f"SELECT count(DISTINCT finding.task) FROM finding WHERE {condition} AND {_MUTED}"
        " AND NOT EXISTS (SELECT 1 FROM finding AS other WHERE other.task = finding.task"
        f" AND other.severity <> '{c.INFO}' AND {_LISTED.replace('finding.id', 'other.id')})",
        parameters,
    )


def new_violations(db: sqlite3.Connection, window: Window) -> int:
    """How many findings that violate have no note."""
    condition, parameters = _where(window, _VIOLATING)
    return _number(
        db,
        f"SELECT count(*) FROM finding WHERE {condition}"
        " AND finding.id NOT IN (SELECT finding FROM noted)",
        parameters,
    )


def _where(window: Window, where: FindingFilter) -> sql.Query:
    condition, parameters = sql.finding_where(window, where.rules, where.severities)
    return (condition if where.with_muted else f"{condition} AND {_LISTED}"), parameters


def _number(db: sqlite3.Connection, statement: str, parameters: Sequence[Any]) -> int:
    return int(db.execute(statement, parameters).fetchone()[0])


def _rows(
    db: sqlite3.Connection, selection: str, parameters: Sequence[Any]
) -> list[tuple[int, FindingRow]]:
    """Findings with the row ids of their tasks."""
    found = db.execute(
        f"SELECT {sql.FINDING_COLUMNS}, finding.task FROM {sql.FINDING_TABLES} {selection}", parameters
    ).fetchall()
    said = notes.of(db, [row[0] for row in found])
    return [(row[-1], replace(_row(row), notes=said.get(row[0], ()))) for row in found]


def _row(row: tuple[Any, ...]) -> FindingRow:
    return FindingRow(
        id=row[0],
        finding=Finding(
            task=TaskKey(*row[1:5]),
            rule=row[5],
            severity=row[6],
            certainty=row[7],
            witness=tuple(msgspec.json.decode(row[8])),
            explanation=row[9],
            key=row[10],
        ),
        run=row[11],
        seen_unix_nano=row[12],
        at_unix_nano=row[13],
    )
