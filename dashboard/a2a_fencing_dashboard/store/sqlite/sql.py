"""The questions of the pages as SQL: each function gives a statement and its parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.protocol import TaskFilter, Window
from a2a_fencing_dashboard.store.sqlite.tallies import ALL_TIME, WIDTHS
from a2a_fencing_dashboard.store.summary import VERDICTS

Query = tuple[str, list[Any]]

_RUN: Final = "(SELECT id FROM run WHERE label = ?)"
_NS: Final = 1_000_000_000
_TRIGRAM: Final = 3
"""Shorter texts are not in the index of texts."""

TASK_COLUMNS: Final = (
    "task.id, store, owner, task_id, incarnation, context_id,"
    " (SELECT label FROM run WHERE run.id = task.run), verdict, state, version, facts, writes,"
    " conflicts, rejections, drops, dispatches, replicas, first, last"
)
FINDING_COLUMNS: Final = (
    "finding.id, store, owner, task_id, finding.incarnation, rule, severity, certainty, witness,"
    " explanation, key, (SELECT label FROM run WHERE run.id = finding.run), seen"
)
FINDING_TABLES: Final = "finding JOIN task ON task.id = finding.task"
SEVERITY_ORDER: Final = f"CASE severity WHEN '{c.CRITICAL}' THEN 0 WHEN '{c.WARNING}' THEN 1 ELSE 2 END"

SORTS: Final = frozenset(
    {"last", "verdict", "state", "task_id", "facts", "conflicts", "drops", "dispatches"}
)


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
    """Counts by measure and detail in a window, exact to the second."""
    parts: list[str] = []
    parameters: list[Any] = []
    for width, first, end in _cover(window):
        where = _Where()
        where.add("width = ?", width)
        _add_buckets(where, first, end)
        _add_replicas_of_run(where, window)
        parts.append(f"SELECT measure, detail, count FROM tally WHERE {where}")
        parameters += where.parameters
    return (
        f"SELECT measure, detail, sum(count) FROM ({' UNION ALL '.join(parts)})"
        " GROUP BY measure, detail HAVING sum(count) > 0",
        parameters,
    )


def series(window: Window, bucket_s: int) -> Query:
    """Counts by bucket, replica and measure, in the columns of `SeriesPoint`; every bucket whole."""
    width = next(width for width in WIDTHS if bucket_s % width == 0)
    first, end = _seconds(window)
    where = _Where()
    where.add("width = ?", width)
    _add_buckets(
        where,
        None if first is None else first // bucket_s * bucket_s,
        None if end is None else -(-end // bucket_s) * bucket_s,
    )
    where.any_of("measure", m.SERIES)
    _add_replicas_of_run(where, window)
    return (
        "SELECT bucket - bucket % ? AS start, instance, measure, sum(count)"
        f" FROM tally JOIN replica ON replica.id = tally.replica WHERE {where}"
        " GROUP BY start, tally.replica, measure HAVING sum(count) > 0 ORDER BY start",
        [bucket_s, *where.parameters],
    )


def task_counts(window: Window) -> Query:
    """How many tasks a window holds, in measures and details as `totals` has them without a window."""
    where = _in_window(window)
    terminal = sorted(c.TERMINAL_STATES)
    verdict = f"CASE verdict {' '.join(f'WHEN {n} THEN {v!r}' for n, v in enumerate(VERDICTS))} END"
    return (
        f"SELECT '{m.TASKS}', {verdict}, count(*) FROM task INDEXED BY task_list WHERE {where}"
        " GROUP BY verdict UNION ALL"
        f" SELECT '{m.TERMINAL_TASKS}', '', count(*) FROM task INDEXED BY task_list"
        f" WHERE {where} AND state IN ({marks(terminal)})",
        [*where.parameters, *where.parameters, *terminal],
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


def facts(run: str | None) -> Query:
    """Every fact with its task's key, or those that the replicas of a run reported."""
    of_run = "" if run is None else f" WHERE replica.run = {_RUN}"
    return (
        "SELECT task_id IS NULL, store, owner, task_id, incarnation, instance, n, body FROM fact"
        " JOIN replica ON replica.id = fact.replica LEFT JOIN task ON task.id = fact.task" + of_run,
        [] if run is None else [run],
    )


def heartbeats(instances: Collection[str]) -> Query:
    """The first, the last and the last idle heartbeat of each of these replicas."""
    return (
        "SELECT instance, n, body FROM replica JOIN fact ON task = 0 AND fact.replica = replica.id"
        " AND n IN (first_heartbeat, last_heartbeat, idle_heartbeat)"
        f" WHERE instance IN ({marks(instances)}) ORDER BY replica.id, n",
        list(instances),
    )


def received(instances: Collection[str]) -> Query:
    """Ranges of numbers that have arrived from these replicas."""
    return (
        "SELECT instance, first, last FROM replica JOIN received ON received.replica = replica.id"
        f" WHERE instance IN ({marks(instances)}) ORDER BY replica.id, first",
        list(instances),
    )


def tasks(
    window: Window, where: TaskFilter, sort: str, descending: bool, offset: int, limit: int
) -> tuple[Query, Query]:
    """A page of tasks, and how many there are."""
    conditions = _in_window(window)
    _add_filter(conditions, where)
    column = sort if sort in SORTS else "last"
    order = f"{column} {'DESC' if descending else 'ASC'}, last DESC, task.id DESC"
    return (
        f"SELECT {TASK_COLUMNS} FROM task WHERE task.id IN"
        f" (SELECT id FROM task WHERE {conditions} ORDER BY {order} LIMIT ? OFFSET ?) ORDER BY {order}",
        [*conditions.parameters, limit, offset],
    ), (f"SELECT count(*) FROM task WHERE {conditions}", conditions.parameters)


def finding_where(window: Window, rules: Collection[str], severities: Collection[str]) -> Query:
    """Which findings match, as a condition."""
    where = _Where()
    if window.run is not None:
        where.add(f"finding.run = {_RUN}", window.run)
    if window.since is not None:
        where.add("at >= ?", window.since)
    if window.until is not None:
        where.add("at <= ?", window.until)
    where.any_of("rule", rules)
    where.any_of("severity", severities)
    return str(where), where.parameters


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
    if len(wanted.text) >= _TRIGRAM:
        phrase = '"' + wanted.text.replace('"', '""') + '"'
        where.add("task.id IN (SELECT rowid / 2 FROM task_text WHERE text MATCH ?)", phrase)
    elif wanted.text:
        pattern = f"%{_escaped(wanted.text)}%"
        where.add(
            "(task_id LIKE ? ESCAPE '\\' OR context_id LIKE ? ESCAPE '\\' OR owner LIKE ? ESCAPE '\\')",
            *(pattern, pattern, pattern),
        )
    where.any_of("state", wanted.states)
    where.any_of("verdict", [VERDICTS.index(verdict) for verdict in wanted.verdicts])
    for rules in (wanted.rules, (c.DISPATCH_AFTER_TERMINAL,) if wanted.only_late_dispatches else ()):
        if rules:
            where.add(f"task.id IN (SELECT task FROM finding WHERE rule IN ({marks(rules)}))", *rules)
    if wanted.replicas:
        where.add(
            "task.id IN (SELECT task FROM replica_task WHERE replica IN"
            f" (SELECT id FROM replica WHERE instance IN ({marks(wanted.replicas)})))",
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


def _add_buckets(where: _Where, first: int | None, end: int | None) -> None:
    if first is not None:
        where.add("bucket >= ?", first)
    if end is not None:
        where.add("bucket < ?", end)


def _seconds(window: Window) -> tuple[int | None, int | None]:
    """First second of a window, and the one after its last."""
    return (
        None if window.since is None else window.since // _NS,
        None if window.until is None else window.until // _NS + 1,
    )


def _cover(window: Window) -> Iterator[tuple[int, int | None, int | None]]:
    """Buckets that make up a window: (width, first, end); wide in the middle, narrow at its ends."""
    first, end = _seconds(window)
    if first is None and end is None:
        yield ALL_TIME, None, None
        return
    for width, wider in zip(WIDTHS[::-1], WIDTHS[-2::-1], strict=False):
        if first is not None:
            begin, first = first, -(-first // wider) * wider
            if end is not None and first >= end:
                yield width, begin, end
                return
            yield width, begin, first
        if end is not None:
            last, end = end, end // wider * wider
            yield width, end, last
    yield WIDTHS[0], first, end
