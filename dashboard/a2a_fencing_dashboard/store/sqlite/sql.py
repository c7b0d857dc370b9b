"""The questions of the pages as SQL: each function gives a statement and its parameters."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.protocol import TaskFilter, Window
from a2a_fencing_dashboard.store.summary import VERDICTS

Query = tuple[str, list[Any]]

_RUN: Final = "(SELECT id FROM run WHERE label = ?)"
_NS: Final = 1_000_000_000

TASK_COLUMNS: Final = (
    "task.id, store, owner, task_id, incarnation, context_id,"
    " (SELECT label FROM run WHERE run.id = task.run), verdict, state, version, facts, writes,"
    " conflicts, rejections, drops, dispatches, first, last"
)

FINDING_TABLES: Final = "finding JOIN task ON task.id = finding.task"
FINDING_COLUMNS: Final = (
    "finding.id, store, owner, task_id, finding.incarnation, rule, severity, certainty, witness,"
    " explanation, key, (SELECT label FROM run WHERE run.id = task.run), seen"
)
SEVERITY_ORDER: Final = f"CASE severity WHEN '{c.CRITICAL}' THEN 0 WHEN '{c.WARNING}' THEN 1 ELSE 2 END"

_SORTS: Final = {
    "last": "last",
    "verdict": "verdict",
    "state": "state",
    "task_id": "task_id",
    "facts": "facts",
    "conflicts": "conflicts",
    "drops": "drops",
    "dispatches": "dispatches",
}

# Widths of bucket in `tally`, widest first.
_WIDTHS: Final = (3600, 60, 1)


class _Where:
    """Conditions that must all hold, with their parameters."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.parameters: list[Any] = []

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or "1"

    def add(self, condition: str, *parameters: Any) -> None:
        self._conditions.append(condition)
        self.parameters += parameters

    def any_of(self, column: str, values: Collection[Any]) -> None:
        if values:
            self.add(f"{column} IN ({marks(values)})", *values)


def marks(values: Collection[Any]) -> str:
    """As many question marks as there are values."""
    return ", ".join("?" * len(values))


def totals(window: Window) -> Query:
    """Counts by measure and detail in a window."""
    where = _Where()
    _add_replicas_of_run(where, window)
    _add_buckets(where, window)
    return (
        f"SELECT measure, detail, sum(count) FROM tally WHERE {where}"
        " GROUP BY measure, detail HAVING sum(count) > 0",
        where.parameters,
    )


def series(window: Window, bucket_s: int) -> Query:
    """Counts by bucket, replica and measure, in the columns of `SeriesPoint`."""
    width = next(width for width in _WIDTHS if bucket_s % width == 0)
    where = _Where()
    where.add("width = ?", width)
    if window.since is not None:
        where.add("bucket >= ?", window.since // _NS // width * width)
    if window.until is not None:
        where.add("bucket <= ?", window.until // _NS)
    where.any_of("measure", m.SERIES)
    _add_replicas_of_run(where, window)
    return (
        "SELECT bucket - bucket % ? AS start, instance, measure, sum(count)"
        f" FROM tally JOIN replica ON replica.id = tally.replica WHERE {where}"
        " GROUP BY start, instance, measure HAVING sum(count) > 0 ORDER BY start",
        [bucket_s, *where.parameters],
    )


def task_counts(window: Window) -> Query:
    """How many tasks, terminal ones, violated ones and undecided ones a window holds."""
    where = _in_window(window)
    terminal = sorted(c.TERMINAL_STATES)
    return (
        f"SELECT count(*), sum(state IN ({marks(terminal)})), sum(verdict = ?), sum(verdict = ?)"
        f" FROM task WHERE {where}",
        [*terminal, VERDICTS.index(c.VIOLATED), VERDICTS.index(c.UNKNOWN), *where.parameters],
    )


def replicas(window: Window) -> Query:
    """Replicas of the window's run, in the columns of `ReplicaRow`."""
    where = _Where()
    if window.run is not None:
        where.add(f"replica.run = {_RUN}", window.run)
    return (
        "SELECT instance, name, run.label, started, last_seen, interval_s, sdk_version, guard, facts,"
        f" missing, lost, executing, skew FROM replica LEFT JOIN run ON run.id = replica.run"
        f" WHERE {where} ORDER BY name, replica.id",
        where.parameters,
    )


def tasks(
    window: Window, where: TaskFilter, sort: str, descending: bool, offset: int, limit: int
) -> tuple[Query, Query]:
    """A page of tasks, and how many there are."""
    conditions = _in_window(window)
    _add_filter(conditions, where)
    order = f"{_SORTS[sort]} {'DESC' if descending else 'ASC'}, task.id DESC"
    return (
        f"SELECT {TASK_COLUMNS} FROM task WHERE {conditions} ORDER BY {order} LIMIT ? OFFSET ?",
        [*conditions.parameters, limit, offset],
    ), (f"SELECT count(*) FROM task WHERE {conditions}", conditions.parameters)


def findings(
    window: Window, rules: Collection[str], severities: Collection[str], offset: int, limit: int
) -> Query:
    """A page of findings, newest first."""
    where = _finding_where(window, rules, severities)
    return (
        f"SELECT {FINDING_COLUMNS} FROM {FINDING_TABLES} WHERE {where}"
        " ORDER BY finding.id DESC LIMIT ? OFFSET ?",
        [*where.parameters, limit, offset],
    )


def finding_count(window: Window, rules: Collection[str], severities: Collection[str]) -> Query:
    """How many findings match."""
    where = _finding_where(window, rules, severities)
    return f"SELECT count(*) FROM {FINDING_TABLES} WHERE {where}", where.parameters


def _finding_where(window: Window, rules: Collection[str], severities: Collection[str]) -> _Where:
    where = _Where()
    if window.run is not None:
        where.add(f"task.run = {_RUN}", window.run)
    if window.since is not None:
        where.add("at >= ?", window.since)
    if window.until is not None:
        where.add("at <= ?", window.until)
    where.any_of("rule", rules)
    where.any_of("severity", severities)
    return where


def _in_window(window: Window) -> _Where:
    """Tasks that had facts before the window's end and after its start."""
    where = _Where()
    if window.run is not None:
        where.add(f"task.run = {_RUN}", window.run)
    if window.since is not None:
        where.add("last >= ?", window.since)
    if window.until is not None:
        where.add("first <= ?", window.until)
    return where


def _add_filter(where: _Where, wanted: TaskFilter) -> None:
    if wanted.text:
        pattern = f"%{_escaped(wanted.text)}%"
        where.add(
            "(task_id LIKE ? ESCAPE '\\' OR context_id LIKE ? ESCAPE '\\' OR owner LIKE ? ESCAPE '\\')",
            pattern,
            pattern,
            pattern,
        )
    where.any_of("state", wanted.states)
    where.any_of("verdict", [VERDICTS.index(verdict) for verdict in wanted.verdicts])
    if wanted.rules:
        where.add(
            "EXISTS (SELECT 1 FROM finding WHERE finding.task = task.id"
            f" AND rule IN ({marks(wanted.rules)}))",
            *wanted.rules,
        )
    if wanted.replicas:
        where.add(
            "EXISTS (SELECT 1 FROM task_replica JOIN replica ON replica.id = task_replica.replica"
            f" WHERE task_replica.task = task.id AND instance IN ({marks(wanted.replicas)}))",
            *wanted.replicas,
        )
    for wished, column in (
        (wanted.only_conflicts, "conflicts"),
        (wanted.only_rejections, "rejections"),
        (wanted.only_drops, "drops"),
        (wanted.only_dispatches, "dispatches"),
    ):
        if wished:
            where.add(f"{column} > 0")


def _escaped(text: str) -> str:
    for character in "\\%_":
        text = text.replace(character, "\\" + character)
    return text


def _add_replicas_of_run(where: _Where, window: Window) -> None:
    if window.run is not None:
        where.add(f"tally.replica IN (SELECT id FROM replica WHERE run = {_RUN})", window.run)


def _add_buckets(where: _Where, window: Window) -> None:
    """All buckets that make up the window, as wide ones as fit."""
    if window.since is None and window.until is None:
        where.add("width = 0")
        return
    where.add("width = 1")
    if window.since is not None:
        where.add("bucket >= ?", window.since // _NS)
    if window.until is not None:
        where.add("bucket <= ?", window.until // _NS)
