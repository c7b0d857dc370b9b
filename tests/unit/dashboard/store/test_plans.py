"""No question of a page reads a whole table of facts, tasks or findings, where its answer could be kept.

SQLite says how it will go about a statement. What is listed here as reading all tasks reads them in
`task_list`, the index that has no more of a task than what it is listed by.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import FindingFilter, Store, TaskFilter, Window
from a2a_fencing_dashboard.store.sqlite import reader
from support.reports import Cluster

ALWAYS = Window()
RUN = Window(run="load-1")
SINCE = Window(since=1_760_000_000_000_000_000)
WINDOWS = (ALWAYS, RUN, SINCE, Window(RUN.run, SINCE.since))
GRAVE = (c.CRITICAL, c.WARNING)
LARGE = re.compile(r"SCAN (fact|task|finding|replica_task|span|task_count)\b(.*)")


@pytest.fixture
def plans(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], list[str]]]:
    """What was read whole since the last time this was asked: table and way."""
    cluster = Cluster()
    cluster.overwritten()
    cluster.heartbeats()
    cluster.commit(store)
    store.close()  # what was opened before is not listened to
    explaining = sqlite3.connect(tmp_path / "facts.db")
    said: list[str] = []

    class Explained(sqlite3.Connection):
        def execute(self, statement: str, parameters: object = (), /) -> sqlite3.Cursor:  # type: ignore[override]
            if statement.startswith(("SELECT", "WITH")):
                plan = explaining.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()  # type: ignore[arg-type]
                said.extend(f"{found[1]}{found[2]}" for *_, step in plan if (found := LARGE.match(step)))
            return super().execute(statement, parameters)  # type: ignore[arg-type]

    def connect(path: str) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, factory=Explained)

    monkeypatch.setattr(reader, "connect", connect)

    def since() -> list[str]:
        found = said[:]
        said.clear()
        return found

    yield since
    explaining.close()


@pytest.mark.parametrize("window", WINDOWS)
def test_the_pages_that_count(store: Store, plans: Callable[[], list[str]], window: Window) -> None:
    store.overview(window)
    store.series(window, 60)
    store.replicas(window)
    store.new_violations(window)
    store.run_rows()
    store.run_durations("load-1")
    store.data_version()
    assert plans() == []


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("where", [TaskFilter(), TaskFilter(verdicts=(c.VIOLATED,))])
def test_how_many_tasks_there_are_is_not_counted(
    store: Store, plans: Callable[[], list[str]], window: Window, where: TaskFilter
) -> None:
    store.tasks(window, where)
    assert not [step for step in plans() if "COVERING INDEX task_list" not in step]


def test_a_page_of_the_newest_tasks(store: Store, plans: Callable[[], list[str]]) -> None:
    rows, total = store.tasks(ALWAYS, TaskFilter())
    assert len(rows) == total == 1
    # From its end, and no further than the page.
    assert plans() == ["task USING COVERING INDEX task_list"]


@pytest.mark.parametrize(
    "where",
    [
        TaskFilter(states=(c.CANCELED,)),
        TaskFilter(only_conflicts=True, only_drops=True),
        TaskFilter(text="abc"),
        TaskFilter(rules=(c.TERMINAL_OVERWRITTEN,)),
        TaskFilter(replicas=("A",)),
    ],
)
@pytest.mark.parametrize("sort", ["last", "facts", "verdict", "state"])
def test_filters_read_no_more_of_a_task_than_it_is_listed_by(
    store: Store, plans: Callable[[], list[str]], where: TaskFilter, sort: str
) -> None:
    store.tasks(ALWAYS, where, sort=sort)
    assert not [step for step in plans() if "COVERING INDEX" not in step]


def test_alerts(store: Store, plans: Callable[[], list[str]]) -> None:
    for window in WINDOWS:
        store.alerts(window, FindingFilter(severities=GRAVE))
    assert not [step for step in plans() if "COVERING INDEX finding" not in step]


def test_the_newest_findings(store: Store, plans: Callable[[], list[str]]) -> None:
    for window in WINDOWS:
        store.findings(window, severities=GRAVE)
    # From its end, and no further than the page.
    assert set(plans()) <= {"finding"}


def test_a_task(store: Store, plans: Callable[[], list[str]]) -> None:
    (row,), _ = store.tasks(ALWAYS, TaskFilter())
    plans()
    store.task(row.key)
    store.facts_of(row.key)
    store.findings_of(row.key)
    store.spans_of(["0" * 32])
    store.heartbeats(row.replicas)
    store.received(row.replicas)
    assert plans() == []
