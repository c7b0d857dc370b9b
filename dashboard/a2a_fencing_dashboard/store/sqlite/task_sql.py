"""The questions about tasks as SQL: which ones a filter lets through, and how many there are."""

from __future__ import annotations

from collections.abc import Collection

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store import summary as m
from a2a_fencing_dashboard.store.protocol import INDEXED_TEXT, TaskFilter, Window
from a2a_fencing_dashboard.store.sqlite.sql import (
    RUN,
    Query,
    Where,
    add_replicas_of_run,
    marks,
)
from a2a_fencing_dashboard.store.sqlite.tallies import ALL_TIME
from a2a_fencing_dashboard.store.sqlite.task_counts import MINUTE_NS
from a2a_fencing_dashboard.store.summary import VERDICTS


def total(window: Window, where: TaskFilter, count_to: int | None) -> Query:
    """How many tasks match; without counting where that is known, and no further than asked."""
    verdicts = Where()
    of_replicas = where.replicas and where == TaskFilter(replicas=where.replicas)
    if of_replicas and window == Window() and count_to is None:
        reported = _of_replicas(where.replicas)
        return f"SELECT count(DISTINCT task) FROM replica_task WHERE {reported}", reported.parameters
    if window.until is not None or where != TaskFilter(verdicts=where.verdicts):
        conditions = matching(window, where)
        if count_to is None:
            return f"SELECT count(*) FROM task WHERE {conditions}", conditions.parameters
        some = f"SELECT 1 FROM task WHERE {conditions} LIMIT ?"
        return f"SELECT count(*) FROM ({some})", [*conditions.parameters, count_to + 1]
    if window.since is not None:
        counted, parameters = _counted(window)
        verdicts.any_of("verdict", _numbers(where.verdicts))
        return (
            f"WITH counted (verdict, terminal, count) AS ({counted})"
            f" SELECT coalesce(sum(count), 0) FROM counted WHERE {verdicts}",
            [*parameters, *verdicts.parameters],
        )
    verdicts.add("width = ? AND bucket = 0 AND measure = ?", ALL_TIME, m.TASKS)
    verdicts.any_of("detail", where.verdicts)
    add_replicas_of_run(verdicts, window)
    return f"SELECT coalesce(sum(count), 0) FROM tally WHERE {verdicts}", verdicts.parameters


def _numbers(verdicts: Collection[str]) -> list[int]:
    return [VERDICTS.index(verdict) for verdict in verdicts]


def counts(window: Window) -> Query:
    """How many tasks a window holds, in measures and details as `totals` has them without a window."""
    counted, parameters = _counted(window)
    verdict = f"CASE verdict {' '.join(f'WHEN {n} THEN {v!r}' for n, v in enumerate(VERDICTS))} END"
    return (
        f"WITH counted (verdict, terminal, count) AS ({counted})"
        f" SELECT '{m.TASKS}', {verdict}, sum(count) FROM counted GROUP BY verdict HAVING sum(count) > 0"
        f" UNION ALL SELECT '{m.TERMINAL_TASKS}', '', coalesce(sum(count), 0) FROM counted"
        " WHERE terminal",
        parameters,
    )


def _counted(window: Window) -> Query:
    """Counts of the tasks in a window, by verdict and whether they are finished.

    Those of whole minutes are stored; the tasks of the minute that a window begins in are looked at, and
    all of them where it has an end, since a task may have begun any time before.
    """
    if window.since is None or window.until is not None:
        return _looked_at(_in_window(window))
    minute = -(-window.since // MINUTE_NS)
    stored = Where()
    stored.add("minute >= ?", minute)
    if window.run is not None:
        stored.add(f"origin IN (SELECT id FROM replica WHERE run = {RUN})", window.run)
    begin = _in_window(window)
    begin.add("last < ?", minute * MINUTE_NS)
    looked_at, parameters = _looked_at(begin)
    return (
        f"SELECT verdict, terminal, count FROM task_count WHERE {stored} UNION ALL {looked_at}",
        [*stored.parameters, *parameters],
    )


def _looked_at(where: Where) -> Query:
    terminal = ", ".join(f"'{state}'" for state in sorted(c.TERMINAL_STATES))
    return (
        f"SELECT verdict, coalesce(state IN ({terminal}), 0) AS terminal, count(*)"
        f" FROM task INDEXED BY task_list WHERE {where} GROUP BY verdict, terminal",
        where.parameters,
    )


def matching(window: Window, where: TaskFilter) -> Where:
    """The tasks of a window that a filter lets through."""
    conditions = _in_window(window)
    _add_filter(conditions, where)
    return conditions


def _in_window(window: Window) -> Where:
    """Tasks that had facts before the window's end and after its start."""
    where = Where()
    if window.run is not None:
        where.add(f"task.run = {RUN}", window.run)
    if window.since is not None:
        where.add("last >= ?", window.since)
    if window.until is not None:
        where.add("first <= ?", window.until)
    return where


def _add_filter(where: Where, wanted: TaskFilter) -> None:
    if len(wanted.text) >= INDEXED_TEXT:
        phrase = '"' + wanted.text.replace('"', '""') + '"'
        where.add("task.id IN (SELECT rowid / 2 FROM task_text WHERE text MATCH ?)", phrase)
    elif wanted.text:
        pattern = f"%{_escaped(wanted.text)}%"
        where.add(
            "(task_id LIKE ? ESCAPE '\\' OR context_id LIKE ? ESCAPE '\\' OR owner LIKE ? ESCAPE '\\')",
            *(pattern, pattern, pattern),
        )
    where.any_of("state", wanted.states)
    where.any_of("verdict", _numbers(wanted.verdicts))
    for rules in (wanted.rules, (c.DISPATCH_AFTER_TERMINAL,) if wanted.only_late_dispatches else ()):
        if rules:
            where.add(f"task.id IN (SELECT task FROM finding WHERE rule IN ({marks(rules)}))", *rules)
    if wanted.replicas:
        reported = _of_replicas(wanted.replicas)
        where.add(f"task.id IN (SELECT task FROM replica_task WHERE {reported})", *reported.parameters)
    for wished, column in (
        (wanted.only_conflicts, "conflicts"),
        (wanted.only_rejections, "rejections"),
        (wanted.only_drops, "drops"),
        (wanted.only_dispatches, "dispatches"),
    ):
        if wished:
            where.add(f"{column} > 0")


def _of_replicas(instances: Collection[str]) -> Where:
    where = Where()
    where.add(f"replica IN (SELECT id FROM replica WHERE instance IN ({marks(instances)}))", *instances)
    return where


def _escaped(text: str) -> str:
    for character in "\\%_":
        text = text.replace(character, "\\" + character)
    return text
