"""What a store tells of runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from a2a_fencing import conventions as c
from a2a_fencing_dashboard.store.protocol import Store
from support.reports import Cluster

MS = 1_000_000


def cluster(run: str, number: int) -> Cluster:
    """A cluster with replicas of its own, so that several fit into one store."""
    made = Cluster(run)
    made.a = made.replica("api-0", f"a-{number}")
    made.b = made.replica("api-1", f"b-{number}")
    return made


@pytest.fixture
def two_runs(store: Store) -> Store:
    before, after = cluster("before", 1), cluster("after", 2)
    before.overwritten("t1")
    before.completed("t2")
    before.heartbeats()
    before.commit(store)
    after.completed("t3")
    after.a.heartbeat(guard=True)
    after.b.heartbeat(guard=True)
    after.commit(store)
    return store


def test_the_newest_run_comes_first(two_runs: Store) -> None:
    rows, total = two_runs.run_rows()
    assert ([row.label for row in rows], total) == (["after", "before"], 2)
    after, before = rows
    assert (after.replicas, after.guarded, after.tasks, after.verdict) == (2, 2, 1, c.FINE)
    assert (before.replicas, before.guarded, before.tasks) == (2, 0, 2)
    assert (before.verdict, before.violated_tasks, before.missing) == (c.VIOLATED, 1, 0)


def test_runs_come_in_pages_and_by_their_labels(two_runs: Store) -> None:
    rows, total = two_runs.run_rows(offset=1, limit=1)
    assert ([row.label for row in rows], total) == (["before"], 2)
    rows, total = two_runs.run_rows(("after", "never"))
    assert ([row.label for row in rows], total) == (["after"], 1)


def test_a_run_lasts_from_its_first_fact_about_a_task_to_its_last(store: Store) -> None:
    told = cluster("told", 1)
    told.now += 7_000 * MS
    told.heartbeats()
    told.completed()
    facts = [fact.time_unix_nano for fact in told.facts if fact.task is not None]
    told.now += 60_000 * MS
    told.heartbeats()
    told.commit(store)
    (row,), _ = store.run_rows()
    assert (row.first_unix_nano, row.last_unix_nano) == (facts[0], facts[-1])
    assert row.worked_ns == facts[-1] - facts[0]


def test_durations_are_those_of_the_run(two_runs: Store) -> None:
    before, after = (two_runs.run_durations(label) for label in ("before", "after"))
    assert (before.saves.total, after.saves.total) == (7, 3)
    assert (before.tasks.total, after.tasks.total) == (2, 1)
    saved, took = after.saves.quantile(0.5), after.tasks.quantile(0.99)
    assert saved is not None
    assert took is not None
    assert saved == pytest.approx(900_000, rel=0.05)
    assert took == pytest.approx(101 * MS, rel=0.05)


def test_they_are_the_same_after_a_restart(two_runs: Store, reopen: Callable[[], Store]) -> None:
    assert reopen().run_durations("before") == two_runs.run_durations("before")


def test_what_has_no_label_is_no_run(store: Store) -> None:
    nameless = Cluster(None)
    nameless.completed()
    nameless.heartbeats()
    nameless.commit(store)
    assert store.run_rows() == ([], 0)
    assert store.run_durations("").saves.total == 0
