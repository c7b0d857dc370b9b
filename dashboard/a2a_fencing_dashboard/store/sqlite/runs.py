"""Runs as the pages compare them, each a sum over its replicas."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.durations import Durations
from a2a_fencing_dashboard.store.runs import RunDurations, RunRow
from a2a_fencing_dashboard.store.sqlite import sql
from a2a_fencing_dashboard.store.sqlite.tallies import ALL_TIME


def rows(
    db: sqlite3.Connection, labels: Collection[str], offset: int, limit: int
) -> tuple[list[RunRow], int]:
    """Runs, newest first, and how many there are."""
    wanted = f"label IN ({sql.marks(labels)})" if labels else "1"
    (total,) = db.execute(f"SELECT count(*) FROM run WHERE {wanted}", tuple(labels)).fetchone()
    found = db.execute(
        "SELECT run.id, label, count(*), sum(guard), min(started), min(first_work), max(last_work),"
        " sum(facts), sum(missing) FROM run JOIN replica ON replica.run = run.id"
        f" WHERE run.id IN (SELECT id FROM run WHERE {wanted} ORDER BY id DESC LIMIT ? OFFSET ?)"
        " GROUP BY run.id ORDER BY run.id DESC",
        (*labels, limit, offset),
    ).fetchall()
    tasks = _tasks(db, [row[0] for row in found])
    return [_row(row[1:], tasks[row[0]]) for row in found], total


def _row(row: tuple[Any, ...], tasks: Mapping[str, int]) -> RunRow:
    label, replicas, guarded, started, first, last, facts, missing = row
    return RunRow(
        label,
        replicas,
        guarded,
        started,
        first,
        last,
        facts,
        missing,
        tasks=sum(tasks.values()),
        violated_tasks=tasks.get(c.VIOLATED, 0),
        verdict=m.verdict(tasks, missing=missing),
    )


def _tasks(db: sqlite3.Connection, runs: Collection[int]) -> dict[int, dict[str, int]]:
    """How many tasks of each verdict each run has."""
    counted: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for run, verdict, count in db.execute(
        "SELECT run, detail, sum(count) FROM replica JOIN tally ON tally.replica = replica.id"
        f" WHERE width = {ALL_TIME} AND bucket = 0 AND measure = '{m.TASKS}'"
        f" AND run IN ({sql.marks(runs)}) GROUP BY run, detail HAVING sum(count) > 0",
        tuple(runs),
    ):
        counted[run][verdict] = count
    return counted


def durations(db: sqlite3.Connection, label: str) -> RunDurations:
    """How long things took in a run."""
    of_run = "run = (SELECT id FROM run WHERE label = ?)"
    saves = db.execute(f"SELECT save_times FROM replica WHERE {of_run}", (label,))
    tasks = db.execute(
        "SELECT detail, sum(count) FROM replica JOIN tally ON tally.replica = replica.id"
        f" WHERE width = {ALL_TIME} AND bucket = 0 AND measure = '{m.TASK_TIMES}' AND {of_run}"
        " GROUP BY detail HAVING sum(count) > 0",
        (label,),
    )
    return RunDurations(
        Durations.together(Durations.decode(stored) for (stored,) in saves),
        Durations({int(detail): count for detail, count in tasks}),
    )
