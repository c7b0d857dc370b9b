"""The questions of the pages as SQL, each a statement and its parameters; those on tasks: `task_sql`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.protocol import Window
from a2a_fencing_dashboard.store.sqlite.tallies import ALL_TIME, WIDTHS

Query = tuple[str, list[Any]]

RUN: Final = "(SELECT id FROM run WHERE label = ?)"
_NS: Final = 1_000_000_000
TASK_COLUMNS: Final = (
    "task.id, store, owner, task_id, incarnation, context_id,"
    " (SELECT label FROM run WHERE run.id = task.run), verdict, state, version, facts, writes,"
    " conflicts, rejections, drops, dispatches, replicas, first, last"
)
FINDING_COLUMNS: Final = (
    "finding.id, store, owner, task_id, finding.incarnation, rule, severity, certainty, witness,"
    " explanation, key, (SELECT label FROM run WHERE run.id = finding.run), seen, finding.at"
)
# Crossed, so that SQLite begins with the findings, of which there are fewer.
FINDING_TABLES: Final = "finding CROSS JOIN task ON task.id = finding.task"
SEVERITY_ORDER: Final = f"CASE severity WHEN '{c.CRITICAL}' THEN 0 WHEN '{c.WARNING}' THEN 1 ELSE 2 END"


class Where:
    """Conditions that must all hold, with their parameters."""

    def __init__(self) -> None:
        """Starts without any."""
        self._conditions: list[str] = []
        self.parameters: list[Any] = []

    def __str__(self) -> str:
        """As SQL."""
        return " AND ".join(self._conditions) or "1"

    def add(self, condition: str, *parameters: Any) -> None:
        """Adds a condition."""
        self._conditions.append(condition)
        self.parameters += parameters

    def any_of(self, column: str, values: Collection[Any]) -> None:
        """Adds that a column has one of these values; any, where there are none."""
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
        where = Where()
        where.add("width = ?", width)
        _add_buckets(where, first, end)
        add_replicas_of_run(where, window)
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
    where = Where()
    where.add("width = ?", width)
    _add_buckets(
        where,
        None if first is None else first // bucket_s * bucket_s,
        None if end is None else -(-end // bucket_s) * bucket_s,
    )
    where.any_of("measure", m.SERIES)
    add_replicas_of_run(where, window)
    return (
        "SELECT bucket - bucket % ? AS start, instance, measure, sum(count)"
        f" FROM tally JOIN replica ON replica.id = tally.replica WHERE {where}"
        " GROUP BY start, tally.replica, measure HAVING sum(count) > 0 ORDER BY start",
        [bucket_s, *where.parameters],
    )


def replicas(window: Window) -> Query:
    """Replicas of the window's run, in the columns of `ReplicaRow`."""
    where = Where()
    if window.run is not None:
        where.add(f"replica.run = {RUN}", window.run)
    return (
        "SELECT instance, name, run.label, started, last_seen, interval_s, sdk_version, guard, facts,"
        f" missing, lost, executing, skew FROM replica LEFT JOIN run ON run.id = replica.run"
        f" WHERE {where} ORDER BY name, replica.id",
        where.parameters,
    )


def facts(run: str | None) -> Query:
    """Every fact with its task's key, or those that the replicas of a run reported."""
    of_run = "" if run is None else f" WHERE replica.run = {RUN}"
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


def finding_where(window: Window, rules: Collection[str], severities: Collection[str]) -> Query:
    """Which findings match, as a condition."""
    where = Where()
    if window.run is not None:
        where.add(f"finding.run = {RUN}", window.run)
    if window.since is not None:
        where.add("at >= ?", window.since)
    if window.until is not None:
        where.add("at <= ?", window.until)
    where.any_of("rule", rules)
    where.any_of("severity", severities)
    return str(where), where.parameters


def add_replicas_of_run(where: Where, window: Window) -> None:
    """Adds that counts are of replicas of the window's run."""
    if window.run is not None:
        where.add(f"tally.replica IN (SELECT id FROM replica WHERE run = {RUN})", window.run)


def _add_buckets(where: Where, first: int | None, end: int | None) -> None:
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
